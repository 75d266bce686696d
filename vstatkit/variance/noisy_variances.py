"""Monte Carlo noise in variances: how much there is, and variances made positive."""

import numpy as np
from scipy import special

from vstatkit._typing import Floats


def positive_mean(estimate: Floats, scale: Floats) -> Floats:
    r"""Make an estimate positive: its posterior mean under a flat prior.

    Parameters
    ----------
    estimate : ndarray
        Unbiased, possibly negative.
    scale : ndarray
        Standard error of the estimate; where it is zero the answer is
        `max(estimate, 0)`.

    Notes
    -----
    The mean of a normal distribution with mean V and standard deviation s, given
    that the variable is positive:

    .. math:: V^{+} = V + s \, \varphi(V / s) / \Phi(V / s) .

    Examples
    --------
    >>> positive_mean(np.array([-1.0, 0.0, 9.0]), np.ones(3)).round(4)
    array([0.5251, 0.7979, 9.    ])
    """
    known = scale <= 0
    s = np.where(known, 1.0, scale)
    z = np.where(known, 0.0, estimate / s)
    # phi(z) / Phi(z) by logarithms: both underflow far below zero. Beyond 500 it is
    # not needed, and the rounding of z**2 would overflow.
    near = np.clip(z, -500, 500)
    hazard = np.exp(-(near**2) / 2 - np.log(2 * np.pi) / 2 - special.log_ndtr(near))
    # z + hazard cancels there; -1/z is its expansion, good to 1e-5 at z = -500.
    mean = np.where(z < -500, -1 / np.minimum(z, -1), z + hazard)
    return np.where(known, np.maximum(estimate, 0.0), s * mean)


def noise_variance(sampling: Floats, noise: Floats, n: int) -> Floats:
    r"""Compute the Monte Carlo variance of a sum V of n squared influences.

    `sampling` is V without its bias, and `noise` the Monte Carlo variance of one
    influence.

    .. math:: 2 n s_2^2 + 4 s_2 \max(V, 0) .

    Each influence carries independent noise of variance :math:`s_2`. The square of the
    noise has variance :math:`2 s_2^2`, and twice the product of the noise and an
    influence has :math:`4 s_2` times the squared influence.
    """
    return 2 * n * noise**2 + 4 * noise * np.maximum(sampling, 0.0)
