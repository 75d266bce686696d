"""Summaries of many iterations, with the bounds of their sampling error."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.normality import normality_tests

LEVEL = 0.99
"""Level of the bounds for differences from the printed numbers."""

PRINTED_ITERATIONS = 500
"""Iterations behind each number in the paper's Table 2."""

NORMALITY_ITERATIONS = 20
"""Iterations below which the normality statistic says nothing."""


@dataclass(frozen=True)
class Ratio:
    """Mean estimated variance over the true variance.

    Attributes
    ----------
    value : ndarray
        The ratio.
    spread : ndarray
        Standard deviation of one iteration's share in it: its standard error is
        `spread / sqrt(iterations)`.
    iterations : int
        Number of iterations.
    """

    value: Floats
    spread: Floats
    iterations: int

    def half_width(self, level: float, others: int | None = None) -> Floats:
        """Bound of the sampling error.

        Parameters
        ----------
        level : float
            Two-sided level.
        others : int, optional
            Iterations of a second study of the same quantity; the bound is then
            for the difference of the two.
        """
        share = 1 / self.iterations + (0 if others is None else 1 / others)
        return np.asarray(normal_quantile(level) * self.spread * np.sqrt(share))


def normal_quantile(level: float) -> float:
    """Two-sided quantile of the normal distribution."""
    return float(stats.norm.isf((1 - level) / 2))


def true_variance(mean: Floats) -> Floats:
    """Variance of the estimates over iterations (the first axis)."""
    return np.asarray(mean.var(axis=0, ddof=1))


def variance_ratio(mean: Floats, variance: Floats) -> Ratio:
    """Divide the mean estimated variance by the true one.

    Parameters
    ----------
    mean, variance : ndarray of shape (iterations, ...)
        Estimates, and their estimated variances.

    Notes
    -----
    Both are estimated from the same iterations. Iteration j moves the ratio R by
    `(V_j - R (f_j - fbar)**2) / s2` over the number of iterations, to first order.
    """
    truth = true_variance(mean)
    value = variance.mean(axis=0) / truth
    moves = (variance - value * (mean - mean.mean(axis=0)) ** 2) / truth
    return Ratio(value, moves.std(axis=0, ddof=1), len(mean))


def covered(mean: Floats, half_width: Floats) -> Floats:
    """Tell which intervals cover the mean of all estimates; NaN covers nothing."""
    distance = np.abs(mean - mean.mean(axis=0))
    return np.asarray(distance <= half_width, dtype=np.float64)


def binomial_interval(successes: Floats, trials: int, level: float) -> Floats:
    """Clopper and Pearson's exact interval of a proportion, shape (2, ...)."""
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, successes, trials - successes + 1)
    high = stats.beta.isf(tail, successes + 1, trials - successes)
    low = np.where(successes == 0, 0.0, low)
    return np.stack([low, np.where(successes == trials, 1.0, high)])


def proportion_bound(one: Floats, n_one: int, two: Floats, n_two: int) -> Floats:
    """Bound of the difference of two proportions of the same events."""
    pooled = (one * n_one + two * n_two) / (n_one + n_two)
    variance = pooled * (1 - pooled) * (1 / n_one + 1 / n_two)
    return normal_quantile(LEVEL) * np.sqrt(variance)


def normality_bound() -> float:
    """Bound of the difference of two normality statistics of normal numbers.

    Each is chi-square with two degrees of freedom; the absolute difference of two
    independent ones has the same law.
    """
    return float(stats.chi2.isf(1 - LEVEL, 2))


def normality_statistic(mean: Floats) -> Floats:
    """D'Agostino and Pearson's statistic of every column, shape (m,).

    NaN for fewer than `NORMALITY_ITERATIONS` iterations.
    """
    if len(mean) < NORMALITY_ITERATIONS:
        return np.full(mean.shape[1], np.nan)
    return normality_tests(mean)["omnibus"].to_numpy(dtype=np.float64)
