"""Estimates with their standard errors, intervals and tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.inference.intervals import Support, Tails
from vstatkit.inference.skew_correction import (
    known_skew,
    least_error,
    quantile_of,
    reach,
    skew_curvature,
    threshold_skew,
    trusted_share,
)
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.text import short_repr
from vstatkit.validation import check_alpha
from vstatkit.variance.estimators import (
    MomentEstimator,
    PresenceEstimator,
    VarianceComponents,
)
from vstatkit.variance.formulas import noise_variance, positive_mean
from vstatkit.variance.higher_orders import HigherOrders
from vstatkit.variance.large_moments import CachedDesign, is_wide
from vstatkit.variance.leaf_influence import (
    InfluencePowers,
    LeafInfluence,
    RowResiduals,
)
from vstatkit.variance.learner_pairs import LearnerPairs
from vstatkit.variance.moments import CHUNK_ENTRIES, value_units
from vstatkit.variance.pooled_variance import ExpectedVariance, PooledVariance
from vstatkit.variance.registry import ESTIMATORS, estimate_components, known_orders


@dataclass(frozen=True)
class Estimates:
    """Estimates with their standard errors and degrees of freedom, shape (m,)."""

    estimate: Floats  # ensemble means
    scaled: VarianceComponents  # raw, negative or not, in squares of `unit`
    # The sampling variance, made positive and bounded, in squares of `unit`
    positive: Floats
    bounded: Bools  # whether the bound was needed
    # Degrees of freedom of the variance: at least `MIN_DF`, unless there are fewer
    # units or learners, and less than the number of units
    df: Floats
    n_learners: float  # number B of learners
    # Unit of the standard errors, a power of two: squares and fourth powers of the
    # values themselves may leave the range of floating point
    unit: Floats
    null: Floats | float = 0.0  # values that the tests compare the estimates with
    support: Support | None = None  # range of probabilities; None for other estimates
    # Tails of other estimates, besides those of their own influences
    tails: Tails | None = None
    # Expected variances that the jackknife was averaged with, in squares of `unit`; and
    # their weights, shape (m,)
    expected: ExpectedVariance | None = None
    pooled_share: Floats | float = 0.0

    __repr__ = short_repr

    @cached_property
    def components(self) -> VarianceComponents:
        """Raw variance components, negative or not."""
        return self.scaled.in_units(self.unit)

    @property
    def sampling(self) -> Floats:
        """The sampling variance, made positive and bounded."""
        return self._squared_units(self.positive)

    @property
    def variance(self) -> Floats:
        """Variance behind the standard errors."""
        return self._squared_units(self.scaled_variance)

    @property
    def scaled_variance(self) -> Floats:
        """The same in squares of `unit`."""
        return self.positive + self.scaled.monte_carlo

    def _squared_units(self, number: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return number * self.unit * self.unit

    @property
    def bse(self) -> Floats:
        """Standard errors."""
        return np.sqrt(self.scaled_variance) * self.unit

    @property
    def zvalues(self) -> Floats:
        """Distance from the null in standard errors; nan if these are zero."""
        return self._nan_without_error(ratio(self.estimate - self.null, self.bse))

    def _nan_without_error(self, numbers: Floats) -> Floats:
        """Replace the numbers of tests by nan if the standard error is zero."""
        return np.where(self.bse == 0, np.nan, numbers)

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-values of the null.

        They are from Student's t, with the skewness that intervals allow for: a p-value
        is below alpha if the 1 - alpha interval excludes the null. For probabilities
        the two may disagree. They are nan if the standard error is zero.
        """
        if self.support is not None:
            return two_sided_pvalues(self.zvalues, self.df)
        distance = ratio(self.estimate - self.null, self._reaching_error)
        curvature = np.sign(distance) * self._curvature
        pvalues = two_sided_pvalues(quantile_of(np.abs(distance), curvature), self.df)
        return self._nan_without_error(pvalues)

    @cached_property
    def own_skew(self) -> Floats:
        """Skewness of the influences, without noise; zero if it is mostly noise.

        It is zero for pooled variances, too: single points say little then.
        """
        skew, concentration = self.scaled.skew, self.scaled.concentration
        noise, pooled = self.scaled.noise, self.expected is not None
        if skew is None or concentration is None or noise is None or pooled:
            return np.zeros_like(self.estimate)
        noise = ratio(noise, self.positive, zero=np.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            own_skew = known_skew(skew, noise, concentration, self.scaled.n)
        own_skew = own_skew * trusted_share(self.relative_mc_error)
        return np.where(np.isfinite(noise), own_skew, 0.0)

    @cached_property
    def skew(self) -> Floats:
        """Skewness that intervals allow for; zero if it is small."""
        typical = np.nan if self.tails is None else self.tails.skew
        return threshold_skew(np.where(np.isnan(typical), self.own_skew, typical))

    @property
    def _curvature(self) -> Floats:
        double = np.asarray(stats.t.isf(stats.norm.sf(2), self.df))
        return skew_curvature(self.skew, double)

    @property
    def _reaching_error(self) -> Floats:
        """Standard errors that intervals use: at least a share of typical ones."""
        if self.tails is None:
            return self.bse
        return np.maximum(self.bse, least_error(self.skew, self.tails.error))

    def _quantile(self, alpha: float) -> Floats:
        check_alpha(alpha)
        return np.asarray(stats.t.isf(alpha / 2, self.df))

    def half_width(self, alpha: float) -> Floats:
        """Compute half the width of the symmetric 1 - alpha interval."""
        return self._quantile(alpha) * self.bse

    def interval(
        self, alpha: float, critical: Floats | float | None = None
    ) -> tuple[Floats, Floats]:
        """Compute the 1 - alpha intervals: lower and upper ends, each of shape (m,).

        `critical` multiplies the standard errors; by default it is Student's t.
        Intervals are inside the `support`, if there is one. Others are symmetric about
        the estimate, or longer on the side of its long tail, and inside the range of
        `tails`.
        """
        t = self._quantile(alpha) if critical is None else critical
        if self.support is not None:
            least = float(stats.norm.isf(alpha / 2)) if critical is None else None
            return self.support.interval(self.estimate, self.bse, t, least)
        error, curvature = self._reaching_error, self._curvature
        lower = self.estimate - reach(t, curvature) * error
        upper = self.estimate + reach(t, -curvature) * error
        if self.tails is None:
            return lower, upper
        lower = np.maximum(lower, np.minimum(self.tails.low, self.estimate))
        return lower, np.minimum(upper, np.maximum(self.tails.high, self.estimate))

    @property
    def relative_mc_error(self) -> Floats:
        """Monte Carlo error of the standard error, relative to the likely one."""
        if self.expected is not None:
            return ratio(self._pooled_mc_error, 2 * self.likely_variance, zero=0.0)
        parts = self.scaled
        square = parts.mc_se**2
        if parts.noise is not None:
            square = noise_variance(self.likely_sampling, parts.noise, parts.n)
        return ratio(np.sqrt(square), 2 * self.likely_variance, zero=0.0)

    @property
    def _pooled_mc_error(self) -> Floats:
        """Monte Carlo error of the sampling variance that is partly pooled."""
        assert self.expected is not None
        pooled, own = self.pooled_share, self.scaled
        common = self.expected.error * self.expected.variance
        return np.hypot((1 - pooled) * own.mc_se, pooled * common)

    @property
    def monte_carlo_share(self) -> Floats:
        """Share of the variance that more learners would remove."""
        return ratio(self.scaled.monte_carlo, self.scaled_variance, zero=0.0)

    @cached_property
    def likely_sampling(self) -> Floats:
        r"""The sampling variance to which Monte Carlo errors are relative.

        In squares of `unit`. A variance made positive grows with its own error s, so
        small ensembles would seem to need few more learners. If the typical share of a
        learner's variance is known (`HigherOrders.share`), the estimate V and the
        typical :math:`V_0` are averaged with the weights :math:`\tau^2` and
        :math:`s^2`,

        .. math:: \tau^2 = V_0^2 + \max((V - V_0)^2 - (2 s)^2, 0) ,

        where the second term is used for :math:`V > V_0` only.
        """
        parts, orders = self.scaled, self.scaled.orders
        known = orders is not None and orders.share > 0
        pooled = self.expected is not None
        if parts.noise is None or orders is None or not known or pooled:
            return self.positive
        V, s2 = parts.sampling, parts.mc_se**2
        typical = orders.factor * orders.share * parts.zeta_k
        above = np.maximum(V - typical, 0.0) ** 2 - 4 * s2
        spread = typical**2 + np.maximum(above, 0.0)
        weight = ratio(spread, spread + s2)
        mean = weight * V + (1 - weight) * typical
        return positive_mean(mean, np.sqrt(weight * s2))

    @property
    def likely_variance(self) -> Floats:
        """Likely squared standard errors, in squares of `unit`."""
        return self.likely_sampling + self.scaled.monte_carlo

    @property
    def bse_mc_error(self) -> Floats:
        """Monte Carlo error of the standard errors, by the delta method."""
        twice = 2 * np.sqrt(self.scaled_variance)
        error = self.scaled.mc_se if self.expected is None else self._pooled_mc_error
        return ratio(error, twice, zero=0.0) * self.unit

    @property
    def error_terms(self) -> tuple[Floats, Floats]:
        """Coefficients of the variance's own variance, `a/B**2 + b/B`, in `unit**4`."""
        B, noise = self.n_learners, self.scaled.noise
        if self.expected is not None:
            return np.zeros_like(self.positive), B * self._pooled_mc_error**2
        if noise is None:
            return np.zeros_like(self.positive), B * self.scaled.mc_se**2
        likely = np.maximum(self.likely_sampling, 0.0)  # replicates leave it as it is
        return 2 * self.scaled.n * (noise * B) ** 2, 4 * noise * B * likely

    def learners_needed(self, tol: Floats | float) -> Floats:
        """Estimate the B at which the relative Monte Carlo error is `tol`."""
        return learners_at((2 * tol * self.likely_variance) ** 2, *self.error_terms)


def learners_at(target: Floats, a: Floats, b: Floats) -> Floats:
    """Solve `a/B**2 + b/B = target` for B; zero if the target is zero."""
    return ratio(b + np.sqrt(b**2 + 4 * a * target), 2 * target, zero=0.0)


def ratio(a: Floats, b: Floats, *, zero: float | None = None) -> Floats:
    """Divide, with 0/0 = 0 and x/0 = `zero`, or signed infinity by default."""
    beyond = np.copysign(np.inf if zero is None else zero, a)
    beyond = np.where(a == 0, 0.0, np.where(np.isnan(a), np.nan, beyond))
    return np.divide(a, b, out=beyond, where=(b > 0) | np.isnan(b))


def two_sided_pvalues(statistic: Floats, df: Floats) -> Floats:
    """Compute two-sided p-values by the survival function of Student's t."""
    return np.asarray(2 * stats.t.sf(np.abs(statistic), df))


MIN_DF = 3.0  # minimum of the degrees of freedom; intervals with fewer are too wide


def stabilise(
    estimate: Floats,
    components: VarianceComponents,
    n_learners: float,
    *,
    unit: Floats | float = 1.0,
    limit: Floats | float = np.inf,
    expected: ExpectedVariance | None = None,
) -> Estimates:
    """Make the variance positive, bound it and compute its degrees of freedom.

    The components are those of values divided by `unit`, and `limit` is the largest
    standard deviation that an estimate can have, in its own unit; both have shape (m,).
    `expected` are the variances, in squares of `unit`, that those of the components are
    averaged with; see `variance.pooled_variance`.

    A sampling variance V that can be negative, with Monte Carlo standard error s, is
    replaced by its posterior mean under a flat prior on positive values,
    `V+ = V + s phi(V/s) / Phi(V/s)`. In small ensembles it is bounded by the variance
    of single learners, which has B - 1 degrees of freedom. Otherwise the degrees of
    freedom are `2 (V+ + zeta_k/B)**2 / (mc + data)`: `mc` is the Monte Carlo variance
    of V, `data` is that of `data_variance`, and the error of the orders beyond the
    first is added. They are at least `MIN_DF` and less than the number of units. A
    variance of replicates has its own, and is not bounded. See "Standard errors" in
    docs/theory.md.
    """
    V, n, error = components.sampling, components.n, components.mc_se
    concentration, pooled_share = components.concentration, np.zeros_like(V)
    noise = components.noise
    if noise is None:
        expected = None
    elif expected is not None:
        concentration, V_0 = expected.concentration, expected.variance
        square = noise_variance(V_0, noise, n)
        if components.orders is not None:
            square = square + (components.orders.relative_mc_error * V_0) ** 2
        pooled_share = ratio(square, square + (expected.spread * V_0) ** 2)
        own = 1 - pooled_share
        V = own * V + pooled_share * V_0
        error = own * np.sqrt(square)
    nonnegative = ESTIMATORS[components.method].nonnegative
    positive = V if nonnegative else positive_mean(V, error)
    scale = np.broadcast_to(np.asarray(unit, dtype=np.float64), V.shape)
    with np.errstate(over="ignore", under="ignore"):
        most = np.minimum(_ceiling(components), (limit / scale) ** 2)
    bounded = positive > most
    positive = np.minimum(positive, most)
    variance = positive + components.monte_carlo
    if components.noise is None or concentration is None:
        spread = components.mc_se**2
    else:
        spread = positive**2 * data_variance(concentration, n)
        if expected is None:
            spread = spread + noise_variance(positive, components.noise, n)
        else:  # the variance of the true variance about the mean of both
            spread = spread + pooled_share * (expected.spread * expected.variance) ** 2
    if components.orders is not None:
        own = 1 - pooled_share
        spread = spread + (own * components.orders.relative_error * positive) ** 2
    df = np.maximum(ratio(2 * variance**2, spread), MIN_DF)
    if components.df is not None:
        df = np.full_like(df, components.df)
    df = np.where(variance > 0, df, np.inf)  # estimates without error limit no others
    df = np.minimum(df, np.where(bounded, min(n, n_learners), n) - 1)
    df = np.maximum(df, 1.0)
    return Estimates(
        *(estimate, components, positive, bounded, df, n_learners, scale),
        expected=expected,
        pooled_share=pooled_share,
    )


def data_variance(concentration: Floats, n: int) -> Floats:
    """Variance of a variance estimate over data sets, relative to its square.

    `concentration` is `sum c**4 / (sum c**2)**2` of the influences of n units. The
    sample variance of n values with excess kurtosis g has the relative variance
    `2/(n - 1) + g/n`. The estimate of g is the one that is unbiased under normality,
    because `n concentration - 3` is much too small for few units. See "Few units" in
    docs/theory.md.
    """
    excess = n * concentration - 3
    if n > 3:
        excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6)
    return np.maximum(2 / max(n - 1, 1) + excess / n, 0.0)


