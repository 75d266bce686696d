"""Influence of single units on the estimates, and how normal it looks."""

from collections.abc import Iterator

import pandas as pd

from vstatkit._typing import Floats, Labels
from vstatkit.inference.estimate import CHUNK_ENTRIES, value_units
from vstatkit.inference.normality import moment_tests, normality_tests
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.variance.by_shards import shard_influence
from vstatkit.variance.cumulants import InfluencePowers
from vstatkit.variance.moments import influence_values
from vstatkit.variance.powers import is_wide, plain, sum_powers
from vstatkit.variance.sums import sum_ensemble


def influence_blocks(design: SubsampleDesign, values: Floats) -> Iterator[Floats]:
    """Influence on some of the estimates after others, to bound memory.

    Of every unit; of every shard, where shards and not units tell the variance.
    """
    if isinstance(design, ShardsDesign):
        yield shard_influence(values, design.groups(len(values)))
        return
    step = max(1, CHUNK_ENTRIES // design.n)
    for first in range(0, values.shape[1], step):
        block = values[:, first : first + step]
        unit = value_units(block)
        yield influence_values(sum_ensemble(design, block / unit)) * unit


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
