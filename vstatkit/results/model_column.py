"""Models as columns of a table that has several of them side by side."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

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


def numbers_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Take the numbers of a column from a table of estimates."""
    return frame[NUMBERS].astype(float)


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
