"""Covariances, joint tests of linear restrictions, and multiplicity adjustment."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.inference.estimates import Estimates, weighted_mean
from vstatkit.inference.population import RowInfluence, joint_influence
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.variance.leaf_influence import LeafInfluence
from vstatkit.variance.moments import value_units
from vstatkit.variance.pooled_variance import PooledVariance
from vstatkit.variance.registry import estimate_covariance


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix, made positive semi-definite."""

    correlation: Floats  # (m, m): rows and columns of estimates without error are zero
    bse: Floats  # (m,): standard errors
    # Share of the correlation matrix's eigenvalues, in absolute value, that was
    # negative and set to zero
    repaired: float

    @property
    def matrix(self) -> Floats:
        """The covariance; its diagonal is the squared standard errors."""
        with np.errstate(over="ignore", under="ignore"):
            # In this order, a zero correlation stays zero if a product overflows.
            return (self.correlation * self.bse) * self.bse[:, None]


def covariance(
    design: SubsampleDesign,
    values: Floats,
    estimates: Estimates,
    points: RowInfluence | None = None,
    pooled: tuple[PooledVariance, LeafInfluence] | None = None,
) -> Covariance:
    """Estimate the joint covariance of an ensemble's estimates.

    Negative eigenvalues are set to zero on the correlation scale, so the result does
    not depend on units. `points` adds the sampling of the rows averaged over, and
    `pooled` is for variances that are partly pooled.
    """
    matrix = scaled_covariance(design, values, estimates, points, pooled)
    deviation = np.sqrt(estimates.scaled_variance)
    scale = np.where(deviation > 0, deviation, 1.0)
    roots, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    total = np.abs(roots).sum()
    repaired = (vectors * np.maximum(roots, 0.0)) @ vectors.T
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


def scaled_covariance(
    design: SubsampleDesign,
    values: Floats,
    estimates: Estimates,
    points: RowInfluence | None = None,
    pooled: tuple[PooledVariance, LeafInfluence] | None = None,
) -> Floats:
    r"""Estimate the covariance in units of the estimates; it may be indefinite.

    Notes
    -----
    If variances are pooled, with the weight :math:`w_j` of the jackknife for estimate
    j, the jackknife covariance J and the expected covariance C, which is that of fixed
    splits plus :math:`\beta` times the covariance of single learners and has the
    expected variances on its diagonal,

    .. math:: V_{jl} = \sqrt{w_j w_l} J_{jl} + \sqrt{(1 - w_j)(1 - w_l)} C_{jl} .
    """
    parts = estimates.scaled
    scaled = values / estimates.unit
    method = parts.method
    sampling, monte_carlo = estimate_covariance(method, design, scaled, parts.orders)
    if points is not None:
        rows = points.rescale(estimates.unit)
        influence = joint_influence(design, scaled, parts.method, rows)
        sampling = sampling + influence.added_variance(joint=True)
    if pooled is not None and estimates.expected is not None:
        joint = _expected_covariance(scaled, *pooled, estimates)
        diagonal = np.diag(joint)
        safe = np.where(diagonal > 0, diagonal, 1.0)
        known = np.where(diagonal > 0, estimates.expected.variance / safe, 0.0)
        share = np.broadcast_to(estimates.pooled_share, diagonal.shape)
        scale, own = np.sqrt(share * known), np.sqrt(1 - share)
        sampling = sampling * np.outer(own, own) + joint * np.outer(scale, scale)
    matrix = sampling + monte_carlo
    return np.asarray((matrix + matrix.T) / 2)


