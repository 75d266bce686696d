"""The shards design: learners on disjoint parts of the data."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Ints
from vstatkit.native._engine import draw_members
from vstatkit.sampling.grouped_learners import GroupedDesign
from vstatkit.sampling.streams import Purpose, learner_keys

ROUNDS = 8  # rounds of mixing; four do not deal pairs of a dozen units uniformly
# Default number of shards; the relative error of a standard error is then 11 %.
N_SHARDS = 40
# Least number of shards: Student's t then has three degrees of freedom.
LEAST_SHARDS = 4


def deal_units(places: Ints, n: int, seed: int) -> Ints:
    """Return the units at given places, from 0 to n - 1, of a random order of n units.

    A place is a cell of a table of about sqrt(n) rows and columns. Each round shifts it
    within its column by a hash of the column, then within its row by a hash of the row.
    Both shifts are invertible, so cells stay distinct. A cell beyond n is shifted again
    until it is not.

    Black and Rogaway (2002), Ciphers with arbitrary finite domains.
    doi:10.1007/3-540-45760-7_9
    """
    rows = int(np.ceil(np.sqrt(n)))
    table = (np.uint64(rows), np.uint64(-(-n // rows)))
    keys = learner_keys(seed, 0, 2 * ROUNDS, Purpose.DEALING)
    flat = places.ravel().astype(np.uint64)
    units = _permute(flat, table, keys)
    beyond = np.flatnonzero(units >= n)
    while beyond.size:
        units[beyond] = _permute(units[beyond], table, keys)
        beyond = beyond[units[beyond] >= n]
    return units.astype(np.int64).reshape(places.shape)


def _permute(
    places: NDArray[np.uint64],
    table: tuple[np.uint64, np.uint64],
    keys: NDArray[np.uint64],
) -> NDArray[np.uint64]:
    rows, columns = table
    row, column = np.divmod(places, columns)
    for first, second in keys.reshape(-1, 2):
        row = (row + _hash_bits(column + first) % rows) % rows
        column = (column + _hash_bits(row + second) % columns) % columns
    return row * columns + column


def _hash_bits(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of whole numbers, by the finaliser of murmur3."""
    z = (z ^ (z >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    z = (z ^ (z >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return z ^ (z >> np.uint64(33))


@dataclass(frozen=True)
class ShardsDesign(GroupedDesign):
    """Units dealt at random into disjoint shards, each with its own learners.

    Learner b draws its subsample from shard `b % n_shards`. The means of the shards'
    learners are independent and identically distributed, so their variance needs no
    jackknife.
    """

    n_shards: int = N_SHARDS  # number of shards

    name: ClassVar[str] = "shards"
    size_name: ClassVar[str] = "n_shards"
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
        """Return the size of a shard."""
        return n // max(n_shards, 1)

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
        return deal_units(places + shards[:, None], self.n, self.seed)

    def sizes(self) -> Ints:
        """Count the units of every shard; sizes differ by at most one."""
        first = np.arange(self.n_shards)
        return -(-(self.n - first) // self.n_shards)

    def groups(self, B: int) -> Ints:
        """Return the shard of every learner."""
        return np.arange(B) % self.n_shards
