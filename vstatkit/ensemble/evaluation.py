"""Evaluate a kernel over a design: batches, workers, progress, errors."""

import functools
import operator
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.retention import Collector, needed_learners
from vstatkit.exceptions import KernelError
from vstatkit.kernels.base import (
    AnyKernel,
    ArrayKernel,
    BatchKernel,
    Evaluation,
    Kernel,
    OutOfBag,
    PredictiveKernel,
    RowDraw,
    UnitDraw,
    UnitRows,
    fit_drawn,
)
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys, stream
from vstatkit.workers import go_on, in_parallel
from vstatkit.workers.parallel import progress_bar

BATCH_SIZE = 64  # learners evaluated in one batch
# Most tasks; above this several batches make a task, since each returns sums.
MOST_TASKS = 64
# Number of tasks into which many learners of a compiled kernel are split.
BATCH_TASKS = 8
BATCH_ENTRIES = 500_000  # most counts that one task of a compiled kernel holds
OOB_ROWS = 20_000  # most observations that are predicted out of bag
ARRAY_ENTRIES = 250_000  # units that one task of an array kernel draws


@dataclass(frozen=True)
class Task:
    """What a worker evaluates: a kernel on the subsamples of a design."""

    kernel: AnyKernel  # the function of a subsample
    design: SubsampleDesign  # which units each subsample holds
    at: Floats | None  # (q, p): query points of predictive kernels
    unit_of_row: Ints | None  # (n_rows,): unit of every row, if units are clusters
    keep: bool  # whether to keep the learners, to predict new data later
    oob: bool = True  # whether to predict the rows that a subsample leaves out
    # Most rows that are predicted so, drawn at random from the seed; None for all
    most_oob: int | None = OOB_ROWS
    keep_bytes: int | None = None  # most bytes of kept learners; None for all

    @cached_property
    def index(self) -> UnitRows | None:
        """The rows of every unit; None if every row is its own unit."""
        if self.unit_of_row is None:
            return None
        return UnitRows.of(self.unit_of_row, self.design.n)

    def draw(self, start: int, stop: int) -> UnitDraw:
        """Draw the units of some learners."""
        return UnitDraw(self.design.counts(start, stop), self.unit_of_row, self.index)

    def keeps(self, start: int) -> bool:
        """Whether learners from number `start` on may be kept."""
        needed = needed_learners(self.design)
        none = self.keep_bytes == 0 and needed is not None and start >= needed
        return self.keep and not none

    def oob_rows(self, n: int) -> Ints | None:
        """Choose which of n rows are predicted out of bag; None for all of them."""
        if self.most_oob is None or n <= self.most_oob:
            return None
        rng = stream(self.design.seed, 0, Purpose.OUT_OF_BAG)
        return np.sort(rng.choice(n, self.most_oob, replace=False, shuffle=False))


Batches = Generator[Evaluation, None, None]  # consecutive learners, batch after batch


class LearnerKeeper(Protocol):
    """Saves learners as they are evaluated, so that nothing is evaluated twice."""

    def stream_learners(
        self, task: Task, start: int, stop: int, grow: Callable[[int], Batches]
    ) -> Batches:
        """Yield learners `start` to `stop`: saved ones first, then the missing ones.

        `grow` evaluates the learners from a number on.
        """


