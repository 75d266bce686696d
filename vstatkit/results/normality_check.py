"""Check whether normal intervals are reliable, from one fit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.normality import influence_powers, studentised_tails
from vstatkit.pickling import pickled_plainly
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.validation import check_alpha
from vstatkit.variance.influence import InfluenceNoise, cumulants

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from statsmodels.iolib.summary import Summary

    from vstatkit.results.estimate_table import EstimateTable

TWO_SIDED = 0.2
"""Share of alpha that the coverage may be off."""

ONE_SIDED = 0.5
"""Share of alpha / 2 that each side may be off."""

MOST_OF_ONE = 0.25
"""Share of the variance that one unit may have."""

SAFE, LOPSIDED, NOT_SAFE, UNKNOWN = "safe", "lopsided", "not safe", "not known"

MEANINGS = {
    SAFE: "the interval covers about as often as it says, and misses on both sides "
    "alike.",
    LOPSIDED: "the interval covers about as often as it says, but misses on one side "
    "much more often than on the other: do not use it one-sided.",
    NOT_SAFE: "the interval does not cover as often as it says, or one unit has over "
    f"{MOST_OF_ONE:.0%} of the variance. See `bootstrap`.",
    UNKNOWN: "the Monte Carlo error of the skewness is too large to tell. Grow more "
    "learners with `more`.",
}
"""What the verdicts mean."""


@pickled_plainly
@dataclass(frozen=True)
class NormalityCheck:
    """Diagnosis of the normality of estimates, from one fit.

    Attributes
    ----------
    frame : DataFrame
        One row per estimate. `skew` and `kurtosis` (3 if normal) of the estimate, as
        the influences imply them; `skew_mc_se`, the Monte Carlo standard error of the
        skewness; `largest_share` of the variance that one unit has; `zeta_ratio`,
        `zeta_k / (n zeta_1)`, which must be small for normality; `miss_above` and
        `miss_below`, the probabilities that the interval lies above or below the
        truth, alpha/2 each if normal; their rest `coverage`; and the `verdict`.
    alpha : float
        One minus the coverage of the intervals.
    """

    frame: pd.DataFrame
    alpha: float

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdicts that occur, each with its meaning."""
        occurring = set(self.frame["verdict"])
        return {
            verdict: text for verdict, text in MEANINGS.items() if verdict in occurring
        }

    def summary(self) -> "Summary":
        """Lay the table out as statsmodels does: text, HTML, LaTeX or CSV."""
        from vstatkit.results.summary import summarise_normality  # noqa: PLC0415 slow import

        return summarise_normality(self)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how often the intervals miss on either side."""
        from vstatkit.plots.tests import plot_misses  # noqa: PLC0415 on demand

        return plot_misses(self, ax=ax)

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        counts = self.frame["verdict"].value_counts()
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        return f"<NormalityCheck: {verdicts}>"

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


def check_normality(results: "EstimateTable", alpha: float) -> NormalityCheck:
    """Check the estimates; see `EnsembleResults.normality_check`."""
    check_alpha(alpha)
    design, estimates = results.design, results.estimates
    shards = isinstance(design, ShardsDesign)
    if design.has_groups and not shards:
        raise ValueError(
            f"with design={design.name!r} learners depend on each other, so that the "
            "noise of influences is not known. Fit with design='iid'."
        )
    unit = estimates.unit
    powers = influence_powers(design, results.values / unit)
    if shards or design.complete:
        noise = InfluenceNoise.zero(len(unit))
    else:
        noise = InfluenceNoise.of(
            results.values / unit, design.k, design.n, replace=design.replace
        )
    shape = cumulants(powers, noise)
    critical = float(stats.t.isf(alpha / 2, powers.n - 1))
    above, below = studentised_tails(critical, shape.skew, shape.excess, powers.n)
    frame = pd.DataFrame(
        {
            "skew": shape.skew,
            "kurtosis": 3 + shape.excess,
            "skew_mc_se": shape.skew_error,
            "largest_share": _largest_shares(results),
            "zeta_ratio": _ratio(
                design.k**2 * estimates.scaled.zeta_k, design.n**2 * estimates.positive
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


def _largest_shares(results: "EstimateTable") -> Floats:
    """Take the share of the most influential unit in each variance."""
    frame = results.most_influential
    return np.zeros(len(results.labels)) if frame is None else frame["share"].to_numpy()


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)


def _verdicts(frame: pd.DataFrame, shift: Floats, alpha: float) -> list[str]:
    """Judge; `shift` is what two Monte Carlo errors of the skewness may move a side."""
    sides = frame[["miss_above", "miss_below"]].to_numpy()
    coverage, largest = frame["coverage"].to_numpy(), frame["largest_share"].to_numpy()
    off = np.abs(sides - alpha / 2).max(axis=1) > ONE_SIDED * alpha / 2
    wrong = np.abs(coverage - (1 - alpha)) > TWO_SIDED * alpha
    wrong |= (sides < 0).any(axis=1) | (largest > MOST_OF_ONE)
    unknown = shift > ONE_SIDED * alpha / 2
    chosen = np.select([unknown, wrong, off], [UNKNOWN, NOT_SAFE, LOPSIDED], SAFE)
    return [str(verdict) for verdict in chosen]
