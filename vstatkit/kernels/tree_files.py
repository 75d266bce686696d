"""Trees in files: how they are written, and checked when they are read."""

import itertools
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Bools, Ints
from vstatkit.json_values import check, take, take_floats, take_size
from vstatkit.kernels.base import Arrays, Fields, KernelCodec
from vstatkit.kernels.residual_trees import StagedTree, StoredStagedKernel
from vstatkit.kernels.tree import StoredTreeKernel, Tree
from vstatkit.native._engine import LEVELS_FLAG, MOST_LEVELS, NODE

AnyStored = TypeVar("AnyStored", bound=StoredTreeKernel)

# Features of leaves of several classes: with one class, and with a row of shares.
PURE, MIXED = -2, -3
MOST_TREES = 3  # trees that a learner can have

FIELDS = ("n_classes", "centre", "scale", "levels")
# Arrays of stacked trees, with their types and numbers of dimensions.
ARRAYS = {
    "tree_nodes": (NODE, 1),
    "tree_sizes": (np.dtype(np.int64), 1),
    "tree_shares": (np.dtype(np.float64), 1),
    "tree_share_sizes": (np.dtype(np.int64), 1),
    "tree_gains": (np.dtype(np.float64), 2),
}
# Arrays of trees that know the rows of their leaves.
LEAF_ARRAYS = {
    "tree_leaf_rows": (np.dtype(np.int32), 1),
    "tree_leaf_shares": (np.dtype(np.float32), 1),
    "tree_list_sizes": (np.dtype(np.int64), 1),
}


def _take_trees(stored: Arrays, B: int, kernel: StoredTreeKernel) -> list[Tree]:
    """Take B stacked trees, as `Tree.stack` gives them, and check them."""
    arrays = {name: stored.pop(name) for name in ARRAYS if name in stored}
    for name, (kind, ndim) in ARRAYS.items():
        fits = name in arrays and arrays[name].dtype == kind
        check(
            fits and arrays[name].ndim == ndim, f"{name!r} is missing or another kind."
        )
    p = kernel.n_features
    check(arrays["tree_gains"].shape == (B, p), "gains and columns differ.")
    nodes, sizes = arrays["tree_nodes"], arrays["tree_sizes"]
    _check_sizes(sizes, B, nodes.size, least=1)
    width = kernel.n_outputs
    shares, share_sizes = arrays["tree_shares"], arrays["tree_share_sizes"]
    _check_sizes(share_sizes, B, shares.size, least=0)
    rows = share_sizes // width
    check((share_sizes == rows * width).all(), "class shares are not whole rows.")
    check(((shares >= 0) & (shares <= 1)).all(), "class shares are no shares.")
    inner = nodes["feature"] >= 0
    _check_splits(nodes[inner], p, kernel.levels)
    _check_children(nodes, inner, sizes)
    _check_leaves(nodes[~inner], np.repeat(rows, sizes)[~inner], kernel.n_classes)
    lists = {name: stored.pop(name) for name in LEAF_ARRAYS if name in stored}
    if lists:
        for name, (kind, ndim) in LEAF_ARRAYS.items():
            fits = name in lists and lists[name].dtype == kind
            check(fits and lists[name].ndim == ndim, f"{name!r} is missing, or wrong.")
        leaves = nodes[~inner]
        codes = leaves["right" if kernel.n_outputs == 1 else "value"]
        tree = np.repeat(np.arange(B), sizes)[~inner]
        _check_leaf_rows(lists, codes, tree, B)
    return Tree.unstack({**arrays, **lists})


def _check_leaf_rows(lists: Arrays, codes: NDArray[Any], tree: Ints, B: int) -> None:
    """Check the codes of leaves' rows, given the tree of each, and the lists of rows.

    Rows themselves are checked when their number is known.
    """
    rows, shares, sizes = (lists[name] for name in LEAF_ARRAYS)
    _check_sizes(sizes, B, rows.size, least=0)
    check(rows.size == shares.size, "rows of leaves and their shares differ.")
    check(((shares >= 0) & (shares <= 1)).all(), "a share of a leaf is none.")
    check((rows >= 0).all(), "a row of a leaf is none.")
    whole = (np.abs(codes) < 2**31) & (codes == np.floor(codes))
    check(whole.all(), "a leaf has no rows.")
    listed = codes < 0
    place, first = -1 - codes[listed].astype(np.int64), np.cumsum(sizes) - sizes
    own = tree[listed]
    check((place < sizes[own]).all(), "a list of rows is outside its tree.")
    if place.size:
        lengths = rows[first[own] + place]
        inside = (lengths >= 1) & (place + lengths < sizes[own])
        check(inside.all(), "a list of rows is too long.")


def largest_leaf_row(trees: list[Tree], *, by_class: bool) -> int:
    """Return the last row that a leaf is estimated from; -1 if none are known."""
    last = -1
    for tree in trees:
        if tree.leaf_rows is None:
            continue
        leaves = tree.nodes[tree.nodes["feature"] < 0]
        codes = leaves["value" if by_class else "right"].astype(np.int64)
        rows = np.delete(tree.leaf_rows, -1 - codes[codes < 0])  # without the lengths
        last = max(last, int(codes.max()), int(rows.max(initial=-1)))
    return last


