"""Weights that forests give to training rows, by the leaves of their trees."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.kernels.base import PredictiveModel
from vstatkit.kernels.residual_trees import StoredStagedKernel
from vstatkit.kernels.tree import StoredTreeKernel, Tree
from vstatkit.native._engine import sum_influence_powers, sum_leaf_weights
from vstatkit.workers import current_stop

GROUPS = 8  # groups of trees, whose weights are summed apart


def has_leaf_rows(kernel: PredictiveModel, learners: Sequence[Any]) -> bool:
    """Return whether learners are single trees that know the rows of their leaves."""
    return (
        isinstance(kernel, StoredTreeKernel)
        and not isinstance(kernel, StoredStagedKernel)
        and len(learners) >= GROUPS
        and isinstance(learners[0], Tree)
        and all(tree.leaf_rows is not None for tree in learners)
    )


def leaf_weights(
    kernel: StoredTreeKernel,
    trees: Sequence[Tree],
    X: Floats,
    n_rows: int,
    used: Bools | None = None,
) -> tuple[Any, ...]:
    """Sum the weights of training rows at query points, group by group.

    A tree predicts a weighted mean of the responses of the rows in a leaf. Tree b is in
    group b modulo G. Where `used`, of shape (points, trees), is false, the tree does
    not count.

    Returns
    -------
    tuple of G sparse arrays of shape (points, n_rows)
        Divided by the root of the number of ordered pairs of trees in different groups:
        products of two different groups, added up, are means over pairs of trees.
    """
    points = np.ascontiguousarray(X, dtype=np.float64)
    bounds, rows, weights = sum_leaf_weights(
        [(tree.nodes, tree.leaf_rows, tree.leaf_shares) for tree in trees],
        kernel.n_outputs > 1,
        points,
        None if used is None else np.ascontiguousarray(used, dtype=np.uint8),
        GROUPS,
        n_rows,
        current_stop(),
    )
    shape = len(points) * GROUPS, n_rows
    whole = sparse.csr_array((weights, rows, bounds), shape=shape)
    scale = 1 / np.sqrt(_count_pairs(len(points), len(trees), used))
    return tuple(
        whole[group::GROUPS].multiply(scale[:, None]).tocsr() for group in range(GROUPS)
    )


def influence_powers(
    kernel: StoredTreeKernel,
    trees: Sequence[Tree],
    X: Floats,
    residuals: Floats,
    *,
    unit_of_row: Ints | None,
    n_units: int,
) -> tuple[Floats, Floats]:
    """Sum squares and fourth powers of the influences of units on predictions.

    The influence of a unit is the sum over its rows of the mean weight times the
    residual, (n_rows, outputs). There is no Monte Carlo bias: only products of
    different groups of trees are added up. Both results have shape (points * outputs,).
    """
    squares, fourths = sum_influence_powers(
        [(tree.nodes, tree.leaf_rows, tree.leaf_shares) for tree in trees],
        kernel.n_outputs > 1,
        np.ascontiguousarray(X, dtype=np.float64),
        np.ascontiguousarray(residuals),
        None if unit_of_row is None else unit_of_row.astype(np.int32),
        n_units,
        GROUPS,
        current_stop(),
    )
    pairs = _count_pairs(1, len(trees), None)[0]
    quarters = [len(trees[j::4]) for j in range(4)]
    return squares.ravel() / pairs, fourths.ravel() / float(np.prod(quarters))


def _count_pairs(n_points: int, n_trees: int, used: Bools | None) -> Floats:
    """Count the ordered pairs of trees in different groups, at least one."""
    counted: NDArray[Any] = np.ones((1, n_trees)) if used is None else used
    sizes = np.stack([counted[:, group::GROUPS].sum(axis=1) for group in range(GROUPS)])
    pairs = sizes.sum(axis=0, dtype=np.float64) ** 2 - (sizes.astype(float) ** 2).sum(0)
    return np.broadcast_to(np.maximum(pairs, 1.0), n_points)
