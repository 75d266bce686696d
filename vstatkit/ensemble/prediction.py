"""Predict with kept learners, in chunks of bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import DataLike, Floats, Ints, Labels
from vstatkit.ensemble.memory import (
    FLOAT,
    POINTS,
    PREDICTIONS,
    check_memory,
    prediction_bytes,
)
from vstatkit.ensemble.refitting import at_hand
from vstatkit.formula.coding import Coding
from vstatkit.formula.frames import as_frame, nearest
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.inference.estimate import (
    Estimation,
    ensemble_mean,
    join_estimates,
    weighted_mean,
)
from vstatkit.inference.estimates import Estimates
from vstatkit.kernels.dependence import Grid, dependence
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.protocol import AnyKernel, Predictive
from vstatkit.kernels.summed import summed
from vstatkit.kernels.trees import StoredTreeKernel
from vstatkit.sampling.counts import dense
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.showing import short_repr
from vstatkit.workers import go_on, in_parallel

Answer = TypeVar("Answer")

CHUNK_ENTRIES = 8_000_000
"""Numbers held at a time: (B + n) x query points of a chunk x outputs."""

LEARNERS_PER_TASK = 16
"""Learners that one task predicts with, where rows are few."""

ROWS_PER_TASK = 256
"""Rows that one task predicts, with all learners, where only means are asked for."""

MANY_ROWS = 2048
"""Rows from which tasks estimate standard errors, too, and most that one takes."""

TASKS = 8
"""Tasks that these are divided among at least."""

VALUES_PER_TASK = 2_000_000
"""Values that one task estimates from; more, if these are few rows."""


class OwnLearners(NamedTuple):
    """Which learners predict a row that they may have been fitted to.

    Attributes
    ----------
    design : SubsampleDesign
        Which units each learner saw.
    units : ndarray of shape (rows,) or None
        Unit of every row: learners that saw it are left out. None for all learners.
    """

    design: SubsampleDesign
    units: Ints | None


class LearnerSums(NamedTuple):
    """Sums over rows for every learner, and over learners for every row.

    Attributes
    ----------
    values : ndarray of shape (B, g * outputs)
        Weighted sums over rows.
    total : ndarray of shape (rows, outputs) or float
        Sums over the learners asked for; zero if there are none.
    times : ndarray of shape (rows, 1) or float
        Number (in a complete design: weight) of these learners.
    """

    values: Floats
    total: Floats | float
    times: Floats | float

    @property
    def own(self) -> Floats:
        """Mean of the learners asked for, shape (rows, outputs)."""
        times = np.asarray(self.times)
        if not times.all():
            raise ValueError(
                f"{int((times == 0).sum()):,} of {len(times):,} rows are in the "
                "subsample of every learner, so nothing predicts them out of bag. Use "
                "more learners or a smaller `k`, or ask for se='sample'."
            )
        return np.asarray(self.total / times)


@dataclass(frozen=True)
class Predictor:
    """Fitted learners and the coding of new data.

    Attributes
    ----------
    kernel : Predictive
        Knows how its learners predict.
    learners : list
        Fitted learners, in the order of the design.
    coding : Coding or None
        How new data become rows of the design matrix; None if they come as arrays.
    classes : tuple or None
        Levels of a categorical response.
    n_jobs : int or None
        Workers.
    columns : tuple of str or None
        Names of the features of a learner that was fitted to a table, not by a
        formula, if it has names.
    """

    kernel: Predictive
    learners: list[Any]
    coding: Coding | None
    classes: tuple[Any, ...] | None
    n_jobs: int | None
    columns: tuple[str, ...] | None = None

    __repr__ = short_repr

    def rows(self, data: DataLike) -> tuple[Floats, Labels]:
        """Code new data; the labels are its index."""
        if self.coding is None:
            X = feature_array(data, self.columns)
            if X.ndim != 2 or X.shape[1] != self.kernel.n_features:
                raise ValueError(
                    f"new data must have shape (rows, {self.kernel.n_features}); "
                    f"got {X.shape}."
                )
            if isinstance(data, pd.DataFrame):
                return X, data.index
            return X, pd.RangeIndex(len(X))
        frame = as_frame(self._named(data))
        size = (len(frame), self.kernel.n_features, self.kernel.n_outputs)
        check_memory({POINTS: prediction_bytes(*size)})
        return self.coding.matrix(frame), frame.index

    def _named(self, data: Any) -> Any:
        """Name the columns of an array, where learners were fitted to one."""
        if self.columns is None or not isinstance(data, np.ndarray):
            return data
        if data.ndim != 2 or data.shape[1] != len(self.columns):
            raise ValueError(
                f"new data must have shape (rows, {len(self.columns)}); got "
                f"{data.shape}."
            )
        return pd.DataFrame(data, columns=list(self.columns))

    def labels(self, index: Labels) -> Labels:
        """Label every output: the row, or the row and the class."""
        return output_labels(index, self.classes)

    def first(self, L: int) -> "Predictor":
        """Take the first L learners, to predict coded rows in this process."""
        return replace(self, learners=self.learners[:L], coding=None, n_jobs=1)

    def values(self, X: Floats) -> Floats:
        """Predict with every learner, shape (B, rows * outputs)."""
        entries = len(self.learners) * len(X) * self.kernel.n_outputs
        check_memory({PREDICTIONS: 2 * FLOAT * entries})
        return np.concatenate(list(self._calls(_block, self._starts, X)))

    def mean(self, X: Floats) -> Floats:
        """Average the learners, shape (rows * outputs,); B x rows is never held."""
        if len(X) > ROWS_PER_TASK:
            return np.concatenate(list(self._calls(_piece_mean, _pieces(len(X)), X)))
        # About the first learner, as the estimates are: what ties here ties there.
        X = np.ascontiguousarray(X)
        origin = self.kernel.predict(at_hand(self.learners[0]), X).ravel()
        tasks = ((first, origin) for (first,) in self._starts)
        sums = list(self._calls(_block_sum, tasks, X))
        return np.asarray(sum(sums) / len(self.learners) + origin)

    def averages(self, X: Floats, design: SubsampleDesign) -> Floats:
        """Average the learners by their weights in the design, as estimates do.

        Many rows are averaged where their values are made: these do not travel.
        """
        step = self._chunk_rows(0)
        if min(step, len(X)) <= ROWS_PER_TASK:
            chunks = self.chunks(X, 0)
            return np.concatenate([ensemble_mean(design, h) for h in chunks])
        pieces = (
            (first + start, first + stop)
            for first in range(0, len(X), step)
            for start, stop in _pieces(min(step, len(X) - first))
        )
        weights = design.weights(0, len(self.learners))
        return np.concatenate(list(self._calls(_piece_average, pieces, X, weights)))

    def estimates(self, X: Floats, estimation: Estimation) -> Estimates:
        """Predict with standard errors, in parts of bounded memory.

        Of many rows tasks estimate from the values that they predict, if that needs no
        table of observations times points: the values do not travel.
        """
        B, c = len(self.learners), self.kernel.n_outputs
        many = len(X) >= MANY_ROWS
        estimation = estimation.of_many(B, len(X) * c) if many else estimation
        if not (many and estimation.without_table):
            rows = estimation.table_rows(B, len(X) * c) or B  # values are copied once
            return join_estimates([estimation.of(h) for h in self.chunks(X, rows)])
        most = max(VALUES_PER_TASK // (B * c), ROWS_PER_TASK)
        pieces = _pieces(len(X), _even_size(len(X), min(most, MANY_ROWS)))
        return join_estimates(
            list(self._calls(_piece_estimates, pieces, X, estimation=estimation))
        )

    def sums(
        self, X: Floats, shares: Any, own: OwnLearners | None = None
    ) -> LearnerSums:
        """Weighted sums over rows, learner by learner; B x rows is never held.

        Parameters
        ----------
        X : ndarray of shape (rows, p)
            Coded rows.
        shares : sparse array of shape (g, rows)
            Weights of the rows in each of g sums.
        own : OwnLearners, optional
            Learners that are averaged row by row besides.
        """
        shares = sparse.csr_array(shares)
        weights = None if own is None else own.design.weights(0, len(self.learners))
        rows, more = np.ascontiguousarray(X), (shares, own)
        values: list[Floats] = []
        total: Floats | float = 0.0
        times: Floats | float = 0.0
        for found in self._blocks(_block_shares, rows, more, weights):
            values.append(found.values)
            total, times = total + found.total, times + found.times
        return LearnerSums(np.concatenate(values), total, times)

    def dependence(self, grid: Grid) -> Floats:
        """Average trees over rows at every point of a grid, (B, points * outputs)."""
        entries = len(self.learners) * grid.n_points * self.kernel.n_outputs
        check_memory({PREDICTIONS: 2 * FLOAT * entries})
        return np.concatenate([*self._blocks(_block_dependence, grid.rows, (grid,))])

    def _blocks(
        self,
        function: Callable[..., Answer],
        X: Floats,
        more: tuple[Any, ...],
        weights: Floats | None = None,
    ) -> Iterator[Answer]:
        """Call a function for some learners after the others."""
        return in_parallel(
            function,
            self._starts,
            n_jobs=self.n_jobs,
            shared=(_Reading(self.kernel, self._kept, X, weights), *more),
            lasting=(self.kernel, self._kept),
        )

    @property
    def _starts(self) -> Iterator[tuple[int]]:
        starts = range(0, len(self.learners), LEARNERS_PER_TASK)
        return ((first,) for first in starts)

    @cached_property
    def _kept(self) -> "_Kept":
        return _Kept(self.learners)

    def _calls(
        self,
        function: Callable[..., Answer],
        tasks: Iterable[tuple[Any, ...]],
        X: Floats,
        weights: Floats | None = None,
        estimation: Estimation | None = None,
    ) -> Iterator[Answer]:
        X = np.ascontiguousarray(X)  # as compiled trees read it
        lasting = (self.kernel, self._kept)
        return in_parallel(
            function,
            tasks,
            n_jobs=self.n_jobs,
            shared=(_Reading(self.kernel, self._kept, X, weights, estimation),),
            lasting=lasting if estimation is None else (*lasting, estimation),
        )

    def chunks(self, X: Floats, n: int) -> Iterator[Floats]:
        """Predict chunk after chunk of query points, each (B, part of the rows)."""
        step = self._chunk_rows(n)
        for first in range(0, len(X), step):
            yield self.values(X[first : first + step])

    def _chunk_rows(self, n: int) -> int:
        per_row = (len(self.learners) + n) * self.kernel.n_outputs
        return max(1, CHUNK_ENTRIES // per_row)


@dataclass(frozen=True)
class _Kept:
    """Learners, as an object whose end can be told."""

    learners: list[Any]


@dataclass(frozen=True)
class _Reading:
    """What tasks that predict have in common; the coding of new data stays behind."""

    kernel: Predictive
    kept: _Kept
    X: Floats
    weights: Floats | None = None
    estimation: Estimation | None = None

    def rows(self, start: int, stop: int) -> "_Reading":
        """Take some rows, as compiled trees read them."""
        return replace(self, X=np.ascontiguousarray(self.X[start:stop]))

    def predict(self, learner: Any) -> Floats:
        """Predict with one learner."""
        go_on()
        return self.kernel.predict(at_hand(learner), self.X).ravel()

    def block(self, first: int) -> list[Any]:
        """List the learners of a task."""
        return self.kept.learners[first : first + LEARNERS_PER_TASK]


def _block(reading: _Reading, first: int) -> Floats:
    return np.stack([reading.predict(one) for one in reading.block(first)])


def _block_sum(reading: _Reading, first: int, origin: Floats) -> Floats:
    learners = [at_hand(learner) for learner in reading.block(first)]
    go_on()
    return summed(reading.kernel, learners, reading.X, origin, reading.predict)


def _block_shares(
    reading: _Reading, shares: Any, own: OwnLearners | None, first: int
) -> LearnerSums:
    """Sum the predictions of some learners where they are made."""
    learners, rows = reading.block(first), len(reading.X)
    whole = shares.sum(axis=1)[:, None]
    values, total = [], np.zeros((rows, reading.kernel.n_outputs))
    times = np.zeros((rows, 1))
    absent = None
    if own is not None and own.units is not None:
        counts = dense(own.design.counts(first, first + len(learners)))
        absent = (counts[:, own.units] == 0).astype(np.float64)
    for b, learner in enumerate(learners):
        predicted = reading.predict(learner).reshape(rows, -1)
        origin = predicted[:1]  # an offset of all rows costs no digits
        values.append((shares @ (predicted - origin) + whole * origin).ravel())
        if own is None:
            continue
        weight = np.ones((rows, 1)) if absent is None else absent[b][:, None]
        if reading.weights is not None:
            weight = weight * reading.weights[first + b]
        total += weight * predicted
        times = times + weight
    if own is None:
        return LearnerSums(np.stack(values), 0.0, 0.0)
    return LearnerSums(np.stack(values), total, times)


def _block_dependence(reading: _Reading, grid: Grid, first: int) -> Floats:
    learners = [at_hand(learner) for learner in reading.block(first)]
    go_on()
    return dependence(cast("StoredTreeKernel", reading.kernel), learners, grid)


def _piece_mean(reading: _Reading, start: int, stop: int) -> Floats:
    piece, learners = reading.rows(start, stop), reading.kept.learners
    origin = piece.predict(learners[0])
    starts = range(0, len(learners), LEARNERS_PER_TASK)
    sums = (_block_sum(piece, first, origin) for first in starts)
    return np.asarray(sum(sums) / len(learners) + origin)


def _piece_average(reading: _Reading, start: int, stop: int) -> Floats:
    return weighted_mean(_piece_values(reading, start, stop), reading.weights)


def _piece_estimates(reading: _Reading, start: int, stop: int) -> Estimates:
    estimation = cast("Estimation", reading.estimation)
    return estimation.of(_piece_values(reading, start, stop))


def _piece_values(reading: _Reading, start: int, stop: int) -> Floats:
    piece = reading.rows(start, stop)
    return np.stack([piece.predict(one) for one in reading.kept.learners])


def _pieces(n_rows: int, size: int = ROWS_PER_TASK) -> Iterator[tuple[int, int]]:
    """Divide rows among tasks.

    None of several pieces has one row alone: numpy sums a single column in another
    order, and the last bit would depend on where pieces end.
    """
    edges = [*range(0, max(1, n_rows - 1), size), n_rows]
    return pairwise(edges)


def _even_size(n_rows: int, most: int) -> int:
    """Choose a number of rows such that a few workers get equally many pieces."""
    pieces = max(TASKS, -(-n_rows // most))
    return -(-n_rows // (-(-pieces // 4) * 4))


def feature_array(data: Any, columns: tuple[str, ...] | None) -> Floats:
    """Read features; columns of a frame are found by their names."""
    if isinstance(data, pd.DataFrame) and columns is not None:
        missing = [name for name in columns if name not in data.columns]
        if missing:
            raise ValueError(
                f"the data must have the columns {', '.join(columns)}; "
                f"{missing[0]!r} is missing{nearest(missing[0], data.columns)}"
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
    """Keep what predicts new data, where the kernel can."""
    if not isinstance(kernel, Predictive):
        return None
    return Predictor(kernel, evaluation.learners, parsed.coding, parsed.classes, n_jobs)
