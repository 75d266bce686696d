"""Predict tables of rows, learner by learner, by those that have not seen them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, materialise
from vstatkit.ensemble.memory import FLOAT, PREDICTIONS, check_memory
from vstatkit.kernels.base import PredictiveModel
from vstatkit.sampling.design import to_dense
from vstatkit.workers import go_on, in_parallel

LEARNERS_PER_TASK = 32  # learners that one task predicts out-of-bag rows with


@dataclass(frozen=True)
class OutOfBagPredictor:
    """Predicts rows with the learners that have not seen them."""

    task: Task  # the task that fitted the learners
    learners: list[Any]  # the first of them
    # (n, p): predictors of the rows: those that the learners were fitted to, or others
    tables: tuple[Floats, ...]
    n_jobs: int | None = None  # workers

    def outside(self, rows: Ints) -> tuple[Floats, Floats]:
        """Predict rows, learner by learner, where a learner does not hold them.

        Return the predictions times the learner's weight, shape (L, r, tables, c), and
        the weights, (L, r), which are one in most designs. Both are zero where a
        learner holds the row.
        """
        kernel: Any = self.task.kernel
        size = len(self.learners) * len(rows) * len(self.tables) * kernel.n_outputs
        check_memory({PREDICTIONS: 4 * FLOAT * size})
        # The tables of a row side by side: one call predicts all of them.
        stacked = np.stack([table[rows] for table in self.tables], axis=1)
        shared = replace(self.task, at=None), self.learners, rows, stacked
        starts = ((b,) for b in range(0, len(self.learners), LEARNERS_PER_TASK))
        parts = in_parallel(_predict_block, starts, n_jobs=self.n_jobs, shared=shared)
        values, weights = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(weights)


def _predict_block(
    task: Task, learners: list[Any], rows: Ints, stacked: Floats, first: int
) -> tuple[Floats, Floats]:
    """Predict the rows of stacked tables with some learners; see `outside`."""
    assert isinstance(task.kernel, PredictiveModel)
    learners = learners[first : first + LEARNERS_PER_TASK]
    last = first + len(learners)
    units = rows if task.unit_of_row is None else task.unit_of_row[rows]
    in_bag = to_dense(task.design.counts(first, last)[:, units]) > 0
    learner_weights = task.design.weights(first, last)
    values = np.zeros((len(learners), *stacked.shape[:2], task.kernel.n_outputs))
    weights = np.zeros((len(learners), len(stacked)))
    for b, learner in enumerate(learners):
        go_on()
        out = np.flatnonzero(~in_bag[b])
        if not len(out):
            continue
        points = stacked[out].reshape(-1, stacked.shape[2])
        predictions = task.kernel.predict(materialise(learner), points)
        weight = 1.0 if learner_weights is None else float(learner_weights[b])
        values[b, out] = weight * predictions.reshape(len(out), *values.shape[2:])
        weights[b, out] = weight
    return values, weights
