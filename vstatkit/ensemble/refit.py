"""Refit learners, on other predictors or on resampled units."""

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.evaluation import Task, evaluate, materialise
from vstatkit.ensemble.memory import FLOAT, PREDICTIONS, check_memory
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.estimates import ensemble_mean
from vstatkit.kernels.base import PredictiveModel
from vstatkit.sampling.design import to_dense
from vstatkit.sampling.given import ResampledDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.workers import go_on, in_parallel
from vstatkit.workers.parallel import progress_bar

LEARNERS_PER_TASK = 32  # learners that one task predicts out-of-bag rows with


def refit_values(task: Task, at: Floats, L: int, n_jobs: int | None) -> Floats:
    """Refit the first L learners and predict, shape (L, rows * outputs)."""
    kernel: Any = task.kernel
    check_memory({PREDICTIONS: 2 * FLOAT * L * len(at) * kernel.n_outputs})
    if kernel.coefficients:
        learners = refit_learners(task, L, n_jobs)
        return Predictor(kernel, learners, None, None, n_jobs).values(at)
    bare = replace(task, at=at, keep=False, oob=False, keep_bytes=None)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).values


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


def refit_learners(task: Task, L: int, n_jobs: int | None) -> list[Any]:
    """Refit the first L learners of a task, and keep them."""
    kernel: Any = task.kernel
    any_point = None if kernel.coefficients else np.asarray(kernel.X[:1])
    bare = replace(task, at=any_point, keep=True, oob=False, keep_bytes=None)
    return evaluate(bare, 0, L, n_jobs=n_jobs, progress=False).learners


SAVE_SECONDS = 5.0  # seconds between two files; an interruption loses at most these


class RepetitionKeeper(Protocol):
    """Saves repetitions while others are computed."""

    def known(self, R: int) -> Floats:
        """Read the first repetitions, at most R of them, shape (r, m)."""

    def save(self, first: int, estimates: Floats) -> None:
        """Save consecutive repetitions from number `first` on."""

    def check_first(self, then: Floats, now: Floats) -> None:
        """Check that the first repetition is reproduced."""


@dataclass(frozen=True)
class RepeatedFit:
    """The arguments that all repetitions of a fit share."""

    task: Task  # the task that was evaluated, with its final design
    B: int  # learners of every repetition
    n_values: int  # values, the first ones, that are estimates
    seed: int  # seed of the resampling


def repeat_fit(
    repeating: RepeatedFit,
    R: int,
    *,
    n_jobs: int | None,
    progress: bool | None,
    keeper: RepetitionKeeper | None = None,
) -> Floats:
    """Repeat the estimation on R resampled data sets, shape (R, m).

    Repetition r depends on the seed and r alone, not on `n_jobs`, nor on what the
    `keeper` has of an earlier call. It saves others every few seconds and at the end.
    """
    estimates, done = np.empty((R, repeating.n_values)), 0
    if keeper is not None:
        stored = keeper.known(R)
        done = len(stored)
        estimates[:done] = stored
        if done:
            keeper.check_first(stored[0], _repeat(repeating, 0))
    bar = progress_bar(progress, total=R, initial=done, unit=" fits")
    parts = in_parallel(
        _repeat,
        ((number,) for number in range(done, R)),
        n_jobs=n_jobs,
        shared=(repeating,),
        lasting=(repeating.task.kernel,),
    )
    saved, written = done, time.monotonic()
    with bar, closing(parts):
        try:
            for part in parts:
                estimates[done] = part
                done += 1
                if keeper is not None and time.monotonic() - written > SAVE_SECONDS:
                    keeper.save(saved, estimates[saved:done])
                    saved, written = done, time.monotonic()
                bar.update()
        finally:
            if keeper is not None and done > saved:
                keeper.save(saved, estimates[saved:done])
    return estimates


def _repeat(repeating: RepeatedFit, number: int) -> Floats:
    """Draw units and their subsamples, fit, and average."""
    go_on()
    task = repeating.task
    rng = stream(repeating.seed, number, Purpose.BOOTSTRAP)
    n = task.design.n
    drawn = rng.integers(n, size=n)
    inner = replace(task.design, seed=int(rng.integers(2**63)))
    design = ResampledDesign.of(inner, drawn)
    again = replace(task, design=design, keep=False, oob=False)
    values = evaluate(again, 0, repeating.B, n_jobs=1, progress=False).values
    return ensemble_mean(design, values[:, : repeating.n_values])
