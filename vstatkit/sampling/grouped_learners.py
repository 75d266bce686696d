"""Designs that draw learners in groups: pins, half-samples, pairs, shards."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Ints
from vstatkit.native._engine import draw_members
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys, stream


class GroupedDesign(SubsampleDesign):
    """A design that draws learners in groups of equal size."""

    size_name: ClassVar[str]  # field that B must be a multiple of

    @property
    def learners_per_round(self) -> int:
        """Number of which B must be a multiple."""
        return int(getattr(self, self.size_name))

    def with_size(self, B: int) -> Self:
        """Return the design itself; raise an error unless B is at least two rounds."""
        size = self.learners_per_round
        if 2 * size > B or B % size:
            near = max(2, round(B / size)) * size
            raise ValueError(
                f"`B` must be a multiple of the {self.size_name} = {size}, and at "
                f"least {2 * size}, for design={self.name!r}; got {B}. Use {near}."
            )
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round B up to whole rounds, or down to stay in bounds; at least two."""
        size = self.learners_per_round
        up = -(-B // size) * size
        return max(2 * size, up if up <= at_most else at_most // size * size)

    def groups(self, B: int) -> Ints:
        """Return the group of every learner, shape (B,)."""
        return np.arange(B) // self.learners_per_round

    @property
    def has_groups(self) -> bool:
        """Whether learners depend on each other."""
        return True


@dataclass(frozen=True)
class TwoLevelDesign(GroupedDesign):
    """Pinned observations, each with `n_in` subsamples that contain it (for IM)."""

    n_in: int = 20  # subsamples for each pin; B = n_out x n_in

    name: ClassVar[str] = "two-level"
    size_name: ClassVar[str] = "n_in"
    options: ClassVar[tuple[str, ...]] = ("n_in", "n_out")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_in < 1:
            raise ValueError(f"`n_in` must be at least 1; got {self.n_in}.")

    @classmethod
    def create(
        cls, n: int, k: int, *, replace: bool, seed: int, **options: int
    ) -> tuple[Self, int | None]:
        """Build the design; `n_out`, the number of pins, implies B."""
        n_out = options.pop("n_out", None)
        design = cls(n=n, k=k, replace=replace, seed=seed, **options)
        return design, None if n_out is None else n_out * design.n_in

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`; the first one is the pin."""
        cycles, places = np.divmod(np.arange(start, stop) // self.n_in, self.n)
        orders = {int(c): _pins(self.n, self.seed, int(c)) for c in np.unique(cycles)}
        pins = np.array(
            [orders[int(c)][p] for c, p in zip(cycles, places, strict=True)],
            dtype=np.int64,
        )[:, None]
        if self.k == 1:
            return pins
        keys = learner_keys(self.seed, start, stop, Purpose.SUBSAMPLE)
        pool = self.n if self.replace else self.n - 1
        rest = np.asarray(draw_members(keys, pool, self.k - 1, self.replace))
        if not self.replace:
            rest = rest + (rest >= pins)
        return np.concatenate([pins, rest], axis=1)

    @property
    def has_groups(self) -> bool:
        """Whether several learners share a pin."""
        return self.n_in > 1

    def redrawn_share(self, G: int) -> float:
        """Return the share of the last, partial cycle; a whole one pins every unit."""
        last = G % self.n
        return last * (1 - last / self.n) / G


@lru_cache(maxsize=8)
def _pins(n: int, seed: int, cycle: int) -> Ints:
    """Draw the order in which units are pinned: all once, before any is repeated."""
    return stream(seed, cycle, Purpose.ORDER).permutation(n)


@dataclass(frozen=True)
class LittleBagsDesign(GroupedDesign):
    """Groups of learners whose subsamples come from one half-sample."""

    group_size: int = 2  # learners that share a half-sample

    name: ClassVar[str] = "little-bags"
    size_name: ClassVar[str] = "group_size"
    options: ClassVar[tuple[str, ...]] = ("group_size",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_size < 2:
            raise ValueError(f"`group_size` must be at least 2; got {self.group_size}.")
        if not self.replace and self.k > self.n // 2:
            raise ValueError(
                f"`k` must be at most n/2 = {self.n // 2} for "
                f"design='little-bags' without replacement; got {self.k}."
            )

    @classmethod
    def largest_default(cls, n: int, *, replace: bool, **options: int) -> int | None:
        """Return half of the units if no unit is drawn twice."""
        return None if replace else n // 2

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        drawn = np.empty((stop - start, self.k), dtype=np.int64)
        for row, b in enumerate(range(start, stop)):
            group = stream(self.seed, b // self.group_size, Purpose.GROUP)
            half = group.choice(self.n, self.n // 2, replace=False, shuffle=False)
            rng = stream(self.seed, b, Purpose.SUBSAMPLE)
            if self.replace:
                drawn[row] = half[rng.integers(len(half), size=self.k)]
            else:
                drawn[row] = rng.choice(half, self.k, replace=False, shuffle=False)
        return drawn


@dataclass(frozen=True)
class MatchedDesign(GroupedDesign):
    """Pairs of disjoint subsamples: learners 0 and 1, 2 and 3, and so on."""

    name: ClassVar[str] = "matched"
    size_name: ClassVar[str] = "pair size"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replace:
            raise ValueError(
                "design='matched' pairs disjoint subsamples, so it draws without "
                "replacement. Pass `replace=False`."
            )
        if 2 * self.k > self.n:
            raise ValueError(
                f"`k` must be at most n/2 = {self.n // 2} for design='matched'; "
                f"got {self.k}."
            )

    @classmethod
    def largest_default(cls, n: int, *, replace: bool, **options: int) -> int | None:
        """Return half of the units: the other half is for the other subsample."""
        return n // 2

    @property
    def learners_per_round(self) -> int:
        """The two learners of a pair."""
        return 2

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        drawn = np.empty((stop - start, self.k), dtype=np.int64)
        for row, b in enumerate(range(start, stop)):
            rng = stream(self.seed, b // 2, Purpose.GROUP)
            pair = rng.permutation(self.n)[: 2 * self.k]
            drawn[row] = pair[: self.k] if b % 2 == 0 else pair[self.k :]
        return drawn


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
