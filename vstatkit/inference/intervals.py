"""Intervals of probabilities and of skewed estimates; simultaneous bands."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from vstatkit._typing import Bools, Floats
from vstatkit.kernels.base import AnyKernel, PredictiveModel
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.validation import check_alpha

EPSILON = float(np.finfo(np.float64).eps)

MOST_TIMES = 4.0
"""Most that a single probability is known better than probabilities are typically."""

SMALL_SKEW = 0.1
"""Skewness up to which intervals are symmetric; what exceeds it makes them longer on
one side."""

KNOWN_ERROR = 0.2
"""Relative Monte Carlo error of a standard error up to which the estimate's own
skewness is used."""

UNKNOWN_ERROR = 0.3
"""Relative Monte Carlo error from which it is not used at all."""

LEAST_SHARE = 0.15
"""Share of the typical variance that intervals of skewed estimates have at least."""

FULL_SKEW = 0.5
"""Skewness beyond `SMALL_SKEW` from which that share is needed in full."""


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

    def combined(self, coefs: Floats) -> "Support":
        """Range of linear combinations of the estimates.

        Parameters
        ----------
        coefs : ndarray of shape (r, m)
            Coefficients, one combination per row.
        """
        ends = np.stack([coefs * self.low, coefs * self.high])
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
        several = (coefs != 0).sum(axis=1) > 1
        joined = (coefs != 0) & np.broadcast_to(self.average, coefs.shape[1])
        return Support(low, high, self.nobs, several | joined.any(axis=1))

    @property
    def of_differences(self) -> "Support":
        """Range of the difference of two estimates that have the same range."""
        length = self.high - self.low
        return Support(-length, length, self.nobs)

    def beside(self, other: "Support", m: int, e: int) -> "Support":
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
        """Agresti and Coull's intervals, on an effective number of observations.

        Parameters
        ----------
        estimate, error : ndarray of shape (m,)
            Estimates and their standard errors.
        critical : ndarray of shape (m,) or float
            Quantile that the standard errors are multiplied by.
        least : float, optional
            Quantile where `nobs` decides and not the standard error; by default the
            same.

        Returns
        -------
        lower, upper : ndarray of shape (m,)
            Inside the range, and around the estimate.

        Notes
        -----
        The share p of a class among N independent observations has the variance
        `p (1 - p) / N`, so a standard error s stands for `N = p (1 - p) / s**2` of
        them. To these `z**2` are added, half to the class and half to its complement
        (z is `critical`), and the interval is that of the share q among `N + z**2`:
        `q ± z sqrt(q (1 - q) / (N + z**2))`, cut off at the ends. N is at most
        `nobs`, because s is uninformative if all learners agree. If they agree on
        p = 0, the upper bound is about 4.6/nobs at 95 %. `effective_size` finds `nobs`.

        Differences, whose range has zero inside, and averages may well be known better
        than that, and N has no bound but at the very ends. If their standard error is
        zero, all learners agree on every probability in them. The interval of
        the share p in the range is then `[p - u p, p + u (1 - p)]`, with the upper
        bound u of a single probability on whose zero all learners agree. It has the
        length u in units of the range. At its ends it is the interval above, and for a
        difference of zero it is `[-u, u]`.

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
        # A share of one to the last digit may have an error above zero.
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
    """Upper bound of a probability of zero that all learners agree on."""
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
    """Share `z**2 / (N + z**2)` of the observations that are added, in [0, 1]."""
    # An overflow is infinite, and a division by it is zero, as it should be.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        square = np.asarray(least, dtype=np.float64) ** 2
        by_error = 1 / (1 + spread / (critical * error) ** 2)
        by_nobs = 1 / (1 + most / square)
    return np.fmax(by_error, by_nobs)


@dataclass(frozen=True)
class Tails:
    """What is known of the tails of estimates that are no probabilities.

    Attributes
    ----------
    error : ndarray of shape (m,) or float
        Typical standard error of predictions: the root of their mean sampling variance;
        zero where estimates are no predictions.
    skew : ndarray of shape (m,) or float
        Typical skewness of predictions; NaN where the estimate's own is used.
    low, high : ndarray of shape (m,) or float
        Least and greatest value that an estimate can have, possibly infinite.
    """

    error: Floats | float = 0.0
    skew: Floats | float = np.nan
    low: Floats | float = -np.inf
    high: Floats | float = np.inf

    def combined(self, coefs: Floats) -> "Tails":
        """Describe linear combinations of the estimates.

        A multiple of a single prediction is like a prediction; other combinations
        have tails of their own.

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

    def beside(self, m: int, e: int) -> "Tails":
        """Join the tails of m estimates with those of e differences."""
        other = self.of_differences
        pairs = (
            *((self.error, 0.0), (self.skew, np.nan)),
            *((self.low, other.low), (self.high, other.high)),
        )
        return Tails(
            *(np.concatenate([np.broadcast_to(a, m), np.full(e, b)]) for a, b in pairs)
        )

    def moved(self, shift: Floats) -> "Tails":
        """Shift the range with the estimates."""
        return replace(self, low=self.low + shift, high=self.high + shift)


def effective_size(share: Floats, variance: Floats, units: int) -> float:
    """Find the number of observations that single probabilities stand for, at most.

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
    A share of N independent observations has the variance `p (1 - p) / N`, so that
    variances V of probabilities p stand for `N = sum p (1 - p) / sum V` observations
    typically. At a single point N may be larger, but if it is much larger the learners
    agree by chance, so N is at most `MOST_TIMES` times as large.
    Purity of leaves must not count: a tree stops where all its rows have one class, so
    that the rows in a leaf (or the weights of a forest) are many just where the
    probability is underestimated.

    Examples
    --------
    >>> effective_size(np.array([0.0, 0.5]), np.array([0.0, 0.025]), 100)
    40.0
    """
    spread, total = float(np.sum(share * (1 - share))), float(np.sum(variance))
    if spread <= 0 or total <= 0:
        return float(units)
    return float(np.clip(MOST_TIMES * spread / total, 1.0, units))


def bend(skew: Floats, double: Floats) -> Floats:
    """Turn skewness into the curvature of `reach`.

    Parameters
    ----------
    skew : ndarray of shape (m,)
        Skewness of the estimates, beyond what is small.
    double : ndarray of shape (m,)
        Quantile of Student's t at the level of two standard deviations: where it is
        large because few units matter, quantiles are long already.

    Notes
    -----
    With :math:`b = 3 g / 4`, the term :math:`b z^2 / 2` is Edgeworth's
    :math:`g (2 z^2 + 1) / 6` at z = 2.
    """
    return 0.75 * skew * 2 / double


def reach(critical: Floats | float, curvature: Floats) -> Floats:
    r"""Find how many standard errors an interval extends to one side.

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
    """Size of a curvature; zero if it is too small to divide by."""
    size = np.abs(curvature)
    return np.where(size > EPSILON**2, size, 0.0)


