"""Influence of single units on the estimates, and how normal it looks."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.inference.estimate import CHUNK_ENTRIES, value_units
from vstatkit.inference.normality import moment_tests, normality_tests
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.variance.group_estimators import shard_influence
from vstatkit.variance.influence import InfluencePowers, largest_share
from vstatkit.variance.large_moments import is_wide, plain, sum_powers
from vstatkit.variance.moments import influence_values, moments_from_sums, sum_ensemble


def influence_blocks(design: SubsampleDesign, values: Floats) -> Iterator[Floats]:
    """Influence on some of the estimates after others, to bound memory.

    Of every unit; of every shard, where shards and not units tell the variance.
    """
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
    """Find the unit with the largest influence on every estimate.

    Parameters
    ----------
    design : SubsampleDesign
        The design that the learners were drawn by.
    values : ndarray of shape (B, m)
        Kernel values.
    units : Index
        Labels of the units.

    Returns
    -------
    DataFrame or None
        One row per estimate: `unit`, the label of the most influential unit (or
        shard), and `share`, its share of the sampling variance. None if learners come
        in dependent groups, whose influences have no known Monte Carlo error.
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
        blocks = [_largest(design, b) for b in _column_blocks(design, values)]
        places = np.concatenate([place for place, _ in blocks])
        shares = np.concatenate([share for _, share in blocks])
    labels = influential(design, units)
    return pd.DataFrame({"unit": labels[places], "share": shares})


def _largest(design: SubsampleDesign, values: Floats) -> tuple[Floats, Floats]:
    """Find the place of the largest influence on each column, and its share."""
    sums = sum_ensemble(design, values / value_units(values))
    moments = moments_from_sums(sums, complete=design.complete)
    squares = influence_values(sums) ** 2
    noise = moments.count_variance * moments.monte_carlo
    total, largest = squares.sum(axis=0), squares.max(axis=0)
    return squares.argmax(axis=0), largest_share(largest, total, noise, design.n)


def influence_powers(design: SubsampleDesign, values: Floats) -> InfluencePowers:
    """Sum powers of the influences on every estimate."""
    return InfluencePowers.join(
        [InfluencePowers.of(one) for one in influence_blocks(design, values)]
    )


def influence_normality(design: SubsampleDesign, values: Floats) -> pd.DataFrame:
    """Test the influence values, one row for each estimate."""
    if is_wide(design, *values.shape):
        # Influences add up to zero: their powers are moments about the mean.
        unit = value_units(values)
        powers = sum_powers(design, values / unit, plain, presence=False).powers
        return moment_tests(design.n, powers.squares, powers.cubes, powers.fourths)
    tables = [normality_tests(block) for block in influence_blocks(design, values)]
    return pd.concat(tables, ignore_index=True)


def influential(design: SubsampleDesign, units: Labels) -> Labels:
    """Label what has an influence of its own: the units, or the shards."""
    if isinstance(design, ShardsDesign):
        return pd.RangeIndex(design.n_shards, name="shard")
    return units
