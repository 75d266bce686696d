"""Subsample designs: which observations each base learner sees.

A design is an immutable description; `members` and `counts` draw any range of
learners on demand, always the same ones, so nothing of size B x n is kept.
"""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.native._engine import count_dense, count_sparse, draw_members
from vstatkit.sampling.streams import Purpose, learner_keys, stream

COMPLETE_LIMIT = 1_000_000
"""Evaluations beyond which `B="complete"` is refused."""

MAX_LOG_DRAWS = 700.0
"""Logarithm of the number of ordered draws that floating point still holds."""

SPARSE_BELOW = 1 / 9
"""Share k/n below which a sparse product of the counts beats a dense one."""

BLOCK = 1000
"""Learners that are balanced together.

With replacement a block of L learners shrinks the spread of the counts, and so
the Monte Carlo bias that the corrected estimators remove, by the factor 1 - 1/L:
short blocks would bias them.
"""


def count_members(members: Ints, n: int, out: Floats | None = None) -> Counts:
    """Count how often each of `n` units occurs in every row of `members`.

    Parameters
    ----------
    members : ndarray of shape (L, k)
        Unit indices drawn by each learner.
    n : int
        Number of units.
    out : ndarray of shape (at least L, n), optional
        Where dense counts are written: batches that share it save allocations.

    Returns
    -------
    ndarray or csr_array of shape (L, n)
        Sparse where most counts are zero.
    """
    L, k = members.shape
    if k < SPARSE_BELOW * n:
        units, times, bounds = count_sparse(np.ascontiguousarray(members), n)
        return sparse.csr_array((times, units, bounds), shape=(L, n))
    counts = np.empty((L, n)) if out is None else out[:L]
    count_dense(np.ascontiguousarray(members), counts)
    return counts


def dense(counts: Counts) -> NDArray[Any]:
    """Write counts as a plain array."""
    return np.asarray(counts.toarray() if sparse.issparse(counts) else counts)


