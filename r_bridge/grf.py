"""R's grf: trees, drawn samples and leaves, and what grf makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import erfc

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.variance import bag_moments, little_bags, positive_mean

TINY_WEIGHT = 1e-16
"""Sum of weights in a leaf up to which grf takes the leaf for empty."""

GRF_ZERO = 1e-10
"""Scale of the noise below which grf sets the variance to zero.

It is absolute, so that grf's answer depends on the unit of the response; ours
does not, and is set to zero for the comparison only.
"""


@dataclass(frozen=True)
class GrfTree:
    """One tree; everything counts from zero.

    Attributes
    ----------
    drawn : ndarray
        Rows of the subsample, those that chose the splits included.
    leaves : list of ndarray or None
        Rows that a leaf averages, by node; None for inner nodes.
    variable, left, right : ndarray of shape (nodes,)
        Split variable and children of inner nodes.
    split : ndarray of shape (nodes,)
        Values up to this go left.
    missing_left : ndarray of shape (nodes,)
        Whether missing values go left.
    """

    drawn: Ints
    leaves: list[Ints | None]
    variable: Ints
    split: Floats
    missing_left: Bools
    left: Ints
    right: Ints

    @classmethod
    def from_r(cls, tree: dict[str, Any]) -> "GrfTree":
        """Read what grf's `get_tree` gives, whose indices count from one."""
        nodes = tree["nodes"]
        inner = [not _scalar(node["is_leaf"]) for node in nodes]

        def whole(name: str) -> Ints:
            found = [
                int(_scalar(node[name])) - 1 if kind else -1
                for node, kind in zip(nodes, inner, strict=True)
            ]
            return np.array(found, dtype=np.int64)

        def number(name: str, kind: type) -> Any:
            found = [
                _scalar(node[name]) if is_inner else 0
                for node, is_inner in zip(nodes, inner, strict=True)
            ]
            return np.array(found, dtype=kind)

        return cls(
            drawn=_rows(tree["drawn_samples"]),
            leaves=[
                None if is_inner else _rows(node["samples"])
                for node, is_inner in zip(nodes, inner, strict=True)
            ],
            variable=whole("split_variable"),
            split=number("split_value", float),
            missing_left=number("send_missing_left", bool),
            left=whole("left_child"),
            right=whole("right_child"),
        )

    def leaf_of(self, X: Floats) -> Ints:
        """Node in which every row of X ends, shape (m,)."""
        node = np.zeros(len(X), dtype=np.int64)
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
    """A grf regression forest, and what grf says at some query points.

    Attributes
    ----------
    name : str
        What it is called.
    Y : ndarray of shape (n,)
        Responses.
    newdata : ndarray of shape (m, p)
        Query points.
    trees : tuple of GrfTree
        Trees in the order of their groups.
    group_size : int
        Trees that share a half-sample.
    predictions, variances : ndarray of shape (m,)
        What grf predicts, and its variance estimates.
    weights : ndarray of shape (n,) or None
        Observation weights.
    tree_predictions : ndarray of shape (B, m) or None
        Every tree's predictions as grf gives them, where they were recorded.
    clusters : ndarray of shape (n,) or None
        Cluster of every row, where whole clusters were drawn.
    """

    name: str
    Y: Floats
    newdata: Floats
    trees: tuple[GrfTree, ...]
    group_size: int
    predictions: Floats
    variances: Floats
    weights: Floats | None = None
    tree_predictions: Floats | None = None
    clusters: Any = None

    @property
    def groups(self) -> Ints:
        """Half-sample of every tree, shape (B,)."""
        return np.arange(len(self.trees)) // self.group_size

    @property
    def units(self) -> tuple[Ints, Any]:
        """Unit of every row, and the units: clusters, or the rows themselves."""
        if self.clusters is None:
            rows = np.arange(len(self.Y))
            return rows, rows
        levels, codes = np.unique(self.clusters, return_inverse=True)
        return codes, levels

    @property
    def counts(self) -> Ints:
        """Units (rows, or clusters) that each tree has drawn, shape (B, n)."""
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

    def variance(self) -> Floats:
        """Estimate variances as grf does, from its trees by our little bags, (m,).

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
    """Turn our variance by little bags into what grf prints.

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


def mean_known(values: Floats) -> Floats:
    """Mean over trees of what is not missing; missing where all is."""
    known = np.isfinite(values)
    times = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.asarray(np.where(times > 0, total / np.maximum(times, 1), np.nan))


def _leaf_means(
    tree: GrfTree, X: Floats, wy: Floats, w: Floats
) -> tuple[Floats, Floats]:
    """Leaf means of one tree at every point; missing where the leaf is empty."""
    top = np.full(len(tree.leaves), np.nan)
    bottom = np.full(len(tree.leaves), np.nan)
    for node, rows in enumerate(tree.leaves):
        if rows is not None and rows.size and abs(w[rows].sum()) > TINY_WEIGHT:
            top[node], bottom[node] = wy[rows].mean(), w[rows].mean()
    ends = tree.leaf_of(X)
    return top[ends], bottom[ends]


def read_trees(trees: Sequence[dict[str, Any]]) -> tuple[GrfTree, ...]:
    """Read trees as grf's `get_tree` gives them."""
    return tuple(GrfTree.from_r(tree) for tree in trees)