def _check_sizes(sizes: Ints, B: int, total: int, *, least: int) -> None:
    check(len(sizes) == B, "trees and learners differ in number.")
    # Every size first: a sum of huge numbers could overflow to the right total.
    within = (sizes >= least) & (sizes <= total)
    check(within.all(), "a tree has a size that cannot be.")
    check(sizes.sum() == total, "the sizes of the trees do not add up.")


def _check_splits(splits: NDArray[Any], p: int, levels: tuple[int, ...] | None) -> None:
    """Check where splits are, and that factors alone are split by levels."""
    by_levels = (splits["feature"] & LEVELS_FLAG) > 0
    feature = splits["feature"] & ~np.int32(LEVELS_FLAG)
    check((feature < p).all(), "a split is at no column.")
    factors = np.zeros(p, dtype=bool) if levels is None else np.array(levels) > 0
    check((by_levels == factors[feature]).all(), "a split does not fit its column.")
    # A split of missing from known values has an infinite threshold; any 64 bits are a
    # set of levels.
    thresholds = splits["value"][~by_levels]
    check(not np.isnan(thresholds).any(), "a threshold is no number.")


def _check_children(nodes: NDArray[Any], inner: Bools, sizes: Ints) -> None:
    """Check that splits lead to two later nodes, and no node is reached twice."""
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    after = first + np.repeat(sizes, sizes)
    place = np.arange(nodes.size)
    left, right = place[inner] + 1, first[inner] + (nodes["right"][inner] >> 1)
    check((nodes["right"][inner] >= 0).all(), "a child is at no place.")
    check((right > left).all(), "a child stands before its parent.")
    check((right < after[inner]).all(), "a child is outside its tree.")
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


def _pack_trees(
    kernel: StoredTreeKernel, learners: list[Tree]
) -> tuple[Fields, Arrays]:
    fields = {name: getattr(kernel, name) for name in FIELDS}
    return fields, Tree.stack(learners)


def _unpack_kernel(
    kind: type[AnyStored], fields: Mapping[str, Any], p: int
) -> AnyStored:
    centre, scale = take(fields, "centre", float), take(fields, "scale", float)
    check(np.isfinite(centre), "its centre is not finite.")
    check(0 < scale < np.inf, "its scale is not positive.")
    several = fields["n_classes"] is not None
    n_classes = take_size(fields, "n_classes", 2) if several else None
    levels = take(fields, "levels", list, type(None))
    if levels is not None:
        check(len(levels) == p, "levels and columns differ in number.")
        good = all(type(count) is int and 0 <= count <= MOST_LEVELS for count in levels)
        check(good, "a column has a number of levels that cannot be.")
        levels = tuple(levels)
    return kind(p, n_classes, centre, scale, levels=levels)


def _unpack_trees(
    fields: Mapping[str, Any], arrays: Arrays, B: int, p: int
) -> tuple[StoredTreeKernel, list[Tree]]:
    kernel = _unpack_kernel(StoredTreeKernel, fields, p)
    return kernel, _take_trees(arrays, B, kernel)


TREE_CODEC = KernelCodec(
    "trees",
    StoredTreeKernel,
    FIELDS,
    (*ARRAYS, *LEAF_ARRAYS),
    _pack_trees,
    _unpack_trees,
)


def _pack_stages(
    kernel: StoredStagedKernel, learners: list[StagedTree]
) -> tuple[Fields, Arrays]:
    fields = {name: getattr(kernel, name) for name in FIELDS}
    trees = [tree for learner in learners for tree in learner.trees]
    counts = np.array([len(learner.sizes) for learner in learners])
    lines = np.stack([learner.line for learner in learners])
    return fields, {**Tree.stack(trees), "stage_trees": counts, "stage_lines": lines}


def _unpack_stages(
    fields: Mapping[str, Any], arrays: Arrays, B: int, p: int
) -> tuple[StoredStagedKernel, list[StagedTree]]:
    check(fields["n_classes"] is None, "stages are for a numeric response.")
    kernel = _unpack_kernel(StoredStagedKernel, fields, p)
    lines = take_floats(arrays, "stage_lines", 2)
    check(lines.shape in ((B, 0), (B, 2 * p + 1)), "trends and columns differ.")
    counts = arrays.pop("stage_trees", np.empty(0))
    whole = counts.dtype == np.int64 and counts.shape == (B,)
    check(whole, "the numbers of trees are missing or another kind.")
    check(((counts >= 1) & (counts <= MOST_TREES)).all(), "a learner has no trees.")
    trees = iter(_take_trees(arrays, int(counts.sum()), kernel))
    learners = []
    for count, line in zip(counts, lines, strict=True):
        first, *others = itertools.islice(trees, int(count))
        nodes = [tree.nodes for tree in (first, *others)]
        sizes = np.array([part.size for part in nodes])
        learners.append(StagedTree(np.concatenate(nodes), sizes, line, first.gains))
    return kernel, learners


STAGED_CODEC = KernelCodec(
    "stages",
    StoredStagedKernel,
    FIELDS,
    (*ARRAYS, "stage_trees", "stage_lines"),
    _pack_stages,
    _unpack_stages,
)
