"""Stopping rules: the Monte Carlo error of standard errors and the learners needed."""

from dataclasses import dataclass, replace

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates, learners_at, ratio
from vstatkit.kernels.base import AnyKernel, PredictiveModel
from vstatkit.variance.formulas import positive_mean

TOL = 0.1  # default tolerance of the relative Monte Carlo error of a standard error

# Share of the response's scale below which a standard error is small. Small ones may
# have the absolute error of the largest small one: with the default `TOL`, 0.001 for
# probabilities, and 0.006 standard deviations of a normal response. The scale is half
# the range, or three robust standard deviations if these are less.
SMALL = 0.02
WITHIN = 3.0  # number of robust standard deviations that replace half the range
MOST_SORTED = 200_000  # largest number of responses for which quartiles are computed


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of the Monte Carlo errors of standard errors."""

    tol: float  # largest error, relative to the standard error
    # (m,) or float: largest error in the unit of the estimates, if `tol` allows less
    atol: Floats | float = 0.0
    # Whether the tolerance is for the mean variance and error of all estimates, which
    # represent others, instead of for each; see `ErrorCurve`
    pooled: bool = False

    def tighten(self) -> "Tolerance":
        """Tighten the tolerance, because the variance is estimated too.

        An ensemble that overestimates its variance V seems precise too early, so the
        error s of V is compared with V - 2 s: `s / (2 (V - 2 s)) <= tol` is
        `s / (2 V) <= tol / (1 + 4 tol)`. A mean of many variances is not tightened.
        """
        margin = 1.0 if self.pooled else 1 + 4 * self.tol
        return replace(self, tol=self.tol / margin, atol=self.atol / margin)

    def allowed_error(self, estimates: Estimates) -> Floats:
        """Compute the allowed relative error, for each estimate or their mean."""
        curve = self._error_curve(estimates)
        deviation = np.sqrt(curve.variance)
        absolute = np.broadcast_to(self.atol / curve.unit, deviation.shape)
        return np.maximum(self.tol, ratio(absolute, deviation, zero=0.0))

    def excess(self, estimates: Estimates) -> float:
        """Compute the largest ratio of error and allowed error; at most one if met."""
        reached = self._error_curve(estimates).relative_error(estimates.n_learners)
        return float(np.max(reached / self.allowed_error(estimates)))

    def learners_needed(self, estimates: Estimates) -> Floats:
        """Forecast the learners that meet the tolerance, if variances are known.

        If variances are pooled, few learners are enough to know them. Then these are
        the learners from which on more of them reduce the standard error by no more
        than the tolerance.
        """
        if estimates.expected is not None:
            noise = estimates.scaled.monte_carlo * estimates.n_learners
            gap = (1 + self.allowed_error(estimates)) ** 2 - 1
            needed = ratio(noise, gap * estimates.positive)
            return needed.mean(keepdims=True) if self.pooled else needed
        curve = self._error_curve(estimates)
        target = (2 * self.allowed_error(estimates) * curve.variance) ** 2
        return learners_at(target, curve.a, curve.b)

    def _error_curve(self, estimates: Estimates) -> "ErrorCurve":
        if self.pooled:
            return ErrorCurve.of_mean(estimates)
        unit, variance = estimates.unit, estimates.likely_variance
        return ErrorCurve(variance, *estimates.error_terms, unit)


@dataclass(frozen=True)
class Shrinkage(Tolerance):
    """Share of a standard error that more learners may still remove.

    The variance of replicates is equally precise for any number of learners. More
    learners reduce the standard error itself from `sqrt(V + M)` to `sqrt(V)`, where M
    is the Monte Carlo part. The excess over the limit `sqrt(V)` may be `tol` times the
    limit, or `atol`. All estimates are pooled, because single parts are too noisy.
    """

    def tighten(self) -> "Tolerance":
        """Return the tolerance itself: the variance is unbiased at any stage."""
        return self

    def excess(self, estimates: Estimates) -> float:
        """Compute the ratio of the possible reduction and the allowed one."""
        V, M, allowed = self._parts(estimates)
        gap = np.sqrt(V + M) - np.sqrt(V)
        return float(ratio(np.array(gap), np.array(allowed)))

    def learners_needed(self, estimates: Estimates) -> Floats:
        """Compute the learners at which the possible reduction is the allowed one."""
        V, M, allowed = self._parts(estimates)
        noise = np.array(M * estimates.n_learners)
        wanted = ratio(noise, np.array(allowed**2 + 2 * allowed * np.sqrt(V)))
        return np.full(estimates.unit.shape, wanted)

    def _parts(self, estimates: Estimates) -> tuple[float, float, float]:
        """Compute mean variances V and M, and the allowed gap, in the largest unit."""
        unit = float(estimates.unit.max())
        square = (estimates.unit / unit) ** 2
        V = max(float(np.mean(estimates.scaled.sampling * square)), 0.0)
        M = float(np.mean(estimates.scaled.monte_carlo * square))
        least = float(np.mean(np.broadcast_to(self.atol, estimates.unit.shape)))
        return V, M, max(self.tol * float(np.sqrt(V)), least / unit)


@dataclass(frozen=True)
class ErrorCurve:
    """The Monte Carlo error of standard errors as a function of B."""

    variance: Floats  # (m,): squared standard errors, in squares of `unit`
    # (m,): their Monte Carlo variance is `a/B**2 + b/B`, in fourth powers of `unit`
    a: Floats
    b: Floats
    unit: Floats  # (m,): unit of the standard errors

    @classmethod
    def of_mean(cls, estimates: Estimates) -> "ErrorCurve":
        """Describe the mean of the variances and of their squared errors.

        Unless a typical share of the variance is known, the raw variances are averaged:
        their mean has little noise, and no bias from making each positive.
        """
        largest = estimates.unit.max(keepdims=True)
        square = (estimates.unit / largest) ** 2
        raw = estimates.scaled
        noise = np.sqrt(np.mean((raw.mc_se * square) ** 2, keepdims=True))
        sampling = np.mean(raw.sampling * square, keepdims=True)
        variance = positive_mean(sampling, noise / np.sqrt(square.size))
        shared = raw.orders is not None and raw.orders.share > 0
        if shared or estimates.expected is not None:
            variance = np.mean(estimates.likely_sampling * square, keepdims=True)
        variance = variance + np.mean(raw.monte_carlo * square, keepdims=True)
        a, b = (np.mean(p * square**2, keepdims=True) for p in estimates.error_terms)
        return cls(variance, a, b, largest)

    def relative_error(self, B: float) -> Floats:
        """Compute the relative error of the standard errors of B learners."""
        error = np.sqrt(self.a / B**2 + self.b / B)
        return ratio(error, 2 * self.variance, zero=0.0)


def robust_share(y: Floats) -> float:
    """Compute the ratio of three robust standard deviations and half the range.

    It is at most one, and one for a response of two values. The standard deviation is
    that of a normal distribution with the same interquartile range or, if that is zero,
    with the same mean distance from the median.

    >>> robust_share(np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    1.0
    >>> round(robust_share(np.r_[np.zeros(85), np.arange(1.0, 16.0) ** 2]), 3)
    0.414
    """
    sample = np.asarray(y[:: -(-len(y) // MOST_SORTED)], dtype=np.float64)
    half = (float(np.max(y)) - float(np.min(y))) / 2
    if not 0 < half < np.inf or np.unique(sample).size < 3:
        return 1.0
    low, middle, high = np.quantile(sample / half, [0.25, 0.5, 0.75])
    deviation = (high - low) / 1.349
    if deviation <= 0:
        deviation = np.sqrt(np.pi / 2) * np.mean(np.abs(sample / half - middle))
    return float(min(1.0, WITHIN * deviation)) if deviation > 0 else 1.0


def scale_share(kernel: AnyKernel) -> float:
    """Return the share of half the range that is the scale of the response."""
    if not isinstance(kernel, PredictiveModel) or kernel.n_classes is not None:
        return 1.0
    y = getattr(kernel, "y", None)
    return 1.0 if y is None or np.ndim(y) != 1 else robust_share(y)


def tolerance_of(
    tol: float | None,
    atol: float | None,
    limit: Floats | float | None,
    *,
    share: float = 1.0,
    replicates: bool = False,
) -> Tolerance:
    """Build a tolerance, by default `TOL` and `tol` times a `SMALL` standard error.

    `limit` is half the range of the predictions, shape (m,) or a number, if it is
    known, and `share` the part of it that is the scale; see `robust_share`.
    `replicates` says whether the variance is that of replicates, such as shards.
    """
    kind = Shrinkage if replicates else Tolerance
    tol = TOL if tol is None else tol
    if atol is not None:
        return kind(tol, atol)
    return kind(tol, 0.0 if limit is None else tol * SMALL * share * limit)


def round_up(number: float) -> str:
    """Format a forecast with two significant digits, rounded up.

    >>> round_up(53_964.2), round_up(87), round_up(130.0)
    ('54,000', '87', '130')
    """
    if not np.isfinite(number) or number < 1:
        return f"{number:,.0f}"
    step = 10 ** max(0, int(np.floor(np.log10(number))) - 1)
    return f"{int(np.ceil(number / step)) * step:,}"
