"""Tell whether data are those that a scikit-learn ensemble was fitted to.

A tree remembers the mean of its responses, or the shares of their classes, at its root,
and how many rows each leaf has. Both follow from the data and the subsample, so that
other data, or the same in another order, show. What weights and other criteria make of
them is not followed: where roots or leaves hold something else, they are not compared.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints

N_TREES = 10
"""Trees that are compared: each has a subsample of its own."""

MEANS = ("squared_error", "friedman_mse", "poisson", "gini", "entropy", "log_loss")
"""Criteria whose trees keep means or shares; `absolute_error` keeps medians."""

MISPLACED = 1e-3
"""Share of rows that may be in other leaves: features may have been rounded."""

ROUNDING = 1e-6
"""Difference of means that rounded responses may have, relative to their range."""

SINGLE = 1e-7
"""The same relative to their size: the precision of single numbers."""


def check_training_data(
    forest: Any,
    learners: Sequence[tuple[Any, Ints]],
    counts: Ints,
    X: Floats,
    y: Floats,
    *,
    n_classes: int | None,
) -> None:
    """Refuse data that the trees of a forest were not fitted to.

    Parameters
    ----------
    forest : estimator
        A fitted ensemble; only scikit-learn's own are looked at, as others may train
        their trees in ways of their own.
    learners : sequence of (estimator, features)
        Its learners, each with the columns it uses.
    counts : ndarray of shape (B, n)
        Times each observation occurs in each subsample.
    X : ndarray of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Response, or class codes.
    n_classes : int or None
        None for regression.
    """
    if not all(_is_plain(one) for one in (forest, *(tree for tree, _ in learners))):
        return
    chosen = list(zip(learners, counts, strict=True))[:N_TREES]
    if _has_plain_weights(forest, learners, counts):
        for b, ((tree, _), drawn) in enumerate(chosen):
            if not _has_root(tree, drawn, y, n_classes):
                kept = (
                    "another mean" if n_classes is None else "other shares of classes"
                )
                raise _refusal(forest, f"the rows drawn for tree {b} have {kept}")
    for b, ((tree, features), drawn) in enumerate(chosen):
        if not _has_leaves(tree, drawn, X[:, features]):
            raise _refusal(forest, f"the rows drawn for tree {b} reach other leaves")


def _refusal(forest: Any, what: str) -> ValueError:
    return ValueError(
        f"`X` and `y` must be the {type(forest).__name__}'s training data, in the "
        f"order of the fit; in those given, {what} than in the fit. Give the X and y "
        "that `fit` had, with the same rows in the same order, or fit again."
    )


def _is_plain(one: Any) -> bool:
    """Whether an ensemble, or a tree, is one of scikit-learn's own."""
    return type(one).__module__.split(".")[0] == "sklearn"


def _has_plain_weights(
    forest: Any, learners: Sequence[tuple[Any, Ints]], counts: Ints
) -> bool:
    """Whether roots hold plain means: weights are counts, and classes have none."""
    if getattr(forest, "class_weight", None) is not None:
        return False
    return all(
        hasattr(tree, "tree_")
        and tree.criterion in MEANS
        and getattr(tree, "class_weight", None) is None
        and np.isclose(tree.tree_.weighted_n_node_samples[0], drawn.sum(), rtol=1e-9)
        for (tree, _), drawn in zip(learners, counts, strict=True)
    )


def _has_root(tree: Any, drawn: Ints, y: Floats, n_classes: int | None) -> bool:
    """Compare the root with the mean, or the shares, of the rows drawn."""
    root = tree.tree_.value[0]
    if len(root) != 1:
        return True  # several responses: refused elsewhere
    if n_classes is None:
        scale = ROUNDING * np.ptp(y) + SINGLE * np.abs(y).max()
        return bool(abs(root[0, 0] - np.average(y, weights=drawn)) <= scale)
    given = np.bincount(y.astype(np.int64), weights=drawn, minlength=n_classes)
    kept = np.zeros(n_classes)
    kept[tree.classes_.astype(np.int64)] = root[0] / root[0].sum()
    return bool(np.abs(kept - given / drawn.sum()).max() <= ROUNDING)


def _has_leaves(tree: Any, drawn: Ints, X: Floats) -> bool:
    """Compare the rows of each leaf with those that arrive there."""
    if not hasattr(tree, "tree_"):
        return True
    nodes = tree.tree_
    size = nodes.n_node_samples
    # Rows are counted once where the tree has their counts as weights. Rows of weight
    # zero are not counted: which ones these are is not known here.
    seen = np.minimum(drawn, 1) if size[0] == np.count_nonzero(drawn) else drawn
    if size[0] != seen.sum():
        return True
    inside = np.flatnonzero(seen)
    leaves = tree.apply(X[inside])
    found = np.bincount(leaves, weights=seen[inside], minlength=nodes.node_count)
    kept = np.where(nodes.children_left < 0, size, 0)
    return bool(np.abs(found - kept).sum() / 2 <= MISPLACED * size[0])
