"""Count how often each unit was drawn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.native._engine import count_dense, count_sparse

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


def dense(counts: Counts) -> NDArray[Any]:
    """Convert counts to a dense array."""
    return np.asarray(counts.toarray() if sparse.issparse(counts) else counts)
