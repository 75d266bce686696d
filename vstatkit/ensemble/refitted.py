"""The same learners on other predictors, and learners asked about other rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.memory import FLOAT, PREDICTIONS, check_memory
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.refitting import at_hand
from vstatkit.kernels.drawn import Drawn, RowDraw
from vstatkit.kernels.evaluation import OutOfBag
from vstatkit.kernels.protocol import Predictive
from vstatkit.kernels.redesign import with_design
from vstatkit.workers import go_on, in_parallel

LEARNERS_PER_TASK = 32
"""Learners that one task asks about rows that they have not seen."""


def on_design(task: Task, X: Floats) -> Task:
    """Fit the same subsamples, by the same seeds, to other predictors."""
    return replace(task, kernel=with_design(task.kernel, X), keep_bytes=None)


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


def refitted_outside(task: Task, L: int, n_jobs: int | None) -> OutOfBag:
    """Predict every row by those of L learners, fitted again, that do not hold it."""
    kernel: Any = task.kernel
    at = None if kernel.coefficients else np.empty((0, kernel.n_features))
    bare = replace(task, at=at, keep=False, oob=True, keep_bytes=None)
    oob = evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).oob
    assert oob is not None
    return oob


def outside(
    task: Task, learners: Sequence[Any], tables: Sequence[Floats], n_jobs: int | None
) -> list[OutOfBag]:
    """Predict rows of several tables by the learners that do not hold the row.

    Parameters
    ----------
    task : Task
        What the learners were fitted by.
    learners : sequence
        The first of them.
    tables : sequence of ndarray of shape (n, p)
        Predictors of the rows: those that the learners were fitted to, or others.
    n_jobs : int or None
        Workers.

    Returns
    -------
    list of OutOfBag
        One for each table.
    """
    kernel: Any = task.kernel
    n = len(kernel.X)
    some = task.oob_rows(n)
    rows = np.arange(n) if some is None else some
    # One row after the other in memory, the tables of a row side by side.
    stacked = np.stack([table[rows] for table in tables], axis=1)
    reading = _Reading(replace(task, at=None), list(learners), rows, stacked)
    starts = ((first,) for first in range(0, len(learners), LEARNERS_PER_TASK))
    shape = len(rows), len(tables), kernel.n_outputs
    total, times = np.zeros(shape), np.zeros(len(rows))
    for part, often in in_parallel(_block, starts, n_jobs=n_jobs, shared=(reading,)):
        total += part
        times += often
    return [OutOfBag(total[:, j], times, some) for j in range(len(tables))]


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
    drawn = Drawn(task.design.counts(first, last), task.rows, task.index)
    weights = task.design.weights(first, last)
    n_rows = task.design.n if task.rows is None else task.rows.size
    total = np.zeros((*stacked.shape[:2], task.kernel.n_outputs))
    times = np.zeros(len(stacked))
    for b, learner in enumerate(learners):
        go_on()
        out = np.flatnonzero(~RowDraw(*drawn.rows(b), n_rows).holds(reading.rows))
        weight = 1.0 if weights is None else float(weights[b])
        points = stacked[out].reshape(-1, stacked.shape[2])
        if len(out):
            found = task.kernel.predict(at_hand(learner), points)
            total[out] += weight * found.reshape(len(out), -1, task.kernel.n_outputs)
            times[out] += weight
    return total, times
