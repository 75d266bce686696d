"""Ensembles on disjoint shards of the data."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vstatkit._typing import Ints
from vstatkit.native._engine import draw_members
from vstatkit.sampling.dealing import dealt
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.grouped import check_whole_groups, whole_groups
from vstatkit.sampling.streams import Purpose, learner_keys

N_SHARDS = 40
"""Shards by default: a standard error is then known to 11 %."""

LEAST_SHARDS = 4
"""With fewer, Student's t has less than three degrees of freedom."""


@dataclass(frozen=True)
class ShardsDesign(SubsampleDesign):
    """Units dealt at random into disjoint shards, each with its own learners.

    Learner b draws its subsample from shard `b % n_shards`. The means of the shards'
    learners are independent and alike, so that their variance needs no jackknife.

    Attributes
    ----------
    n_shards : int
        Number of shards.
    """

    n_shards: int = N_SHARDS

    name: ClassVar[str] = "shards"
    options: ClassVar[tuple[str, ...]] = ("n_shards",)

    def __post_init__(self) -> None:
        super().__post_init__()
        G = self.n_shards
        if G < LEAST_SHARDS:
            raise ValueError(f"`n_shards` must be at least {LEAST_SHARDS}; got {G}.")
        if self.n < G:
            raise ValueError(
                f"`n_shards` must be at most n = {self.n:,}, so that no shard is "
                f"empty; got {G:,}."
            )
        if self.k > self.n // G:
            raise ValueError(
                f"`k` must be at most n / n_shards = {self.n // G:,} for "
                f"design='shards', the size of a shard; got {self.k:,}. Use a "
                "smaller `k`, or fewer shards."
            )

    @classmethod
    def largest_default(
        cls, n: int, *, replace: bool, n_shards: int = N_SHARDS, **options: int
    ) -> int | None:
        """Stay within a shard."""
        return n // max(n_shards, 1)

    def sized(self, B: int) -> Self:
        """Check that every shard has the same number of learners, at least two."""
        check_whole_groups(B, self.n_shards, "shards", "n_shards")
        return self

    def rounded(self, B: int, *, at_most: int) -> int:
        """Round to the same number of learners for every shard."""
        return whole_groups(B, self.n_shards, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        places = np.empty((stop - start, self.k), dtype=np.int64)
        shards = np.arange(start, stop) % self.n_shards
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        sizes = self.sizes()[shards]
        for size in np.unique(sizes).tolist():
            of_size = sizes == size
            drawn = draw_members(keys[of_size], size, self.k, self.replace)
            places[of_size] = np.asarray(drawn) * self.n_shards
        return dealt(places + shards[:, None], self.n, self.seed)

    def sizes(self) -> Ints:
        """Count the units of every shard; they differ by one at most."""
        first = np.arange(self.n_shards)
        return -(-(self.n - first) // self.n_shards)

    def groups(self, B: int) -> Ints:
        """Index the shard of every learner."""
        return np.arange(B) % self.n_shards

    @property
    def grouped(self) -> bool:
        """Whether several learners share a shard: always."""
        return True
