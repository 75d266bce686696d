"""What evaluating a kernel gives: values, learners, out-of-bag predictions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Ints


@dataclass(frozen=True)
class OutOfBag:
    """Sums of predictions by learners that did not see an observation.

    Attributes
    ----------
    total : ndarray of shape (r, c)
        Summed predictions.
    times : ndarray of shape (r,)
        Number (in a complete design: weight) of learners in each sum.
    rows : ndarray of shape (r,) or None
        The observations, in ascending order; None for all of them.
    """

    total: Floats
    times: Floats
    rows: Ints | None = None

    def __add__(self, other: "OutOfBag") -> "OutOfBag":
        return OutOfBag(self.total + other.total, self.times + other.times, self.rows)

    def times_weight(self, weight: float) -> "OutOfBag":
        """Count every learner `weight` times."""
        return OutOfBag(weight * self.total, weight * self.times, self.rows)

    def of(self, observed: Floats) -> Floats:
        """Take what was observed, shape (n,), at the rows of the sums."""
        return observed if self.rows is None else observed[self.rows]

    def only(self, rows: Ints) -> "OutOfBag":
        """Leave all rows out but some, where there are all."""
        return OutOfBag(self.total[rows], self.times[rows], rows)

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
        The first of the fitted learners, as many as were kept.
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
        # The first learners are kept: once one is missing, none follows.
        whole = len(self.learners) == len(self.values)
        learners = self.learners + other.learners if whole else self.learners
        return Evaluation(values, learners, oob)