def quantile_of(distance: Floats, curvature: Floats) -> Floats:
    """Find the quantile whose interval ends at this distance: the inverse of `reach`.

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
    r"""Find the part of a skewness that is neither noise nor chance.

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
    share r and the concentration :math:`\kappa`; see `cumulants`. N normal units have
    the concentration 3/N, and the skewness of their mean has the standard error
    :math:`\sqrt 6 / N` over data sets. With both errors together, s, the skewness g is
    multiplied by :math:`1 - 2 s^2 / g^2`, or zero if that is negative. It is at most
    one, as no sum of cubes is larger.

    Examples
    --------
    >>> known_skew(np.array([0.3, 0.3]), np.array([0.0, 0.05]), np.full(2, 0.1), 100)
    array([0.25555556, 0.        ])
    """
    error = noise_of_skew(noise_share, concentration, n) + 6 * (concentration / 3) ** 2
    return shrunken(skew, error)


def noise_of_skew(r: Floats, concentration: Floats, n: int) -> Floats:
    """Compute the Monte Carlo variance of a skewness; see `known_skew`."""
    return 9 * r * concentration + 36 * r**2 + 15 * n * r**3


def shrunken(skew: Floats, variance: Floats) -> Floats:
    """Subtract twice its variance from the square of a skewness, down to zero."""
    square = np.asarray(skew**2)
    share = np.divide(2 * variance, square, out=np.ones_like(square), where=square > 0)
    return np.asarray(np.clip(skew * np.maximum(1 - share, 0.0), -1.0, 1.0))


def trusted_share(mc_error: Floats) -> Floats:
    """Share of an estimate's own skewness that is used.

    The third powers of influences are noisier than their squares. In an ensemble that
    does not determine the standard error, the skewness is mostly noise, and
    so is the estimate of that noise. The share falls from one to zero between
    `KNOWN_ERROR` and `UNKNOWN_ERROR`.

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


def beyond_small(skew: Floats) -> Floats:
    """Shrink a skewness by `SMALL_SKEW`, to zero if it is smaller."""
    return np.asarray(np.sign(skew) * np.maximum(np.abs(skew) - SMALL_SKEW, 0.0))


def least_error(skew: Floats, typical: Floats | float) -> Floats:
    """Bound the standard error of intervals of skewed predictions from below.

    A tail that no row near a point shows is missing from its estimate and from its
    standard error. Other points show it. The square of the bound is a share of the
    typical variance that grows with the skewness, up to `LEAST_SHARE`.
    """
    share = LEAST_SHARE * np.minimum(np.abs(skew) / FULL_SKEW, 1.0)
    return np.asarray(np.sqrt(share) * typical)


def value_limit(kernel: AnyKernel) -> float | None:
    """Largest standard deviation that a prediction can have, where it is known.

    Half the range of what a learner can predict: probabilities lie between zero
    and one, means of responses between the smallest and the largest.
    """
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return getattr(kernel, "limit", None) if kernel.n_classes is None else 0.5


def prediction_support(
    kernel: PredictiveModel, nobs: float, *, average: bool = False
) -> Support | None:
    """Range of the predictions, or their averages, where they are probabilities."""
    return None if kernel.n_classes is None else Support(0.0, 1.0, nobs, average)


def prediction_tails(kernel: PredictiveModel) -> Tails | None:
    """Tails of predictions, before they are known from reference rows."""
    if kernel.n_classes is not None:
        return None
    bounds = getattr(kernel, "bounds", None)
    return Tails() if bounds is None else Tails(low=bounds[0], high=bounds[1])


def value_tails(kernel: AnyKernel) -> Tails | None:
    """Tails of the kernel's values, where they are predictions."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return prediction_tails(kernel)


def value_support(kernel: AnyKernel, nobs: float) -> Support | None:
    """Range of the kernel's values, where they are probabilities."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return prediction_support(kernel, nobs)


BAND_DRAWS = 20_000
"""Gaussian draws behind a simultaneous critical value (error of about 0.3 %)."""


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
