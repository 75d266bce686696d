"""Comparison of the variance estimators that apply to one ensemble."""

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import Labels
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.labels import label_texts
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary


LEVEL = "estimator"  # name of the last level of a comparison's index
# Most rows that are printed and drawn, unless there are only two estimates.
MAX_ROWS = 40


@pickled_plainly
@dataclass(frozen=True)
class VarianceComparison:
    """Standard errors by every variance estimator that applies to the same learners.

    Attributes
    ----------
    frame : DataFrame
        One row per estimate and estimator, indexed by both: `estimate`; `sampling`,
        the raw sampling variance, which may be negative; `se`, the standard error;
        `se_mc_error`, its Monte Carlo error; `df`; `ci_lower` and `ci_upper`.
    labels : Index of length m
        Names of the estimates.
    chosen : str
        The estimator that the results use.
    left_out : dict of str to str
        Estimators that do not apply, each with the reason.
    alpha : float
        One minus the coverage of the intervals.
    """

    frame: pd.DataFrame
    labels: Labels
    chosen: str
    left_out: dict[str, str]
    alpha: float

    @property
    def estimators(self) -> list[str]:
        """Names of the estimators that apply, in the order of the registry."""
        return list(dict.fromkeys(self.frame.index.get_level_values(LEVEL)))

    def shown_tables(self) -> list[tuple[str, pd.DataFrame]]:
        """List labels and tables of the estimates; of many, the first and the last."""
        m, step = len(self.labels), len(self.estimators)
        half = max(1, MAX_ROWS // step // 2)
        places = range(m) if m <= 2 * half else [*range(half), *range(m - half, m)]
        texts = label_texts(self.labels)
        flat = self.frame.set_axis(self.frame.index.get_level_values(LEVEL))
        return [(texts[j], flat.iloc[j * step : (j + 1) * step]) for j in places]

    def summary(self) -> "Summary":
        """Summarise in tables like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_comparison  # noqa: PLC0415 slow import

        return summarise_comparison(self)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the intervals of all estimators, estimate by estimate."""
        from vstatkit.plots.importance_and_checks import plot_comparison  # noqa: PLC0415 on demand

        return plot_comparison(self, ax=ax)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        text = f"{len(self.labels)} estimates by {', '.join(self.estimators)}"
        return textwrap.shorten(f"<VarianceComparison: {text}", 90) + ">"

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


def compare_estimators(table: EstimateTable, alpha: float) -> VarianceComparison:
    """Compute `EstimateTable.compare_variance`."""
    frames: dict[str, pd.DataFrame] = {}
    left_out: dict[str, str] = {}
    for name in ESTIMATORS:
        try:
            frames[name] = _tabulate(table.with_variance(name), alpha)
        except ValueError as reason:
            left_out[name] = str(reason)
    stacked = pd.concat(frames, names=[LEVEL])
    # The rows are sorted by estimator; sort them by estimate.
    places = np.arange(len(stacked)).reshape(len(frames), -1).T.ravel()
    order = [*range(1, stacked.index.nlevels), 0]
    frame = stacked.iloc[places].reorder_levels(order)
    return VarianceComparison(frame, table.labels, table.variance, left_out, alpha)


def _tabulate(table: EstimateTable, alpha: float) -> pd.DataFrame:
    """Tabulate the numbers of one estimator."""
    estimates, bounds = table.estimates, table.conf_int(alpha)
    return pd.DataFrame(
        {
            "estimate": estimates.estimate,
            "sampling": estimates.components.sampling,
            "se": estimates.bse,
            "se_mc_error": estimates.bse_mc_error,
            "df": estimates.df,
            "ci_lower": bounds["lower"].to_numpy(),
            "ci_upper": bounds["upper"].to_numpy(),
        },
        table.labels,
    )
