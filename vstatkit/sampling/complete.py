"""The complete design: every possible subsample once."""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from vstatkit._typing import Floats, Ints
from vstatkit.sampling.design import SubsampleDesign

COMPLETE_LIMIT = 1_000_000  # largest number of evaluations for `B="complete"`
# Largest logarithm of the number of ordered draws, for floating point.
MAX_LOG_DRAWS = 700.0


@dataclass(frozen=True)
class CompleteDesign(SubsampleDesign):
    """Every possible subsample.

    With replacement the n**k ordered draws are visited as multisets, each
    weighted by its number of orderings.
    """

    name: ClassVar[str] = "complete"
    complete: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_subsamples > COMPLETE_LIMIT:
            raise ValueError(
                f"`B='complete'` would take {self.n_subsamples:,} evaluations "
                f"(n = {self.n}, k = {self.k}); at most {COMPLETE_LIMIT:,} are "
                "allowed. Use a number or 'auto' for `B`, or a smaller `k`."
            )
        if self.replace and self.k * math.log(self.n) > MAX_LOG_DRAWS:
            raise ValueError(
                f"`B='complete'` weighs subsamples by their number of orderings, and "
                f"{self.n}**{self.k} of them are too many for floating point. Use a "
                "number or 'auto' for `B`, or a smaller `k`."
            )

    @property
    def n_subsamples(self) -> int:
        """Number of distinct subsamples to evaluate."""
        return math.comb(self.n + self.k - 1 if self.replace else self.n, self.k)

    def members(self, start: int, stop: int) -> Ints:
        """List the units of subsamples `start` to `stop`."""
        return _all_subsamples(self.n, self.k, self.replace)[start:stop]

    def weights(self, start: int, stop: int) -> Floats | None:
        """Count the orderings of each multiset."""
        if not self.replace:
            return None
        return count_orderings(self.members(start, stop))


def count_orderings(members: Ints) -> Floats:
    """Count the orderings of every row, a multiset in ascending order."""
    run = np.ones(len(members))
    n_orderings = np.ones(len(members))
    for j in range(1, members.shape[1]):
        run = np.where(members[:, j] == members[:, j - 1], run + 1, 1.0)
        # The j-th repeat of a unit divides the number of orderings by j.
        n_orderings *= (j + 1) / run
    return np.round(n_orderings)


@lru_cache(maxsize=2)
def _all_subsamples(n: int, k: int, replace: bool) -> Ints:
    choose = (
        itertools.combinations_with_replacement if replace else itertools.combinations
    )
    return np.array(list(choose(range(n), k)), dtype=np.int64).reshape(-1, k)
