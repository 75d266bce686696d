"""Trees as plain arrays, for files: scikit-learn's own need pickling."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.kernels import output_columns


@dataclass(frozen=True)
class FlatTree:
    """A fitted tree.

    Attributes
    ----------
    feature : ndarray of shape (nodes,)
        Column that a node splits on; negative in leaves.
    threshold : ndarray of shape (nodes,)
        Rows with values at most this go left.
    left, right : ndarray of shape (nodes,)
        Children.
    missing_left : ndarray of shape (nodes,)
        Whether rows with a missing value go left.
    value : ndarray of shape (nodes, c)
        Prediction of a node.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Ints
    value: Floats

    FIELDS: ClassVar[tuple[str, ...]] = (
        "feature",
        "threshold",
        "left",
        "right",
        "missing_left",
        "value",
    )

    @classmethod
    def of(cls, learner: Any, n_classes: int | None) -> "FlatTree":
        """Read a scikit-learn tree; classes that it has not seen have value zero."""
        if isinstance(learner, FlatTree):
            return learner
        tree = learner.tree_
        value = tree.value[:, 0, :]
        if n_classes is not None:
            full = np.zeros((len(value), n_classes))
            full[:, learner.classes_.astype(np.int64)] = value
            value = full
        return cls(
            feature=tree.feature.astype(np.int64),
            threshold=tree.threshold.astype(np.float64),
            left=tree.children_left.astype(np.int64),
            right=tree.children_right.astype(np.int64),
            missing_left=np.asarray(tree.missing_go_to_left, dtype=np.int64),
            value=value.astype(np.float64),
        )

    def predict(self, X: Floats) -> Floats:
        """Value of the leaf that each row falls into, shape (rows, c)."""
        rows = np.asarray(X, dtype=np.float32)  # as scikit-learn compares
        node = np.zeros(len(rows), dtype=np.int64)
        active = np.flatnonzero(self.left[node] >= 0)
        while active.size:
            at = node[active]
            x = rows[active, self.feature[at]]
            missing = np.isnan(x)
            goes_left = np.where(
                missing, self.missing_left[at] > 0, x <= self.threshold[at]
            )
            node[active] = np.where(goes_left, self.left[at], self.right[at])
            active = active[self.left[node[active]] >= 0]
        return self.value[node]

    @staticmethod
    def stack(trees: Sequence["FlatTree"]) -> dict[str, Any]:
        """Join trees into one set of arrays."""
        joined = {
            f"tree_{name}": np.concatenate([getattr(tree, name) for tree in trees])
            for name in FlatTree.FIELDS
        }
        sizes = np.array([tree.feature.size for tree in trees])
        return {**joined, "tree_sizes": sizes}

    @staticmethod
    def unstack(arrays: dict[str, Any]) -> list["FlatTree"]:
        """Split what `stack` joined."""
        edges = np.cumsum(arrays["tree_sizes"])[:-1]
        parts = [np.split(arrays[f"tree_{name}"], edges) for name in FlatTree.FIELDS]
        return [FlatTree(*fields) for fields in zip(*parts, strict=True)]


@dataclass(frozen=True)
class StoredTreeKernel:
    """Trees read from a file: they predict, but are not grown again.

    Attributes
    ----------
    X : ndarray of shape (0, p)
        Stands for the design matrix, which is not stored.
    n_classes : int or None
        None for regression.
    centre, scale : float
        What the response was standardised by.
    """

    X: Floats
    n_classes: int | None
    centre: float
    scale: float

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """One, or a column for each of more than two classes."""
        return output_columns(self.n_classes)

    def fit(self, counts: Ints, rng: np.random.Generator) -> FlatTree:
        """Refuse: the trees are given."""
        raise NotImplementedError("stored trees are not grown again.")

    def predict(self, learner: FlatTree, X: Floats) -> Floats:
        """Predict means, or class probabilities."""
        value = learner.predict(X)
        if self.n_classes is None:
            return self.centre + self.scale * value
        return value[:, 1:] if self.n_classes == 2 else value

    def value(self, learner: FlatTree, at: Floats | None) -> Floats:
        """Predict at the query points."""
        if at is None:
            raise ValueError("stored trees need query points.")
        return self.predict(learner, at).ravel()
