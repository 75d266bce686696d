"""The balanced design: every unit occurs equally often."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from vstatkit._typing import Ints
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, stream

# Number of learners that are balanced together. With replacement, a block of L learners
# reduces the variance of the counts, and with it the Monte Carlo bias that corrected
# estimators remove, by the factor 1 - 1/L. Short blocks would bias these estimators.
BLOCK = 1000


@dataclass(frozen=True)
class BalancedDesign(SubsampleDesign):
    """Every unit occurs B k / n times, or counts differ by at most one.

    Learners are balanced in blocks. A block depends on (seed, block) only, so ensembles
    of different sizes share their full blocks.
    """

    block: int = BLOCK  # learners balanced together
    # End of the last, possibly shorter, block; None while the ensemble grows
    n_learners: int | None = None

    name: ClassVar[str] = "balanced"
    options: ClassVar[tuple[str, ...]] = ("block",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 2:
            raise ValueError(
                f"`block` must be at least 2 learners; got {self.block}. "
                f"Leave it out for {BLOCK}."
            )

    def with_size(self, B: int) -> Self:
        """Return the design whose last block ends at B."""
        super().with_size(B)
        return replace(self, n_learners=B)

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round up to whole blocks; only the last one may be shorter."""
        return min(-(-B // self.block) * self.block, at_most)

    def obstacle(self, present: int, target: int) -> str | None:
        """Explain that the last block was balanced for fewer learners."""
        if present % self.block == 0:
            return None
        return (
            f"a balanced ensemble continues after whole blocks of {self.block} "
            f"learners; this one has {present}, and its last block was balanced for "
            f"that number. Fit again with B={target}."
        )

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        first, last = start // self.block, (stop - 1) // self.block
        drawn = np.concatenate([self._block(j) for j in range(first, last + 1)])
        offset = start - first * self.block
        return drawn[offset : offset + stop - start]

    def _block(self, j: int) -> Ints:
        start, stop = j * self.block, (j + 1) * self.block
        if self.n_learners is not None:
            stop = min(stop, self.n_learners)
        return _balanced_block(self.n, self.k, self.replace, self.seed, (start, stop))


@lru_cache(maxsize=4)
def _balanced_block(
    n: int, k: int, replace: bool, seed: int, span: tuple[int, int]
) -> Ints:
    """Draw one block; cached because several batches use it."""
    start, stop = span
    rank = stream(seed, 0, Purpose.ORDER).permutation(n)
    quota = _cumulative_quota(rank, stop * k) - _cumulative_quota(rank, start * k)
    rng = stream(seed, start, Purpose.GROUP)
    if replace:
        tokens = np.repeat(np.arange(n), quota)
        rng.shuffle(tokens)
        return tokens.reshape(stop - start, k)
    return _distinct_block(quota, k, stop - start, rng)


def _cumulative_quota(rank: Ints, drawn: int) -> Ints:
    """Split `drawn` draws so that the units' shares differ by at most one."""
    share, extra = divmod(drawn, rank.size)
    return share + (rank < extra)


def _distinct_block(quota: Ints, k: int, length: int, rng: np.random.Generator) -> Ints:
    """Meet every unit's quota exactly, with no repeats inside a subsample.

    Each learner takes a systematic sample, in random order, with inclusion probability
    (remaining quota of the unit) / (remaining learners). A unit that must be in all
    remaining subsamples is taken with certainty.
    """
    need = quota.copy()
    drawn = np.empty((length, k), dtype=np.int64)
    for row, left in enumerate(range(length, 0, -1)):
        order = rng.permutation(need.size)
        ladder = np.cumsum(need[order])
        rungs = rng.integers(left) + left * np.arange(k)
        drawn[row] = order[np.searchsorted(ladder, rungs, side="right")]
        need[drawn[row]] -= 1
    return drawn
