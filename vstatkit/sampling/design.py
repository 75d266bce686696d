"""Subsample designs: the base class; independent, balanced and all subsamples."""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.native._engine import count_dense, count_sparse, draw_members
from vstatkit.sampling.streams import Purpose, learner_keys, stream

MIN_UNITS = 2
SPARSE_BELOW = 1 / 9  # share k/n below which a sparse product of the counts is faster


def check_units(n: int, what: str = "observations") -> None:
    """Raise an error if there are too few units to estimate a variance."""
    if n < MIN_UNITS:
        raise ValueError(
            f"a variance needs at least {MIN_UNITS} {what}; the data have {n}."
        )


def unit_codes(
    clusters: pd.Series | None, index: pd.Index
) -> tuple[Ints | None, pd.Index]:
    """Return the unit of every row, None without clusters, and the units' labels."""
    if clusters is None:
        return None, index
    unit_of_row, levels = pd.factorize(clusters, sort=True)
    check_units(len(levels), "clusters")
    return unit_of_row.astype(np.int64), pd.Index(levels)


def count_members(members: Ints, n: int, out: Floats | None = None) -> Counts:
    """Count how often each of n units occurs in every row of `members`, shape (L, n).

    The counts are sparse if most are zero. `out` is a buffer for dense counts of at
    least L rows, which saves allocations if batches share it.
    """
    L, k = members.shape
    if k < SPARSE_BELOW * n:
        return count_sparsely(members, n)
    counts = np.empty((L, n)) if out is None else out[:L]
    count_dense(np.ascontiguousarray(members), counts)
    return counts


def count_sparsely(members: Ints, n: int) -> Any:
    """Count in sparse form."""
    units, times, bounds = count_sparse(np.ascontiguousarray(members), n)
    return sparse.csr_array((times, units, bounds), shape=(len(members), n))


def to_dense(counts: Counts) -> NDArray[Any]:
    """Convert counts to a dense array."""
    return np.asarray(counts.toarray() if sparse.issparse(counts) else counts)


