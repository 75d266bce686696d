"""Trees as plain arrays, and the kernels that grow them."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import (
    Evaluation,
    KernelKind,
    OutOfBag,
    UnitDraw,
    output_columns,
)
from vstatkit.kernels.tree_options import (
    LOSSES,
    check_counts,
    check_levels,
    grower_options,
    loss_of,
)
from vstatkit.native._engine import (
    LEVELS_FLAG,
    TreeGrower,
    find_leaves_at,
    predict_tree_at,
    refuse_beyond,
)
from vstatkit.workers import current_stop


def row_weights(sample_weight: Any, n: int) -> Floats | None:
    """Check the weights of n rows; a single number applies to all of them."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    options = {"dtype": np.float64, "input_name": "sample_weight", "copy": True}
    weights: Floats = check_array(sample_weight, ensure_2d=False, **options)
    if weights.shape != (n,):
        raise ValueError(
            f"`sample_weight` must have a number for each of the {n} rows; got an "
            f"array of shape {weights.shape}."
        )
    if (weights < 0).any():
        raise ValueError(
            "`sample_weight` must be at least 0, and above it for some rows; got "
            f"numbers from {weights.min():g} to {weights.max():g}."
        )
    if not weights.any():
        raise ValueError(
            "`sample_weight` must be above 0 for some rows; every weight is zero."
        )
    return weights


def balance(counts: Any, codes: Floats) -> Floats:
    """Weigh the K classes so that those of each of L subsamples weigh the same.

    Returns, of shape (L, K), the rows of the subsample over (its classes times its rows
    of the class), from the times each row occurs and the class of every row.

    Examples
    --------
    >>> balance(np.array([[2, 1, 1]]), np.array([0, 0, 1])).round(3)
    array([[0.667, 2.   ]])
    """
    member = np.eye(1 + int(codes.max()))[codes.astype(np.int64)]
    of_class = np.asarray(counts @ member, dtype=np.float64)
    present = (of_class > 0).sum(axis=1, keepdims=True)
    rows = of_class.sum(axis=1, keepdims=True)
    return np.asarray(rows / (present * np.maximum(of_class, 1.0)))


def rank_columns(X: Floats) -> tuple[NDArray[Any], ...]:
    """Rank the columns of a design matrix, as the grower reads them.

    Return every column in ascending order, missing values last; the row of every rank
    (equal values keep the order of the rows); and the rank of every row, each of shape
    (p, n); and the number of values of each column that are not missing.
    """
    rows = np.asfortranarray(X, dtype=np.float64)
    # NaN sorts last. The order of equal values affects rounding, so it must not
    # depend on the other rows, which are not in a tree's own table.
    order = np.argsort(rows.T, axis=1, kind="stable")
    rank = np.empty(order.shape, dtype=np.int32)
    places = np.arange(len(rows), dtype=np.int32)[None]
    np.put_along_axis(rank, order, places, axis=1)
    values = np.ascontiguousarray(np.take_along_axis(rows.T, order, axis=1))
    n_known = np.count_nonzero(~np.isnan(rows), axis=0).astype(np.int32)
    return values, order.astype(np.int32), rank, n_known


def standardise(y: Floats) -> tuple[Floats, float, float]:
    """Centre y and scale it by a power of two near its spread, which is exact.

    Returns `(y - centre) / scale`, the centre (the mean) and the scale.

    Notes
    -----
    Numbers are first divided by a power of two near the largest one, since squares of
    huge and of tiny numbers would leave the range of floating point.
    """
    largest = float(np.abs(y).max())
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    unit = np.ldexp(y, -exponent)
    middle = float(unit.mean())
    spread = float(np.std(unit))
    shift = int(np.round(np.log2(spread))) if spread > 0 else -exponent
    shift = min(shift, 1023 - exponent)  # the largest power of two that there is
    scaled = np.ascontiguousarray(np.ldexp(unit - middle, -shift), dtype=np.float64)
    return scaled, math.ldexp(middle, exponent), math.ldexp(1.0, shift + exponent)


# Most rows: a full tree has nearly twice as many nodes, numbered in 30 bits.
MOST_ROWS = 2**29
# Share of the units in a subsample below which a tree is grown from its own rows.
OWN_ROWS_BELOW = 1 / 30
# Fewest rows for that: ranks of fewer are cheap, and fit the cache.
OWN_ROWS_FROM = 20_000
# Rows from which it is done for all sparse counts: ranking would take seconds.
NEVER_RANKED_FROM = 300_000
# Lock for ranking a design, so that only one worker ranks it.
_RANKING = threading.Lock()
NODE_BYTES = 16  # size of a stored node: feature, right child, threshold or value


