"""Standard errors that hold at practical B, intervals, bands and tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.inference.intervals import Support
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.variance.components import (
    ESTIMATORS,
    VarianceComponents,
    estimate_components,
    estimate_covariance,
    known_orders,
)
from vstatkit.variance.formulas import noise_variance, positive_mean
from vstatkit.variance.orders import HigherOrders

MIN_DF = 3.0
"""Least degrees of freedom; below it a t interval is too wide to be of use."""

CHUNK_ENTRIES = 2_000_000
"""Numbers (observations x query points) held at a time."""

HELD_FROM = 8
"""Chunks of query points from which on counts are held rather than drawn anew."""

HELD_ENTRIES = 16_000_000
"""Counts that are held at most."""

BAND_DRAWS = 20_000
"""Gaussian draws behind a simultaneous critical value (error of about 0.3 %)."""


@dataclass(frozen=True)
class Estimates:
    """Estimates with their standard errors and degrees of freedom.

    Attributes
    ----------
    estimate : ndarray of shape (m,)
        Ensemble means.
    scaled : VarianceComponents
        Raw variance components, negative or not, in squares of `unit`.
    positive : ndarray of shape (m,)
        The sampling variance, made positive and bounded, in squares of `unit`.
    bounded : ndarray of shape (m,)
        Whether the bound was needed.
    df : ndarray of shape (m,)
        Degrees of freedom of the variance: at least `MIN_DF`, unless there are
        fewer units or learners, and less than the number of units.
    n_learners : float
        Number B of learners.
    unit : ndarray of shape (m,)
        Unit of the standard errors, a power of two: squares and fourth powers of
        the values themselves may leave the range of floating point.
    null : ndarray of shape (m,) or float
        Values that the tests hold the estimates against.
    support : Support or None
        Range of probabilities, which their intervals do not leave; None for
        intervals that are symmetric about the estimate.
    """

    estimate: Floats
    scaled: VarianceComponents
    positive: Floats
    bounded: Bools
    df: Floats
    n_learners: float
    unit: Floats
    null: Floats | float = 0.0
    support: Support | None = None

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
        """Distance from the null in standard errors; infinite where these are zero."""
        return ratio(self.estimate - self.null, self.bse)

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-values of the null, by Student's t."""
        return two_sided(self.zvalues, self.df)

    def _quantile(self, alpha: float) -> Floats:
        check_alpha(alpha)
        return np.asarray(stats.t.isf(alpha / 2, self.df))

    def half_width(self, alpha: float) -> Floats:
        """Half the width of the symmetric 1 - alpha interval."""
        return self._quantile(alpha) * self.bse

    def interval(
        self, alpha: float, critical: Floats | float | None = None
    ) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the 1 - alpha intervals.

        Parameters
        ----------
        alpha : float
            One minus the coverage.
        critical : ndarray of shape (m,) or float, optional
            Multiplier of the standard errors; Student's t by default.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            Symmetric about the estimates, or inside their `support`.
        """
        t = self._quantile(alpha) if critical is None else critical
        if self.support is None:
            half = t * self.bse
            return self.estimate - half, self.estimate + half
        return self.support.interval(self.estimate, self.bse, t)

    @property
    def relative_mc_error(self) -> Floats:
        """Monte Carlo error of the standard error, relative to it."""
        return ratio(self._variance_noise, 2 * self.scaled_variance, zero=0.0)

    @property
    def monte_carlo_share(self) -> Floats:
        """Share of the variance that more learners would remove."""
        return ratio(self.scaled.monte_carlo, self.scaled_variance, zero=0.0)

    @property
    def _variance_noise(self) -> Floats:
        noise = self.scaled.noise
        if noise is None:
            return self.scaled.mc_se
        return np.sqrt(noise_variance(self.positive, noise, self.scaled.n))

    @property
    def error_law(self) -> tuple[Floats, Floats]:
        """How the Monte Carlo variance of the variance falls: `a/B**2 + b/B`.

        Returns
        -------
        a, b : ndarray of shape (m,)
            In fourth powers of `unit`.
        """
        B, noise = self.n_learners, self.scaled.noise
        if noise is None:
            return np.zeros_like(self.positive), B * self.scaled.mc_se**2
        return 2 * self.scaled.n * (noise * B) ** 2, 4 * noise * B * self.positive

    def learners_needed(self, tol: Floats | float) -> Floats:
        """Estimate the B at which the relative Monte Carlo error is `tol`."""
        return learners_at((2 * tol * self.scaled_variance) ** 2, *self.error_law)


def learners_at(target: Floats, a: Floats, b: Floats) -> Floats:
    """Solve `a/B**2 + b/B = target` for B; zero where the target is."""
    return ratio(b + np.sqrt(b**2 + 4 * a * target), 2 * target, zero=0.0)


def ratio(a: Floats, b: Floats, *, zero: float | None = None) -> Floats:
    """Divide, with 0/0 = 0 and x/0 = `zero`, or signed infinity by default."""
    beyond = np.copysign(np.inf if zero is None else zero, a)
    beyond = np.where(a == 0, 0.0, beyond)
    return np.divide(a, b, out=beyond, where=b > 0)


def two_sided(statistic: Floats, df: Floats) -> Floats:
    """Two-sided p-values by the survival function."""
    return np.asarray(2 * stats.t.sf(np.abs(statistic), df))


def check_alpha(alpha: float) -> None:
    """Refuse levels outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(
            f"`alpha` must lie strictly between 0 and 1 (0.05 gives 95 % intervals); "
            f"got {alpha}."
        )


