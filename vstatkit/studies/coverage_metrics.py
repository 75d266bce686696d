"""Performance of methods over data sets: variance ratio, coverage, and their errors."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.studies.experiment import Record
from vstatkit.studies.methods import Intervals
from vstatkit.studies.simulation import Arm

BOUNDS = 0.95  # level of the Monte Carlo bounds


@dataclass(frozen=True)
class Ratio:
    """Mean estimated variance over the true variance."""

    value: Floats
    spread: Floats  # standard error of `value`, times the root of `iterations`
    iterations: int

    def half_width(self, level: float, others: int | None = None) -> Floats:
        """Bound the sampling error at a two-sided level.

        With `others`, the number of iterations of a second study, bound the
        difference of the two studies.
        """
        share = 1 / self.iterations + (1 / others if others else 0)
        return np.asarray(normal_quantile(level) * self.spread * np.sqrt(share))


def normal_quantile(level: float) -> float:
    """Two-sided quantile of the normal distribution."""
    return float(stats.norm.isf((1 - level) / 2))


def true_variance(mean: Floats) -> Floats:
    """Variance of the estimates over iterations (the first axis)."""
    return np.asarray(mean.var(axis=0, ddof=1))


def variance_ratio(mean: Floats, variance: Floats) -> Ratio:
    """Divide the mean estimated variance by the true one; iterations are first axis.

    Both are estimated from the same iterations. To first order, iteration j changes
    the ratio R by `(V_j - R (f_j - fbar)**2) / s2` divided by their number.
    """
    truth = true_variance(mean)
    value = variance.mean(axis=0) / truth
    changes = (variance - value * (mean - mean.mean(axis=0)) ** 2) / truth
    return Ratio(value, changes.std(axis=0, ddof=1), len(mean))


def covers_mean(mean: Floats, half_width: Floats) -> Floats:
    """Return 1 where an interval covers the mean of all estimates; NaN never covers."""
    distance = np.abs(mean - mean.mean(axis=0))
    return np.asarray(distance <= half_width, dtype=np.float64)


def binomial_interval(successes: Floats, trials: int, level: float) -> Floats:
    """Clopper and Pearson's exact interval of a proportion, shape (2, ...)."""
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, successes, trials - successes + 1)
    high = stats.beta.isf(tail, successes + 1, trials - successes)
    low = np.where(successes == 0, 0.0, low)
    return np.stack([low, np.where(successes == trials, 1.0, high)])


def interval_frame(record: Record, arm: Arm, points: pd.Index) -> pd.DataFrame:
    """Tabulate an arm whose measure is `Intervals`, one row per method, B and point.

    The columns are those of `coverage`, with `ratio_spread` and `iterations`.
    """
    if not isinstance(arm.measure, Intervals):
        raise TypeError(f"arm {arm.label!r} does not measure intervals.")
    fields = ("mean", "variance", "half_width")
    mean, variance, half = (record[f"{arm.label}/{field}"] for field in fields)
    mean = mean[:, :, None, :]  # iterations, sizes, methods, points
    # Equal numbers do not vary, but their computed mean may be off by rounding.
    varying = np.where(np.ptp(mean, axis=0) == 0, 0.0, mean)
    inside = covers_mean(varying, half)
    with np.errstate(divide="ignore", invalid="ignore"):  # the variance may be zero
        ratio = variance_ratio(np.broadcast_to(varying, variance.shape), variance)
    value = np.where(np.isinf(ratio.value), np.nan, ratio.value)
    error = ratio.half_width(BOUNDS)
    bounds = binomial_interval(inside.sum(axis=0), len(mean), BOUNDS)
    rows = []
    cells = map(enumerate, (arm.measure.methods, arm.sizes, points))
    for (j, method), (i, size), (q, point) in product(*cells):
        at = (i, j, q)
        rows.append(
            {
                "method": method.label,
                "B": size,
                "point": point,
                "mean": mean[:, i, 0, q].mean(),
                "true_variance": float(true_variance(varying[:, i, 0, q])),
                "mean_variance": variance[:, i, j, q].mean(),
                "ratio": value[at],
                "ratio_lower": value[at] - error[at],
                "ratio_upper": value[at] + error[at],
                "coverage": inside[:, i, j, q].mean(),
                "coverage_lower": bounds[0][at],
                "coverage_upper": bounds[1][at],
                "ratio_spread": ratio.spread[at],
                "iterations": len(mean),
            }
        )
    return pd.DataFrame(rows)
