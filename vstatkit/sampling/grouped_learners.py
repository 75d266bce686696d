"""Designs that draw learners in groups: pins, half-samples, disjoint pairs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

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
