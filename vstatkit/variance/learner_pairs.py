"""The jackknife as a sum over pairs of learners, for many points and few learners.

The weight of the product of two learners' values does not depend on the point, so that
the weights of all pairs are computed once. Then a point costs B**2 multiplications
instead of n B, and no subsample is drawn again.
"""

from dataclasses import dataclass

import numpy as np

from vstatkit._typing import Floats
from vstatkit.sampling.design import SubsampleDesign, to_dense
from vstatkit.text import short_repr

MOST_LEARNERS = 1000  # most learners whose pairs are weighted
MOST_ENTRIES = 100_000_000  # most indicators, of learners and units, in memory
BLOCK_ENTRIES = 16_000_000  # indicators that are drawn at a time


@dataclass(frozen=True)
class LearnerPairs:
    """Weights of products of two learners' centred values in the jackknife."""

    weights: Floats  # (B, B): zero on the diagonal
    odds: float  # chance of a unit to be in a subsample, over that of being left out
    n: int  # number of units

    __repr__ = short_repr

    @classmethod
    def of(cls, design: SubsampleDesign, B: int) -> "LearnerPairs | None":
        """Weigh the pairs of B learners; None if there are too many, or no chances."""
        n, chance = design.n, design.chance_absent
        if chance is None or B > MOST_LEARNERS or B * n > MOST_ENTRIES or B < 2:
            return None
        present = np.empty((B, n), dtype=np.float32)
        step = max(1, BLOCK_ENTRIES // n)
        for first in range(0, B, step):
            counts = to_dense(design.counts(first, min(first + step, B)))
            present[first : first + step] = counts > 0
        # Overlaps are whole numbers, which single precision holds exactly.
        overlap = (present @ present.T).astype(np.float64)
        size, p = np.diag(overlap), 1 - chance
        weights = overlap - p * np.add.outer(size, size) + n * p**2
        centring = B**3 / ((B - 1) * (B**2 - 2 * B + 2))
        weights *= (n - 1) / n * centring / (B * chance) ** 2
        np.fill_diagonal(weights, 0.0)
        return cls(weights, p / chance, n)

    def jackknife(self, values: Floats) -> Floats:
        """Compute the jackknife variance of values of shape (B, m)."""
        h = values - values.mean(axis=0)
        return np.asarray(np.einsum("bj,bj->j", h, self.weights @ h))
