"""Sums of predictions over learners: in one compiled call where they are trees."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.kernels.protocol import Predictive
from vstatkit.kernels.staged import StoredStagedKernel
from vstatkit.kernels.trees import StoredTreeKernel
from vstatkit.native._engine import add_trees_at, refuse_beyond
from vstatkit.workers import current_stop


def summed(
    kernel: Predictive,
    learners: Sequence[Any],
    X: Floats,
    origin: Floats,
    predict: Callable[[Any], Floats],
) -> Floats:
    """Add up predictions less an origin.

    Parameters
    ----------
    kernel : Predictive
        Knows how its learners predict.
    learners : sequence
        Learners, at hand.
    X : ndarray of shape (rows, p)
        Coded rows, row-major.
    origin : ndarray of shape (rows * outputs,)
        What is taken off every prediction, so that an offset costs no digits.
    predict : callable
        Predicts with one learner, where there is no compiled sum.
    """
    total = np.zeros(len(X) * kernel.n_outputs)
    if not isinstance(kernel, StoredTreeKernel) or isinstance(
        kernel, StoredStagedKernel
    ):
        for learner in learners:
            total += predict(learner) - origin
        return total
    refuse_beyond("query points", len(X))
    whole = bool(kernel.n_classes)
    add_trees_at(
        [(tree.nodes, tree.shares) for tree in learners],
        kernel.n_classes or 0,
        np.ascontiguousarray(X, dtype=np.float64),
        0.0 if whole else kernel.centre,
        1.0 if whole else kernel.scale,
        origin,
        total,
        current_stop(),
        kernel.levels is not None,
    )
    return total
