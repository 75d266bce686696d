"""Descriptions of models: for the header of a summary, and as columns of tables."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.text import short_repr


@dataclass(frozen=True)
class Growth:
    """How the number of learners was chosen."""

    tol: float | None = None  # tolerance of `B="auto"`; None if B was given
    max_B: int | None = None  # largest B
    atol: float | None = None  # absolute tolerance; None for the default


@dataclass(frozen=True)
class Aim:
    """Target of the intervals of trees in stages."""

    learner: str  # description of a learner
    truth: bool = False  # whether the learner was chosen for intervals of E[y|x]
    errors: dict[str, float] = field(default_factory=dict)  # of the candidates, OOB
    # Out-of-bag estimate of the remaining bias at the query points, and standard error
    bias: tuple[float, ...] = ()
    bias_error: tuple[float, ...] = ()
    # Description of the stacked ensemble that estimates come from, if any
    mix: str | None = None

    @property
    def without_bias(self) -> "Aim":
        """The target of other estimates than those whose bias was estimated."""
        return replace(self, bias=(), bias_error=())


@pickled_plainly
@dataclass(frozen=True)
class ModelInfo:
    """Description of a model, for the header of the summary."""

    title: str  # of the summary
    response: str  # dependent variable, or name of the statistic
    kernel: str  # name of the kernel
    nobs: int  # observations used
    formula: str | None = None  # as written
    n_dropped: int = 0  # rows dropped for missing values
    units: str = "observations"  # resampled units: "observations" or "clusters"
    coefficients: bool = False  # whether the estimates are coefficients, as of OLS
    growth: Growth = field(default_factory=Growth)  # how B was chosen
    typical: pd.DataFrame | None = None  # the typical row
    # Smallest and largest value of every numeric predictor
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    unused_levels: tuple[str, ...] = ()  # levels of the response without observations
    aim: Aim | None = None  # target of the intervals of trees in stages
    weights: str | None = None  # name of the column; "given" if it has none
    groups: str | None = None  # the same
    data_notes: tuple[str, ...] = ()  # sentences on probable problems of the data
    # Whether `weights` is a column, which other rows may have too, not an array
    weights_in_column: bool = True
    # Robust scale of the response over half its range, at most one; see `robust_share`
    scale_share: float = 1.0

    __repr__ = short_repr

    def derive(self, title: str, *, other_units: bool = False) -> "ModelInfo":
        """Describe estimates that are computed from others, without their bias.

        The bias of a combination would need covariances of biases, which are unknown.
        The absolute tolerance does not apply to estimates that have other units, or
        smaller standard errors, than the estimates that B was chosen for.
        """
        aim = None if self.aim is None else self.aim.without_bias
        growth = replace(self.growth, atol=0.0) if other_units else self.growth
        return replace(self, title=title, coefficients=True, aim=aim, growth=growth)


R_SQUARED = "R-squared"
OBSERVATIONS = "Observations"
LEARNERS = "Base learners B"

# Columns of numbers of each term.
NUMBERS = ["estimate", "std_error", "t", "p_value", "ci_lower", "ci_upper"]


@dataclass(frozen=True)
class Column:
    """One model of a table."""

    response: str  # dependent variable
    kind: str  # kind of model or of estimates
    frame: pd.DataFrame  # `NUMBERS` of every term
    # Statistics of the whole model: observations, learners, scores
    stats: dict[str, Any] = field(default_factory=dict)
    note: str = ""  # description of the terms, if they are not coefficients
    # Whether to show p-values, because they do not follow from the standard errors
    own_test: bool = False


@dataclass(frozen=True)
class ModelData:
    """Names of the estimates, as statsmodels' tables read them."""

    param_names: list[str]  # names of `params`
    ynames: str  # name of the response


@dataclass(frozen=True)
class FittedModel:
    """Description of a fitted model, under statsmodels' names."""

    # As written; None for a statistic or learners that were fitted elsewhere
    formula: str | None
    endog_names: str  # response
    # Columns of the design matrix; without one, names of the estimates
    exog_names: list[str]
    kernel: str  # name of the kernel
    data: ModelData  # names of the estimates


# maketables' names of statistics.
KEYS = {
    "N": OBSERVATIONS,
    "r2": "OOB R-squared",
    "rmse": "OOB RMSE",
    "accuracy": "OOB accuracy",
    "log_loss": "OOB log-loss",
    "B": LEARNERS,
}


class TabularModel(ABC):
    """Base of results in tables: statsmodels' `model`, and maketables' protocol."""

    @abstractmethod
    def _column(self, alpha: float = 0.05) -> Column:
        """Describe this model as a column of a table of models."""

    @property
    def model(self) -> FittedModel:
        """The model, under statsmodels' names."""
        column = self._column()
        names = [str(name) for name in column.frame.index]
        data = ModelData(names, column.response)
        return FittedModel(None, column.response, names, column.kind, data)

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        names = ["b", "se", "t", "p", "ci95l", "ci95u"]
        return self._column().frame[NUMBERS].set_axis(names, axis=1)

    @property
    def __maketables_depvar__(self) -> str:
        return self._column().response

    def __maketables_stat__(self, key: str) -> Any:
        return self._column().stats.get(KEYS.get(key, key))

    @property
    def __maketables_stat_labels__(self) -> dict[str, str]:
        return KEYS

    @property
    def __maketables_default_stat_keys__(self) -> list[str]:
        stats = self._column().stats
        return [key for key, name in KEYS.items() if name in stats]