def evaluate(
    task: Task,
    start: int,
    stop: int,
    *,
    n_jobs: int | None = None,
    batch_size: int | None = None,
    progress: bool | None = None,
    keeper: LearnerKeeper | None = None,
) -> Evaluation:
    """Evaluate learners `start` to `stop`.

    The numbers depend on the learner alone, not on the workers (see `in_parallel`), nor
    on the learners of a batch, which depend on the kernel by default. The progress bar
    is shown by default on a terminal, for work over a second. The `keeper` saves
    learners for another process, and has those of an earlier one.
    """
    size = _batch_size(task, stop - start) if batch_size is None else batch_size
    step = size * max(1, (stop - start) // (size * MOST_TASKS))

    def grow(place: int) -> Batches:
        return in_parallel(
            _evaluate_range,
            ((j, min(j + step, stop), size) for j in range(place, stop, step)),
            n_jobs=n_jobs,
            shared=(task,),
            lasting=(task.kernel,),
        )

    if keeper is None:
        parts = grow(start)
    else:
        parts = keeper.stream_learners(task, start, stop, grow)
    values, done = np.empty((0, 0)), 0
    collected = Collector(task.keep_bytes, task.design, start)
    oob = _empty_oob(task)
    bar = progress_bar(progress, total=stop - start, unit=" learners")
    with bar, closing(parts):
        for part in parts:
            if done == 0:
                # Filled in place: joining batches would hold all values twice.
                values = np.empty((stop - start, part.values.shape[1]))
            values[done : done + len(part.values)] = part.values
            done += len(part.values)
            collected.add(part.learners)
            if oob is not None and part.oob is not None:
                oob = oob + part.oob
            bar.update(len(part.values))
    return Evaluation(values, collected.learners, oob)


def fit_learner(task: Task, number: int) -> Any:
    """Fit one learner of a kernel that predicts; a number gives the same learner."""
    single = replace(task, keep=True, oob=False, keep_bytes=None)
    return _evaluate_batch(single, number, number + 1).learners[0]


def _batch_size(task: Task, n_learners: int) -> int:
    """Use few large tasks for compiled kernels, whose learners take microseconds."""
    if isinstance(task.kernel, ArrayKernel):
        return max(BATCH_SIZE, ARRAY_ENTRIES // task.design.k)
    if not isinstance(task.kernel, BatchKernel):
        return BATCH_SIZE
    n, share = len(task.kernel.X), n_learners // BATCH_TASKS
    bound = max(1, BATCH_ENTRIES // n)
    if n > OOB_ROWS:
        # Learners take milliseconds, and only the rows that they draw are held.
        bound = max(bound, min(BATCH_ENTRIES // task.design.k, share))
    return min(max(share, BATCH_SIZE), bound)


def _grow_batch(task: Task, kernel: BatchKernel, start: int, stop: int) -> Evaluation:
    design, rows = task.design, None
    if task.oob:
        rows = task.oob_rows(len(kernel.X))
        rows = np.arange(len(kernel.X)) if rows is None else rows
    at = np.empty((0, 0)) if task.at is None else task.at
    grow = functools.partial(kernel.grow, at=at, oob_rows=rows, keep=task.keep)
    drawn = task.draw(start, stop)
    keys = learner_keys(design.seed, start, stop)
    weights = design.weights(start, stop)
    if weights is None:
        return grow(drawn, keys)
    parts = []
    for j, weight in enumerate(weights):
        part = grow(replace(drawn, counts=drawn.counts[[j]]), keys[[j]])
        oob = part.oob
        if oob is not None:
            oob = replace(oob, total=weight * oob.total, times=weight * oob.times)
        parts.append(replace(part, oob=oob))
    return functools.reduce(operator.add, parts)


def _evaluate_arrays(
    task: Task, kernel: ArrayKernel, start: int, stop: int
) -> Evaluation:
    if task.unit_of_row is None:
        values = kernel.values(task.design.members(start, stop))
    else:
        # Clusters differ in size, and so do subsamples of them.
        drawn = map(task.draw(start, stop).rows, range(stop - start))
        rows = (np.repeat(draw.rows, draw.times)[None] for draw in drawn)
        values = np.concatenate([*map(kernel.values, rows)])
    for b, value in enumerate(values, start):
        _check_value(b, value)
    return Evaluation(values, [], None)


def _evaluate_range(task: Task, start: int, stop: int, batch_size: int) -> Evaluation:
    """Evaluate batch after batch, and add them up in the worker."""
    edges = range(start, stop, batch_size)
    batches = (_evaluate_batch(task, j, min(j + batch_size, stop)) for j in edges)
    return functools.reduce(operator.add, batches)


def _evaluate_batch(task: Task, start: int, stop: int) -> Evaluation:
    task = replace(task, keep=task.keeps(start))
    if isinstance(task.kernel, BatchKernel):
        return _grow_batch(task, task.kernel, start, stop)
    if isinstance(task.kernel, ArrayKernel):
        return _evaluate_arrays(task, task.kernel, start, stop)
    kernel = task.kernel
    values, learners, oob = [], [], _empty_oob(task)
    weights = task.design.weights(start, stop)
    units = task.draw(start, stop)
    for b in range(start, stop):
        go_on()
        drawn = units.rows(b - start)
        learner, value = _evaluate_learner(task, kernel, b, drawn)
        values.append(value)
        if task.keep:
            learners.append(learner)
        if oob is not None and isinstance(kernel, PredictiveKernel):
            weight = 1.0 if weights is None else weights[b - start]
            _predict_outside(kernel, learner, drawn, oob, float(weight))
    return Evaluation(np.stack(values), learners, oob)


def _predict_outside(
    kernel: PredictiveKernel, learner: Any, drawn: RowDraw, oob: OutOfBag, weight: float
) -> None:
    """Add the predictions of one learner for the rows that it did not see."""
    rows = np.arange(len(kernel.X)) if oob.rows is None else oob.rows
    outside = np.flatnonzero(~drawn.holds(rows))
    if outside.size:
        predicted = kernel.predict(learner, kernel.X[rows[outside]])
        oob.total[outside] += weight * predicted
        oob.times[outside] += weight


def _empty_oob(task: Task) -> OutOfBag | None:
    kernel = task.kernel
    if not task.oob or not isinstance(kernel, PredictiveKernel | BatchKernel):
        return None
    rows = task.oob_rows(len(kernel.X))
    size = len(kernel.X) if rows is None else rows.size
    return OutOfBag(np.zeros((size, kernel.n_outputs)), np.zeros(size), rows)


def _evaluate_learner(
    task: Task, kernel: Kernel, b: int, drawn: RowDraw
) -> tuple[Any, Floats]:
    rng = stream(task.design.seed, b, Purpose.LEARNER)
    try:
        learner = fit_drawn(kernel, drawn, rng)
        value = kernel.value(learner, task.at)
    except Exception as error:
        raise KernelError(
            f"the kernel failed on learner {b} (a subsample of {drawn.times.sum()} "
            f"rows, {drawn.rows.size} distinct): {type(error).__name__}: {error}"
        ) from error
    _check_value(b, value)
    return learner, value


def _check_value(b: int, value: Floats) -> None:
    if not np.all(np.isfinite(value)):
        bad = int(np.flatnonzero(~np.isfinite(value))[0])
        raise KernelError(
            f"the kernel's value for learner {b} is not finite: component {bad} is "
            f"{value[bad]}. Values must be finite numbers; a larger `k` may help when "
            "the statistic is undefined on small subsamples."
        )


class _AbsentLearner:
    """A learner that is refitted, from its subsample and its random stream."""

    def __init__(self, task: Task, number: int) -> None:
        self._task = task
        self._number = number

    def fit(self) -> Any:
        """Fit the learner."""
        return fit_learner(self._task, self._number)


class TransientLearner(_AbsentLearner):
    """A learner that was not kept: it is refitted for every use, and discarded."""


class LazyLearner(_AbsentLearner):
    """A learner that is refitted at its first use, and then held.

    It was fitted in another process and cannot be written to a file.
    """

    nbytes = 0  # bytes that it takes
    _learner: Any = None

    def fit(self) -> Any:
        """Fit the learner, unless that has been done."""
        if self._learner is None:
            self._learner = super().fit()
        return self._learner

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return _itself, (self.fit(),)  # a pickle holds the learner, not the data


def _itself(learner: Any) -> Any:
    return learner


def materialise(learner: Any) -> Any:
    """Return a learner that predicts, refitting it if necessary."""
    return learner.fit() if isinstance(learner, _AbsentLearner) else learner
