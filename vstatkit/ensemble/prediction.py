"""Predict with kept learners, in chunks of bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Labels
from vstatkit.formula.coding import Coding
from vstatkit.formula.frames import as_frame, nearest
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.protocol import AnyKernel, Predictive
from vstatkit.workers import go_on, in_parallel

CHUNK_ENTRIES = 8_000_000
"""Numbers held at a time: (B + n) x query points of a chunk x outputs."""


LEARNERS_PER_TASK = 16


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
        Names of the features of a learner without a formula, if it has names.
    """

    kernel: Predictive
    learners: list[Any]
    coding: Coding | None
    classes: tuple[Any, ...] | None
    n_jobs: int | None
    columns: tuple[str, ...] | None = None

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
        frame = as_frame(data)
        return self.coding.matrix(frame), frame.index

    def labels(self, index: Labels) -> Labels:
        """Label every output: the row, or the row and the class."""
        return output_labels(index, self.classes)

    def first(self, L: int) -> "Predictor":
        """Take the first L learners, to predict coded rows in this process."""
        return replace(self, learners=self.learners[:L], coding=None, n_jobs=1)

    def values(self, X: Floats) -> Floats:
        """Predict with every learner, shape (B, rows * outputs)."""
        X = np.ascontiguousarray(X)  # as compiled trees read it
        blocks = in_parallel(self._block, self._tasks(X), n_jobs=self.n_jobs)
        return np.concatenate(list(blocks))

    def _tasks(self, X: Floats) -> Iterator[tuple[int, Floats]]:
        starts = range(0, len(self.learners), LEARNERS_PER_TASK)
        return ((first, X) for first in starts)

    def _block(self, first: int, X: Floats) -> Floats:
        learners = self.learners[first : first + LEARNERS_PER_TASK]
        return np.stack([self._predict(one, X) for one in learners])

    def _predict(self, learner: Any, X: Floats) -> Floats:
        go_on()
        return self.kernel.predict(learner, X).ravel()

    def mean(self, X: Floats) -> Floats:
        """Average the learners, shape (rows * outputs,); B x rows is never held."""
        X = np.ascontiguousarray(X)
        # About the first learner, as the estimates are: what ties here ties there.
        origin = self._predict(self.learners[0], X)
        tasks = ((*task, origin) for task in self._tasks(X))
        sums = list(in_parallel(self._block_sum, tasks, n_jobs=self.n_jobs))
        return np.asarray(sum(sums) / len(self.learners) + origin)

    def _block_sum(self, first: int, X: Floats, origin: Floats) -> Floats:
        total = np.zeros(len(X) * self.kernel.n_outputs)
        for learner in self.learners[first : first + LEARNERS_PER_TASK]:
            total += self._predict(learner, X) - origin
        return total

    def chunks(self, X: Floats, n: int) -> Iterator[Floats]:
        """Predict chunk after chunk of query points, each (B, part of the rows)."""
        per_row = (len(self.learners) + n) * self.kernel.n_outputs
        step = max(1, CHUNK_ENTRIES // per_row)
        for first in range(0, len(X), step):
            yield self.values(X[first : first + step])


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
