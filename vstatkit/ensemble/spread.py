"""How large errors are where: a small forest, learnt from out-of-bag errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.prediction import Predictor
from vstatkit.kernels.base import OutOfBag
from vstatkit.kernels.tree import StoredTreeKernel, tree_kernel
from vstatkit.sampling.iid import IidDesign
from vstatkit.sampling.registry import subsample_size
from vstatkit.sampling.streams import Purpose, stream

N_TREES = 64
"""Trees of the forest."""

LEAF = 10
"""Least observations in a leaf: an average of fewer absolute errors says little."""

LEAST_SPREAD = 0.05
"""Least expected error, as a share of the mean one."""

LEAST_UNITS = 4
"""Units below which errors are taken to be alike everywhere."""


@dataclass(frozen=True)
class Spread:
    """Expected absolute errors, wherever there is a prediction.

    Attributes
    ----------
    kernel : StoredTreeKernel
        Predicts with the trees.
    trees : list
        The trees; empty where errors are taken to be alike everywhere.
    least : float
        Least expected error.
    """

    kernel: StoredTreeKernel
    trees: list[Any]
    least: float

    def at(self, X: Floats, n_jobs: int | None = None) -> Floats:
        """Expect errors at rows of the design matrix, shape (rows,)."""
        if not self.trees:
            return np.full(len(X), self.least)
        forest = Predictor(self.kernel, self.trees, None, None, n_jobs)
        return np.maximum(forest.mean(X), self.least)


def learn_spread(
    X: Floats,
    sizes: Floats,
    units: Ints,
    *,
    weights: Floats | None,
    levels: Sequence[int] | None,
    seed: int,
    n_jobs: int | None = None,
) -> tuple[Spread, Floats]:
    """Learn how large errors are from the design matrix.

    Parameters
    ----------
    X : ndarray of shape (s, p)
        Rows whose errors are known.
    sizes : ndarray of shape (s,)
        Absolute errors.
    units : ndarray of shape (s,)
        Unit of every row; units are drawn whole.
    weights : ndarray of shape (s,) or None
        Weights of the rows.
    levels : sequence of int or None
        Levels of columns that are unordered factors; see `tree_kernel`.
    seed : int
        Seed of the ensemble; the trees have streams of their own.
    n_jobs : int, optional
        Workers.

    Returns
    -------
    Spread
    ndarray of shape (s,)
        Expected errors of the rows themselves, by trees that did not see their unit.

    Notes
    -----
    Trees on `ceil(n**0.8)` units drawn with replacement, with leaves of ten rows or
    more; all columns are tried at every split. Errors are expected to be at least a
    twentieth of their mean: where a few are zero by chance, new ones need not be.
    """
    names, codes = np.unique(units, return_inverse=True)
    n = names.size
    mean = float(np.average(sizes, weights=weights))
    least = LEAST_SPREAD * mean if mean > 0 else 1.0
    kernel = tree_kernel(
        "tree",
        X,
        sizes,
        n_classes=None,
        weights=weights,
        options={"min_samples_leaf": LEAF},
        levels=levels,
    )
    stored = StoredTreeKernel(
        kernel.n_features, None, kernel.centre, kernel.scale, levels=kernel.levels
    )
    if n < LEAST_UNITS or mean == 0:
        alike = mean if mean > 0 else 1.0
        return Spread(stored, [], alike), np.full(len(sizes), alike)
    own = int(stream(seed, 0, Purpose.SPREAD).integers(2**63))
    design = IidDesign(n, subsample_size(None, n), True, own)
    clusters = None if n == len(sizes) else codes
    task = Task(kernel, design, X[:1], clusters, keep=True, most_oob=None)
    grown = evaluate(task, 0, N_TREES, n_jobs=n_jobs, progress=False)
    seen = cast("OutOfBag", grown.oob).mean[:, 0]
    # A unit that all trees saw is as unlikely as sixty coins of one side.
    outside = np.where(np.isfinite(seen), seen, mean)
    return Spread(stored, grown.learners, least), np.maximum(outside, least)