def stabilise(
    estimate: Floats,
    components: VarianceComponents,
    n_learners: float,
    *,
    unit: Floats | float = 1.0,
    limit: Floats | float = np.inf,
) -> Estimates:
    """Make the variance positive, bound it and find its degrees of freedom.

    Parameters
    ----------
    estimate : ndarray of shape (m,)
        Ensemble means.
    components : VarianceComponents
        Of the values divided by `unit`.
    n_learners : float
        Number B of learners.
    unit : ndarray of shape (m,) or float
        What the values were divided by.
    limit : ndarray of shape (m,) or float
        Largest standard deviation that an estimate can have, in its own unit.

    Notes
    -----
    The sampling variance V has Monte Carlo standard error s. Where V could be
    negative it is replaced by its posterior mean under a flat prior on positive
    values, `V+ = V + s phi(V/s) / Phi(V/s)`: positive, per query point,
    equivariant under changes of unit, without random numbers. In an ensemble too
    small to tell, it is at most what the spread of single learners allows; where
    that bound is what counts, the B - 1 degrees of freedom of the spread are the
    variance's.

    The degrees of freedom are `2 (V+ + zeta_k/B)**2 / (mc + data)`: `mc` is the
    Monte Carlo variance of V, `data` the variance it would have with infinitely
    many learners, see `data_variance`, and what is not known about orders beyond
    the first counts too. They are at least `MIN_DF`, and less than the number of
    units.
    """
    V, n = components.sampling, components.n
    nonnegative = ESTIMATORS[components.method].nonnegative
    positive = V if nonnegative else positive_mean(V, components.mc_se)
    scale = np.broadcast_to(np.asarray(unit, dtype=np.float64), V.shape)
    with np.errstate(over="ignore", under="ignore"):
        most = np.minimum(_ceiling(components), (limit / scale) ** 2)
    bounded = positive > most
    positive = np.minimum(positive, most)
    variance = positive + components.monte_carlo
    if components.noise is None or components.concentration is None:
        spread = components.mc_se**2
    else:
        data = positive**2 * data_variance(components.concentration, n)
        spread = noise_variance(positive, components.noise, n) + data
    if components.orders is not None:
        spread = spread + (components.orders.relative_error * positive) ** 2
    df = np.maximum(ratio(2 * variance**2, spread), MIN_DF)
    df = np.where(variance > 0, df, np.inf)  # what has no error does not limit others
    df = np.minimum(df, np.where(bounded, min(n, n_learners), n) - 1)
    df = np.maximum(df, 1.0)
    return Estimates(
        estimate, components, positive, bounded, df, n_learners, unit=scale
    )


def data_variance(concentration: Floats, n: int) -> Floats:
    """Variance of a variance estimate over data sets, relative to its square.

    Parameters
    ----------
    concentration : ndarray of shape (m,)
        `sum c**4 / (sum c**2)**2` of the influences.
    n : int
        Number of units.

    Notes
    -----
    The sample variance of n values with excess kurtosis g has the relative variance
    `2/(n - 1) + g/n`. The influences' own excess kurtosis, `n concentration - 3`, is
    bounded by n and too small by much where units are few, so the estimate that is
    unbiased under normality is taken.

    Examples
    --------
    >>> data_variance(np.array([3 / 102, 0.2]), 100).round(3)  # normal; five units
    array([0.02, 0.2 ])
    """
    excess = n * concentration - 3
    if n > 3:
        excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6)
    return np.maximum(2 / max(n - 1, 1) + excess / n, 0.0)


def _ceiling(components: VarianceComponents) -> Floats:
    """Bound of the sampling variance, infinite in ensembles that need none.

    An ensemble needs it where the Monte Carlo error at the bound is above half of
    the bound. Kernels that are linear in the observations attain it, and larger
    ensembles estimate it without bias: cutting off what exceeds it would bias them.
    """
    most = components.ceiling
    if components.noise is None:
        error = components.mc_se
    elif np.isinf(most).all():
        return most
    else:
        error = np.sqrt(noise_variance(most, components.noise, components.n))
    return np.where(error > most / 2, most, np.inf)


