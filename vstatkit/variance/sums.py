"""Additive sums over learners: all that the moments are made of."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from vstatkit._typing import Counts, Floats
from vstatkit.native._engine import add_product
from vstatkit.sampling.counts import SPARSE_BELOW
from vstatkit.sampling.design import SubsampleDesign

BATCH_ENTRIES = 2_000_000
"""Counts held in memory at a time while summing over learners."""


SPARSE_BATCH_ENTRIES = 250_000
"""The same for sparse counts, which take four times the memory."""


ROW_BLOCK = 128
"""Observations reduced at a time, so that the working block stays in cache."""


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Additive sums over learners, relative to an origin.

    Attributes
    ----------
    size : int
        Subsample size k.
    origin : ndarray of shape (m,)
        Subtracted from every value, so that a large offset costs no digits.
    n_learners : float
        Number B of learners (total weight in a complete design).
    appearances : ndarray of shape (n,)
        `N_i`, times each observation was drawn.
    count_squares : float
        Sum of the squared counts.
    weighted : ndarray of shape (n, m)
        Sum over learners of count times value.
    total : ndarray of shape (m,)
        Sum of values.
    squares : ndarray of shape (m,) or (m, m)
        Sum of squared values, or of outer products.
    sized_squares : ndarray of shape (m,) or (m, m)
        The same, each learner weighted by the sum of its counts: by its distinct
        observations, if indicators stand for counts.
    """

    size: int
    origin: Floats
    n_learners: float
    appearances: Floats
    count_squares: float
    weighted: Floats
    total: Floats
    squares: Floats
    sized_squares: Floats

    @classmethod
    def from_learners(
        cls,
        counts: Counts,
        values: Floats,
        *,
        size: int,
        origin: Floats,
        weights: Floats | None = None,
        joint: bool = False,
    ) -> "EnsembleSums":
        """Sum over one batch of learners.

        Parameters
        ----------
        counts : ndarray or csr_array of shape (L, n)
            Counts of each observation in each subsample.
        values : ndarray of shape (L, m)
            Kernel values.
        size : int
            Subsample size k.
        origin : ndarray of shape (m,)
            Any value near the mean.
        weights : ndarray of shape (L,), optional
            Weight of each learner; one by default.
        joint : bool
            Whether to keep outer products, for covariances.
        """
        running = _RunningSums.start(counts.shape[1], size, origin, joint=joint)
        running.add(counts, values, weights)
        return running.freeze()

    def __add__(self, other: "EnsembleSums") -> "EnsembleSums":
        return EnsembleSums(
            size=self.size,
            origin=self.origin,
            n_learners=self.n_learners + other.n_learners,
            appearances=self.appearances + other.appearances,
            count_squares=self.count_squares + other.count_squares,
            weighted=self.weighted + other.weighted,
            total=self.total + other.total,
            squares=self.squares + other.squares,
            sized_squares=self.sized_squares + other.sized_squares,
        )


def _count_squares(N: Counts, weights: Floats | None) -> float:
    entries = N.data if sparse.issparse(N) else N
    if weights is None:
        return float(np.vdot(entries, entries))
    squared = N.multiply(N) if sparse.issparse(N) else N * N
    return float(np.asarray(squared.sum(axis=1)) @ weights)


