"""Skewness and kurtosis of estimates, from the influences of single units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.variance.noise import noise_variance, positive_mean


@dataclass(frozen=True)
class InfluencePowers:
    """Sums over units of powers of their influences c, each of shape (m,).

    Attributes
    ----------
    squares, cubes, fourths : ndarray of shape (m,)
        Sums of powers.
    n : int
        Number of units.
    """

    squares: Floats
    cubes: Floats
    fourths: Floats
    n: int

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
        """Join the sums of some estimates and of others."""
        return cls(
            np.concatenate([part.squares for part in parts]),
            np.concatenate([part.cubes for part in parts]),
            np.concatenate([part.fourths for part in parts]),
            parts[0].n,
        )


@dataclass(frozen=True)
class InfluenceNoise:
    """Monte Carlo noise of one influence, each of shape (m,).

    Attributes
    ----------
    variance, third : ndarray of shape (m,)
        Second and third central moment.
    """

    variance: Floats
    third: Floats

    @classmethod
    def of(cls, values: Floats, k: int, n: int, *, replace: bool) -> "InfluenceNoise":
        """Find the noise of averages over independent learners.

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
        hardly depend on the value, so that the mean has the variance
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
    def none(cls, m: int) -> "InfluenceNoise":
        """Describe influences of a complete ensemble, or of shards."""
        return cls(np.zeros(m), np.zeros(m))


@dataclass(frozen=True)
class Cumulants:
    """Shape of the distribution of estimates, each of shape (m,).

    Attributes
    ----------
    skew, excess : ndarray of shape (m,)
        Skewness and excess kurtosis.
    skew_error : ndarray of shape (m,)
        Monte Carlo standard error of the skewness.
    """

    skew: Floats
    excess: Floats
    skew_error: Floats


def cumulants(powers: InfluencePowers, noise: InfluenceNoise) -> Cumulants:
    r"""Find skewness and kurtosis of sums of independent influences.

    Parameters
    ----------
    powers : InfluencePowers
        Sums over units.
    noise : InfluenceNoise
        What they owe to the choice of subsamples.

    Returns
    -------
    Cumulants
        Zero where no unit has an influence.

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
    V = positive_mean(known, np.sqrt(noise_variance(known, s2, n)))
    cubes = powers.cubes - n * noise.third
    fourths = powers.fourths - 6 * s2 * known - 3 * n * s2**2
    spread = 9 * s2 * np.maximum(fourths, V**2 / n) + 36 * s2**2 * V + 15 * n * s2**3
    zero = np.zeros_like(V)
    there = V > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return Cumulants(
            np.where(there, cubes / V**1.5, zero),
            np.where(there, fourths / V**2 - 3 / n, zero),
            np.where(there, np.sqrt(spread) / V**1.5, zero),
        )


def influence_skew(
    squares: Floats, cubes: Floats, fourths: Floats, noise: Floats, n: int
) -> Floats:
    """Find the skewness of estimates from sums over units of powers of influences.

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
