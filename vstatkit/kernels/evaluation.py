"""What evaluating a kernel gives: values, learners, out-of-bag predictions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats


@dataclass(frozen=True)
class OutOfBag:
    """Sums of predictions by learners that did not see an observation.

    Attributes
    ----------
    total : ndarray of shape (n_rows, c)
        Summed predictions.
    times : ndarray of shape (n_rows,)
        Number (in a complete design: weight) of learners in each sum.
    """

    total: Floats
    times: Floats

    def __add__(self, other: "OutOfBag") -> "OutOfBag":
        return OutOfBag(self.total + other.total, self.times + other.times)

    def times_weight(self, weight: float) -> "OutOfBag":
        """Count every learner `weight` times."""
        return OutOfBag(weight * self.total, weight * self.times)

    @property
    def mean(self) -> Floats:
        """Out-of-bag predictions; NaN where every learner saw the observation."""
        times = np.where(self.times > 0, self.times, np.nan)
        return self.total / times[:, None]


@dataclass(frozen=True)
class Evaluation:
    """Values of consecutive learners.

    Attributes
    ----------
    values : ndarray of shape (L, m)
        Kernel values, learners first.
    learners : list
        The fitted learners, if they were kept.
    oob : OutOfBag or None
        Out-of-bag sums of predictive kernels.
    """

    values: Floats
    learners: list[Any]
    oob: OutOfBag | None

    def with_moves(self, n_query: int | None) -> "Evaluation":
        """Take differences of the values beyond the first `n_query`.

        These are the values before the moves of the effects, and after them.
        """
        if n_query is None or self.values.shape[1] == n_query:
            return self
        start, end = np.split(self.values[:, n_query:], 2, axis=1)
        values = np.concatenate([self.values[:, :n_query], end - start], axis=1)
        return replace(self, values=values)

    def __add__(self, other: "Evaluation") -> "Evaluation":
        oob = self.oob
        if oob is not None and other.oob is not None:
            oob = oob + other.oob
        values = np.concatenate([self.values, other.values])
        return Evaluation(values, self.learners + other.learners, oob)
