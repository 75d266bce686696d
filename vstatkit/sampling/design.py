"""Subsample designs: the units that each learner sees; independent subsamples."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.native._engine import count_dense, count_sparse, draw_members
from vstatkit.sampling.streams import Purpose, learner_keys

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