def equivariant_covariance(
    design: SubsampleDesign,
    values: Floats,
    estimates: Estimates,
    points: RowInfluence | None = None,
    pooled: tuple[PooledVariance, LeafInfluence] | None = None,
) -> Floats:
    """Estimate a covariance that invertible transformations of the values transform.

    The values have the same variance over learners. If variances are pooled, the
    jackknife and the expected covariance have the same weights for all of them.
    """
    parts, scaled = estimates.scaled, values / estimates.unit
    if pooled is None or estimates.expected is None or parts.noise is None:
        return scaled_covariance(design, values, estimates, points)
    jackknife, monte_carlo = estimate_covariance(
        parts.method, design, scaled, parts.orders
    )
    zeta_k = float(parts.zeta_k[0])
    noise = float(parts.noise[0]) / zeta_k if zeta_k > 0 else 0.0
    share = pooled[0].typical_share(noise, parts.n)
    joint = _expected_covariance(scaled, *pooled, estimates)
    matrix = (1 - share) * jackknife + share * joint + monte_carlo
    return np.asarray((matrix + matrix.T) / 2)


def _expected_covariance(
    values: Floats,
    pooled: PooledVariance,
    influence: LeafInfluence,
    estimates: Estimates,
) -> Floats:
    """Compute the expected covariance, but for the part near to the data."""
    single = np.atleast_2d(np.cov(values, rowvar=False))
    fixed = influence.divide(estimates.unit).covariance
    return np.asarray(fixed + pooled.split * single)


ALIKE = 1e-8  # relative spread over learners below which a combination does not vary


@dataclass(frozen=True)
class WaldTest:
    """A joint test of linear restrictions."""

    statistic: float  # Wald's chi-square over `df_num`
    df_num: int  # number of independent restrictions
    df_denom: float  # degrees of freedom of the variance estimates; see `joint_df`
    # By the survival function of F; nan, as the statistic, if nothing varies, or if a
    # difference that is not zero does not vary
    pvalue: float
    null: str  # hypothesis
    # Number of given restrictions. If it is larger than `df_num`, the others follow
    # from these, or do not vary over the learners.
    n_restrictions: int | None = None

    @property
    def fvalue(self) -> float:
        """The statistic, by statsmodels' name."""
        return self.statistic

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        text = (
            f"Wald test of {self.null}: F({self.df_num}, {self.df_denom:.4g}) = "
            f"{self.statistic:.4g}, P>F = {self.pvalue:.4g}"
        )
        n_given = self.n_restrictions
        if n_given is None or n_given <= self.df_num or np.isnan(self.statistic):
            return text
        return f"{text} ({self.df_num} of {n_given} restrictions are independent)"


def wald_test(
    difference: Floats,
    matrix: Floats,
    df: float,
    null: str,
    *,
    replicates: bool = False,
) -> WaldTest:
    """Test that r differences with covariance `matrix` are all zero.

    With `replicates`, the covariance is that of `df + 1` replicates, over their number:
    then the test is Hotelling's, exact for normal replicates.

    The covariance is estimated, so F is too large on average. For replicates, F is
    multiplied by Hotelling's factor `(df - r + 1)/df`. Otherwise the factor is
    `df/(df + r - 1)`, which agrees with it to first order in `1/df` and is positive for
    low degrees of freedom.
    """
    scale = np.sqrt(np.diag(matrix))
    unit = np.where(scale > 0, scale, 1.0)
    if not scale.any() or np.any((scale == 0) & (difference != 0)):  # nothing varies
        return WaldTest(np.nan, int(np.sum(difference != 0)), df, np.nan, null)
    correlation = matrix / np.outer(unit, unit)
    rank = int(np.linalg.matrix_rank(correlation, tol=1e-8, hermitian=True))
    z = difference / unit
    inverse = np.linalg.pinv(correlation, rcond=1e-8, hermitian=True)
    statistic = float(z @ inverse @ z) / rank
    if replicates:
        check_replicates(rank, df)
        df_left = df - rank + 1
        statistic, df = statistic * df_left / df, df_left
    else:
        statistic *= df / (df + rank - 1)
    pvalue = float(stats.f.sf(statistic, rank, df))
    return WaldTest(statistic, rank, df, pvalue, null)


