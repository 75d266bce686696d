"""Intervals of probabilities and of skewed estimates; simultaneous bands."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.kernels.base import AnyKernel, PredictiveModel
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.validation import check_alpha

EPSILON = float(np.finfo(np.float64).eps)

MOST_TIMES = 4.0  # largest ratio of the N of a single probability to the typical one
# Skewness up to which intervals are symmetric; it is subtracted from larger ones.
SMALL_SKEW = 0.1
# Largest relative Monte Carlo error of a standard error at which the estimate's own
# skewness is used in full.
KNOWN_ERROR = 0.2
UNKNOWN_ERROR = 0.3  # relative Monte Carlo error from which on it is not used
# Minimum of the variance of skewed predictions, as a share of the typical one.
LEAST_SHARE = 0.15
FULL_SKEW = 0.5  # skewness beyond `SMALL_SKEW` from which on that share is used in full


@dataclass(frozen=True)
class Support:
    """The range of estimates that are probabilities, or combinations of them.

    Attributes
    ----------
    low, high : ndarray of shape (m,) or float
        Least and greatest value that an estimate can have.
    nobs : float
        Effective number of observations behind a single probability, at most.
    average : ndarray of shape (m,) or bool
        Whether estimates combine several probabilities, and may be known better.
    """

    low: Floats | float
    high: Floats | float
    nobs: float
    average: Bools | bool = False

    def combine(self, coefs: Floats) -> "Support":
        """Compute the range of linear combinations of the estimates.

        Parameters
        ----------
        coefs : ndarray of shape (r, m)
            Coefficients, one combination per row.
        """
        ends = np.stack([coefs * self.low, coefs * self.high])
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        several = (coefs != 0).sum(axis=1) > 1
        averages = (coefs != 0) & np.broadcast_to(self.average, coefs.shape[1])
        return Support(low, high, self.nobs, several | averages.any(axis=1))

    @property
    def of_differences(self) -> "Support":
        """Range of the difference of two estimates that have the same range."""
        length = self.high - self.low
        return Support(-length, length, self.nobs)

    def join(self, other: "Support", m: int, e: int) -> "Support":
        """Join the range of m estimates with the range of e others."""
        ends = [
            np.concatenate([np.broadcast_to(a, m), np.broadcast_to(b, e)])
            for a, b in ((self.low, other.low), (self.high, other.high))
        ]
        averages = np.broadcast_to(self.average, m), np.broadcast_to(other.average, e)
        return Support(ends[0], ends[1], self.nobs, np.concatenate(averages))

    def interval(
        self,
        estimate: Floats,
        error: Floats,
        critical: Floats | float,
        least: float | None = None,
    ) -> tuple[Floats, Floats]:
        """Compute Agresti-Coull intervals for an effective number of observations.

        Parameters
        ----------
        estimate, error : ndarray of shape (m,)
            Estimates and their standard errors.
        critical : ndarray of shape (m,) or float
            Quantile that the standard errors are multiplied by.
        least : float, optional
            Quantile used if `nobs` applies instead of the standard error; by default
            the same.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            Inside the range, and around the estimate.

        Notes
        -----
        A standard error s of the share p corresponds to `N = p (1 - p) / s**2`
        observations. Adding `z**2` of them, half to the class (z is `critical`), gives
        the share q and the interval `q ± z sqrt(q (1 - q) / (N + z**2))`, truncated to
        the range. N is at most `nobs` (see `effective_size`), except for averages and
        differences inside their range. If the standard error of these is zero, the
        interval is `[p - u p, p + u (1 - p)]`, where u is the upper bound of a single
        probability of zero. See "Intervals of probabilities" in docs/theory.md.

        References
        ----------
        Agresti and Coull (1998), Approximate is better than "exact" for interval
        estimation of binomial proportions, The American Statistician 52.
        doi:10.1080/00031305.1998.10480550

        Examples
        --------
        >>> lower, upper = Support(0.0, 1.0, 200).interval(
        ...     np.array([0.0, 0.5]), np.array([0.0, 0.1]), 2.0
        ... )
        >>> lower.round(3), upper.round(3)
        (array([0.   , 0.314]), array([0.024, 0.686]))
        """
        low, high = np.asarray(self.low), np.asarray(self.high)
        length = high - low
        unit = np.where(length > 0, length, 1.0)
        share = np.clip((estimate - low) / unit, 0.0, 1.0)
        # A share that is one up to rounding may have an error above zero.
        spread = np.maximum(share * (1 - share), EPSILON)
        several = ((low < 0) & (high > 0)) | self.average
        most = np.where(several & (spread > EPSILON), np.inf, self.nobs)
        lower_z = critical if least is None else least
        added = _added_share(critical, lower_z, spread, error / unit, most)
        centre = share + added * (0.5 - share)
        half = np.sqrt(added * centre * (1 - centre))
        lower = np.clip(centre - half, 0.0, share)
        upper = np.clip(centre + half, share, 1.0)
        bound = _bound_at_zero(lower_z, self.nobs)
        agreed = several & (error <= EPSILON * unit)  # learners differ by rounding
        lower = np.where(agreed, share - bound * share, lower)
        upper = np.where(agreed, share + bound * (1 - share), upper)
        return low + length * lower, low + length * upper


def _bound_at_zero(critical: Floats | float, nobs: float) -> Floats:
    """Compute the upper bound of a probability that all learners estimate as zero."""
    zero = np.zeros(1)
    added = _added_share(critical, critical, zero + EPSILON, zero, zero + nobs)
    return np.asarray(np.minimum(added / 2 + np.sqrt(added**2 * (2 - added)) / 2, 1.0))


def _added_share(
    critical: Floats | float,
    least: Floats | float,
    spread: Floats,
    error: Floats,
    most: Floats,
) -> Floats:
    """Compute the share `z**2 / (N + z**2)` of added observations, in [0, 1]."""
    # An overflow is infinite, and division by it gives zero, which is right.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        square = np.asarray(least, dtype=np.float64) ** 2
        by_error = 1 / (1 + spread / (critical * error) ** 2)
        by_nobs = 1 / (1 + most / square)
    return np.fmax(by_error, by_nobs)


@dataclass(frozen=True)
class Tails:
    """Range, skewness and typical error of estimates that are not probabilities."""

    # (m,) or float: typical standard error of predictions, the root of their mean
    # sampling variance; zero for other estimates
    error: Floats | float = 0.0
    # (m,) or float: typical skewness of predictions; NaN if the estimate's own is used
    skew: Floats | float = np.nan
    # low, high: (m,) or float: least and greatest value that an estimate can have,
    # possibly infinite
    low: Floats | float = -np.inf
    high: Floats | float = np.inf

    def combine(self, coefs: Floats) -> "Tails":
        """Compute the tails of linear combinations of the estimates.

        A multiple of a single prediction keeps the typical error and skewness; other
        combinations use their own skewness.

        Parameters
        ----------
        coefs : ndarray of shape (r, m)
            Coefficients, one combination per row.
        """
        single = (coefs != 0).sum(axis=1) == 1
        prediction_skew = np.where(
            coefs != 0, np.broadcast_to(self.skew, coefs.shape[1]), 0.0
        )
        error = np.where(single, (np.abs(coefs) * self.error).sum(axis=1), 0.0)
        skew = np.where(single, (np.sign(coefs) * prediction_skew).sum(axis=1), np.nan)
        with np.errstate(invalid="ignore"):
            ends = np.stack([coefs * self.low, coefs * self.high])
        ends = np.where(coefs == 0, 0.0, ends)
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        return Tails(error, skew, low, high)

    @property
    def of_averages(self) -> "Tails":
        """Tails of averages, in the same range."""
        return Tails(low=self.low, high=self.high)

    @property
    def of_differences(self) -> "Tails":
        """Tails of the difference of two estimates."""
        length = float(np.max(self.high) - np.min(self.low))
        return Tails(low=-length, high=length)

    def join(self, m: int, e: int) -> "Tails":
        """Join the tails of m estimates with those of e differences."""
        other = self.of_differences
        pairs = (
            *((self.error, 0.0), (self.skew, np.nan)),
            *((self.low, other.low), (self.high, other.high)),
        )
        return Tails(
            *(np.concatenate([np.broadcast_to(a, m), np.full(e, b)]) for a, b in pairs)
        )

    def shift(self, by: Floats) -> "Tails":
        """Shift the range with the estimates."""
        return replace(self, low=self.low + by, high=self.high + by)


def effective_size(share: Floats, variance: Floats, units: int) -> float:
    """Compute the largest effective number of observations of single probabilities.

    Parameters
    ----------
    share, variance : ndarray of shape (r,)
        Probabilities at reference rows, and their estimated variances.
    units : int
        Number of units (observations, or clusters).

    Returns
    -------
    float
        From 1 to `units`.

    Notes
    -----
    Variances V of probabilities p correspond to `N = sum p (1 - p) / sum V`
    observations on average. At a single point, N is at most `MOST_TIMES` times as
    large: much larger values mean that learners agree by chance. The number of rows in
    leaves is not a valid bound, because pure leaves are large if the probability is
    underestimated.

    Examples
    --------
    >>> effective_size(np.array([0.0, 0.5]), np.array([0.0, 0.025]), 100)
    40.0
    """
    spread, total = float(np.sum(share * (1 - share))), float(np.sum(variance))
    if spread <= 0 or total <= 0:
        return float(units)
    return float(np.clip(MOST_TIMES * spread / total, 1.0, units))


def skew_curvature(skew: Floats, double: Floats) -> Floats:
    """Convert skewness to the curvature of `reach`.

    Parameters
    ----------
    skew : ndarray of shape (m,)
        Skewness of the estimates, after `threshold_skew`.
    double : ndarray of shape (m,)
        Quantile of Student's t at the level of two standard deviations. If it is large
        because few units matter, intervals are wide already.

    Notes
    -----
    With :math:`b = 3 g / 4`, the term :math:`b z^2 / 2` is Edgeworth's
    :math:`g (2 z^2 + 1) / 6` at z = 2.
    """
    return 0.75 * skew * 2 / double


def reach(critical: Floats | float, curvature: Floats) -> Floats:
    r"""Compute the number of standard errors that an interval extends to one side.

    Parameters
    ----------
    critical : ndarray of shape (m,) or float
        Quantile of a symmetric interval.
    curvature : ndarray of shape (m,)
        Positive towards the short side, negative towards the long side.

    Notes
    -----
    The quantile t of a studentised estimate with skewness g is, to first order,
    :math:`t - g (2 t^2 + 1) / 6` (Hall 1992, section 2.6). An interval extends

    .. math:: \log(1 + b t) / b \ \text{ on the short side and } \ t + b t^2 / 2

    on the other: increasing in t, and t for b = 0.

    Examples
    --------
    >>> reach(2.0, np.array([0.3, 0.0, -0.3])).round(3)
    array([1.567, 2.   , 2.6  ])
    """
    size = _curvature_size(curvature)
    safe = np.where(size > 0, size, 1.0)
    short = np.log1p(safe * critical) / safe
    long = critical * (1 + size * critical / 2)
    curved = np.where(curvature > 0, short, long)
    return np.asarray(np.where(size > 0, curved, critical))


def _curvature_size(curvature: Floats) -> Floats:
    """Return the size of a curvature; zero if it is too small to divide by."""
    size = np.abs(curvature)
    return np.where(size > EPSILON**2, size, 0.0)


def quantile_of(distance: Floats, curvature: Floats) -> Floats:
    """Compute the inverse of `reach`: the quantile whose interval ends at a distance.

    Examples
    --------
    >>> quantile_of(reach(2.0, np.array([0.3, 0.0, -0.3])), np.array([0.3, 0, -0.3]))
    array([2., 2., 2.])
    """
    size = _curvature_size(curvature)
    safe = np.where(size > 0, size, 1.0)
    finite = np.where(np.isinf(distance), 0.0, distance)
    with np.errstate(over="ignore"):
        short = np.expm1(safe * finite) / safe
    # Not (sqrt(1 + 2 b d) - 1) / b, which cancels.
    long = 2 * finite / (1 + np.sqrt(1 + 2 * size * finite))
    quantile = np.where(curvature > 0, short, long)
    return np.asarray(np.where((size > 0) & np.isfinite(distance), quantile, distance))


def known_skew(
    skew: Floats, noise_share: Floats, concentration: Floats, n: int
) -> Floats:
    r"""Shrink a skewness by its Monte Carlo and sampling errors.

    Parameters
    ----------
    skew : ndarray of shape (m,)
        `sum c**3 / (sum c**2)**1.5` of the influences.
    noise_share : ndarray of shape (m,)
        Monte Carlo variance of one influence over the sum of squares.
    concentration : ndarray of shape (m,)
        `sum c**4 / (sum c**2)**2` of the influences.
    n : int
        Number of units.

    Notes
    -----
    The squared Monte Carlo error is :math:`9 r \kappa + 36 r^2 + 15 n r^3` with the
    share r and the concentration :math:`\kappa`. N normal units have the concentration
    3/N, and the skewness of their mean has the standard error :math:`\sqrt 6 / N` over
    data sets. With the squared sum :math:`s^2` of both errors, the skewness g is
    multiplied by :math:`\max(1 - 2 s^2 / g^2, 0)`, and lies in [-1, 1].

    Examples
    --------
    >>> known_skew(np.array([0.3, 0.3]), np.array([0.0, 0.05]), np.full(2, 0.1), 100)
    array([0.25555556, 0.        ])
    """
    error = noise_of_skew(noise_share, concentration, n) + 6 * (concentration / 3) ** 2
    return shrink_skew(skew, error)


def noise_of_skew(r: Floats, concentration: Floats, n: int) -> Floats:
    """Compute the Monte Carlo variance of a skewness; see `known_skew`."""
    return 9 * r * concentration + 36 * r**2 + 15 * n * r**3


def shrink_skew(skew: Floats, variance: Floats) -> Floats:
    """Subtract twice its variance from the square of a skewness, down to zero."""
    square = np.asarray(skew**2)
    share = np.divide(2 * variance, square, out=np.ones_like(square), where=square > 0)
    return np.asarray(np.clip(skew * np.maximum(1 - share, 0.0), -1.0, 1.0))


def trusted_share(mc_error: Floats) -> Floats:
    """Compute the share of an estimate's own skewness that is used.

    It falls from one to zero between `KNOWN_ERROR` and `UNKNOWN_ERROR`: if the Monte
    Carlo error of the standard error is large, the skewness is mostly noise.

    Parameters
    ----------
    mc_error : ndarray of shape (m,)
        Monte Carlo error of the standard error, relative to it.

    Examples
    --------
    >>> trusted_share(np.array([0.1, 0.2, 0.25, 0.3, np.inf])).round(3)
    array([1. , 1. , 0.5, 0. , 0. ])
    """
    share = (UNKNOWN_ERROR - mc_error) / (UNKNOWN_ERROR - KNOWN_ERROR)
    return np.asarray(np.clip(share, 0.0, 1.0))


def threshold_skew(skew: Floats) -> Floats:
    """Shrink a skewness towards zero by `SMALL_SKEW` (soft threshold)."""
    return np.asarray(np.sign(skew) * np.maximum(np.abs(skew) - SMALL_SKEW, 0.0))


def least_error(skew: Floats, typical: Floats | float) -> Floats:
    """Compute a lower bound of the standard error in intervals of skewed predictions.

    Its square is a share of the typical variance that grows with the skewness, up to
    `LEAST_SHARE`; see "Skewed estimates" in docs/theory.md.
    """
    share = LEAST_SHARE * np.minimum(np.abs(skew) / FULL_SKEW, 1.0)
    return np.asarray(np.sqrt(share) * typical)


def value_limit(kernel: AnyKernel) -> float | None:
    """Return the largest standard deviation of a prediction, if it is known.

    It is half the range of the predictions: [0, 1], or the range of the responses.
    """
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return getattr(kernel, "limit", None) if kernel.n_classes is None else 0.5


def prediction_support(
    kernel: PredictiveModel, nobs: float, *, average: bool = False
) -> Support | None:
    """Return the range of predictions that are probabilities; None for others."""
    return None if kernel.n_classes is None else Support(0.0, 1.0, nobs, average)


def prediction_tails(kernel: PredictiveModel) -> Tails | None:
    """Return the range of predictions as tails; None for probabilities."""
    if kernel.n_classes is not None:
        return None
    bounds = getattr(kernel, "bounds", None)
    return Tails() if bounds is None else Tails(low=bounds[0], high=bounds[1])


def value_tails(kernel: AnyKernel) -> Tails | None:
    """Return the tails of the kernel's values if they are predictions."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return prediction_tails(kernel)


def value_support(kernel: AnyKernel, nobs: float) -> Support | None:
    """Return the range of the kernel's values if they are probabilities."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return prediction_support(kernel, nobs)


# Gaussian draws for a simultaneous critical value (error of about 0.3 %).
BAND_DRAWS = 20_000


def simultaneous_critical_value(
    matrix: Floats, alpha: float, df: float, seed: int
) -> float:
    """Compute the quantile of the largest |t| over all estimates.

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
    """Compute the quantiles of a band, one for each estimate.

    The parameters are those of `simultaneous_critical_value`, but each estimate has its
    degrees of freedom, shape (m,). The largest of correlated normal variables gives the
    level of each interval. The quantile is Student's t of that level with the harmonic
    mean of the degrees of freedom, and at least that of the single interval: the
    smallest degrees of freedom would make bands much too wide, and a largest |t| with a
    common error of the standard errors too narrow.
    """
    largest = simultaneous_critical_value(matrix, alpha, np.inf, seed)
    level = 2 * float(stats.norm.sf(largest))
    inverse = float(np.mean(1 / df))
    common = stats.t.isf(level / 2, 1 / inverse if inverse > 0 else np.inf)
    return np.asarray(np.maximum(common, stats.t.isf(alpha / 2, df)))
