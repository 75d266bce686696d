"""Evaluate a kernel over a design: batches, workers, progress, errors."""

import functools
import operator
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from tqdm.auto import tqdm

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import KernelError
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.kernels.function import ArrayKernel
from vstatkit.kernels.protocol import AnyKernel, BatchKernel, Kernel, PredictiveKernel
from vstatkit.sampling.counts import dense
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys, stream
from vstatkit.workers import go_on, in_parallel

BATCH_SIZE = 64
"""Learners evaluated in one batch."""

MOST_TASKS = 64
"""Tasks at which several batches make one: each sends out-of-bag sums back."""

BATCH_TASKS = 8
"""Number of tasks into which many learners of a compiled kernel are split."""

BATCH_ENTRIES = 500_000
"""Most counts that one task of a compiled kernel holds."""

ARRAY_ENTRIES = 250_000
"""Members of subsamples that one task of an array kernel draws."""

PROGRESS_DELAY = 1.0
"""Seconds of work after which a progress bar appears."""


@dataclass(frozen=True)
class Task:
    """All that a worker needs to evaluate learners.

    Attributes
    ----------
    kernel : Kernel or BatchKernel
        What is evaluated on each subsample.
    design : SubsampleDesign
        Which units each subsample holds.
    at : ndarray of shape (q, p) or None
        Query points of predictive kernels.
    rows : ndarray of shape (n_rows,) or None
        Unit of every observation when units are clusters.
    keep : bool
        Whether to keep the learners, to predict new data later.
    oob : bool
        Whether predictive kernels predict the rows that a subsample leaves out.
    """

    kernel: AnyKernel
    design: SubsampleDesign
    at: Floats | None
    rows: Ints | None
    keep: bool
    oob: bool = True


Batches = Generator[Evaluation, None, None]
"""Consecutive learners, batch after batch."""