@dataclass(frozen=True)
class SubsampleDesign(ABC):
    """A scheme for drawing subsamples of `k` units out of `n`.

    Attributes
    ----------
    n : int
        Number of units (observations, or clusters).
    k : int
        Units in each subsample.
    replace : bool
        Whether they are drawn with replacement (a V-statistic) or not (a U-statistic).
    seed : int
        Seed of all streams.
    name : str
        Value of `design=`.
    options : tuple of str
        Keywords of `fit` that set fields of the class; whole numbers.
    complete : bool
        Whether it contains every possible subsample.
    """

    n: int
    k: int
    replace: bool
    seed: int

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    complete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_size(self.n, self.k, replace=self.replace)

    @classmethod
    def create(
        cls, n: int, k: int, *, replace: bool, seed: int, **options: int
    ) -> tuple[Self, int | None]:
        """Build the design; return it and the B that its options imply, or None."""
        return cls(n=n, k=k, replace=replace, seed=seed, **options), None

    @classmethod
    def largest_default(cls, n: int, *, replace: bool, **options: int) -> int | None:
        """Return the upper bound of the default subsample size; None for no bound."""
        return None

    @abstractmethod
    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`, shape (stop - start, k)."""

    def counts(self, start: int, stop: int, out: Floats | None = None) -> Counts:
        """Count the units of learners `start` to `stop`, shape (stop - start, n)."""
        return count_members(self.members(start, stop), self.n, out)

    def sparse_counts(self, start: int, stop: int) -> Any:
        """Count the units of learners `start` to `stop`, in sparse form."""
        return count_sparsely(self.members(start, stop), self.n)

    def weights(self, start: int, stop: int) -> Floats | None:
        """Return the weights of the learners; None if all are equal."""
        return None

    def groups(self, B: int) -> Ints | None:
        """Return the group of every learner, shape (B,); None without groups."""
        return None

    @property
    def has_groups(self) -> bool:
        """Whether learners are drawn in groups and depend on each other."""
        return False

    @property
    def n_absent(self) -> float:
        """Mean number of units that a subsample leaves out."""
        if self.replace:
            return self.n * (1 - 1 / self.n) ** self.k
        return float(self.n - self.k)

    @property
    def chance_absent(self) -> float | None:
        """Probability that a subsample leaves a unit out; None if it is unknown."""
        return self.n_absent / self.n

    def redrawn_share(self, G: int) -> float:
        """Return the share of the variance between G groups that redrawing would show.

        It is one if groups are drawn independently of each other.
        """
        return 1.0

    def with_size(self, B: int) -> Self:
        """Return the design for B learners; raise an error if it does not allow B."""
        if B < 2:
            raise ValueError(
                f"`B` must be at least 2, to see how learners vary; got {B}."
            )
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round B up to a number that the design allows, or down to stay in bounds."""
        return min(B, at_most)

    def obstacle(self, present: int, target: int) -> str | None:
        """Explain why `present` learners cannot grow to `target`; None if they can."""
        return None


def check_size(n: int, k: int, *, replace: bool) -> None:
    """Raise an error for a subsample size that cannot be drawn."""
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}.")
    if not replace and k > n:
        raise ValueError(
            f"`k` must be at most n = {n} when `replace=False`; got {k}. "
            "Use `replace=True` for a V-statistic, or give a smaller `k`."
        )


@dataclass(frozen=True)
class IidDesign(SubsampleDesign):
    """Independent subsamples: learner b depends on (seed, b) only."""

    name: ClassVar[str] = "iid"

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        return np.asarray(draw_members(keys, self.n, self.k, self.replace))


# Number of learners that are balanced together. With replacement, a block of L learners
# reduces the variance of the counts, and with it the Monte Carlo bias that corrected
# estimators remove, by the factor 1 - 1/L. Short blocks would bias these estimators.
BLOCK = 1000


@dataclass(frozen=True)
class BalancedDesign(SubsampleDesign):
    """Every unit occurs B k / n times, or counts differ by at most one.

    Learners are balanced in blocks. A block depends on (seed, block) only, so ensembles
    of different sizes share their full blocks.
    """

    block: int = BLOCK  # learners balanced together
    # End of the last, possibly shorter, block; None while the ensemble grows
    n_learners: int | None = None

    name: ClassVar[str] = "balanced"
    options: ClassVar[tuple[str, ...]] = ("block",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 2:
            raise ValueError(
                f"`block` must be at least 2 learners; got {self.block}. "
                f"Leave it out for {BLOCK}."
            )

    def with_size(self, B: int) -> Self:
        """Return the design whose last block ends at B."""
        super().with_size(B)
        return replace(self, n_learners=B)

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round up to whole blocks; only the last one may be shorter."""
        return min(-(-B // self.block) * self.block, at_most)

    def obstacle(self, present: int, target: int) -> str | None:
        """Explain that the last block was balanced for fewer learners."""
        if present % self.block == 0:
            return None
        return (
            f"a balanced ensemble continues after whole blocks of {self.block} "
            f"learners; this one has {present}, and its last block was balanced for "
            f"that number. Fit again with B={target}."
        )

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
        return _balanced_block(self.n, self.k, self.replace, self.seed, (start, stop))


@lru_cache(maxsize=4)
def _balanced_block(
    n: int, k: int, replace: bool, seed: int, span: tuple[int, int]
) -> Ints:
    """Draw one block; cached because several batches use it."""
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

    Each learner takes a systematic sample, in random order, with inclusion probability
    (remaining quota of the unit) / (remaining learners). A unit that must be in all
    remaining subsamples is taken with certainty.
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


COMPLETE_LIMIT = 1_000_000  # largest number of evaluations for `B="complete"`
# Largest logarithm of the number of ordered draws, for floating point.
MAX_LOG_DRAWS = 700.0


@dataclass(frozen=True)
class CompleteDesign(SubsampleDesign):
    """Every possible subsample.

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
        return count_orderings(self.members(start, stop))


def count_orderings(members: Ints) -> Floats:
    """Count the orderings of every row, a multiset in ascending order."""
    run = np.ones(len(members))
    n_orderings = np.ones(len(members))
    for j in range(1, members.shape[1]):
        run = np.where(members[:, j] == members[:, j - 1], run + 1, 1.0)
        # The j-th repeat of a unit divides the number of orderings by j.
        n_orderings *= (j + 1) / run
    return np.round(n_orderings)


@lru_cache(maxsize=2)
def _all_subsamples(n: int, k: int, replace: bool) -> Ints:
    choose = (
        itertools.combinations_with_replacement if replace else itertools.combinations
    )
    return np.array(list(choose(range(n), k)), dtype=np.int64).reshape(-1, k)
