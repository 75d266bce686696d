"""Subsample designs: which units each learner sees, and how often."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.native._engine import count_dense, count_sparse

MIN_UNITS = 2


def check_units(n: int, what: str = "observations") -> None:
    """Refuse data with too few units to estimate a variance from."""
    if n < MIN_UNITS:
        raise ValueError(
            f"a variance needs at least {MIN_UNITS} {what}; the data have {n}."
        )


def unit_codes(
    clusters: pd.Series | None, index: pd.Index
) -> tuple[Ints | None, pd.Index]:
    """Code clusters; without them every observation is its own unit."""
    if clusters is None:
        return None, index
    unit_of_row, levels = pd.factorize(clusters, sort=True)
    check_units(len(levels), "clusters")
    return unit_of_row.astype(np.int64), pd.Index(levels)


SPARSE_BELOW = 1 / 9
"""Share k/n below which a sparse product of the counts beats a dense one."""


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
        return count_sparsely(members, n)
    counts = np.empty((L, n)) if out is None else out[:L]
    count_dense(np.ascontiguousarray(members), counts)
    return counts


def count_sparsely(members: Ints, n: int) -> Any:
    """Count in sparse form, however many counts are zero."""
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
        What `design=` calls it.
    options : tuple of str
        Keywords of `fit` that are handed on: whole numbers, fields of the class.
    complete : bool
        Whether it holds every subsample there is.
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
        """Build the design, and the number of learners where its options imply it."""
        return cls(n=n, k=k, replace=replace, seed=seed, **options), None

    @classmethod
    def largest_default(cls, n: int, *, replace: bool, **options: int) -> int | None:
        """Bound of the default subsample size; None where there is none."""
        return None

    @abstractmethod
    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`, shape (stop - start, k)."""

    def counts(self, start: int, stop: int, out: Floats | None = None) -> Counts:
        """Count the units of learners `start` to `stop`, shape (stop - start, n)."""
        return count_members(self.members(start, stop), self.n, out)

    def sparse_counts(self, start: int, stop: int) -> Any:
        """Count as `counts` does, in sparse form, zeros left out."""
        return count_sparsely(self.members(start, stop), self.n)

    def weights(self, start: int, stop: int) -> Floats | None:
        """Weights of the learners' values; None where all are equal."""
        return None

    def groups(self, B: int) -> Ints | None:
        """Group of every learner in designs that have groups, shape (B,)."""
        return None

    @property
    def has_groups(self) -> bool:
        """Whether learners are drawn in groups, so that they depend on each other."""
        return False

    @property
    def n_absent(self) -> float:
        """Units that a subsample leaves out, on average."""
        if self.replace:
            return self.n * (1 - 1 / self.n) ** self.k
        return float(self.n - self.k)

    @property
    def chance_absent(self) -> float | None:
        """Chance that a subsample leaves a unit out; None where it is not known."""
        return self.n_absent / self.n

    def redrawn_share(self, G: int) -> float:
        """Share of the variance between G groups that another draw would show.

        One where groups are drawn independently of each other.
        """
        return 1.0

    def with_size(self, B: int) -> Self:
        """Fix the number of learners, after checking that the design allows it."""
        if B < 2:
            raise ValueError(
                f"`B` must be at least 2, to see how learners vary; got {B}."
            )
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round B up to what the design allows, or down to stay within bounds."""
        return min(B, at_most)

    def obstacle(self, present: int, asked: int) -> str | None:
        """Say why `present` learners cannot grow to `asked`; None where they can."""
        return None


def check_size(n: int, k: int, *, replace: bool) -> None:
    """Refuse subsample sizes that cannot be drawn."""
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}.")
    if not replace and k > n:
        raise ValueError(
            f"`k` must be at most n = {n} when `replace=False`; got {k}. "
            "Use `replace=True` for a V-statistic, or give a smaller `k`."
        )
