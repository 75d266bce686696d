"""Correct intervals for the skewness of estimates, as far as it is known."""

import numpy as np

from vstatkit._typing import Floats
from vstatkit.inference.intervals import EPSILON

# Skewness up to which intervals are symmetric; it is subtracted from larger ones.
SMALL_SKEW = 0.1
# Largest relative Monte Carlo error of a standard error at which the estimate's own
# skewness is used in full.
KNOWN_ERROR = 0.2
UNKNOWN_ERROR = 0.3  # relative Monte Carlo error from which on it is not used
# Minimum of the variance of skewed predictions, as a share of the typical one.
LEAST_SHARE = 0.15
FULL_SKEW = 0.5  # skewness beyond `SMALL_SKEW` from which on that share is used in full


def skew_curvature(skew: Floats, double: Floats) -> Floats:
    """Convert skewness, after `threshold_skew`, to the curvature of `reach`.

    With :math:`b = 3 g / 4`, the term :math:`b z^2 / 2` is Edgeworth's
    :math:`g (2 z^2 + 1) / 6` at z = 2. `double` is the quantile of Student's t at the
    level of two standard deviations: if it is large because few units matter, intervals
    are wide already.
    """
    return 0.75 * skew * 2 / double


def reach(critical: Floats | float, curvature: Floats) -> Floats:
    r"""Compute the number of standard errors that an interval extends to one side.

    `critical` is the quantile t of a symmetric interval. The curvature b is positive
    towards the short side, negative towards the long side.

    The quantile t of a studentised estimate with skewness g is, to first order,
    :math:`t - g (2 t^2 + 1) / 6` (Hall 1992, section 2.6). An interval extends

    .. math:: \log(1 + b t) / b \ \text{ on the short side and } \ t + b t^2 / 2

    on the other: increasing in t, and t for b = 0.

    >>> reach(2.0, np.array([0.3, 0.0, -0.3])).round(3)
    array([1.567, 2.   , 2.6  ])
    """
    size, safe = _curvature_size(curvature)
    short = np.log1p(safe * critical) / safe
    long = critical * (1 + size * critical / 2)
    curved = np.where(curvature > 0, short, long)
    return np.asarray(np.where(size > 0, curved, critical))


def _curvature_size(curvature: Floats) -> tuple[Floats, Floats]:
    """Return sizes of curvatures, tiny ones as zero, and as one to divide by."""
    size = np.abs(curvature)
    known = size > EPSILON**2
    return np.where(known, size, 0.0), np.where(known, size, 1.0)


def quantile_of(distance: Floats, curvature: Floats) -> Floats:
    """Invert `reach`: compute the quantile whose interval ends at a distance."""
    size, safe = _curvature_size(curvature)
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

    `noise_share` is the Monte Carlo variance of one influence over the sum of squares.

    The squared Monte Carlo error is :math:`9 r \kappa + 36 r^2 + 15 n r^3` with the
    share r and the concentration :math:`\kappa`. N normal units have the concentration
    3/N, and the skewness of their mean has the standard error :math:`\sqrt 6 / N` over
    data sets. With the squared sum :math:`s^2` of both errors, the skewness g is
    multiplied by :math:`\max(1 - 2 s^2 / g^2, 0)`, and lies in [-1, 1].
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

    It falls from one to zero as the relative Monte Carlo error of the standard error
    goes from `KNOWN_ERROR` to `UNKNOWN_ERROR`: the skewness is then mostly noise.
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
