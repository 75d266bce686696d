"""Tables of averages with standard errors."""

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from vstatkit._typing import Restrictions
from vstatkit.inference.wald import WaldTest
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.tables import estimates_frame
from vstatkit.results.tabular import Tabular
from vstatkit.results.transforming import Function, Transformed, transformed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary


@dataclass(frozen=True)
class Averages(Tabular):
    """Averages over rows, with their uncertainty.

    Attributes
    ----------
    results : EnsembleResults
        The averages as estimates, with their joint covariance: `cov_params()`,
        `t_test(...)` and all else that results have.
    settings : DataFrame
        What was averaged, one row per estimate: `from`, `to` and `step` where a
        predictor was moved, and the number of `rows`.
    what : str
        What was averaged, in words.
    rows : str
        Which rows, in words.
    se : str
        Kind of standard error, "sample" or "population".
    """

    results: EnsembleResults
    settings: pd.DataFrame
    what: str
    rows: str
    se: str

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers, with intervals of 95 %."""
        return self.summary_frame()

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate settings, estimates, tests and intervals of coverage 1 - alpha."""
        found = estimates_frame(self.results.estimates, self.settings.index, alpha)
        return pd.concat([self.settings, found], axis=1)

    @property
    def params(self) -> pd.Series:
        """Averages."""
        return self.results.params

    @property
    def bse(self) -> pd.Series:
        """Standard errors."""
        return self.results.bse

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals, one by one or all at once."""
        return self.results.conf_int(alpha, simultaneous)

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the averages, positive semi-definite."""
        return self.results.cov_params()

    def t_test(self, R: Restrictions) -> EnsembleResults:
        """Test linear combinations of the averages, one by one."""
        return self.results.t_test(R)

    def wald_test(self, R: Restrictions) -> WaldTest:
        """Test linear restrictions jointly."""
        return self.results.wald_test(R)

    def transform(self, f: Function) -> Transformed:
        """Estimate a function of the averages; see `EnsembleResults.transform`."""
        return transformed(self.results, f)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.average_tables import summarise  # noqa: PLC0415 slow

        return summarise(self, alpha)

    def plot(self, ax: "Axes | None" = None, *, alpha: float = 0.05) -> "Axes":
        """Draw the averages with their intervals."""
        from vstatkit.results import pictures  # noqa: PLC0415 loads on demand

        return pictures.plot_averages(self, alpha=alpha, ax=ax)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        text = f"{len(self.settings)} {self.what} over {self.rows}, se={self.se!r}"
        return textwrap.shorten(f"<Averages: {text}", 90) + ">"

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())
