"""Refit the learners of a task, to keep them or to predict given rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.memory import FLOAT, PREDICTIONS, check_memory
from vstatkit.ensemble.prediction import Predictor


def refit_values(task: Task, at: Floats, L: int, n_jobs: int | None) -> Floats:
    """Refit the first L learners and predict, shape (L, rows * outputs)."""
    kernel: Any = task.kernel
    check_memory({PREDICTIONS: 2 * FLOAT * L * len(at) * kernel.n_outputs})
    if kernel.coefficients:
        learners = refit_learners(task, L, n_jobs)
        return Predictor(kernel, learners, None, None, n_jobs).values(at)
    bare = replace(task, at=at, keep=False, oob=False, keep_bytes=None)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).values


def refit_learners(task: Task, L: int, n_jobs: int | None) -> list[Any]:
    """Refit the first L learners of a task, and keep them."""
    kernel: Any = task.kernel
    any_point = None if kernel.coefficients else np.asarray(kernel.X[:1])
    bare = replace(task, at=any_point, keep=True, oob=False, keep_bytes=None)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).learners
