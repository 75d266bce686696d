"""What the influences of single units say: how few matter, how much at most."""

import numpy as np

from vstatkit._typing import Floats
from vstatkit.variance.noise import noise_variance, positive_mean


def influence_concentration(
    squares: Floats, fourth: Floats, noise: Floats, n: int
) -> Floats:
    """Say how much the squared influences depend on few units, from 1/n to 1.

    Parameters
    ----------
    squares, fourth : ndarray of shape (m,)
        Sums over units of the second and fourth powers of their influences.
    noise : ndarray of shape (m,)
        Monte Carlo variance of one influence.
    n : int
        Number of units.

    Returns
    -------
    ndarray of shape (m,)
        `sum c**4 / (sum c**2)**2` with the noise taken out of both sums; 1/n where
        all units matter alike, one where a single unit matters.

    Notes
    -----
    Noise of variance s2 in every c adds `6 s2 sum c**2 + 3 n s2**2` to the fourth
    powers and `n s2` to the squares. These may be negative then, and are made
    positive as variances are.
    """
    known = squares - n * noise
    powers = fourth - 6 * noise * known - 3 * n * noise**2
    positive = _positive_squares(known, noise, n)
    alike = np.full_like(positive, 1 / n)
    share = np.divide(powers, positive**2, out=alike, where=positive > 0)
    return np.clip(share, 1 / n, 1.0)


def largest_share(largest: Floats, squares: Floats, noise: Floats, n: int) -> Floats:
    """Estimate the share of the sampling variance that one unit accounts for.

    Parameters
    ----------
    largest : ndarray of shape (m,)
        Largest squared influence of a unit.
    squares : ndarray of shape (m,)
        Sum over units of the squared influences.
    noise : ndarray of shape (m,)
        Monte Carlo variance of one influence.
    n : int
        Number of units.

    Returns
    -------
    ndarray of shape (m,)
        Between 0 and 1; 0 if no unit has any influence.

    Notes
    -----
    Monte Carlo noise of variance s2 adds s2 to the largest square and `n s2` to the
    sum, so the plain ratio is too small unless there are many learners. Both are
    corrected for it.

    Examples
    --------
    >>> largest_share(np.array([4.0]), np.array([10.0]), np.array([0.0]), 50)
    array([0.4])
    """
    positive = _positive_squares(squares - n * noise, noise, n)
    excess = np.maximum(largest - noise, 0.0)
    share = np.divide(excess, positive, out=np.zeros_like(excess), where=positive > 0)
    return np.minimum(share, 1.0)


def _positive_squares(known: Floats, noise: Floats, n: int) -> Floats:
    """Make a sum of squared influences positive after its noise was subtracted."""
    return positive_mean(known, np.sqrt(noise_variance(known, noise, n)))


def influence_ceiling(noise: Floats, B: float, n: int, *, complete: bool) -> Floats:
    """Bound a sum of squared influences by the spread of single learners.

    Notes
    -----
    Influences are covariances with the counts, and counts of different units are
    as good as uncorrelated, so `sum c**2` is at most the variance of a count times
    that of a learner (the share of it that is linear in the counts is what the
    influences see); the noise of one influence is the same product over B.
    """
    if complete:
        return np.full_like(noise, np.inf)
    return noise * (B - 1) * n / (n - 1)
