"""Predict with kept learners, in chunks of bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.ensemble.evaluation import TransientLearner, materialise
from vstatkit.ensemble.memory import (
    ESTIMATE_NUMBERS,
    FLOAT,
    POINTS,
    PREDICTIONS,
    check_memory,
)
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.new_data_coding import Coding
from vstatkit.formula.parse import ParsedFormula
from vstatkit.inference.estimates import (
    Estimates,
    Estimation,
    cache_counts,
    ensemble_mean,
    join_estimates,
    weighted_mean,
)
from vstatkit.kernels.base import AnyKernel, Evaluation, PredictiveModel
from vstatkit.kernels.tree import StoredTreeKernel
from vstatkit.kernels.tree_prediction import (
    Grid,
    compute_dependence,
    predict_all,
    sum_predictions,
)
from vstatkit.sampling.design import SubsampleDesign, to_dense
from vstatkit.text import short_repr, suggest_name
from vstatkit.variance.leaf_influence import InfluencePowers
from vstatkit.workers import go_on, in_parallel
from vstatkit.workers.parallel import progress_bar

Answer = TypeVar("Answer")

# Learners that one task predicts with, for a small number of rows.
LEARNERS_PER_TASK = 16
# Predictions of trees that take one thread less time than several need to begin.
FEW_PREDICTIONS = 50_000
# Rows that one task predicts with all learners, if only means are needed.
ROWS_PER_TASK = 256
TASKS = 8  # least number of tasks that rows are divided among for estimates


class OwnLearners(NamedTuple):
    """Which learners predict a row that they may have been fitted to."""

    design: SubsampleDesign  # which units each learner saw
    units: Ints | None  # (rows,): unit whose learners are left out; None for none


class LearnerSums(NamedTuple):
    """Sums over rows for every learner, and over learners for every row."""

    values: Floats  # (B, g * outputs): weighted sums over rows
    # (rows, outputs) or float: sums over the requested learners; zero if there are none
    total: Floats | float
    # (rows, 1) or float: number (in a complete design: weight) of these learners
    times: Floats | float

    @property
    def own(self) -> Floats:
        """Mean of the requested learners, shape (rows, outputs)."""
        times = np.asarray(self.times)
        if not times.all():
            raise ValueError(
                f"{int((times == 0).sum()):,} of {len(times):,} rows are in the "
                "subsample of every learner, so nothing predicts them out of bag. Use "
                "more learners or a smaller `k`, or use se='sample'."
            )
        return np.asarray(self.total / times)


@dataclass(frozen=True)
class LearnerList:
    """Learners as one object that workers cache until it is deleted."""

    learners: list[Any]


@dataclass(frozen=True)
class PredictionTask:
    """The arguments that all prediction tasks share."""

    kernel: PredictiveModel
    kept: LearnerList
    X: Floats

    def rows(self, start: int, stop: int) -> "PredictionTask":
        """Take some rows as a contiguous array, which compiled trees require."""
        return replace(self, X=np.ascontiguousarray(self.X[start:stop]))

    def predict(self, learner: Any) -> Floats:
        """Predict with one learner."""
        go_on()
        return self.kernel.predict(materialise(learner), self.X).ravel()

    def block(self, first: int) -> list[Any]:
        """List the learners of a task."""
        return self.kept.learners[first : first + LEARNERS_PER_TASK]


def predict_block(task: PredictionTask, first: int) -> Floats:
    """Predict with some learners, shape (learners, rows * outputs)."""
    learners = [materialise(learner) for learner in task.block(first)]
    go_on()
    return predict_all(task.kernel, learners, task.X, task.predict)


def sum_block(task: PredictionTask, first: int, origin: Floats) -> Floats:
    """Add up the predictions of some learners minus an origin."""
    learners = [materialise(learner) for learner in task.block(first)]
    go_on()
    return sum_predictions(task.kernel, learners, task.X, origin, task.predict)


def average_block(
    task: PredictionTask, shares: Any, own: OwnLearners | None, first: int
) -> LearnerSums:
    """Sum the predictions of some learners in the worker."""
    learners, rows = task.block(first), len(task.X)
    whole = shares.sum(axis=1)[:, None]
    values, total = [], np.zeros((rows, task.kernel.n_outputs))
    times, absent, weights = np.zeros((rows, 1)), None, None
    if own is not None:
        last = first + len(learners)
        weights = own.design.weights(first, last)
        if own.units is not None:
            counts = to_dense(own.design.counts(first, last))
            absent = (counts[:, own.units] == 0).astype(np.float64)
    for b, learner in enumerate(learners):
        predicted = task.predict(learner).reshape(rows, -1)
        origin = predicted[:1]  # an offset of all rows costs no digits
        values.append((shares @ (predicted - origin) + whole * origin).ravel())
        if own is None:
            continue
        weight = np.ones((rows, 1)) if absent is None else absent[b][:, None]
        if weights is not None:
            weight = weight * weights[b]
        total += weight * predicted
        times = times + weight
    if own is None:
        return LearnerSums(np.stack(values), 0.0, 0.0)
    return LearnerSums(np.stack(values), total, times)


def walk_block(task: PredictionTask, grid: Grid, first: int) -> Floats:
    """Walk some trees with all rows and the whole grid."""
    learners = [materialise(learner) for learner in task.block(first)]
    go_on()
    return compute_dependence(cast("StoredTreeKernel", task.kernel), learners, grid)


def mean_of_rows(task: PredictionTask, start: int, stop: int) -> Floats:
    """Average all learners for some rows."""
    piece, learners = task.rows(start, stop), task.kept.learners
    origin = piece.predict(learners[0])
    starts = range(0, len(learners), LEARNERS_PER_TASK)
    sums = (sum_block(piece, first, origin) for first in starts)
    return np.asarray(sum(sums) / len(learners) + origin)


def map_rows(
    task: PredictionTask, function: Callable[[Floats], Answer], start: int, stop: int
) -> Answer:
    """Apply a function to the predictions of all learners for some rows."""
    piece = task.rows(start, stop)
    return function(np.stack([piece.predict(each) for each in task.kept.learners]))


def estimate_rows(
    task: PredictionTask, estimation: Estimation, start: int, stop: int
) -> Estimates:
    """Estimate some rows from the predictions of all learners."""
    piece = task.rows(start, stop)
    learners = [materialise(learner) for learner in task.kept.learners]
    values = predict_all(task.kernel, learners, piece.X, piece.predict)
    return estimation.of(values, influence_powers(piece, estimation))


def influence_powers(
    task: PredictionTask, estimation: Estimation
) -> InfluencePowers | None:
    """Sum powers of the influences of units with fixed splits, if they are used."""
    residuals = estimation.residuals
    if residuals is None:
        return None
    kernel = cast("StoredTreeKernel", task.kernel)
    return residuals.powers(kernel, task.kept.learners, task.X)


def split_rows(n_rows: int, size: int = ROWS_PER_TASK) -> Iterator[tuple[int, int]]:
    """Divide rows among tasks.

    None of several pieces has one row alone: numpy sums a single column in another
    order, and the last bit would depend on where pieces end.
    """
    return pairwise([*range(0, max(1, n_rows - 1), size), n_rows])


def even_size(n_rows: int, most: int) -> int:
    """Choose a number of rows such that a few workers get equally many pieces."""
    pieces = max(TASKS, -(-n_rows // most))
    return -(-n_rows // (-(-pieces // 4) * 4))


# Numbers held at a time: (B + n) x query points of a chunk x outputs.
CHUNK_ENTRIES = 8_000_000
# Rows from which tasks estimate standard errors, too, and most that one takes.
MANY_ROWS = 2048
# Values that one task estimates from, unless these are less than a few rows.
VALUES_PER_TASK = 2_000_000


@dataclass(frozen=True)
class Predictor:
    """Fitted learners and the coding of new data."""

    kernel: PredictiveModel  # predicts with its learners
    learners: list[Any]  # fitted learners, in the order of the design
    # How new data become rows of the design matrix; None if they come as arrays
    coding: Coding | None
    classes: tuple[Any, ...] | None  # levels of a categorical response
    n_jobs: int | None  # workers
    # Names of the features of a learner that was fitted to a table, not by a formula
    columns: tuple[str, ...] | None = None
    # A stacked ensemble whose mean is predicted: values of the learners are shifted to
    # have this mean. None for their own mean
    centre: "Predictor | None" = None
    progress: bool | None = False  # whether to show a bar while learners are refitted

    __repr__ = short_repr

    @property
    def n_kept(self) -> int:
        """Number of learners that can predict."""
        n_learners, centre = len(self.learners), self.centre
        return n_learners if centre is None else min(n_learners, len(centre.learners))

    def is_category(self, name: Any) -> bool:
        """Whether a predictor enters as a category."""
        return self.coding is not None and name in self.coding.categorical

    @property
    def refits(self) -> bool:
        """Whether learners were not kept, and are refitted for every use."""
        return bool(self.learners) and isinstance(self.learners[-1], TransientLearner)

    def rows(self, data: DataLike) -> tuple[Floats, Labels]:
        """Code new data; the labels are its index."""
        if self.coding is None:
            X = feature_array(data, self.columns)
            _check_shape(X, self.kernel.n_features)
            labels = data.index if isinstance(data, pd.DataFrame) else None
            return X, pd.RangeIndex(len(X)) if labels is None else labels
        frame = as_frame(self.named(data))
        numbers = self.kernel.n_features + ESTIMATE_NUMBERS * self.kernel.n_outputs
        check_memory({POINTS: FLOAT * len(frame) * numbers})
        return self.coding.matrix(frame), frame.index

    def named(self, data: Any) -> Any:
        """Name the columns of an array, where learners were fitted to one."""
        if self.columns is None or not isinstance(data, np.ndarray):
            return data
        _check_shape(data, len(self.columns))
        return pd.DataFrame(data, columns=list(self.columns))

    def labels(self, index: Labels) -> Labels:
        """Label every output: the row, or the row and the class."""
        return output_labels(index, self.classes)

    def first(self, L: int) -> "Predictor":
        """Take the first L learners, to predict coded rows in this process."""
        some = self.learners[:L]
        return replace(self, learners=some, coding=None, n_jobs=1, centre=None)

    def values(self, X: Floats) -> Floats:
        """Predict with every learner, shape (B, rows * outputs)."""
        entries = len(self.learners) * len(X) * self.kernel.n_outputs
        check_memory({PREDICTIONS: 2 * FLOAT * entries})
        values = np.concatenate(list(self._calls(predict_block, self._starts, X)))
        if self.centre is None:
            return values
        return shift_mean(self.centre.mean(X), values)

    def mean(self, X: Floats) -> Floats:
        """Average the learners, shape (rows * outputs,); B x rows is never held."""
        if self.centre is not None:
            return self.centre.mean(X)
        if len(X) > ROWS_PER_TASK:
            pieces = split_rows(len(X))
            return np.concatenate([*self._calls(mean_of_rows, pieces, X)])
        # Relative to the first learner, as in the estimates, so that ties agree.
        X = np.ascontiguousarray(X)
        origin = self.kernel.predict(materialise(self.learners[0]), X).ravel()
        tasks = ((first, origin) for (first,) in self._starts)
        sums = list(self._calls(sum_block, tasks, X))
        return np.asarray(sum(sums) / len(self.learners) + origin)

    def averages(self, X: Floats, design: SubsampleDesign) -> Floats:
        """Average learners by their weights in the design; many rows in the workers."""
        if self.centre is not None:
            return self.centre.averages(X, design)
        step = self._chunk_rows(0)
        if min(step, len(X)) <= ROWS_PER_TASK:
            chunks = self.chunks(X, 0)
            return np.concatenate([ensemble_mean(design, h) for h in chunks])
        pieces = (
            (first + start, first + stop)
            for first in range(0, len(X), step)
            for start, stop in split_rows(min(step, len(X) - first))
        )
        weights = design.weights(0, len(self.learners))
        average = partial(weighted_mean, weights=weights)
        return np.concatenate([*self._calls(map_rows, pieces, X, average)])

    def estimates(self, X: Floats, estimation: Estimation) -> Estimates:
        """Predict with standard errors, in parts of bounded memory.

        For many rows the workers estimate too, if that needs no table of observations
        times points, so that values are not sent.
        """
        B, c = len(self.learners), self.kernel.n_outputs
        many = len(X) >= MANY_ROWS and self.centre is None
        if many and estimation.pairs is None:
            cached = cache_counts(estimation.design, B, len(X) * c)
            estimation = replace(estimation, design=cached)
        if not (many and estimation.without_table):
            rows = estimation.table_rows(B, len(X) * c) or B  # values are copied once
            return join_estimates(
                [
                    estimation.of(self.values(part), self.powers(part, estimation))
                    for part in self._row_chunks(X, rows)
                ]
            )
        most = max(VALUES_PER_TASK // (B * c), ROWS_PER_TASK)
        pieces = split_rows(len(X), even_size(len(X), min(most, MANY_ROWS)))
        lasting = (estimation,)
        estimated = self._calls(estimate_rows, pieces, X, estimation, lasting=lasting)
        return join_estimates([*estimated])

    def powers(self, X: Floats, estimation: Estimation) -> InfluencePowers | None:
        """Sum powers of the influences of units with fixed splits, if they are used."""
        task = PredictionTask(self.kernel, self._kept, X)
        return influence_powers(task, estimation)

    def sums(
        self, X: Floats, shares: Any, own: OwnLearners | None = None
    ) -> LearnerSums:
        """Weighted sums over rows, learner by learner; B x rows is never held.

        The sparse `shares`, shape (g, rows), weight the rows in each of g sums. If
        `own` is given, its learners are averaged row by row besides.
        """
        shares = sparse.csr_array(shares)
        values: list[Floats] = []
        total: Floats | float = 0.0
        times: Floats | float = 0.0
        for part in self._blocks(average_block, X, shares, own):
            values.append(part.values)
            total, times = total + part.total, times + part.times
        sums = LearnerSums(np.concatenate(values), total, times)
        if self.centre is None:
            return sums
        # Sums over rows and over learners are shifted as predictions are.
        mean = self.centre.mean(X).reshape(len(X), -1)
        step = mean - replace(self, centre=None).mean(X).reshape(len(X), -1)
        origin = mean[:1]  # an offset of all rows costs no digits
        summed = shares @ (mean - origin) + shares.sum(axis=1)[:, None] * origin
        shifted = shift_mean(summed.ravel(), sums.values)
        return LearnerSums(shifted, total + times * step, times)

    def dependence(self, grid: Grid) -> Floats:
        """Average trees over rows at every point of a grid, (B, points * outputs)."""
        entries = len(self.learners) * grid.n_points * self.kernel.n_outputs
        check_memory({PREDICTIONS: 2 * FLOAT * entries})
        values = np.concatenate([*self._blocks(walk_block, grid.rows, grid)])
        if self.centre is None:
            return values
        mean = weighted_mean(self.centre.dependence(grid), None)
        return shift_mean(mean, values)

    def _blocks(
        self, function: Callable[..., Answer], X: Floats, *more: Any
    ) -> Iterator[Answer]:
        """Call a function for some learners after the others."""
        answers = self._calls(function, self._starts, X, *more)
        if not self.refits:
            return answers
        return iter(
            progress_bar(
                self.progress,
                iterable=answers,
                total=-(-len(self.learners) // LEARNERS_PER_TASK),
                unit=" learners",
                unit_scale=LEARNERS_PER_TASK,
            )
        )

    @property
    def _starts(self) -> Iterator[tuple[int]]:
        return zip(range(0, len(self.learners), LEARNERS_PER_TASK), strict=True)

    @cached_property
    def _kept(self) -> "LearnerList":
        return LearnerList(self.learners)

    def _calls(
        self,
        function: Callable[..., Answer],
        tasks: Iterable[tuple[Any, ...]],
        X: Floats,
        *more: Any,
        lasting: tuple[Any, ...] = (),
    ) -> Iterator[Answer]:
        """Call a function for each task, with rows that compiled trees can read."""
        learners = (self.kernel, self._kept)
        return in_parallel(
            function,
            tasks,
            n_jobs=self.n_jobs,
            shared=(PredictionTask(*learners, np.ascontiguousarray(X)), *more),
            lasting=(*learners, *lasting),
            short=isinstance(self.kernel, StoredTreeKernel)
            and len(self.learners) * len(X) <= FEW_PREDICTIONS
            and not self.refits,
        )

    def chunks(self, X: Floats, n: int) -> Iterator[Floats]:
        """Predict chunk after chunk of query points, each (B, part of the rows)."""
        return map(self.values, self._row_chunks(X, n))

    def _row_chunks(self, X: Floats, n: int) -> Iterator[Floats]:
        """Divide query points into chunks whose predictions fit into memory."""
        step = self._chunk_rows(n)
        for first in range(0, len(X), step):
            yield X[first : first + step]

    def _chunk_rows(self, n: int) -> int:
        per_row = (len(self.learners) + n) * self.kernel.n_outputs
        return max(1, CHUNK_ENTRIES // per_row)


def _check_shape(X: Floats, n_features: int) -> None:
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(
            f"new data must have shape (rows, {n_features}); got {X.shape}."
        )


def shift_mean(mean: Floats, values: Floats) -> Floats:
    """Shift the values of learners, shape (B, m), to a given mean."""
    return np.asarray(values + (mean - weighted_mean(values, None)))


def feature_array(data: Any, columns: tuple[str, ...] | None) -> Floats:
    """Read features; columns of a frame are selected by name."""
    if isinstance(data, pd.DataFrame) and columns is not None:
        missing = [name for name in columns if name not in data.columns]
        if missing:
            raise ValueError(
                f"the data must have the columns {', '.join(columns)}; "
                f"{missing[0]!r} is missing{suggest_name(missing[0], data.columns)}"
            )
        data = data[list(columns)]
    return np.asarray(data, dtype=np.float64)


def output_labels(index: Labels, classes: tuple[Any, ...] | None) -> Labels:
    """Label outputs by row, or by row and class when there are several columns."""
    if classes is None or len(classes) == 2:
        return index
    return pd.MultiIndex.from_product([index, classes], names=["point", "class"])


def build_predictor(
    kernel: AnyKernel, evaluation: Evaluation, parsed: ParsedFormula, n_jobs: int | None
) -> Predictor | None:
    """Return the predictor for new data; None if the kernel does not predict."""
    if not isinstance(kernel, PredictiveModel):
        return None
    return Predictor(kernel, evaluation.learners, parsed.coding, parsed.classes, n_jobs)
