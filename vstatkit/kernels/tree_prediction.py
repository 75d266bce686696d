"""Sums and averages of the predictions of many trees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vstatkit._typing import Floats
from vstatkit.kernels.base import PredictiveModel
from vstatkit.kernels.residual_trees import StagedTree, StoredStagedKernel
from vstatkit.kernels.tree import StoredTreeKernel
from vstatkit.native._engine import (
    add_dependence,
    add_trees_at,
    predict_trees_at,
    refuse_beyond,
)
from vstatkit.workers import current_stop


def sum_predictions(
    kernel: PredictiveModel,
    learners: Sequence[Any],
    X: Floats,
    origin: Floats,
    predict: Callable[[Any], Floats],
) -> Floats:
    """Sum the predictions of learners at coded rows, minus an origin.

    The origin, of shape (rows * outputs,), is subtracted from every prediction, so that
    an offset costs no digits. `predict` predicts with one learner, if there is no
    compiled sum.
    """
    total = np.zeros(len(X) * kernel.n_outputs)
    if not isinstance(kernel, StoredTreeKernel) or isinstance(
        kernel, StoredStagedKernel
    ):
        for learner in learners:
            total += predict(learner) - origin
        return total
    refuse_beyond("query points", len(X))
    classes = bool(kernel.n_classes)
    add_trees_at(
        [(tree.nodes, tree.shares) for tree in learners],
        kernel.n_classes or 0,
        np.ascontiguousarray(X, dtype=np.float64),
        0.0 if classes else kernel.centre,
        1.0 if classes else kernel.scale,
        origin,
        total,
        current_stop(),
        kernel.levels is not None,
    )
    return total


def predict_all(
    kernel: PredictiveModel,
    learners: Sequence[Any],
    X: Floats,
    predict: Callable[[Any], Floats],
) -> Floats:
    """Predict with every learner at coded rows, shape (learners, rows * outputs).

    `predict` predicts with one learner, if they are not compiled trees.
    """
    if not isinstance(kernel, StoredTreeKernel) or isinstance(
        kernel, StoredStagedKernel
    ):
        return np.stack([predict(learner) for learner in learners])
    refuse_beyond("query points", len(X))
    out = np.empty((len(learners), len(X) * kernel.n_outputs))
    classes = bool(kernel.n_classes)
    predict_trees_at(
        [(tree.nodes, tree.shares) for tree in learners],
        kernel.n_classes or 0,
        np.ascontiguousarray(X, dtype=np.float64),
        0.0 if classes else kernel.centre,
        1.0 if classes else kernel.scale,
        out,
        current_stop(),
        kernel.levels is not None,
    )
    return out


MOST_AXES = 2  # most axes of a grid


class Axis(NamedTuple):
    """Columns of the design matrix that are set together."""

    columns: tuple[int, ...]  # their places
    values: Floats  # (points, columns): their values


@dataclass(frozen=True)
class Grid:
    """Rows to average over, at every combination of the points of one or two axes."""

    rows: Floats  # (n, p): rows of the design matrix; columns of the axes are not read
    axes: tuple[Axis, ...]  # columns that are set; no column is in two axes
    weights: Floats | None = None  # (n,): weights of the rows; None for equal weights

    @property
    def sizes(self) -> tuple[int, int]:
        """Points on each axis; a single axis is the second."""
        lengths = [len(axis.values) for axis in self.axes]
        return (1, *lengths) if len(lengths) == 1 else tuple(lengths)  # type: ignore[return-value]

    @property
    def n_points(self) -> int:
        """Points of the grid."""
        return int(np.prod(self.sizes))


def compute_dependence(
    kernel: StoredTreeKernel, learners: Sequence[Any], grid: Grid
) -> Floats:
    """Average predictions of trees over rows, with columns set to each point of a grid.

    Returns the averages of shape (learners, points * outputs), the points of the first
    axis outermost.

    Notes
    -----
    This is the brute-force partial dependence: the average prediction for copies of the
    rows, one copy for each point. Friedman's recursion would use the rows that the tree
    was grown on instead.
    """
    refuse_beyond("rows", len(grid.rows))
    sums = np.zeros((len(learners), grid.n_points, kernel.n_outputs))
    trees = [
        learner.trees if isinstance(learner, StagedTree) else [learner]
        for learner in learners
    ]
    add_dependence(
        [[(tree.nodes, tree.shares) for tree in learner] for learner in trees],
        np.asfortranarray(grid.rows, dtype=np.float64),
        None if grid.weights is None else np.ascontiguousarray(grid.weights),
        *_free_columns(grid, kernel.n_features),
        grid.sizes,
        sums,
        current_stop(),
        kernel.levels is not None,
    )
    weights = grid.weights
    total = len(grid.rows) if weights is None else float(weights.sum())
    averages = (sums / total).reshape(len(learners), -1)
    if kernel.n_classes:
        return averages
    lines = [_average_trend(learner, grid) for learner in learners]
    return np.asarray(kernel.centre + kernel.scale * (averages + np.stack(lines)))


def _free_columns(grid: Grid, p: int) -> tuple[Any, Any, Floats]:
    """List the columns that are set: their places, axes and values."""
    first, most = MOST_AXES - len(grid.axes), max(grid.sizes)
    place = np.full(p, -1, dtype=np.int32)
    numbers: list[int] = []
    values: list[Floats] = []
    for number, axis in enumerate(grid.axes, first):
        for column, points in zip(axis.columns, axis.values.T, strict=True):
            place[column] = len(numbers)
            numbers.append(number)
            values.append(np.resize(points, most))
    return place, np.array(numbers, dtype=np.int32), np.stack(values)


def _average_trend(learner: Any, grid: Grid) -> Floats:
    """Average the linear trend of a learner, shape (points,); zero without one."""
    trend = np.zeros(grid.sizes)
    line = learner.line if isinstance(learner, StagedTree) else np.empty(0)
    if not line.size:
        return trend.ravel()
    intercept, (centres, slopes) = line[0], line[1:].reshape(2, -1)
    steps = _zero_missing(slopes * (grid.rows - centres))
    steps = np.average(steps, axis=0, weights=grid.weights)
    for j, axis in enumerate(grid.axes[::-1]):
        columns = list(axis.columns)
        steps[columns] = 0.0
        moves = _zero_missing(slopes[columns] * (axis.values - centres[columns]))
        along = moves.sum(axis=1)
        trend += along[None, :] if j == 0 else along[:, None]
    return np.asarray(trend.ravel() + intercept + steps.sum())


def _zero_missing(steps: Floats) -> Floats:
    """Count missing values as centres, as trends do."""
    return np.where(np.isnan(steps), 0.0, steps)
