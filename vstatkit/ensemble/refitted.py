"""Learners that are grown again, and learners asked about other rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.memory import FLOAT, PREDICTIONS, check_memory
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.refitting import at_hand
from vstatkit.kernels.base import Predictive
from vstatkit.sampling.design import dense
from vstatkit.workers import go_on, in_parallel

LEARNERS_PER_TASK = 32
"""Learners that one task asks about rows that they have not seen."""


def refitted_values(task: Task, at: Floats, L: int, n_jobs: int | None) -> Floats:
    """Predict with the first L learners, fitted again, shape (L, rows * outputs)."""
    kernel: Any = task.kernel
    check_memory({PREDICTIONS: 2 * FLOAT * L * len(at) * kernel.n_outputs})
    bare = replace(task, oob=False, keep_bytes=None)
    if kernel.coefficients:
        bare = replace(bare, keep=True)
        learners = evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).learners
        return Predictor(kernel, learners, None, None, n_jobs).values(at)
    bare = replace(bare, at=at, keep=False)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).values


@dataclass(frozen=True)
class Reader:
    """Learners, and rows that they are asked about.

    Attributes
    ----------
    task : Task
        What the learners were fitted by.
    learners : list
        The first of them.
    tables : tuple of ndarray of shape (n, p)
        Predictors of the rows: those that the learners were fitted to, or others.
    n_jobs : int or None
        Workers.
    """

    task: Task
    learners: list[Any]
    tables: tuple[Floats, ...]
    n_jobs: int | None = None

    def outside(self, rows: Ints) -> tuple[Floats, Floats]:
        """Predict rows, learner by learner, where a learner does not hold them.

        Returns
        -------
        values : ndarray of shape (L, r, tables, c)
            Predictions times the learner's weight; zero where it holds the row.
        weights : ndarray of shape (L, r)
            The learner's weight, one in most designs; zero where it holds the row.
        """
        kernel: Any = self.task.kernel
        size = len(self.learners) * len(rows) * len(self.tables) * kernel.n_outputs
        check_memory({PREDICTIONS: 4 * FLOAT * size})
        # The tables of a row side by side: one call predicts all of them.
        stacked = np.stack([table[rows] for table in self.tables], axis=1)
        reading = _Reading(replace(self.task, at=None), self.learners, rows, stacked)
        starts = ((b,) for b in range(0, len(self.learners), LEARNERS_PER_TASK))
        parts = list(in_parallel(_block, starts, n_jobs=self.n_jobs, shared=(reading,)))
        values, weights = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(weights)


@dataclass(frozen=True)
class _Reading:
    """What tasks have in common."""

    task: Task
    learners: list[Any]
    rows: Ints
    stacked: Floats


def _block(reading: _Reading, first: int) -> tuple[Floats, Floats]:
    task, stacked = reading.task, reading.stacked
    assert isinstance(task.kernel, Predictive)
    learners = reading.learners[first : first + LEARNERS_PER_TASK]
    last = first + len(learners)
    units = reading.rows if task.rows is None else task.rows[reading.rows]
    held = dense(task.design.counts(first, last)[:, units]) > 0
    given = task.design.weights(first, last)
    values = np.zeros((len(learners), *stacked.shape[:2], task.kernel.n_outputs))
    weights = np.zeros((len(learners), len(stacked)))
    for b, learner in enumerate(learners):
        go_on()
        out = np.flatnonzero(~held[b])
        if not len(out):
            continue
        points = stacked[out].reshape(-1, stacked.shape[2])
        found = task.kernel.predict(at_hand(learner), points)
        weight = 1.0 if given is None else float(given[b])
        values[b, out] = weight * found.reshape(len(out), *values.shape[2:])
        weights[b, out] = weight
    return values, weights


def grown(task: Task, L: int, n_jobs: int | None) -> list[Any]:
    """Fit the first L learners of a task again, and keep them."""
    bare = replace(task, at=_least(task), keep=True, oob=False, keep_bytes=None)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).learners


def _least(task: Task) -> Floats | None:
    """Give one query point, where kernels need any and none matters."""
    kernel: Any = task.kernel
    return None if kernel.coefficients else np.asarray(kernel.X[:1])