def value_units(values: Floats) -> Floats:
    """Power of two near the spread of every column, shape (m,); one for constants.

    Dividing by it is exact, so that the numbers do not depend on it.

    Examples
    --------
    >>> value_units(np.array([[1.0, 5.0], [3.5, 5.0]]))
    array([4., 1.])
    """
    first = values[0]
    spread = np.maximum(values.max(axis=0) - first, first - values.min(axis=0))
    exponent = np.frexp(spread)[1]
    return np.ldexp(1.0, np.where(spread > 0, exponent, 0))


def estimate(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    limit: Floats | float | None = None,
    orders: HigherOrders | None = None,
) -> Estimates:
    """Estimate means, variances and degrees of freedom of an ensemble.

    Query points are taken in chunks: memory does not grow with their number
    times the number of observations.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values.
    method : str
        A resolved name of an estimator.
    limit : ndarray of shape (m,) or float, optional
        Largest standard deviation that a value can have, where it is known.
    orders : HigherOrders, optional
        Beyond the first order, for estimators that use it; by default measured on
        the values.
    """
    orders = known_orders(method, design, values, orders)
    m = values.shape[1]
    step = max(1, CHUNK_ENTRIES // design.n)
    limits = np.broadcast_to(np.inf if limit is None else limit, m)
    parts = [slice(j, j + step) for j in range(0, m, step)]
    return join_estimates(
        [
            _estimate_chunk(design, values[:, j], method, limits[j], orders)
            for j in parts
        ]
    )


def held(design: SubsampleDesign, B: int, n_values: int) -> SubsampleDesign:
    """Hold the counts of B learners, where many query points will ask for them.

    Parameters
    ----------
    design : SubsampleDesign
        Draws the counts anew each time it is asked.
    B : int
        Learners.
    n_values : int
        Values that every learner has, at all query points together.

    Returns
    -------
    SubsampleDesign
        With the same counts; the design itself where holding them is not worth
        the memory, or where learners have groups or weights.
    """
    chunks = n_values * design.n // CHUNK_ENTRIES
    entries = B * min(design.n, 2 * design.k)
    plain = design.groups(B) is None and design.weights(0, B) is None
    if not plain or chunks < HELD_FROM or entries > HELD_ENTRIES:
        return design
    table = design.counts(0, B)
    return GivenDesign(design.n, design.k, design.replace, design.seed, table)


def _estimate_chunk(
    design: SubsampleDesign,
    values: Floats,
    method: str,
    limit: Floats,
    orders: HigherOrders | None,
) -> Estimates:
    unit = value_units(values)
    components = estimate_components(method, design, values / unit, orders)
    weights = design.weights(0, len(values))
    B = float(len(values)) if weights is None else float(weights.sum())
    mean = ensemble_mean(design, values)
    return stabilise(mean, components, B, unit=unit, limit=limit)


def ensemble_mean(design: SubsampleDesign, values: Floats) -> Floats:
    """Average the learners, by their weights in a complete design."""
    weights = design.weights(0, len(values))
    centred = values - values[0]
    mean: Floats = np.average(centred, axis=0, weights=weights) + values[0]
    return mean


def join_estimates(parts: Sequence[Estimates]) -> Estimates:
    """Put estimates of several groups of query points together."""
    if len(parts) == 1:
        return parts[0]
    return Estimates(
        estimate=np.concatenate([part.estimate for part in parts]),
        scaled=VarianceComponents.join([part.scaled for part in parts]),
        positive=np.concatenate([part.positive for part in parts]),
        bounded=np.concatenate([part.bounded for part in parts]),
        df=np.concatenate([part.df for part in parts]),
        n_learners=parts[0].n_learners,
        unit=np.concatenate([part.unit for part in parts]),
    )


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix, made positive semi-definite.

    Attributes
    ----------
    correlation : ndarray of shape (m, m)
        Rows and columns of estimates without error are zero.
    bse : ndarray of shape (m,)
        Standard errors.
    repaired : float
        Share of the correlation matrix's eigenvalues, in absolute value, that
        was negative and set to zero.
    """

    correlation: Floats
    bse: Floats
    repaired: float

    @property
    def matrix(self) -> Floats:
        """The covariance; its diagonal is the squared standard errors."""
        with np.errstate(over="ignore", under="ignore"):
            # Row by row: a zero correlation stays zero where the product overflows.
            return (self.correlation * self.bse) * self.bse[:, None]


def covariance(
    design: SubsampleDesign, values: Floats, estimates: Estimates
) -> Covariance:
    """Estimate the joint covariance of an ensemble's estimates.

    The repair is made on the correlation scale, so that it does not depend on
    the units of the estimates.
    """
    parts = estimates.scaled
    scaled = values / estimates.unit
    sampling, monte_carlo = estimate_covariance(
        parts.method, design, scaled, parts.orders
    )
    deviation = np.sqrt(estimates.scaled_variance)
    scale = np.where(deviation > 0, deviation, 1.0)
    correlation = (sampling + monte_carlo) / np.outer(scale, scale)
    roots, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    kept = np.maximum(roots, 0.0)
    total = np.abs(roots).sum()
    repaired = (vectors * kept) @ vectors.T
    diagonal = np.sqrt(np.diag(repaired))
    unit = np.where(diagonal > 0, diagonal, 1.0)
    repaired = repaired / np.outer(unit, unit)
    np.fill_diagonal(repaired, 1.0)
    live = deviation > 0
    return Covariance(
        correlation=repaired * np.outer(live, live),
        bse=estimates.bse,
        repaired=float(-roots[roots < 0].sum() / total) if total > 0 else 0.0,
    )


def simultaneous_critical_value(
    matrix: Floats, alpha: float, df: float, seed: int
) -> float:
    """Quantile of the largest |t| over all estimates.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Covariance.
    alpha : float
        One minus the joint coverage.
    df : float
        Degrees of freedom.
    seed : int
        The design's seed, so that a band is reproducible.
    """
    check_alpha(alpha)
    scale = np.sqrt(np.diag(matrix))
    live = scale > 0
    if not live.any():
        return float(stats.t.isf(alpha / 2, df))
    correlation = matrix[np.ix_(live, live)] / np.outer(scale[live], scale[live])
    roots, vectors = np.linalg.eigh(correlation)
    half = vectors * np.sqrt(np.maximum(roots, 0.0))
    rng = stream(seed, 0, Purpose.BAND)
    normal = rng.standard_normal((BAND_DRAWS, half.shape[1])) @ half.T
    if np.isfinite(df):
        normal /= np.sqrt(rng.chisquare(df, BAND_DRAWS) / df)[:, None]
    return float(np.quantile(np.abs(normal).max(axis=1), 1 - alpha))


def band_critical_values(matrix: Floats, alpha: float, df: Floats, seed: int) -> Floats:
    """Quantiles of a band, one for each estimate.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Covariance.
    alpha : float
        One minus the joint coverage.
    df : ndarray of shape (m,)
        Degrees of freedom.
    seed : int
        The design's seed, so that a band is reproducible.

    Returns
    -------
    ndarray of shape (m,)

    Notes
    -----
    The largest of correlated normal variables gives the level that each interval
    must have by itself. The quantile is Student's t of that level with the harmonic
    mean of the degrees of freedom: so far out in the tail, single ones are not known
    well enough, and the least of them would make bands much too wide. A largest |t|
    with one common error of the standard errors would make them too narrow. Where
    an interval by itself is wider than that, the band is as wide.
    """
    largest = simultaneous_critical_value(matrix, alpha, np.inf, seed)
    level = 2 * float(stats.norm.sf(largest))
    inverse = float(np.mean(1 / df))
    common = stats.t.isf(level / 2, 1 / inverse if inverse > 0 else np.inf)
    return np.asarray(np.maximum(common, stats.t.isf(alpha / 2, df)))


@dataclass(frozen=True)
class WaldTest:
    """A joint test of linear restrictions.

    Attributes
    ----------
    statistic : float
        Wald's chi-square over `df_num`.
    df_num : int
        Number of independent restrictions.
    df_denom : float
        Degrees of freedom of the variance estimates.
    pvalue : float
        By the survival function of F.
    null : str
        What was tested.
    """

    statistic: float
    df_num: int
    df_denom: float
    pvalue: float
    null: str

    def __str__(self) -> str:
        return (
            f"Wald test of {self.null}: F({self.df_num}, {self.df_denom:.4g}) = "
            f"{self.statistic:.4g}, P>F = {self.pvalue:.4g}"
        )


def wald_test(difference: Floats, matrix: Floats, df: float, null: str) -> WaldTest:
    """Test that differences with covariance `matrix` are all zero."""
    scale = np.sqrt(np.diag(matrix))
    unit = np.where(scale > 0, scale, 1.0)
    if np.any((scale == 0) & (difference != 0)):  # known without error
        return WaldTest(np.inf, int(np.sum(difference != 0)), df, 0.0, null)
    correlation = matrix / np.outer(unit, unit)
    rank = int(np.linalg.matrix_rank(correlation, tol=1e-8, hermitian=True))
    z = difference / unit
    inverse = np.linalg.pinv(correlation, rcond=1e-8, hermitian=True)
    statistic = float(z @ inverse @ z) / max(rank, 1)
    pvalue = float(stats.f.sf(statistic, rank, df)) if rank else 1.0
    return WaldTest(statistic, rank, df, pvalue, null)
