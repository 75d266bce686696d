"""Influences of single units: the largest, skewness, kurtosis and concentration."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.grouped_learners import ShardsDesign
from vstatkit.variance.formulas import noise_variance, positive_mean, shard_influence
from vstatkit.variance.moments import (
    CHUNK_ENTRIES,
    influence_values,
    moments_from_sums,
    sum_ensemble,
    value_units,
)


def influence_concentration(
    squares: Floats, fourth: Floats, noise: Floats, n: int
) -> Floats:
    """Measure how much the squared influences depend on few units, from 1/n to 1.

    `squares` and `fourth` are sums over n units of powers of their influences, shape
    (m,), and `noise` is the Monte Carlo variance of one influence. The result is
    `sum c**4 / (sum c**2)**2` with the noise subtracted from both sums; 1/n if all
    units are equally influential, one if only a single unit is.

    Noise of variance s2 in every c adds `6 s2 sum c**2 + 3 n s2**2` to the fourth
    powers and `n s2` to the squares. After subtraction they are made positive like
    variances.
    """
    unbiased = squares - n * noise
    powers = fourth - 6 * noise * unbiased - 3 * n * noise**2
    positive = _positive_squares(unbiased, noise, n)
    equal = np.full_like(positive, 1 / n)
    share = np.divide(powers, positive**2, out=equal, where=positive > 0)
    return np.clip(share, 1 / n, 1.0)


def largest_share(largest: Floats, squares: Floats, noise: Floats, n: int) -> Floats:
    """Estimate the share of the sampling variance that one unit accounts for.

    `largest` and `squares` are the largest squared influence and the sum of all, and
    `noise` is the Monte Carlo variance of one influence. It adds once to the largest
    square and n times to the sum, so the plain ratio is too small unless there are many
    learners. Both are corrected for it. The share is zero without any influence.
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

    Influences are covariances with the counts, and counts of different units are as
    good as uncorrelated, so `sum c**2` is at most the variance of a count times that of
    a learner (the share of it that is linear in the counts is what the influences see);
    the noise of one influence is the same product over B.
    """
    if complete:
        return np.full_like(noise, np.inf)
    return noise * (B - 1) * n / (n - 1)


@dataclass(frozen=True)
class InfluencePowers:
    """Sums over units of powers of their influences c, each of shape (m,)."""

    squares: Floats
    cubes: Floats
    fourths: Floats
    n: int  # number of units

    @classmethod
    def of(cls, blocks: Iterable[Floats]) -> "InfluencePowers":
        """Sum the powers of influences, given in blocks of columns of shape (n, m)."""
        sums, n = [], 0
        for block in blocks:
            squared, n = block**2, len(block)
            powers = (squared, squared * block, squared**2)
            sums.append([power.sum(axis=0) for power in powers])
        squares, cubes, fourths = np.concatenate(sums, axis=1)
        return cls(squares, cubes, fourths, n)


@dataclass(frozen=True)
class InfluenceNoise:
    """Monte Carlo noise of one influence, each of shape (m,)."""

    variance: Floats  # second central moment
    third: Floats | float = 0.0  # third central moment

    @classmethod
    def of(cls, values: Floats, k: int, n: int, *, replace: bool) -> "InfluenceNoise":
        """Compute the noise of averages over learners of independent subsamples.

        An influence is the mean over learners of a centred count times a centred value.
        Counts are binomial (k draws of probability 1/n; or one of k/n), and nearly
        independent of the value, so that the mean has the variance `var(N) var(h) / B`
        and the third moment `mu_3(N) mu_3(h) / B**2`.
        """
        B = len(values)
        draws, p = (k, 1 / n) if replace else (1, k / n)
        spread = draws * p * (1 - p)
        centred = values - values.mean(axis=0)
        second = (centred**2).sum(axis=0) / (B - 1)
        third = (centred**3).mean(axis=0)
        return cls(spread * second / B, spread * (1 - 2 * p) * third / B**2)


@dataclass(frozen=True)
class Cumulants:
    """Shape of the distribution of estimates, each of shape (m,)."""

    skew: Floats  # skewness
    excess: Floats  # excess kurtosis
    skew_error: Floats  # Monte Carlo standard error of the skewness


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
    unbiased = powers.squares - n * s2
    V = _positive_squares(unbiased, s2, n)
    cubes = powers.cubes - n * noise.third
    fourths = powers.fourths - 6 * s2 * unbiased - 3 * n * s2**2
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
    """Compute the skewness of estimates from sums over n units; see `cumulants`."""
    powers = InfluencePowers(squares, cubes, fourths, n)
    return cumulants(powers, InfluenceNoise(noise)).skew


def influence_blocks(design: SubsampleDesign, values: Floats) -> Iterator[Floats]:
    """Yield the influences of units, or shards, on blocks of estimates."""
    if isinstance(design, ShardsDesign):
        yield shard_influence(values, design.groups(len(values)))
        return
    for block in _column_blocks(design, values):
        unit = value_units(block)
        yield influence_values(sum_ensemble(design, block / unit)) * unit


def _column_blocks(design: SubsampleDesign, values: Floats) -> Iterator[Floats]:
    """Split the columns of the values so that a table of units by columns is small."""
    step = max(1, CHUNK_ENTRIES // design.n)
    for first in range(0, values.shape[1], step):
        yield values[:, first : first + step]


def most_influential(
    design: SubsampleDesign, values: Floats, units: Labels
) -> pd.DataFrame | None:
    """Find the unit, or shard, with the largest influence on every estimate.

    The table has a row per estimate: `unit`, its label, and `share`, its share of the
    sampling variance. It is None if learners are drawn in groups: the Monte Carlo error
    of their influences is unknown.
    """
    B = len(values)
    if isinstance(design, ShardsDesign):
        squares = shard_influence(values, design.groups(B)) ** 2
        total = squares.sum(axis=0)
        places = squares.argmax(axis=0)
        shares = largest_share(squares.max(axis=0), total, 0.0 * total, len(squares))
    elif design.groups(B) is not None:
        return None
    else:
        blocks = [_largest_influence(design, b) for b in _column_blocks(design, values)]
        places = np.concatenate([place for place, _ in blocks])
        shares = np.concatenate([share for _, share in blocks])
    labels = influence_labels(design, units)
    return pd.DataFrame({"unit": labels[places], "share": shares})


def _largest_influence(
    design: SubsampleDesign, values: Floats
) -> tuple[Floats, Floats]:
    """Find the position of the largest influence on each column, and its share."""
    sums = sum_ensemble(design, values / value_units(values))
    moments = moments_from_sums(sums, complete=design.complete)
    squares = influence_values(sums) ** 2
    noise = moments.count_variance * moments.monte_carlo
    total, largest = squares.sum(axis=0), squares.max(axis=0)
    return squares.argmax(axis=0), largest_share(largest, total, noise, design.n)


def influence_labels(design: SubsampleDesign, units: Labels) -> Labels:
    """Return the labels of the units, or of the shards in a design of shards."""
    if isinstance(design, ShardsDesign):
        return pd.RangeIndex(design.n_shards, name="shard")
    return units