@dataclass(frozen=True)
class Tree:
    """A fitted tree."""

    # `feature` (negative in leaves), `right`, `value`; the left child of a node follows
    # it. Nodes that split an unordered factor have `LEVELS_FLAG` added to their
    # feature, and in `value` the bits of the levels that go left.
    nodes: NDArray[Any]
    shares: Floats  # class shares of mixed leaves, for three or more classes
    # (p,): gain of the splits of each feature: the reduction of the weighted criterion
    # (squared or absolute error, half the Poisson deviance, Gini impurity) of the
    # standardised response
    gains: Floats
    # Lists of the rows of leaves with several rows, and their shares of the weight, as
    # `native/tree.hpp` describes them; None if the rows of the leaves are not known
    leaf_rows: NDArray[np.int32] | None = None
    leaf_shares: NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        leaves = int((self.nodes["feature"] < 0).sum())
        return f"<Tree: {leaves} leaves>"

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        size = self.nodes.nbytes + self.shares.nbytes + self.gains.nbytes
        if self.leaf_rows is not None and self.leaf_shares is not None:
            size += self.leaf_rows.nbytes + self.leaf_shares.nbytes
        return size

    def forget_leaf_rows(self) -> "Tree":
        """Return the tree without the rows of its leaves."""
        nodes = self.nodes.copy()
        nodes["right"][nodes["feature"] == -1] = 0
        nodes["value"][nodes["feature"] < -1] = 0.0
        return Tree(nodes, self.shares, self.gains)

    @staticmethod
    def stack(trees: Sequence["Tree"]) -> dict[str, Any]:
        """Join trees into one set of arrays."""
        return {
            "tree_nodes": np.concatenate([tree.nodes for tree in trees]),
            "tree_sizes": np.array([tree.nodes.size for tree in trees]),
            "tree_shares": np.concatenate([tree.shares for tree in trees]),
            "tree_share_sizes": np.array([tree.shares.size for tree in trees]),
            "tree_gains": np.stack([tree.gains for tree in trees]),
            **_stack_leaf_rows(trees),
        }

    @staticmethod
    def unstack(arrays: Mapping[str, Any]) -> list["Tree"]:
        """Split what `stack` joined."""
        nodes = np.split(arrays["tree_nodes"], np.cumsum(arrays["tree_sizes"])[:-1])
        edges = np.cumsum(arrays["tree_share_sizes"])[:-1]
        shares = np.split(arrays["tree_shares"], edges)
        parts = [nodes, shares, arrays["tree_gains"]]
        if "tree_leaf_rows" in arrays:
            ends = np.cumsum(arrays["tree_list_sizes"])[:-1]
            lists = (arrays["tree_leaf_rows"], arrays["tree_leaf_shares"])
            parts += [np.split(array, ends) for array in lists]
        return [Tree(*tree) for tree in zip(*parts, strict=True)]


def _stack_leaf_rows(trees: Sequence[Tree]) -> dict[str, Any]:
    """Join the lists of leaves' rows, if all trees have them."""
    rows = [tree.leaf_rows for tree in trees if tree.leaf_rows is not None]
    shares = [tree.leaf_shares for tree in trees if tree.leaf_shares is not None]
    if len(rows) < len(trees):
        return {}
    return {
        "tree_leaf_rows": np.concatenate(rows),
        "tree_leaf_shares": np.concatenate(shares),
        "tree_list_sizes": np.array([lists.size for lists in rows]),
    }


@dataclass(frozen=True)
class StoredTreeKernel:
    """A kernel that predicts with trees, without the data they were grown on."""

    n_features: int  # columns of the design matrix
    n_classes: int | None  # none for regression
    # Centre and scale of the response before it was standardised
    centre: float
    scale: float
    # Levels of every column that is an unordered factor, zero for the others; None if
    # all columns are numbers
    levels: tuple[int, ...] | None = field(default=None, kw_only=True)

    coefficients: ClassVar[bool] = False
    kind: ClassVar[KernelKind] = KernelKind.TREES

    @property
    def n_outputs(self) -> int:
        """One, or a column for each of more than two classes."""
        return output_columns(self.n_classes)

    def predict(self, learner: Any, X: Floats) -> Floats:
        """Predict means, or class probabilities."""
        refuse_beyond("query points", len(X))
        points = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(points), self.n_outputs))
        self._predict_into(out, learner, points)
        return out if self.n_classes else self.centre + self.scale * out

    def _predict_into(self, out: Floats, learner: Any, points: Floats) -> None:
        described = (learner.nodes, learner.shares, self.n_classes or 0)
        by_levels = self.levels is not None
        predict_tree_at(*described, points, out, current_stop(), by_levels)

    def leaves(self, learner: Tree, X: Floats) -> NDArray[np.int32]:
        """Find the leaf of every row, by its place among the nodes."""
        points = np.ascontiguousarray(X, dtype=np.float64)
        leaves = np.empty(len(points), dtype=np.int32)
        find_leaves_at(learner.nodes, points, leaves, current_stop())
        return leaves


