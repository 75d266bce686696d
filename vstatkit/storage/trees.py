"""Checks of trees that come from a file.

Compiled code walks down a tree without looking where it steps: every node must be
reached from one node before it, and every leaf say something that exists.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Bools, Ints
from vstatkit.kernels.protocol import output_columns
from vstatkit.native._engine import NODE
from vstatkit.storage.packing import check

PURE, MIXED = -2, -3
"""Features of leaves of several classes: of one class, and of a row of shares."""


def check_trees(
    arrays: Mapping[str, NDArray[Any]], B: int, p: int, n_classes: int | None
) -> None:
    """Check stacked trees, as `Tree.stack` gives them.

    Parameters
    ----------
    arrays : mapping
        Arrays by name.
    B, p : int
        Trees, and columns of the design matrix.
    n_classes : int or None
        None for regression.
    """
    expected = {
        "tree_nodes": (NODE, 1),
        "tree_sizes": (np.dtype(np.int64), 1),
        "tree_shares": (np.dtype(np.float64), 1),
        "tree_share_sizes": (np.dtype(np.int64), 1),
        "tree_gains": (np.dtype(np.float64), 2),
    }
    for name, (kind, ndim) in expected.items():
        fits = name in arrays and arrays[name].dtype == kind
        check(
            fits and arrays[name].ndim == ndim, f"{name!r} is missing or another kind."
        )
    check(arrays["tree_gains"].shape == (B, p), "gains and columns differ.")
    nodes, sizes = arrays["tree_nodes"], arrays["tree_sizes"]
    _check_sizes(sizes, B, nodes.size, least=1)
    width = output_columns(n_classes)
    shares, share_sizes = arrays["tree_shares"], arrays["tree_share_sizes"]
    _check_sizes(share_sizes, B, shares.size, least=0)
    rows = share_sizes // width
    check((share_sizes == rows * width).all(), "class shares are not whole rows.")
    check(((shares >= 0) & (shares <= 1)).all(), "class shares are no shares.")
    inner = nodes["feature"] >= 0
    _check_inner(nodes, inner, sizes, p)
    _check_leaves(nodes[~inner], np.repeat(rows, sizes)[~inner], n_classes)


def _check_sizes(sizes: Ints, B: int, total: int, *, least: int) -> None:
    check(len(sizes) == B, "trees and learners differ in number.")
    # Each by itself first: a sum of huge numbers could wrap round to the right one.
    within = (sizes >= least) & (sizes <= total)
    check(within.all(), "a tree has a size that cannot be.")
    check(sizes.sum() == total, "the sizes of the trees do not add up.")


def _check_inner(nodes: NDArray[Any], inner: Bools, sizes: Ints, p: int) -> None:
    """Check splits: each leads to two later nodes, none is reached twice."""
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    after = first + np.repeat(sizes, sizes)
    place = np.arange(nodes.size)
    left, right = place[inner] + 1, first[inner] + (nodes["right"][inner] >> 1)
    check((nodes["feature"][inner] < p).all(), "a split is at no column.")
    check((nodes["right"][inner] >= 0).all(), "a child is at no place.")
    check((right > left).all(), "a child stands before its parent.")
    check((right < after[inner]).all(), "a child is outside its tree.")
    # A split of missing values from all known ones has an infinite threshold.
    check(not np.isnan(nodes["value"][inner]).any(), "a threshold is no number.")
    parents = np.bincount(np.concatenate([left, right]), minlength=nodes.size)
    roots = place == first
    check((parents == ~roots).all(), "a node is reached twice, or never.")


def _check_leaves(leaves: NDArray[Any], rows: Ints, n_classes: int | None) -> None:
    """Check leaves; `rows` counts the class shares of the tree of each."""
    kind, at, value = leaves["feature"], leaves["right"], leaves["value"]
    if n_classes is None or n_classes == 2:
        check(np.isfinite(value).all(), "the value of a leaf is not finite.")
        share = n_classes is None or ((value >= 0) & (value <= 1)).all()
        check(share, "a leaf holds no probability.")
        return
    check(np.isin(kind, (MIXED, PURE)).all(), "a leaf is of no known kind.")
    bound = np.where(kind == PURE, n_classes, rows)
    check(((at >= 0) & (at < bound)).all(), "a leaf is of no class.")
