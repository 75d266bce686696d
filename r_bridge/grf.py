"""Forests of R's grf: trees, samples and leaves, predictions and variances."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import erfc

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.variance.formulas import bag_moments, little_bags, positive_mean

TINY_WEIGHT = 1e-16  # sum of weights in a leaf up to which grf takes the leaf for empty

# Scale of the noise below which grf sets the variance to zero. It is absolute, so that
# grf's answer depends on the unit of the response; ours does not, and is set to zero
# for the comparison only.
GRF_ZERO = 1e-10


@dataclass(frozen=True)
class GrfTree:
    """One tree; indices count from zero."""

    drawn: Ints  # rows of the subsample, those that chose the splits included
    leaf_rows: Ints  # rows that the leaves average, leaf after leaf
    # (nodes,): how many of them belong to a node; none to an inner one
    leaf_sizes: Ints
    # variable, left, right: (nodes,): split variable and children of inner nodes; -1
    # for leaves
    variable: Ints
    split: Floats  # (nodes,): values up to this go left
    missing_left: Bools  # (nodes,): whether missing values go left
    left: Ints
    right: Ints
    root: int = 0  # node where the search begins

    @classmethod
    def from_nodes(cls, tree: dict[str, Any]) -> "GrfTree":
        """Read a tree of grf's `get_tree`, whose indices count from one."""
        nodes = tree["nodes"]
        inner = np.array([not _scalar(node["is_leaf"]) for node in nodes])
        rows = [_rows(node.get("samples")) for node in nodes]

        def column(name: str, kind: type) -> Any:
            found = [_scalar(node.get(name, 0)) for node in nodes]
            return np.array(found, dtype=kind)

        def place(name: str) -> Ints:
            return np.where(inner, column(name, np.int64) - 1, -1)

        return cls(
            drawn=_rows(tree["drawn_samples"]),
            leaf_rows=np.concatenate(rows),
            leaf_sizes=np.array([len(one) for one in rows]),
            variable=place("split_variable"),
            split=column("split_value", np.float64),
            missing_left=column("send_missing_left", bool),
            left=place("left_child"),
            right=place("right_child"),
        )

    def leaf_of(self, X: Floats) -> Ints:
        """Find the leaf of every row of X, shape (m,)."""
        node = np.full(len(X), self.root, dtype=np.int64)
        going = self.left[node] >= 0
        while going.any():
            at = node[going]
            x, split = X[going, self.variable[at]], self.split[at]
            # A split without a value parts the missing from the known.
            missing_left = self.missing_left[at] | np.isnan(split)
            goes_left = np.where(np.isnan(x), missing_left, x <= split)
            node[going] = np.where(goes_left, self.left[at], self.right[at])
            going = self.left[node] >= 0
        return node

    def leaf_sums(self, values: Floats) -> Floats:
        """Sum values over the rows of every leaf, shape (nodes,)."""
        nodes = np.arange(len(self.left))
        owner = np.repeat(nodes, self.leaf_sizes)
        sums: Floats = np.zeros(len(nodes))
        np.add.at(sums, owner, values[self.leaf_rows])
        return sums


def _scalar(value: Any) -> Any:
    """Read a number that R gives as a vector of length one, and JSON as itself."""
    return value if np.ndim(value) == 0 else value[0]


def _rows(values: Any) -> Ints:
    """Row numbers that count from zero, in a vector of any length."""
    return (
        np.atleast_1d(np.asarray([] if values is None else values, dtype=np.int64)) - 1
    )