@dataclass(frozen=True)
class TreeKernel(StoredTreeKernel):
    """A (randomised) regression or classification tree.

    The response is centred and scaled by a power of two, so that neither an offset
    nor a unit costs digits.
    """

    X: Floats  # (n, p): design matrix, in any order of memory, or on disk
    y: Floats  # (n,): standardised response, or class codes
    options: Mapping[str, float]  # options of the grower
    weights: Floats | None  # (n,): weight of every observation
    # Whether all classes of a subsample weigh the same in its tree
    balanced: bool = field(default=False, kw_only=True)

    @property
    def table(self) -> tuple[NDArray[Any], ...]:
        """The design in ranked form, for subsamples that hold a good part of it."""
        with _RANKING:
            if "_table" not in self.__dict__:
                object.__setattr__(self, "_table", rank_columns(self.X))
            table: tuple[NDArray[Any], ...] = self.__dict__["_table"]
            return table

    @property
    def n_whole_trees(self) -> int:
        """Number of trees of a learner, relative to one on the whole subsample."""
        return 1

    @property
    def n_line(self) -> int:
        """Length of a learner's linear trend."""
        return 0

    @property
    def limit(self) -> float | None:
        """Half the range of the response, which bounds the leaves."""
        return self.scale * float(np.ptp(self.y)) / 2

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Least and greatest value of a mean, if known; see `response_bounds`."""
        if self.n_classes is not None:
            return None
        return response_bounds(self.centre + self.scale * self.y)

    def grow(
        self,
        drawn: UnitDraw,
        keys: NDArray[np.uint64],
        at: Floats,
        *,
        oob_rows: Ints | None = None,
        keep: bool = False,
    ) -> Evaluation:
        """Grow a tree on each of L subsamples and evaluate it at the query points.

        Trees predict those of the observations in `oob_rows`, which ascend, that their
        subsample leaves out. Without `keep`, and without `oob_rows`, only the nodes on
        the paths of the query points are grown. Predictions are in the unit of the
        response. Trees on small subsamples of large tables are grown from their own
        rows, without the ranks of the whole table; the trees are the same.
        """
        L, points, oob = len(keys), at, None
        if oob_rows is not None:
            refuse_beyond("query points and rows to predict", len(at) + len(oob_rows))
            total, times = (
                np.zeros((len(oob_rows), self.n_outputs)),
                np.zeros(len(oob_rows)),
            )
            oob = (np.ascontiguousarray(oob_rows, dtype=np.int32), total, times)
            points = np.concatenate([at, self.X[oob_rows]])
        values = np.empty((L, len(at) * self.n_outputs))
        gains = np.zeros((L, self.n_features))
        lines = np.zeros((L, self.n_line))
        arguments = (
            self.y,
            keys,
            np.asfortranarray(points, dtype=np.float64),
            len(at),
            values,
            gains,
            oob,
            dict(self.options),
            keep,
            current_stop(),
            None if self.levels is None else np.array(self.levels, dtype=np.int32),
        )
        grower = self._make_grower(arguments, lines, drawn.unit_of_row)
        if self._ranks_own_rows(drawn):
            kept = grower.grow_on_rows(*self._own_rows(drawn))
        else:
            kept = grower.grow_on_counts(*self._ranked_rows(drawn))
        trees = [] if kept is None else self._learners(kept, gains, lines)
        if not self.n_classes:
            values = self.centre + self.scale * values
        if oob_rows is None:
            return Evaluation(values, trees, None)
        if not self.n_classes:
            total = self.scale * total + self.centre * times[:, None]
        subset = (
            None if len(oob_rows) == len(self.y) else np.asarray(oob_rows, np.int64)
        )
        return Evaluation(values, trees, OutOfBag(total, times, subset))

    def _ranks_own_rows(self, drawn: UnitDraw) -> bool:
        counts, n_rows = drawn.counts, len(self.y)
        if isinstance(self.X, np.memmap):  # the table may not fit into memory
            return True
        if not sparse.issparse(counts):
            return False
        share = counts.nnz / (counts.shape[0] * counts.shape[1])
        few = n_rows >= OWN_ROWS_FROM and share < OWN_ROWS_BELOW
        return few or n_rows >= NEVER_RANKED_FROM

    def _own_rows(self, drawn: UnitDraw) -> tuple[Any, ...]:
        """Prepare growth from the rows of the subsamples."""
        counts = sparse.csr_array(drawn.counts)
        times = np.asarray(counts.data, dtype=np.float64)
        if self.balanced:
            learner = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            codes = self.y[counts.indices].astype(np.int64)
            times = times * balance(counts, self.y)[learner, codes]
        return (
            self.X,
            np.asarray(counts.indptr, dtype=np.int64),
            np.asarray(counts.indices, dtype=np.int32),
            times,
            None if drawn.index is None else (drawn.index.bounds, drawn.index.rows),
            self.weights,
        )

    def _ranked_rows(self, drawn: UnitDraw) -> tuple[Any, ...]:
        """Prepare growth from the ranks of all rows, weighted."""
        counts = drawn.row_counts
        weights = np.ascontiguousarray(counts, dtype=np.float64)
        if self.weights is not None:
            weights = weights * self.weights
        if self.balanced:
            weights = weights * balance(counts, self.y)[:, self.y.astype(np.int64)]
        return (*self.table, weights)

    def _make_grower(
        self, arguments: tuple[Any, ...], lines: Floats, unit_of_row: Ints | None
    ) -> Any:
        return TreeGrower(*arguments)

    def _learners(self, kept: Sequence[Any], gains: Floats, lines: Floats) -> list[Any]:
        pairs = zip(kept, gains, strict=True)
        return [
            Tree(nodes, shares, gain, rows, row_shares)
            for (nodes, shares, rows, row_shares), gain in pairs
        ]


def response_bounds(y: Floats) -> tuple[float, float]:
    """Bound means of responses: by zero for one sign, by 0 and 1 for zeros and ones.

    There are no other bounds: the next response may exceed the largest.

    Examples
    --------
    >>> response_bounds(np.array([0.0, 2.0])), response_bounds(np.array([-1.0, 2.0]))
    ((0.0, inf), (-inf, inf))
    """
    slack = 1e-12 * float(np.abs(y).max(initial=0.0))  # rounding by scaling
    is_zero, is_one = np.abs(y) <= slack, np.abs(y - 1) <= slack
    if is_zero.any() and is_one.any() and (is_zero | is_one).all():
        return 0.0, 1.0
    low = 0.0 if y.min() >= -slack else -np.inf
    high = 0.0 if y.max() <= slack else np.inf
    return low, high


def tree_kernel(
    name: str,
    X: Floats,
    y: Floats,
    *,
    options: Mapping[str, Any],
    n_classes: int | None = None,
    weights: Floats | None = None,
    levels: Sequence[int] | None = None,
) -> TreeKernel:
    """Build the kernel "forest" (randomised trees) or "tree".

    A forest tries p/3 of the features at each split in regression and sqrt(p) in
    classification; a tree tries all of them. `levels` has a number for each column of
    X: how many levels an unordered factor has, whose codes from 0 on the column holds,
    or 0 for a column of numbers.
    """
    default: int | str | None = None
    if name == "forest":
        default = max(1, X.shape[1] // 3) if n_classes is None else "sqrt"
    refuse_beyond("rows", len(X), MOST_ROWS)
    refuse_beyond("features", X.shape[1], LEVELS_FLAG - 1)
    settings = grower_options({"max_features": default, **options}, X.shape[1])
    loss = loss_of(options.get("criterion"), n_classes)
    codes = np.ascontiguousarray(y, dtype=np.float64)
    scaled, centre, scale = (codes, 0.0, 1.0) if n_classes else standardise(codes)
    if loss == LOSSES["poisson"]:
        check_counts(y)
        centre, scaled = 0.0, codes / scale  # zero stays zero
    return TreeKernel(
        n_features=X.shape[1],
        n_classes=n_classes,
        centre=centre,
        scale=scale,
        X=np.asanyarray(X, dtype=np.float64),  # may stay on disk
        y=scaled,
        options={"loss": loss, **settings, "n_classes": n_classes or 0},
        weights=weights,
        levels=check_levels(levels, X),
    )
