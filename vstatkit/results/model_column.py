"""Models as columns of a table that has several of them side by side."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

R_SQUARED = "R-squared"
OBSERVATIONS = "Observations"
LEARNERS = "Base learners B"

NUMBERS = ["estimate", "std_error", "t", "p_value", "ci_lower", "ci_upper"]
"""What a column holds about each term."""


@dataclass(frozen=True)
class Column:
    """One model of a table.

    Attributes
    ----------
    response : str
        Dependent variable.
    kind : str
        What was fitted, or asked of a fit.
    frame : DataFrame
        `estimate std_error t p_value ci_lower ci_upper` of every term.
    stats : dict
        What is said of the whole model: observations, learners, scores.
    note : str
        What its terms are, where they are not coefficients.
    own_test : bool
        Whether p-values do not follow from estimates and standard errors, so that they
        are shown.
    """

    response: str
    kind: str
    frame: pd.DataFrame
    stats: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    own_test: bool = False


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Take the numbers of a column from a table of estimates."""
    return frame[NUMBERS].astype(float)


@dataclass(frozen=True)
class ModelData:
    """Names of what was estimated, where statsmodels' tables look for them.

    Attributes
    ----------
    param_names : list of str
        Names of `params`.
    ynames : str
        Name of the response.
    """

    param_names: list[str]
    ynames: str


@dataclass(frozen=True)
class FittedModel:
    """What was fitted, by statsmodels' names.

    Attributes
    ----------
    formula : str or None
        As written; None for a statistic or learners that were fitted elsewhere.
    endog_names : str
        Response.
    exog_names : list of str
        Columns of the design matrix; names of the estimates where there is none.
    kernel : str
        What was evaluated on each subsample.
    data : ModelData
        Names of the estimates.
    """

    formula: str | None
    endog_names: str
    exog_names: list[str]
    kernel: str
    data: ModelData


SHORT = {"b": "estimate", "se": "std_error", "t": "t", "p": "p_value"}

SHORT |= {"ci95l": "ci_lower", "ci95u": "ci_upper"}
"""maketables' names of the columns."""

KEYS = {
    "N": "Observations",
    "r2": "OOB R-squared",
    "rmse": "OOB RMSE",
    "accuracy": "OOB accuracy",
    "log_loss": "OOB log-loss",
    "B": "Base learners B",
}
"""What maketables may ask for."""


class TabularModel(ABC):
    """What tables of other packages read: statsmodels' `model`, maketables' protocol.

    maketables reads its names from any object; it is not needed here.
    """

    @abstractmethod
    def _column(self, alpha: float = 0.05) -> Column:
        """Describe this model as a column of a table of models."""

    @property
    def model(self) -> FittedModel:
        """What was estimated, by statsmodels' names."""
        column = self._column()
        names = [str(name) for name in column.frame.index]
        data = ModelData(names, column.response)
        return FittedModel(None, column.response, names, column.kind, data)

    @property
    def __maketables_coef_table__(self) -> pd.DataFrame:
        frame = self._column().frame
        return pd.DataFrame({short: frame[name] for short, name in SHORT.items()})

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