class Keeper(Protocol):
    """Keeps learners as they are evaluated, so that nothing is evaluated twice."""

    def passing(
        self, task: Task, start: int, stop: int, grow: Callable[[int], Batches]
    ) -> Batches:
        """Yield learners `start` to `stop`: those kept, then those that are missing.

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
    keeper: Keeper | None = None,
) -> Evaluation:
    """Evaluate learners `start` to `stop`.

    The numbers depend on the learner alone, not on `n_jobs` or `batch_size`.

    Parameters
    ----------
    task : Task
        What to evaluate.
    start, stop : int
        Range of learners.
    n_jobs : int, optional
        Workers, as joblib counts them; an active Dask client or
        `joblib.parallel_config` decides on the backend (threads by default).
    batch_size : int, optional
        Learners in one task; by default chosen by the kernel.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over a second.
    keeper : Keeper, optional
        Keeps the learners for another process, and has those of an earlier one.
    """
    size = _batch_size(task, stop - start) if batch_size is None else batch_size
    step = size * max(1, (stop - start) // (size * MOST_TASKS))

    def grow(place: int) -> Batches:
        edges = range(place, stop, step)
        return in_parallel(
            _evaluate_range,
            ((first, min(first + step, stop), size) for first in edges),
            n_jobs=n_jobs,
            shared=(task,),
            lasting=(task.kernel,),
        )

    parts = grow(start) if keeper is None else keeper.passing(task, start, stop, grow)
    values = np.empty((0, 0))
    learners: list[Any] = []
    done = 0
    oob = _empty_oob(task)
    bar = tqdm(
        total=stop - start,
        unit=" learners",
        delay=0 if progress else PROGRESS_DELAY,
        disable=None if progress is None else not progress,
        leave=False,
    )
    with bar, closing(parts):
        for part in parts:
            if done == 0:
                # Filled in place: joining batches would hold all values twice.
                values = np.empty((stop - start, part.values.shape[1]))
            values[done : done + len(part.values)] = part.values
            done += len(part.values)
            learners.extend(part.learners)
            if oob is not None and part.oob is not None:
                oob = oob + part.oob
            bar.update(len(part.values))
    return Evaluation(values, learners, oob)


def fit_learner(task: Task, number: int) -> Any:
    """Fit one learner of a kernel that predicts; always the same one."""
    one = replace(task, keep=True, oob=False)
    return _evaluate_batch(one, number, number + 1).learners[0]


def _batch_size(task: Task, n_learners: int) -> int:
    """Use few large tasks for compiled kernels, whose learners take microseconds."""
    if isinstance(task.kernel, ArrayKernel):
        return max(BATCH_SIZE, ARRAY_ENTRIES // task.design.k)
    if not isinstance(task.kernel, BatchKernel):
        return BATCH_SIZE
    bound = max(1, BATCH_ENTRIES // len(task.kernel.X))
    return min(max(n_learners // BATCH_TASKS, BATCH_SIZE), bound)


def _grow_batch(task: Task, kernel: BatchKernel, start: int, stop: int) -> Evaluation:
    design = task.design
    units = dense(design.counts(start, stop))
    counts = units if task.rows is None else units[:, task.rows]
    keys = learner_keys(design.seed, start, stop)
    at = np.empty((0, 0)) if task.at is None else task.at
    weights = design.weights(start, stop)
    if weights is None:
        return kernel.grow(counts, keys, at, oob=task.oob, keep=task.keep)
    ones = [
        kernel.grow(counts[[j]], keys[[j]], at, oob=task.oob, keep=task.keep)
        for j in range(stop - start)
    ]
    weighed = [
        replace(one, oob=None if one.oob is None else one.oob.times_weight(weight))
        for one, weight in zip(ones, weights, strict=True)
    ]
    return functools.reduce(operator.add, weighed)


def _evaluate_arrays(
    task: Task, kernel: ArrayKernel, start: int, stop: int
) -> Evaluation:
    if task.rows is None:
        values = kernel.values(task.design.members(start, stop))
    else:
        # Clusters differ in size, and so do subsamples of them.
        counts = _row_counts(task, start, stop)
        rows = (np.repeat(np.arange(one.size), one) for one in counts)
        values = np.concatenate([kernel.values(one[None]) for one in rows])
    for b, value in enumerate(values, start):
        _check_value(b, value)
    return Evaluation(values, [], None)


def _evaluate_range(task: Task, start: int, stop: int, batch_size: int) -> Evaluation:
    """Evaluate batch after batch, and add them up where they are made."""
    edges = range(start, stop, batch_size)
    batches = (_evaluate_batch(task, j, min(j + batch_size, stop)) for j in edges)
    return functools.reduce(operator.add, batches)


def _evaluate_batch(task: Task, start: int, stop: int) -> Evaluation:
    if isinstance(task.kernel, BatchKernel):
        return _grow_batch(task, task.kernel, start, stop)
    if isinstance(task.kernel, ArrayKernel):
        return _evaluate_arrays(task, task.kernel, start, stop)
    kernel = task.kernel
    values, learners = [], []
    oob = _empty_oob(task)
    weights = task.design.weights(start, stop)
    for b, counts in enumerate(_row_counts(task, start, stop), start):
        go_on()
        learner, value = _evaluate_learner(task, kernel, b, counts)
        values.append(value)
        if task.keep:
            learners.append(learner)
        if oob is not None and isinstance(kernel, PredictiveKernel):
            outside = np.flatnonzero(counts == 0)
            if outside.size:
                weight = 1.0 if weights is None else weights[b - start]
                predicted = kernel.predict(learner, kernel.X[outside])
                oob.total[outside] += weight * predicted
                oob.times[outside] += weight
    return Evaluation(np.stack(values), learners, oob)


def _empty_oob(task: Task) -> OutOfBag | None:
    kernel = task.kernel
    if not task.oob or not isinstance(kernel, PredictiveKernel | BatchKernel):
        return None
    n = len(kernel.X)
    return OutOfBag(np.zeros((n, kernel.n_outputs)), np.zeros(n))


def _row_counts(task: Task, start: int, stop: int) -> Iterator[Ints]:
    counts = task.design.counts(start, stop)
    for row in range(stop - start):
        unit = dense(counts[[row]])[0].astype(np.int64)
        yield unit if task.rows is None else unit[task.rows]


def _evaluate_learner(
    task: Task, kernel: Kernel, b: int, counts: Ints
) -> tuple[Any, Floats]:
    rng = stream(task.design.seed, b, Purpose.LEARNER)
    try:
        learner = kernel.fit(counts, rng)
        value = kernel.value(learner, task.at)
    except Exception as error:
        raise KernelError(
            f"the kernel failed on learner {b} (a subsample of {counts.sum()} rows, "
            f"{np.count_nonzero(counts)} distinct): {type(error).__name__}: {error}"
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