def _ceiling(components: VarianceComponents) -> Floats:
    """Return the bound of the sampling variance; infinite if it is not used.

    It is used if the Monte Carlo error at the bound is above half of it. Linear kernels
    attain the bound, so it would bias the estimates of larger ensembles.
    """
    most, error = components.ceiling, components.mc_se
    if components.noise is not None:
        if np.isinf(most).all():
            return most
        error = np.sqrt(noise_variance(most, components.noise, components.n))
    return np.where(error > most / 2, most, np.inf)


# Relative rounding error of a mean of values that cancel.
ROUNDING = 32 * np.finfo(np.float64).eps
WIDE_VALUES = 4_000_000  # values of learners at a time if there is no such table
# Estimators that need no table of observations times query points.
TABLELESS = (MomentEstimator, PresenceEstimator)
CACHED_ENTRIES = 16_000_000  # largest number of counts that are cached


def estimate(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    limit: Floats | float | None = None,
    orders: HigherOrders | None = None,
    *,
    pooled: PooledVariance | None = None,
    influence: InfluencePowers | LeafInfluence | None = None,
    pairs: LearnerPairs | None = None,
) -> Estimates:
    """Estimate means, variances and degrees of freedom from values of shape (B, m).

    Query points are processed in chunks, to bound memory. `limit`, a number or of shape
    (m,), is the largest standard deviation that a value can have, if it is known.
    `orders` is the correction beyond the first order, for estimators that use it; by
    default it is measured on the values. `pooled` and the `influence` of units with
    fixed splits give the expected variances; both are needed. With `pairs` the
    jackknife is computed from pairs of learners.
    """
    orders = known_orders(method, design, values, orders)
    B, m = values.shape
    rows = Estimation(design, method, pairs=pairs).table_rows(B, m)
    step = max(1, CHUNK_ENTRIES // rows if rows else WIDE_VALUES // B)
    limits = np.broadcast_to(np.inf if limit is None else limit, m)
    weights = design.weights(0, B)
    total = float(B) if weights is None else float(weights.sum())
    if not ESTIMATORS[method].beyond:
        pooled = None
    parts = []
    for first in range(0, m, step):
        columns = slice(first, first + step)
        chunk, unit = values[:, columns], value_units(values[:, columns])
        components = estimate_components(method, design, chunk / unit, orders, pairs)
        mean, most = weighted_mean(chunk, weights), limits[columns]
        expected = None
        if pooled is not None and influence is not None:
            own = influence.take(columns).divide(unit)
            expected = expect_variances(chunk / unit, pooled, own.powers)
        parts.append(
            stabilise(mean, components, total, unit=unit, limit=most, expected=expected)
        )
    return join_estimates(parts)


def expect_variances(
    values: Floats, pooled: PooledVariance, influence: InfluencePowers
) -> ExpectedVariance:
    """Compute the expected variances of the means of values, shape (B, m)."""
    n, fixed = influence.n_units, influence.variance
    variance = pooled.expected(fixed, values.var(axis=0, ddof=1))
    # What fixed splits do not explain is assumed to be spread evenly over the units.
    fixed = np.clip(fixed, 0.0, variance)
    rest = variance - fixed
    fourths = np.clip(influence.fourth_powers, fixed**2 / n, fixed**2)
    fourths = fourths + (6 * fixed * rest + 3 * rest**2) / n
    concentration = ratio(fourths, variance**2)
    return ExpectedVariance(variance, concentration, pooled.spread, pooled.error)


@dataclass(frozen=True)
class Estimation:
    """Design, variance estimator and bounds of estimates; see `estimate`."""

    design: SubsampleDesign
    method: str
    limit: float | None = None
    orders: HigherOrders | None = None
    # What variances have in common, and the residuals of the training rows; used for
    # predictions of trees
    pooled: PooledVariance | None = None
    residuals: RowResiduals | None = None
    # Weights of pairs of learners, if the jackknife is computed from them
    pairs: LearnerPairs | None = None

    def of(self, values: Floats, influence: InfluencePowers | None = None) -> Estimates:
        """Estimate from values of shape (B, m), with the influence of fixed splits."""
        return estimate(
            *(self.design, values, self.method, self.limit, self.orders),
            pooled=self.pooled,
            influence=influence,
            pairs=self.pairs,
        )

    @property
    def without_table(self) -> bool:
        """Whether the cost per value is the same for few values as for many."""
        groups = ESTIMATORS[self.method].source == "groups"
        cached = isinstance(self.design, CachedDesign) or self.pairs is not None
        return groups or cached

    def table_rows(self, B: int, n_values: int) -> int:
        """Count the rows of the table of units times values; zero without a table."""
        estimator = ESTIMATORS[self.method]
        wide = isinstance(estimator, TABLELESS) and is_wide(self.design, B, n_values)
        without = estimator.source == "groups" or wide or self.pairs is not None
        return 0 if without else self.design.n


def cache_counts(design: SubsampleDesign, B: int, n_values: int) -> SubsampleDesign:
    """Cache the counts of B learners for use at many query points.

    `n_values` is the number of values of a learner, over all query points. Return the
    design itself if the counts would take too much memory, or if learners have groups
    or weights.
    """
    entries = B * min(design.n, 2 * design.k)
    plain = design.groups(B) is None and design.weights(0, B) is None
    if not plain or entries > CACHED_ENTRIES:
        return design
    fields = design.n, design.k, design.replace, design.seed
    return CachedDesign(*fields, design.sparse_counts(0, B), n_values=n_values)


def ensemble_mean(design: SubsampleDesign, values: Floats) -> Floats:
    """Average the learners, weighted in a complete design."""
    return weighted_mean(values, design.weights(0, len(values)))


def weighted_mean(values: Floats, weights: Floats | None) -> Floats:
    """Average learners as deviations from the first; equal weights if None.

    A mean that is zero up to rounding is set to zero.
    """
    first = values[0]
    mean = np.average(values - first, axis=0, weights=weights) + first
    return np.where(np.abs(mean) <= ROUNDING * np.abs(first), 0.0, mean)


def join_estimates(parts: Sequence[Estimates]) -> Estimates:
    """Join the estimates of several chunks of query points."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("estimate", "positive", "bounded", "df", "unit", "pooled_share")
    }
    scaled = VarianceComponents.join([part.scaled for part in parts])
    known = [part.expected for part in parts if part.expected is not None]
    if known:
        joined["expected"] = ExpectedVariance.join(known)
    return replace(parts[0], scaled=scaled, **joined)