@dataclass(frozen=True)
class SubsampleDesign(ABC):
    """A scheme for drawing subsamples of `k` out of `n` units.

    Attributes
    ----------
    n : int
        Number of units (observations, or clusters).
    k : int
        Units in each subsample.
    replace : bool
        Drawn with replacement (a V-statistic) or without (a U-statistic).
    seed : int
        Seed of all streams.
    """

    n: int
    k: int
    replace: bool
    seed: int

    name: ClassVar[str]
    complete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.n, self.k, replace=self.replace)

    @abstractmethod
    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`, shape (stop - start, k)."""

    def counts(self, start: int, stop: int, out: Floats | None = None) -> Counts:
        """Count the units of learners `start` to `stop`, shape (stop - start, n)."""
        return count_members(self.members(start, stop), self.n, out)

    def weights(self, start: int, stop: int) -> Floats | None:
        """Weight each learner's value; None where all weigh the same."""
        return None

    def groups(self, B: int) -> Ints | None:
        """Group of every learner in designs that have groups, shape (B,)."""
        return None

    @property
    def grouped(self) -> bool:
        """Whether learners are drawn in groups, so that they depend on each other."""
        return False

    @property
    def n_absent(self) -> float:
        """Units that a subsample leaves out, on average."""
        if self.replace:
            return self.n * (1 - 1 / self.n) ** self.k
        return float(self.n - self.k)

    def redrawn_share(self, G: int) -> float:
        """Share of the variance between G groups that another draw would show.

        One where groups are drawn independently of each other.
        """
        return 1.0

    def sized(self, B: int) -> Self:
        """Fix the number of learners, after checking that the design allows it."""
        if B < 2:
            raise ValueError(
                f"`B` must be at least 2, to see how learners vary; got {B}."
            )
        return self

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round B up to what the design allows, or down to stay within bounds."""
        return min(B, at_most)


def check_size(n: int, k: int, *, replace: bool) -> None:
    """Refuse subsample sizes that cannot be drawn."""
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}.")
    if not replace and k > n:
        raise ValueError(
            f"`k` must be at most n = {n} when `replace=False`; got {k}. "
            "Use `replace=True` for a V-statistic, or a smaller `k`."
        )


@dataclass(frozen=True)
class IidDesign(SubsampleDesign):
    """Independent subsamples: learner b depends on (seed, b) alone."""

    name: ClassVar[str] = "iid"

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        return np.asarray(draw_members(keys, self.n, self.k, self.replace))


@dataclass(frozen=True)
class BalancedDesign(SubsampleDesign):
    """Every unit occurs B k / n times, or counts differ by at most one.

    Learners are balanced in blocks; a block depends on (seed, block) alone, so
    ensembles share every full block that both contain.

    Attributes
    ----------
    block : int
        Learners balanced together.
    n_learners : int or None
        Where the last, possibly shorter, block ends; None while growing.
    """

    block: int = BLOCK
    n_learners: int | None = None

    name: ClassVar[str] = "balanced"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 2:
            raise ValueError(
                f"`block` must be at least 2 learners; got {self.block}. "
                f"Leave it out for {BLOCK}."
            )

    def sized(self, B: int) -> Self:
        """Fix where the last block ends."""
        super().sized(B)
        return replace(self, n_learners=B)

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round up to whole blocks; only the last one may be shorter."""
        return min(-(-B // self.block) * self.block, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        first, last = start // self.block, (stop - 1) // self.block
        drawn = np.concatenate([self._block(j) for j in range(first, last + 1)])
        offset = start - first * self.block
        return drawn[offset : offset + stop - start]

    def _block(self, j: int) -> Ints:
        start, stop = j * self.block, (j + 1) * self.block
        if self.n_learners is not None:
            stop = min(stop, self.n_learners)
        return _balanced_block(
            self.n, self.k, replace=self.replace, seed=self.seed, span=(start, stop)
        )


@lru_cache(maxsize=4)
def _balanced_block(
    n: int, k: int, *, replace: bool, seed: int, span: tuple[int, int]
) -> Ints:
    """Draw one block; cached because it is read in several batches."""
    start, stop = span
    rank = stream(seed, 0, Purpose.ORDER).permutation(n)
    quota = _cumulative_quota(rank, stop * k) - _cumulative_quota(rank, start * k)
    rng = stream(seed, start, Purpose.GROUP)
    if replace:
        tokens = np.repeat(np.arange(n), quota)
        rng.shuffle(tokens)
        return tokens.reshape(stop - start, k)
    return _distinct_block(quota, k, stop - start, rng)


def _cumulative_quota(rank: Ints, drawn: int) -> Ints:
    """Split `drawn` draws so that the units' shares differ by at most one."""
    share, extra = divmod(drawn, rank.size)
    return share + (rank < extra)


def _distinct_block(quota: Ints, k: int, length: int, rng: np.random.Generator) -> Ints:
    """Meet every unit's quota exactly, with no repeats inside a subsample.

    Each learner takes a systematic sample, in random order, with inclusion
    probability (what the unit still needs) / (learners still to come): a unit
    that must be in all remaining subsamples is taken with certainty.
    """
    need = quota.copy()
    drawn = np.empty((length, k), dtype=np.int64)
    for row, left in enumerate(range(length, 0, -1)):
        order = rng.permutation(need.size)
        ladder = np.cumsum(need[order])
        rungs = rng.integers(left) + left * np.arange(k)
        drawn[row] = order[np.searchsorted(ladder, rungs, side="right")]
        need[drawn[row]] -= 1
    return drawn


@dataclass(frozen=True)
class TwoLevelDesign(SubsampleDesign):
    """Pinned observations, each with `n_in` subsamples that contain it (for IM).

    Attributes
    ----------
    n_in : int
        Subsamples for each pin; B = n_out x n_in.
    """

    n_in: int = 20

    name: ClassVar[str] = "two-level"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_in < 1:
            raise ValueError(f"`n_in` must be at least 1; got {self.n_in}.")

    def sized(self, B: int) -> Self:
        """Check that B is a whole number of pins, at least two."""
        _check_whole_groups(B, self.n_in, "two-level", "n_in")
        return self

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round to whole pins."""
        return _whole_groups(B, self.n_in, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`; the pin stands first."""
        cycles, places = np.divmod(np.arange(start, stop) // self.n_in, self.n)
        orders = {int(c): _pins(self.n, self.seed, int(c)) for c in np.unique(cycles)}
        pins = np.array(
            [orders[int(c)][p] for c, p in zip(cycles, places, strict=True)],
            dtype=np.int64,
        )[:, None]
        if self.k == 1:
            return pins
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        pool = self.n if self.replace else self.n - 1
        rest = np.asarray(draw_members(keys, pool, self.k - 1, self.replace))
        if not self.replace:
            rest = rest + (rest >= pins)
        return np.concatenate([pins, rest], axis=1)

    def groups(self, B: int) -> Ints:
        """Index the pin of every learner."""
        return np.arange(B) // self.n_in

    @property
    def grouped(self) -> bool:
        """Whether several learners share a pin."""
        return self.n_in > 1

    def redrawn_share(self, G: int) -> float:
        """Pins of a whole cycle are always the same; only the last one is a sample."""
        last = G % self.n
        return last * (1 - last / self.n) / G


@lru_cache(maxsize=8)
def _pins(n: int, seed: int, cycle: int) -> Ints:
    """Order in which units are pinned; all are, before one is pinned again."""
    return stream(seed, cycle, Purpose.ORDER).permutation(n)


@dataclass(frozen=True)
class LittleBagsDesign(SubsampleDesign):
    """Groups of learners whose subsamples come from one half-sample.

    Attributes
    ----------
    group_size : int
        Learners that share a half-sample.
    """

    group_size: int = 2

    name: ClassVar[str] = "little-bags"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_size < 2:
            raise ValueError(f"`group_size` must be at least 2; got {self.group_size}.")
        if not self.replace and self.k > self.n // 2:
            raise ValueError(
                f"`k` must be at most n/2 = {self.n // 2} for "
                f"design='little-bags' without replacement; got {self.k}."
            )

    def sized(self, B: int) -> Self:
        """Check that B is a whole number of groups, at least two."""
        _check_whole_groups(B, self.group_size, "little-bags", "group_size")
        return self

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round to whole groups."""
        return _whole_groups(B, self.group_size, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        drawn = np.empty((stop - start, self.k), dtype=np.int64)
        for row, b in enumerate(range(start, stop)):
            group = stream(self.seed, b // self.group_size, Purpose.GROUP)
            half = group.choice(self.n, self.n // 2, replace=False, shuffle=False)
            rng = stream(self.seed, b, Purpose.SUBSAMPLE)
            if self.replace:
                drawn[row] = half[rng.integers(len(half), size=self.k)]
            else:
                drawn[row] = rng.choice(half, self.k, replace=False, shuffle=False)
        return drawn

    def groups(self, B: int) -> Ints:
        """Index the half-sample of every learner."""
        return np.arange(B) // self.group_size

    @property
    def grouped(self) -> bool:
        """Whether several learners share a half-sample: always."""
        return True


@dataclass(frozen=True)
class MatchedDesign(SubsampleDesign):
    """Pairs of disjoint subsamples: learners 0 and 1, 2 and 3, and so on."""

    name: ClassVar[str] = "matched"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replace:
            raise ValueError(
                "design='matched' pairs disjoint subsamples, so it draws without "
                "replacement. Pass `replace=False`."
            )
        if 2 * self.k > self.n:
            raise ValueError(
                f"`k` must be at most n/2 = {self.n // 2} for design='matched'; "
                f"got {self.k}."
            )

    def sized(self, B: int) -> Self:
        """Check that B is a whole number of pairs, at least two."""
        _check_whole_groups(B, 2, "matched", "pair size")
        return self

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round to whole pairs."""
        return _whole_groups(B, 2, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        drawn = np.empty((stop - start, self.k), dtype=np.int64)
        for row, b in enumerate(range(start, stop)):
            rng = stream(self.seed, b // 2, Purpose.GROUP)
            pair = rng.permutation(self.n)[: 2 * self.k]
            drawn[row] = pair[: self.k] if b % 2 == 0 else pair[self.k :]
        return drawn

    def groups(self, B: int) -> Ints:
        """Index the pair of every learner."""
        return np.arange(B) // 2

    @property
    def grouped(self) -> bool:
        """Whether learners avoid the rows of another: always."""
        return True


def _whole_groups(B: int, size: int, at_most: int) -> int:
    up = -(-B // size) * size
    return max(2 * size, up if up <= at_most else at_most // size * size)


def _check_whole_groups(B: int, size: int, design: str, option: str) -> None:
    if 2 * size > B or B % size:
        near = max(2, round(B / size)) * size
        raise ValueError(
            f"`B` must be a multiple of the {option} = {size}, and at least "
            f"{2 * size}, for design={design!r}; got {B}. Use {near}."
        )


@dataclass(frozen=True)
class CompleteDesign(SubsampleDesign):
    """Every subsample there is.

    With replacement the n**k ordered draws are visited as multisets, each
    weighted by its number of orderings.
    """

    name: ClassVar[str] = "complete"
    complete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_subsamples > COMPLETE_LIMIT:
            raise ValueError(
                f"`B='complete'` would take {self.n_subsamples:,} evaluations "
                f"(n = {self.n}, k = {self.k}); at most {COMPLETE_LIMIT:,} are "
                "allowed. Use a number or 'auto' for `B`, or a smaller `k`."
            )
        if self.replace and self.k * math.log(self.n) > MAX_LOG_DRAWS:
            raise ValueError(
                f"`B='complete'` weighs subsamples by their number of orderings, and "
                f"{self.n}**{self.k} of them are too many for floating point. Use a "
                "number or 'auto' for `B`, or a smaller `k`."
            )

    @property
    def n_subsamples(self) -> int:
        """Number of distinct subsamples to evaluate."""
        return math.comb(self.n + self.k - 1 if self.replace else self.n, self.k)

    def members(self, start: int, stop: int) -> Ints:
        """List the units of subsamples `start` to `stop`."""
        return _all_subsamples(self.n, self.k, self.replace)[start:stop]

    def weights(self, start: int, stop: int) -> Floats | None:
        """Count the orderings of each multiset."""
        if not self.replace:
            return None
        return orderings(self.members(start, stop))


def orderings(members: Ints) -> Floats:
    """Count the orderings of every row, a multiset in ascending order.

    Unit after unit: the j-th draw of a unit divides the j orderings so far.

    Examples
    --------
    >>> orderings(np.array([[0, 0, 1], [0, 1, 2]]))
    array([3., 6.])
    """
    run = np.ones(len(members))
    counted = np.ones(len(members))
    for j in range(1, members.shape[1]):
        run = np.where(members[:, j] == members[:, j - 1], run + 1, 1.0)
        counted *= (j + 1) / run
    return np.round(counted)


@lru_cache(maxsize=2)
def _all_subsamples(n: int, k: int, replace: bool) -> Ints:
    choose = (
        itertools.combinations_with_replacement if replace else (itertools.combinations)
    )
    return np.array(list(choose(range(n), k)), dtype=np.int64).reshape(-1, k)


@dataclass(frozen=True, eq=False)
class GivenDesign(SubsampleDesign):
    """Subsamples drawn elsewhere and handed over as counts.

    Attributes
    ----------
    table : ndarray or csr_array of shape (B, n)
        Times each observation occurs in each subsample.
    labels : ndarray of shape (B,) or None
        Group of every learner, for the grouped estimators.
    """

    table: Counts
    labels: Ints | None = None

    name: ClassVar[str] = "given"

    def members(self, start: int, stop: int) -> Ints:
        """List the units of learners `start` to `stop`."""
        block = dense(self.counts(start, stop)).astype(np.int64)
        units = np.arange(self.n)
        return np.stack([np.repeat(units, row) for row in block])

    def counts(
        self,
        start: int,
        stop: int,
        out: Floats | None = None,
    ) -> Counts:
        """Give the counts of learners `start` to `stop`."""
        return self.table[start:stop]

    @property
    def n_absent(self) -> float:
        """Units that the subsamples leave out, on average."""
        table = self.table.data if sparse.issparse(self.table) else self.table
        present = np.count_nonzero(table) / self.table.shape[0]
        return float(self.n - present)

    def groups(self, B: int) -> Ints | None:
        """Give the group of every learner."""
        return None if self.labels is None else self.labels[:B]

    @property
    def grouped(self) -> bool:
        """Whether some group has more than one learner."""
        return self.labels is not None and np.unique(self.labels).size < len(
            self.labels
        )


DESIGNS: dict[str, type[SubsampleDesign]] = {
    design.name: design
    for design in (
        IidDesign,
        BalancedDesign,
        TwoLevelDesign,
        LittleBagsDesign,
        MatchedDesign,
    )
}
"""Designs by the name that `design=` takes."""

DESIGN_OPTIONS = {
    "balanced": ("block",),
    "two-level": ("n_in", "n_out"),
    "little-bags": ("group_size",),
}
"""Options that `fit` hands on to a design."""


def make_design(
    name: str, n: int, k: int, *, replace: bool, seed: int, **options: int
) -> SubsampleDesign:
    """Build a design by name.

    Parameters
    ----------
    name : {"iid", "balanced", "two-level", "little-bags", "matched"}
        Scheme.
    n, k : int
        Units, and units in each subsample.
    replace : bool
        With replacement or without.
    seed : int
        Seed of all streams.
    **options : int
        `block` of "balanced", `n_in` of "two-level", `group_size` of
        "little-bags".

    Returns
    -------
    SubsampleDesign

    Examples
    --------
    >>> design = make_design("balanced", 4, 2, replace=False, seed=1).sized(6)
    >>> design.counts(0, 6).sum(axis=0)
    array([3., 3., 3., 3.])
    """
    if name not in DESIGNS:
        raise ValueError(
            f"`design` must be one of {', '.join(map(repr, DESIGNS))}; got {name!r}."
        )
    return DESIGNS[name](n=n, k=k, replace=replace, seed=seed, **options)
