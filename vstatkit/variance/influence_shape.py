"""Skewness, kurtosis and concentration of the influences of single units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.variance.noise import noise_variance, positive_mean


def influence_concentration(
    squares: Floats, fourth: Floats, noise: Floats, n: int
) -> Floats:
    """Measure how much the squared influences depend on few units, from 1/n to 1.

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
        `sum c**4 / (sum c**2)**2` with the noise subtracted from both sums; 1/n if
        all units are equally influential, one if only a single unit is.

    Notes
    -----
    Noise of variance s2 in every c adds `6 s2 sum c**2 + 3 n s2**2` to the fourth
    powers and `n s2` to the squares. After subtraction they are made positive like
    variances.
    """
    known = squares - n * noise
    powers = fourth - 6 * noise * known - 3 * n * noise**2
    positive = _positive_squares(known, noise, n)
    equal = np.full_like(positive, 1 / n)
    share = np.divide(powers, positive**2, out=equal, where=positive > 0)
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


@dataclass(frozen=True)
class InfluencePowers:
    """Sums over units of powers of their influences c, each of shape (m,)."""

    # squares, cubes, fourths: (m,): sums of powers
    squares: Floats
    cubes: Floats
    fourths: Floats
    n: int  # number of units

    @classmethod
    def of(cls, influences: Floats) -> "InfluencePowers":
        """Sum the powers of influences of shape (n, m)."""
        squared = influences**2
        return cls(
            squared.sum(axis=0),
            (squared * influences).sum(axis=0),
            (squared**2).sum(axis=0),
            len(influences),
        )

    @classmethod
    def join(cls, parts: Sequence["InfluencePowers"]) -> "InfluencePowers":
        """Concatenate the sums of several sets of estimates."""
        return cls(
            np.concatenate([part.squares for part in parts]),
            np.concatenate([part.cubes for part in parts]),
            np.concatenate([part.fourths for part in parts]),
            parts[0].n,
        )


@dataclass(frozen=True)
class InfluenceNoise:
    """Monte Carlo noise of one influence, each of shape (m,)."""

    # variance, third: (m,): second and third central moment
    variance: Floats
    third: Floats

    @classmethod
    def of(cls, values: Floats, k: int, n: int, *, replace: bool) -> "InfluenceNoise":
        """Compute the noise of averages over independent learners.

        Parameters
        ----------
        values : ndarray of shape (B, m)
            Kernel values.
        k, n : int
            Units in a subsample, and in all.
        replace : bool
            Whether they are drawn with replacement.

        Notes
        -----
        An influence is the mean over learners of a centred count times a centred
        value. Counts are binomial (k draws of probability 1/n; or one of k/n), and
        nearly independent of the value, so that the mean has the variance
        `var(N) var(h) / B` and the third moment `mu_3(N) mu_3(h) / B**2`.
        """
        B = len(values)
        draws, p = (k, 1 / n) if replace else (1, k / n)
        spread = draws * p * (1 - p)
        centred = values - values.mean(axis=0)
        second = (centred**2).sum(axis=0) / (B - 1)
        third = (centred**3).mean(axis=0)
        return cls(spread * second / B, spread * (1 - 2 * p) * third / B**2)

    @classmethod
    def zero(cls, m: int) -> "InfluenceNoise":
        """Return no noise, for a complete ensemble or shards."""
        return cls(np.zeros(m), np.zeros(m))


@dataclass(frozen=True)
class Cumulants:
    """Shape of the distribution of estimates, each of shape (m,)."""

    # skew, excess: (m,): skewness and excess kurtosis
    skew: Floats
    excess: Floats
    skew_error: Floats  # (m,): monte Carlo standard error of the skewness


def cumulants(powers: InfluencePowers, noise: InfluenceNoise) -> Cumulants:
    r"""Compute skewness and kurtosis of sums of independent influences.

    Parameters
    ----------
    powers : InfluencePowers
        Sums over units.
    noise : InfluenceNoise
        Their Monte Carlo noise.

    Returns
    -------
    Cumulants
        Zero if no unit has an influence.

    Notes
    -----
    A sum of n independent terms, of which each :math:`c_i` is a draw, has

    .. math:: g = \sum c^3 / (\sum c^2)^{3/2}, \qquad
              \kappa = \sum c^4 / (\sum c^2)^2 - 3/n .

    Independent noise of variance :math:`s_2` and third moment :math:`s_3` in every c
    adds :math:`n s_2` to the squares, :math:`n s_3` to the cubes (the influences add up
    to zero), and :math:`6 s_2 \sum c^2 + 3 n s_2^2` to the fourth powers. The
    variance of the cubes is :math:`9 s_2 \sum c^4 + 36 s_2^2 \sum c^2 + 15 n s_2^3`.
    """
    n, s2 = powers.n, noise.variance
    known = powers.squares - n * s2
    V = _positive_squares(known, s2, n)
    cubes = powers.cubes - n * noise.third
    fourths = powers.fourths - 6 * s2 * known - 3 * n * s2**2
    spread = 9 * s2 * np.maximum(fourths, V**2 / n) + 36 * s2**2 * V + 15 * n * s2**3
    zero = np.zeros_like(V)
    varies = V > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return Cumulants(
            np.where(varies, cubes / V**1.5, zero),
            np.where(varies, fourths / V**2 - 3 / n, zero),
            np.where(varies, np.sqrt(spread) / V**1.5, zero),
        )


def influence_skew(
    squares: Floats, cubes: Floats, fourths: Floats, noise: Floats, n: int
) -> Floats:
    """Compute the skewness of estimates from sums over units of powers of influences.

    Parameters
    ----------
    squares, cubes, fourths : ndarray of shape (m,)
        Sums of powers.
    noise : ndarray of shape (m,)
        Monte Carlo variance of one influence.
    n : int
        Number of units.

    Examples
    --------
    >>> c = np.array([3.0, -1.0, -1.0, -1.0])
    >>> sums = [np.array([np.sum(c**power)]) for power in (2, 3, 4)]
    >>> influence_skew(*sums, np.zeros(1), 4).round(4)
    array([0.5774])
    """
    powers = InfluencePowers(squares, cubes, fourths, n)
    return cumulants(powers, InfluenceNoise(noise, np.zeros_like(noise))).skew