@dataclass(frozen=True)
class GrfForest:
    """A grf regression forest, and its results at query points."""

    name: str  # what it is called
    Y: Floats  # (n,): responses
    newdata: Floats  # (m, p): query points
    trees: tuple[GrfTree, ...]  # trees in the order of their groups
    group_size: int  # trees that share a half-sample
    predictions: Floats  # (m,): what grf predicts
    # (m,): its variance estimates; None where no two trees share a half-sample
    variances: Floats | None
    weights: Floats | None = None  # (n,): observation weights
    # (B, m): every tree's predictions as grf gives them, where they were recorded
    tree_predictions: Floats | None = None
    clusters: Any = None  # (n,): cluster of every row, where whole clusters were drawn

    @property
    def groups(self) -> Ints:
        """Half-sample of every tree, shape (B,)."""
        return np.arange(len(self.trees)) // self.group_size

    @property
    def units(self) -> tuple[Ints, Any]:
        """Unit of every row, and the units: clusters, or rows."""
        if self.clusters is None:
            rows = np.arange(len(self.Y))
            return rows, rows
        levels, codes = np.unique(self.clusters, return_inverse=True)
        return codes, levels

    @property
    def counts(self) -> Ints:
        """Units (rows, or clusters) drawn by each tree, shape (B, n)."""
        codes, levels = self.units
        counts = np.zeros((len(self.trees), len(levels)), dtype=np.int64)
        for row, tree in zip(counts, self.trees, strict=True):
            row[codes[tree.drawn]] = 1
        return counts

    @cached_property
    def leaf_means(self) -> tuple[Floats, Floats]:
        """Mean of `w Y` and of `w` in the leaf of every point, each (B, m).

        Both are missing where the leaf is empty.
        """
        w = np.ones(len(self.Y)) if self.weights is None else self.weights
        pairs = [_leaf_means(tree, self.newdata, w * self.Y, w) for tree in self.trees]
        top, bottom = zip(*pairs, strict=True)
        return np.array(top), np.array(bottom)

    @property
    def prediction(self) -> Floats:
        """Ratio of the two means over trees whose leaf is not empty, shape (m,)."""
        top, bottom = self.leaf_means
        return mean_known(top) / mean_known(bottom)

    @property
    def pseudo_values(self) -> Floats:
        """Values of trees that average to the prediction, shape (B, m).

        `mu + (A - mu A') / mean(A')` with the leaf means A of `w Y` and A' of
        `w`; a tree's own prediction where there are no weights.
        """
        top, bottom = self.leaf_means
        mu = self.prediction
        return np.asarray(mu + (top - mu * bottom) / mean_known(bottom))

    @property
    def full_values(self) -> Floats:
        """Values of all trees, also if some have no prediction at a point, (B, m).

        A tree whose leaf is empty predicts nothing. Values are made for all trees
        whose mean is grf's prediction and whose variance is that of the known.

        Notes
        -----
        By little bags only groups count whose trees all predict, c of G. Their
        deviations from their group's mean are stretched by `sqrt(G/c)`, and so are
        the groups' own, D; the other groups get what brings the mean back, with D
        shrunk so that the mean of squares over all groups stays what it is over
        the c. All are then stretched until the estimate is that of the c groups,
        whose noise is larger. Where trees are drawn alone, deviations are stretched
        by `G/c`: a covariance with the counts over all trees is then that over the
        c trees.
        """
        values = self.pseudo_values
        if np.isfinite(values).all():
            return values
        fill = _fill_groups if self.group_size > 1 else _fill_trees
        grouped = values.reshape(-1, self.group_size, values.shape[1])
        columns = zip(np.moveaxis(grouped, -1, 0), self.prediction, strict=True)
        return np.stack([fill(one, mu).ravel() for one, mu in columns], axis=1)

    def variance(self) -> Floats:
        """Estimate grf's variances from its trees by our little bags, (m,).

        At every point only groups take part whose trees all have a leaf that is
        not empty; deviations are from the prediction of all trees.
        """
        values, mu = self.pseudo_values, self.prediction
        pairs = zip(values.T, mu, strict=True)
        return np.array([self._variance_at(column, c) for column, c in pairs])

    def _variance_at(self, values: Floats, centre: float) -> float:
        known = np.isfinite(values).reshape(-1, self.group_size).all(axis=1)
        if not known.any():
            return float("nan")
        used = np.repeat(known, self.group_size)
        given, groups, at = values[used, None], self.groups[used], np.array([centre])
        ours = little_bags(given, groups, centre=at)[0]
        return with_constants_of_grf(
            ours, *bag_moments(given, groups, centre=at)
        ).item()


def with_constants_of_grf(ours: Floats, debiased: Floats, scale: Floats) -> Floats:
    """Convert our variance by little bags to grf's.

    Notes
    -----
    grf writes 1/sqrt(2 pi) with ten digits and 1/sqrt(2) with eleven, which shows
    where the moment estimate is far below zero, and sets the variance to zero where
    the noise is below an absolute 1e-10.
    """
    r = debiased / np.where(scale > 0, scale, 1.0)
    printed = 0.3989422804 * np.exp(-(r**2) / 2) / (0.5 * erfc(-0.70710678118 * r))
    rounded = debiased + scale * printed
    exact = positive_mean(debiased, scale)
    return np.where(scale < GRF_ZERO, 0.0, ours + (rounded - exact))


