"""Standard errors that hold at practical B, intervals, bands and tests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.components import (
    ESTIMATORS,
    VarianceComponents,
    estimate_components,
    estimate_covariance,
)
from vstatkit.streams import Purpose, stream
from vstatkit.subsample import GivenDesign, SubsampleDesign
from vstatkit.variance import noise_variance, positive_mean

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
    components : VarianceComponents
        Raw variance components, negative or not.
    sampling : ndarray of shape (m,)
        The sampling variance, made positive.
    df : ndarray of shape (m,)
        Degrees of freedom of the variance: at least `MIN_DF`, unless there are
        fewer units, and less than the number of units.
    n_learners : float
        Number B of learners.
    null : ndarray of shape (m,) or float
        Values that the tests hold the estimates against.
    """

    estimate: Floats
    components: VarianceComponents
    sampling: Floats
    df: Floats
    n_learners: float
    null: Floats | float = 0.0

    @property
    def variance(self) -> Floats:
        """Variance behind the standard errors."""
        return self.sampling + self.components.monte_carlo

    @property
    def bse(self) -> Floats:
        """Standard errors."""
        return np.sqrt(self.variance)

    @property
    def zvalues(self) -> Floats:
        """Distance from the null in standard errors; infinite where these are zero."""
        return ratio(self.estimate - self.null, self.bse)

    @property
    def pvalues(self) -> Floats:
        """Two-sided p-values of the null, by Student's t."""
        return two_sided(self.zvalues, self.df)

    def half_width(self, alpha: float) -> Floats:
        """Half the width of the 1 - alpha interval."""
        check_alpha(alpha)
        return np.asarray(stats.t.isf(alpha / 2, self.df)) * self.bse

    @property
    def relative_mc_error(self) -> Floats:
        """Monte Carlo error of the standard error, relative to it."""
        return ratio(self._variance_noise, 2 * self.variance, zero=0.0)

    @property
    def _variance_noise(self) -> Floats:
        noise = self.components.noise
        if noise is None:
            return self.components.mc_se
        return np.sqrt(noise_variance(self.sampling, noise, self.components.n))

    def learners_needed(self, tol: float) -> Floats:
        """Estimate the B at which the relative Monte Carlo error is `tol`.

        The Monte Carlo variance of the variance is `a/B**2 + b/B`.
        """
        B, noise = self.n_learners, self.components.noise
        target = (2 * tol * self.variance) ** 2
        if noise is None:
            return B * ratio(self.components.mc_se**2, target, zero=0.0)
        a = 2 * self.components.n * (noise * B) ** 2
        b = 4 * noise * B * self.sampling
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
    estimate: Floats, components: VarianceComponents, n_learners: float
) -> Estimates:
    """Make the variance positive and find its degrees of freedom.

    Notes
    -----
    The sampling variance V has Monte Carlo standard error s. Where V could be
    negative it is replaced by its posterior mean under a flat prior on positive
    values, `V+ = V + s phi(V/s) / Phi(V/s)`: positive, per query point,
    equivariant under changes of unit, without random numbers.

    The degrees of freedom are `2 (V+ + zeta_k/B)**2 / (mc + data)`: `mc` is the
    Monte Carlo variance of V, `data` the variance it would have with infinitely
    many learners, from the fourth powers of the influences with their noise
    taken out. They are at least `MIN_DF`, and less than the number of units:
    fourth powers say little about few units.
    """
    V, n = components.sampling, components.n
    nonnegative = ESTIMATORS[components.method].nonnegative
    positive = V if nonnegative else positive_mean(V, components.mc_se)
    variance = positive + components.monte_carlo
    if components.noise is None or components.quartic is None:
        spread = components.mc_se**2
    else:
        s2 = components.noise
        unbiased = V - n * s2 if nonnegative else V
        quartic = components.quartic - 6 * s2 * unbiased - 3 * n * s2**2
        data = np.maximum(quartic - positive**2 / n, 0.0)
        spread = noise_variance(positive, s2, n) + data
    df = np.maximum(ratio(2 * variance**2, spread), MIN_DF)
    df = np.minimum(df, max(n - 1, 1))
    return Estimates(estimate, components, positive, df, n_learners)


def estimate(design: SubsampleDesign, values: Floats, method: str) -> Estimates:
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
    """
    step = max(1, CHUNK_ENTRIES // design.n)
    chunks = [values[:, j : j + step] for j in range(0, values.shape[1], step)]
    return join_estimates([_estimate_chunk(design, h, method) for h in chunks])


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


def _estimate_chunk(design: SubsampleDesign, values: Floats, method: str) -> Estimates:
    components = estimate_components(method, design, values)
    weights = design.weights(0, len(values))
    B = float(len(values)) if weights is None else float(weights.sum())
    return stabilise(ensemble_mean(design, values), components, B)


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
        components=VarianceComponents.join([part.components for part in parts]),
        sampling=np.concatenate([part.sampling for part in parts]),
        df=np.concatenate([part.df for part in parts]),
        n_learners=parts[0].n_learners,
    )


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix, made positive semi-definite.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
        Its diagonal is the squared standard errors.
    repaired : float
        Share of the correlation matrix's eigenvalues, in absolute value, that
        was negative and set to zero.
    """

    matrix: Floats
    repaired: float


def covariance(
    design: SubsampleDesign, values: Floats, estimates: Estimates
) -> Covariance:
    """Estimate the joint covariance of an ensemble's estimates.

    The repair is made on the correlation scale, so that it does not depend on
    the units of the estimates.
    """
    method = estimates.components.method
    sampling, monte_carlo = estimate_covariance(method, design, values)
    scale = np.where(estimates.bse > 0, estimates.bse, 1.0)
    correlation = (sampling + monte_carlo) / np.outer(scale, scale)
    roots, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    kept = np.maximum(roots, 0.0)
    total = np.abs(roots).sum()
    repaired = (vectors * kept) @ vectors.T
    diagonal = np.sqrt(np.diag(repaired))
    unit = np.where(diagonal > 0, diagonal, 1.0)
    repaired = repaired / np.outer(unit, unit)
    np.fill_diagonal(repaired, 1.0)
    return Covariance(
        matrix=repaired * np.outer(estimates.bse, estimates.bse),
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
