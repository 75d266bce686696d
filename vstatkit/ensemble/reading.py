"""What tasks do that predict with some of the learners, or for some of the rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.ensemble.refitting import at_hand
from vstatkit.inference.estimates import Estimates, Estimation, weighted_mean
from vstatkit.kernels.base import Predictive
from vstatkit.kernels.tree import StoredTreeKernel
from vstatkit.kernels.tree_prediction import Grid, dependence, summed
from vstatkit.sampling.design import SubsampleDesign, dense
from vstatkit.workers import go_on

LEARNERS_PER_TASK = 16
"""Learners that one task predicts with, where rows are few."""

ROWS_PER_TASK = 256
"""Rows that one task predicts, with all learners, where only means are asked for."""

TASKS = 8
"""Tasks that rows are divided among at least, where these estimate."""


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
class Kept:
    """Learners, as an object whose end can be told."""

    learners: list[Any]


@dataclass(frozen=True)
class Reading:
    """What tasks that predict have in common; the coding of new data stays behind."""

    kernel: Predictive
    kept: Kept
    X: Floats
    weights: Floats | None = None
    estimation: Estimation | None = None

    def rows(self, start: int, stop: int) -> "Reading":
        """Take some rows, as compiled trees read them."""
        return replace(self, X=np.ascontiguousarray(self.X[start:stop]))

    def predict(self, learner: Any) -> Floats:
        """Predict with one learner."""
        go_on()
        return self.kernel.predict(at_hand(learner), self.X).ravel()

    def block(self, first: int) -> list[Any]:
        """List the learners of a task."""
        return self.kept.learners[first : first + LEARNERS_PER_TASK]


def block(reading: Reading, first: int) -> Floats:
    """Predict with some learners, shape (learners, rows * outputs)."""
    return np.stack([reading.predict(one) for one in reading.block(first)])


def block_sum(reading: Reading, first: int, origin: Floats) -> Floats:
    """Add up what some learners predict, about an origin."""
    learners = [at_hand(learner) for learner in reading.block(first)]
    go_on()
    return summed(reading.kernel, learners, reading.X, origin, reading.predict)


def block_shares(
    reading: Reading, shares: Any, own: OwnLearners | None, first: int
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


def block_dependence(reading: Reading, grid: Grid, first: int) -> Floats:
    """Walk some trees with all rows and the whole grid."""
    learners = [at_hand(learner) for learner in reading.block(first)]
    go_on()
    return dependence(cast("StoredTreeKernel", reading.kernel), learners, grid)


def piece_mean(reading: Reading, start: int, stop: int) -> Floats:
    """Average all learners for some rows."""
    piece, learners = reading.rows(start, stop), reading.kept.learners
    origin = piece.predict(learners[0])
    starts = range(0, len(learners), LEARNERS_PER_TASK)
    sums = (block_sum(piece, first, origin) for first in starts)
    return np.asarray(sum(sums) / len(learners) + origin)


def piece_average(reading: Reading, start: int, stop: int) -> Floats:
    """Average all learners by their weights, for some rows."""
    return weighted_mean(piece_values(reading, start, stop), reading.weights)


def piece_estimates(reading: Reading, start: int, stop: int) -> Estimates:
    """Estimate from what all learners predict for some rows."""
    estimation = cast("Estimation", reading.estimation)
    return estimation.of(piece_values(reading, start, stop))


def piece_values(reading: Reading, start: int, stop: int) -> Floats:
    """Predict some rows with all learners."""
    piece = reading.rows(start, stop)
    return np.stack([piece.predict(one) for one in reading.kept.learners])


def divided(n_rows: int, size: int = ROWS_PER_TASK) -> Iterator[tuple[int, int]]:
    """Divide rows among tasks.

    None of several pieces has one row alone: numpy sums a single column in another
    order, and the last bit would depend on where pieces end.
    """
    edges = [*range(0, max(1, n_rows - 1), size), n_rows]
    return pairwise(edges)


def even_size(n_rows: int, most: int) -> int:
    """Choose a number of rows such that a few workers get equally many pieces."""
    pieces = max(TASKS, -(-n_rows // most))
    return -(-n_rows // (-(-pieces // 4) * 4))