def _fill_groups(values: Floats, mu: float) -> Floats:
    """Values (G, l) of whole groups, with the moments of the complete ones."""
    complete = np.isfinite(values).all(axis=1)
    G, c = len(values), int(complete.sum())
    if c in (0, G):
        return values
    known = values[complete]
    means = known.mean(axis=1, keepdims=True)
    D = means - mu
    squares = (D**2).sum()
    rest = D.sum() ** 2 / (G - c)
    shrunk = np.sqrt(squares / (squares + rest)) if squares > 0 else 1.0
    made = np.empty_like(values)
    made[complete] = np.sqrt(G / c) * (shrunk * D + known - means)
    made[~complete] = -np.sqrt(G / c) * shrunk * D.sum() / (G - c)
    now, wanted = _bags_about_zero(made), _bags_about_zero(known - mu)
    return np.asarray(mu + made * (np.sqrt(wanted / now) if now > 0 else 1.0))


def _bags_about_zero(deviations: Floats) -> float:
    """Variance by little bags of deviations (G, l) from the prediction."""
    groups = np.repeat(np.arange(len(deviations)), deviations.shape[1])
    given = deviations.reshape(-1, 1)
    return float(little_bags(given, groups, centre=np.zeros(1))[0].item())


def _fill_trees(values: Floats, mu: float) -> Floats:
    """Values (B, 1) of trees drawn alone; covariances are those of the known."""
    known = np.isfinite(values)
    return np.where(known, mu + known.size / known.sum() * (values - mu), mu)


def mean_known(values: Floats) -> Floats:
    """Compute the mean over trees of non-missing values."""
    known = np.isfinite(values)
    times = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.where(times > 0, total / np.maximum(times, 1), np.nan))


def _leaf_means(
    tree: GrfTree, X: Floats, wy: Floats, w: Floats
) -> tuple[Floats, Floats]:
    """Compute leaf means of one tree at every point; missing if the leaf is empty."""
    top, bottom = tree.leaf_sums(wy), tree.leaf_sums(w)
    empty = (tree.leaf_sizes == 0) | (np.abs(bottom) <= TINY_WEIGHT)
    size = np.where(empty, np.nan, tree.leaf_sizes)
    ends = tree.leaf_of(X)
    return (top / size)[ends], (bottom / size)[ends]


def read_trees(trees: Sequence[dict[str, Any]]) -> tuple[GrfTree, ...]:
    """Read trees in the format of grf's `get_tree`."""
    return tuple(GrfTree.from_nodes(tree) for tree in trees)


# Write the trees of a forest as a few long vectors. `get_tree` makes a list of every
# node, which takes minutes for a forest of the default size; it reads these same
# fields.
FLATTEN = """
function(forest) {
  flat <- function(name) unlist(forest[[name]], use.names = FALSE)
  children <- function(side) {
    unlist(lapply(forest[["_child_nodes"]], `[[`, side), use.names = FALSE)
  }
  list(
    nodes = lengths(forest[["_split_vars"]]),
    root = flat("_root_nodes"),
    variable = flat("_split_vars"),
    split = flat("_split_values"),
    missing_left = flat("_send_missing_left"),
    left = children(1),
    right = children(2),
    draws = lengths(forest[["_drawn_samples"]]),
    drawn = flat("_drawn_samples"),
    leaf_sizes = unlist(lapply(forest[["_leaf_samples"]], lengths)),
    leaf_rows = flat("_leaf_samples")
  )
}
"""


def split_trees(flat: dict[str, Any]) -> tuple[GrfTree, ...]:
    """Read trees from the long vectors of `FLATTEN`, which count from zero."""
    ends = np.cumsum(flat["nodes"])[:-1]
    sizes = np.split(whole(flat["leaf_sizes"]), ends)
    taken = np.cumsum([one.sum() for one in sizes])[:-1]
    left, right = whole(flat["left"]), whole(flat["right"])
    leaf = (left == 0) & (right == 0)  # the root is nobody's child
    columns = [
        np.split(whole(flat["drawn"]), np.cumsum(flat["draws"])[:-1]),
        np.split(whole(flat["leaf_rows"]), taken),
        sizes,
        np.split(np.where(leaf, -1, whole(flat["variable"])), ends),
        np.split(flat["split"], ends),
        np.split(flat["missing_left"].astype(bool), ends),
        np.split(np.where(leaf, -1, left), ends),
        np.split(np.where(leaf, -1, right), ends),
        whole(flat["root"]).tolist(),
    ]
    return tuple(GrfTree(*parts) for parts in zip(*columns, strict=True))


def whole(values: Any) -> Ints:
    """Convert a vector to whole numbers; it may be empty."""
    return np.asarray([] if values is None else values, dtype=np.int64)