def check_replicates(rank: int, df: float) -> None:
    """Raise an error if there are fewer replicates than restrictions."""
    if rank > df:
        raise ValueError(
            f"a joint test of {rank} restrictions needs more than {rank} shards; "
            f"there are {df + 1:g}. Test fewer at once, or use more shards."
        )


def joint_df(df: Floats) -> float:
    r"""Combine the degrees of freedom of the variances in uncorrelated directions.

    The result is at least the smallest of them and at most their mean.

    Wald's F is the mean of r squared t statistics, each with the expectation
    :math:`\nu_j / (\nu_j - 2)`. An F distribution with :math:`\nu` degrees of freedom
    in the denominator has the same expectation if

    .. math:: \frac{1}{\nu - 2} = \frac{1}{r} \sum_j \frac{1}{\nu_j - 2} .

    If a direction has two or fewer degrees of freedom, the smallest is used.

    Fai and Cornelius (1996), Approximate F-tests of multiple degree of freedom
    hypotheses in generalized least squares analyses of unbalanced split-plot
    experiments, Journal of Statistical Computation and Simulation 54.
    doi:10.1080/00949659608811740
    """
    least = float(df.min())
    if least <= 2 or least == df.max():
        return least
    return float(2 + 1 / np.mean(1 / (df - 2)))


@dataclass(frozen=True)
class Directions:
    """Combinations of restrictions that are uncorrelated over the learners."""

    # (rank, r): coefficients of combinations whose values have variance one
    varying: Floats
    fixed: Floats  # (r - rank, r): coefficients of combinations that do not vary

    def fixed_differences(self, difference: Floats) -> Floats:
        """Compute the differences in fixed directions; rounding errors are zero."""
        terms = self.fixed * difference
        differences, size = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        return np.where(np.abs(differences) <= ALIKE * size, 0.0, differences)


def directions(values: Floats, weights: Floats | None) -> Directions:
    """Find uncorrelated combinations of the values (B, r) of restrictions.

    Up to a rotation, `varying` depends only on the space that the restrictions span.
    `weights` are those of the learners.
    """
    share = np.full(len(values), 1 / len(values))
    if weights is not None:
        share = weights / weights.sum()
    unit = value_units(values)
    scaled = values / unit
    centred = np.sqrt(share)[:, None] * (scaled - weighted_mean(scaled, weights))
    spread = np.sqrt((centred**2).sum(axis=0))
    spread = np.where(np.ptp(values, axis=0) > 0, spread, 1.0)
    triangle = np.linalg.qr(centred / spread, mode="r")
    _, sizes, vectors = np.linalg.svd(triangle, full_matrices=True)
    rank = int(np.sum(sizes > ALIKE * max(sizes[0], ALIKE)))
    vectors = vectors / (spread * unit)
    return Directions(vectors[:rank] / sizes[:rank, None], vectors[rank:])


def holm(pvalues: Floats) -> Floats:
    """Adjust p-values to control the family-wise error rate (Holm).

    The j-th smallest of m is multiplied by `m - j + 1`; none is smaller than the one
    before it, nor above one.

    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian
    Journal of Statistics 6, 65-70.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order, m = np.argsort(pvalues), len(pvalues)
    raised = pvalues[order] * np.arange(m, 0, -1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def benjamini_hochberg(pvalues: Floats) -> Floats:
    """Adjust p-values to control the false discovery rate (Benjamini-Hochberg).

    The j-th smallest of m is multiplied by `m / j`; none is larger than the one after
    it.

    Benjamini and Hochberg (1995), Controlling the false discovery rate, JRSS B 57.
    doi:10.1111/j.2517-6161.1995.tb02031.x
    """
    order, m = np.argsort(pvalues)[::-1], len(pvalues)
    raised = pvalues[order] * m / np.arange(m, 0, -1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(raised), 1.0)
    return adjusted
