"""Critical values that make all intervals hold at once."""

import numpy as np
from scipy import stats

from vstatkit._typing import Floats
from vstatkit.options import check_alpha
from vstatkit.sampling.streams import Purpose, stream

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
