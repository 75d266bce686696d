"""Checks of estimates: normality of their intervals, and other variance estimators."""

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Labels
from vstatkit.inference.edgeworth import studentised_tails
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.results.estimate_table import EstimateTable
from vstatkit.results.labels import label_texts
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.validation import check_alpha
from vstatkit.variance.influence_summaries import (
    InfluenceNoise,
    InfluencePowers,
    cumulants,
    influence_blocks,
)
from vstatkit.variance.registry import ESTIMATORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

TWO_SIDED = 0.2  # largest tolerated error of the coverage, as a share of alpha
ONE_SIDED = 0.5  # largest tolerated error of each side, as a share of alpha / 2
MOST_OF_ONE = 0.25  # largest tolerated share of the variance that is due to one unit

SAFE, LOPSIDED, NOT_SAFE, UNKNOWN = "safe", "lopsided", "not safe", "not known"

# Meanings of the verdicts.
MEANINGS = {
    SAFE: "the coverage is close to nominal, and so is the error on each side.",
    LOPSIDED: "the coverage is close to nominal, but the interval misses much more "
    "often on one side than on the other: do not use it one-sided.",
    NOT_SAFE: "the coverage is not close to nominal, or more than "
    f"{MOST_OF_ONE:.0%} of the variance is due to one unit. See `bootstrap`.",
    UNKNOWN: "the Monte Carlo error of the skewness is too large for a verdict. Grow "
    "more learners with `more`.",
}


@pickled_plainly
@dataclass(frozen=True)
class NormalityCheck:
    """Diagnosis of the normality of estimates, from one fit.

    Attributes
    ----------
    frame : DataFrame
        One row per estimate. `skew` and `kurtosis` (3 if normal) of the estimate, as
        implied by the influences; `skew_mc_se`, the Monte Carlo standard error of the
        skewness; `largest_share` of the variance that is due to one unit; `zeta_ratio`,
        `zeta_k / (n zeta_1)`, which must be small for normality; `miss_above` and
        `miss_below`, the probabilities that the interval lies above or below the true
        value, alpha/2 each if normal; `coverage`; and the `verdict`.
    alpha : float
        One minus the coverage of the intervals.
    """

    frame: pd.DataFrame
    alpha: float

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdicts that occur, each with its meaning."""
        occurring = set(self.frame["verdict"])
        return {name: text for name, text in MEANINGS.items() if name in occurring}

    def summary(self) -> "Summary":
        """Summarise in a table like statsmodels': text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_normality  # noqa: PLC0415 slow import

        return summarise_normality(self)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how often the intervals miss on either side."""
        from vstatkit.plots.estimates import plot_misses  # noqa: PLC0415 on demand

        return plot_misses(self, ax=ax)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        counts = self.frame["verdict"].value_counts()
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"<NormalityCheck: {verdicts}>"

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


def check_normality(results: EstimateTable, alpha: float) -> NormalityCheck:
    """Compute `EstimateTable.normality_check`."""
    check_alpha(alpha)
    design, estimates = results.design, results.estimates
    shards = isinstance(design, ShardsDesign)
    if design.has_groups and not shards:
        raise ValueError(
            f"normality_check requires independent learners; with "
            f"design={design.name!r} the noise of the influences is unknown. Fit with "
            "design='iid'."
        )
    values = results.values / estimates.unit
    powers = InfluencePowers.of(influence_blocks(design, values))
    if shards or design.complete:
        noise = InfluenceNoise(np.zeros(values.shape[1]))
    else:
        noise = InfluenceNoise.of(values, design.k, design.n, replace=design.replace)
    shape = cumulants(powers, noise)
    critical = float(stats.t.isf(alpha / 2, powers.n - 1))
    above, below = studentised_tails(critical, shape.skew, shape.excess, powers.n)
    largest, linear = results.most_influential, design.n**2 * estimates.positive
    frame = pd.DataFrame(
        {
            "skew": shape.skew,
            "kurtosis": 3 + shape.excess,
            "skew_mc_se": shape.skew_error,
            "largest_share": 0.0 if largest is None else largest["share"].to_numpy(),
            "zeta_ratio": np.divide(
                design.k**2 * estimates.scaled.zeta_k,
                linear,
                out=np.zeros_like(linear),
                where=linear > 0,
            ),
            "miss_above": above,
            "miss_below": below,
            "coverage": 1 - above - below,
        },
        results.labels,
    )
    shift = 2 * shape.skew_error * (2 * critical**2 + 1) / 6 * stats.norm.pdf(critical)
    frame["verdict"] = _verdicts(frame, np.asarray(shift), alpha)
    return NormalityCheck(frame, alpha)


def _verdicts(frame: pd.DataFrame, shift: Floats, alpha: float) -> list[str]:
    """Choose verdicts; `shift` is the effect of two Monte Carlo errors on a side."""
    sides = frame[["miss_above", "miss_below"]].to_numpy()
    coverage, largest = frame["coverage"].to_numpy(), frame["largest_share"].to_numpy()
    off = np.abs(sides - alpha / 2).max(axis=1) > ONE_SIDED * alpha / 2
    wrong = np.abs(coverage - (1 - alpha)) > TWO_SIDED * alpha
    wrong |= (sides < 0).any(axis=1) | (largest > MOST_OF_ONE)
    unknown = shift > ONE_SIDED * alpha / 2
    verdicts = np.select([unknown, wrong, off], [UNKNOWN, NOT_SAFE, LOPSIDED], SAFE)
    return [str(verdict) for verdict in verdicts]


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
        from vstatkit.plots.estimates import plot_comparison  # noqa: PLC0415 on demand

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
