"""Powers of the contributions of single units, for many units or many values.

`EnsembleSums` hold a table of units times values. If that is large, only sums over the
units of its powers are computed here: a row is summed, used and discarded.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Floats
from vstatkit.native._engine import add_powers
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.workers import others_at_work

WIDE_FROM = 2_000_000  # entries from which the table of units by values is not made
MOST_DRAWS = 16_000_000  # most draws in memory, of all learners for a part of the units
DRAWN_AT_ONCE = 1_000_000  # draws that are counted in one call
# Products from which learners are summed in single precision, for speed. Over 4,000
# points (n = 5,000, B = 1,000) standard errors differed from those of double precision
# by 2e-7 typically and 2.5e-6 at most, relative to them, and degrees of freedom by 9e-6
# at most.
SINGLE_FROM = 1e9
COLUMNS_PER_CALL = 256  # values in one task of a thread


def is_wide(design: SubsampleDesign, B: int, m: int) -> bool:
    """Return whether a table of units by values is too large, or counts are cached."""
    if isinstance(design, CachedDesign):
        return True
    return design.n * m > WIDE_FROM and design.weights(0, B) is None


@dataclass(frozen=True, eq=False)
class CachedDesign(GivenDesign):
    """A design with cached counts, which are multiplied with many values."""

    n_values: int = 0  # values of each learner, in all parts together

    @cached_property
    def unit_counts(self) -> "DrawnUnits":
        """Learners that drew each unit, and how often."""
        return DrawnUnits.of(self.table.tocsc(), presence=False)

    @cached_property
    def unit_presence(self) -> "DrawnUnits":
        """Learners that drew each unit, without counts."""
        return DrawnUnits.of(self.table.tocsc(), presence=True)


class DrawnUnits(NamedTuple):
    """Learners that drew each unit, in the form of the compiled code."""

    bounds: NDArray[np.int32]  # (n + 1,): where the learners of a unit begin and end
    learners: NDArray[np.int32]  # learners, unit after unit
    counts: NDArray[np.float32] | None  # how often they drew it; None for indicators
    appearances: Floats  # (n,): sum of the counts of a unit
    count_squares: float  # sum of all squared counts

    @classmethod
    def of(cls, columns: Any, *, presence: bool) -> "DrawnUnits":
        """Convert sparse counts whose columns are units."""
        bounds, learners = (
            np.asarray(array, dtype=np.int32)
            for array in (columns.indptr, columns.indices)
        )
        if presence:
            seen = np.diff(bounds).astype(np.float64)
            return cls(bounds, learners, None, seen, float(learners.size))
        # Sums in single precision would lose units that are drawn very often.
        counts = columns.data.astype(np.float64)
        seen = np.add.reduceat(np.r_[counts, 0.0], bounds[:-1])
        seen[np.diff(bounds) == 0] = 0.0
        squares = float(np.vdot(counts, counts))
        return cls(bounds, learners, counts.astype(np.float32), seen, squares)


class Powers(NamedTuple):
    """Sums over units of powers of their contributions t, each of shape (m,)."""

    squares: Floats
    cubes: Floats
    fourths: Floats
    tilted: Floats  # sum of `a t`, with a second weight a of every unit
    tilted_squares: Floats  # sum of `(a t)**2`
    mixed: Floats  # sum of `a t**2`


@dataclass(frozen=True)
class PowerSums:
    """Sums of one pass over learners and units."""

    powers: Powers  # sums over units
    origin: Floats  # (m,): mean of the values
    # (n,): times each unit was drawn (or the number of learners that drew it)
    appearances: Floats
    count_squares: float  # sum of the squared counts
    squares: Floats  # (m,): sum over learners of the squared centred values
    # (m,): the same, each learner weighted by the number of its distinct units
    sized_squares: Floats


# Scale and second weight of units; None for unweighted powers only.
Weights = tuple[Floats, Floats | None]
# Function from the appearances of units to their weights.
Weighting = Callable[[Floats], Weights]


def equal_weights(appearances: Floats) -> Weights:
    """Weight all units equally."""
    ones = np.ones_like(appearances)
    return ones, ones


def sum_powers(
    design: SubsampleDesign, values: Floats, weighting: Weighting, *, presence: bool
) -> PowerSums:
    """Sum powers of `scale_i * sum_b N[b, i] (h_b - hbar)` over the units.

    `values` are those of learners without weights, shape (B, m). `weighting` returns
    the scale and the second weight of units from their appearances. With `presence`, a
    unit counts once, however often it was drawn.
    """
    B, m = values.shape
    n_values = max(m, design.n_values) if isinstance(design, CachedDesign) else m
    values = np.ascontiguousarray(values)
    origin, squares = _mean_and_squares(values)
    sizes = np.zeros(B)
    table = np.zeros((len(Powers._fields), m))
    appearances, count_squares = [], 0.0
    for units in _parts(design, B, presence):
        appearances.append(units.appearances)
        count_squares += units.count_squares
        sizes += np.bincount(units.learners, minlength=B)
        single = float(units.learners.size) * n_values >= SINGLE_FROM
        weights = weighting(units.appearances)
        _add(units, weights, values, origin, table, single=single)
    sized_squares = np.zeros_like(origin)
    for row, size in zip(values, sizes, strict=True):
        centred = row - origin
        sized_squares += size * np.square(centred, out=centred)
    return PowerSums(
        powers=Powers(*table),
        origin=origin,
        appearances=np.concatenate(appearances),
        count_squares=count_squares,
        squares=squares,
        sized_squares=sized_squares,
    )


def _mean_and_squares(values: Floats) -> tuple[Floats, Floats]:
    """Compute the mean over learners and the squares about it, row by row."""
    mean = values.mean(axis=0)
    total, squares = np.zeros_like(mean), np.zeros_like(mean)
    for row in values:
        centred = row - mean
        total += centred
        squares += np.square(centred, out=centred)
    rest = total / len(values)  # rounding error of the mean
    return mean + rest, squares - rest * total


def _parts(design: SubsampleDesign, B: int, presence: bool) -> Iterator[DrawnUnits]:
    """Draw the learners of the units, part after part."""
    if isinstance(design, CachedDesign) and design.table.shape[0] == B:
        yield design.unit_presence if presence else design.unit_counts
        return
    draws = B * min(design.n, design.k)
    edges = np.linspace(0, design.n, -(-draws // MOST_DRAWS) + 1).astype(np.int64)
    step = max(1, DRAWN_AT_ONCE // design.k)
    for first, last in itertools.pairwise(edges.tolist()):
        rows = [
            counts if last - first == design.n else counts[:, first:last]
            for b in range(0, B, step)
            for counts in [design.sparse_counts(b, min(b + step, B))]
        ]
        columns = sparse.vstack(rows, format="csr").tocsc()
        yield DrawnUnits.of(columns, presence=presence)


def _add(
    units: DrawnUnits,
    weights: Weights,
    values: Floats,
    origin: Floats,
    table: Floats,
    *,
    single: bool,
) -> None:
    """Add the powers of some units, in parallel over columns."""
    m = values.shape[1]
    drawn = units.bounds, units.learners, units.counts

    def add(first: int) -> None:
        last = min(first + COLUMNS_PER_CALL, m)
        add_powers(*drawn, *weights, values, origin, first, last, table, single)

    firsts = range(0, m, COLUMNS_PER_CALL)
    threads = min(len(firsts), threads_allowed())
    if threads < 2:
        for first in firsts:
            add(first)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, firsts))


def threads_allowed() -> int:
    """Return the number of threads of a matrix product; one in parallel calls."""
    if others_at_work():
        return 1
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        setting = os.environ.get(name, "")
        if setting.isdigit() and int(setting) > 0:
            return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