@dataclass
class _RunningSums:
    """Sums to which batches are added in place: nothing of size n x m is copied.

    Attributes
    ----------
    table : ndarray of shape (n, m + 1)
        `weighted`, and `appearances` as its last column.
    scratch : ndarray of shape (n, m + 1) or None
        Product of the latest batch.
    """

    size: int
    origin: Floats
    joint: bool
    table: Floats
    total: Floats
    squares: Floats
    sized_squares: Floats
    n_learners: float = 0.0
    count_squares: float = 0.0
    scratch: Floats | None = None

    @classmethod
    def start(cls, n: int, size: int, origin: Floats, *, joint: bool) -> "_RunningSums":
        """Start from zero."""
        m = origin.size
        squares = np.zeros((2, m, m) if joint else (2, m))
        return cls(size, origin, joint, np.zeros((n, m + 1)), np.zeros(m), *squares)

    def add(self, counts: Counts, values: Floats, weights: Floats | None) -> None:
        """Add one batch of learners."""
        m = values.shape[1]
        # A column of ones rides along, so that the product gives N_i as well.
        extended = np.ones((len(values), m + 1))
        h = np.subtract(values, self.origin, out=extended[:, :m])
        weighted = extended if weights is None else extended * weights[:, None]
        wh = weighted[:, :m]
        if sparse.issparse(counts):
            # Squares and sums of short integers would overflow.
            N = counts.astype(np.float64, copy=False)
            _add_sparse_product(N, weighted, self.table)
        else:
            N = np.ascontiguousarray(counts, dtype=np.float64)
            self._add_product(N, weighted)
        self.n_learners += float(weighted[:, m].sum())
        self.count_squares += _count_squares(N, weights)
        self.total += wh.sum(axis=0)
        squares = self._squares(h, wh)
        self.squares += squares
        sizes = np.asarray(N.sum(axis=1)).ravel()
        if (sizes == sizes[0]).all():
            self.sized_squares += sizes[0] * squares
        else:
            self.sized_squares += self._squares(h, wh * sizes[:, None])

    def _squares(self, h: Floats, weighted: Floats) -> Floats:
        """Sum squares of values, or outer products, that were weighted."""
        return h.T @ weighted if self.joint else np.einsum("bj,bj->j", h, weighted)

    def _add_product(self, N: Floats, weighted: Floats) -> None:
        """Add `N.T @ weighted`; fresh pages would cost more than the product."""
        if self.n_learners == 0:
            np.matmul(N.T, weighted, out=self.table)
            return
        if self.scratch is None:
            self.scratch = np.empty_like(self.table)
        np.matmul(N.T, weighted, out=self.scratch)
        self.table += self.scratch

    def freeze(self) -> EnsembleSums:
        """Return the sums."""
        return EnsembleSums(
            size=self.size,
            origin=self.origin,
            n_learners=self.n_learners,
            appearances=self.table[:, -1].copy(),
            count_squares=self.count_squares,
            weighted=self.table[:, :-1],
            total=self.total,
            squares=self.squares,
            sized_squares=self.sized_squares,
        )


def _add_sparse_product(N: Counts, weighted: Floats, table: Floats) -> None:
    """Add `N.T @ weighted` to the table in place."""
    add_product(
        np.asarray(N.indptr, dtype=np.int64),
        np.asarray(N.indices, dtype=np.int32),
        np.asarray(N.data, dtype=np.float64),
        np.ascontiguousarray(weighted),
        table,
    )


def sum_ensemble(
    design: SubsampleDesign,
    values: Floats,
    *,
    start: int = 0,
    origin: Floats | None = None,
    joint: bool = False,
    presence: bool = False,
) -> EnsembleSums:
    """Sum over the learners of a design, in batches of bounded memory.

    Parameters
    ----------
    design : SubsampleDesign
        Draws the counts again.
    values : ndarray of shape (L, m)
        Kernel values of learners `start` to `start + L`.
    start : int
        First learner.
    origin : ndarray of shape (m,), optional
        By default the mean of the values.
    joint : bool
        Whether to keep outer products, for covariances.
    presence : bool
        Whether to count an observation once, however often it was drawn.
    """
    dense_share = SPARSE_BELOW * design.n <= design.k
    at_once = (
        BATCH_ENTRIES // design.n if dense_share else SPARSE_BATCH_ENTRIES // design.k
    )
    step = int(np.clip(at_once, 16, 1024))
    origin = values.mean(axis=0) if origin is None else origin
    buffer = np.empty((min(step, len(values)), design.n)) if dense_share else None

    running = _RunningSums.start(design.n, design.k, origin, joint=joint)
    for first in range(0, len(values), step):
        block = values[first : first + step]
        begin, end = start + first, start + first + len(block)
        counts = design.counts(begin, end, buffer)
        if presence:
            counts = present(counts)
        running.add(counts, block, design.weights(begin, end))
    return running.freeze()


def present(counts: Counts) -> Counts:
    """Mark the counts that are above zero, with ones and zeros."""
    if not sparse.issparse(counts):
        return (counts > 0).astype(np.float64)
    # A comparison of sparse arrays would cost several times the sums. Designs have
    # one entry a place.
    entries = (counts.data > 0).astype(np.float64)
    return sparse.csr_array(
        (entries, counts.indices, counts.indptr), shape=counts.shape
    )
