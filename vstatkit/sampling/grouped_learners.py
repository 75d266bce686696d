"""Designs that draw learners in groups: pins, half-samples, disjoint pairs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from vstatkit._typing import Ints
from vstatkit.native._engine import draw_members
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.streams import Purpose, learner_keys, stream


@dataclass(frozen=True)
class TwoLevelDesign(SubsampleDesign):
    """Pinned observations, each with `n_in` subsamples that contain it (for IM).

    Attributes
    ----------
    n_in : int
        Subsamples for each pin; B = n_out x n_in.
    """

    n_in: int = 20

    name: ClassVar[str] = "two-level"
    options: ClassVar[tuple[str, ...]] = ("n_in", "n_out")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_in < 1:
            raise ValueError(f"`n_in` must be at least 1; got {self.n_in}.")

    @classmethod
    def create(
        cls, n: int, k: int, *, replace: bool, seed: int, **options: int
    ) -> tuple[Self, int | None]:
        """Build the design; `n_out`, the number of pins, settles B."""
        n_out = options.pop("n_out", None)
        design = cls(n=n, k=k, replace=replace, seed=seed, **options)
        return design, None if n_out is None else n_out * design.n_in

    def with_size(self, B: int) -> Self:
        """Check that B is a whole number of pins, at least two."""
        check_whole_groups(B, self.n_in, "two-level", "n_in")
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round to whole pins."""
        return round_to_groups(B, self.n_in, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`; the pin stands first."""
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

    def groups(self, B: int) -> Ints:
        """Index the pin of every learner."""
        return np.arange(B) // self.n_in

    @property
    def has_groups(self) -> bool:
        """Whether several learners share a pin."""
        return self.n_in > 1

    def redrawn_share(self, G: int) -> float:
        """Count only the last, partial cycle; a whole one pins every unit."""
        last = G % self.n
        return last * (1 - last / self.n) / G


@lru_cache(maxsize=8)
def _pins(n: int, seed: int, cycle: int) -> Ints:
    """Order in which units are pinned: all of them, before any is pinned again."""
    return stream(seed, cycle, Purpose.ORDER).permutation(n)


@dataclass(frozen=True)
class LittleBagsDesign(SubsampleDesign):
    """Groups of learners whose subsamples come from one half-sample.

    Attributes
    ----------
    group_size : int
        Learners that share a half-sample.
    """

    group_size: int = 2

    name: ClassVar[str] = "little-bags"
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
        """Stay within a half-sample, where no unit is drawn twice."""
        return None if replace else n // 2

    def with_size(self, B: int) -> Self:
        """Check that B is a whole number of groups, at least two."""
        check_whole_groups(B, self.group_size, "little-bags", "group_size")
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round to whole groups."""
        return round_to_groups(B, self.group_size, at_most)

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

    def groups(self, B: int) -> Ints:
        """Index the half-sample of every learner."""
        return np.arange(B) // self.group_size

    @property
    def has_groups(self) -> bool:
        """Whether several learners share a half-sample: always."""
        return True


@dataclass(frozen=True)
class MatchedDesign(SubsampleDesign):
    """Pairs of disjoint subsamples: learners 0 and 1, 2 and 3, and so on."""

    name: ClassVar[str] = "matched"

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
        """Leave room for the other subsample of a pair."""
        return n // 2

    def with_size(self, B: int) -> Self:
        """Check that B is a whole number of pairs, at least two."""
        check_whole_groups(B, 2, "matched", "pair size")
        return self

    def round_size(self, B: int, *, at_most: int) -> int:
        """Round to whole pairs."""
        return round_to_groups(B, 2, at_most)

    def members(self, start: int, stop: int) -> Ints:
        """Draw the units of learners `start` to `stop`."""
        drawn = np.empty((stop - start, self.k), dtype=np.int64)
        for row, b in enumerate(range(start, stop)):
            rng = stream(self.seed, b // 2, Purpose.GROUP)
            pair = rng.permutation(self.n)[: 2 * self.k]
            drawn[row] = pair[: self.k] if b % 2 == 0 else pair[self.k :]
        return drawn

    def groups(self, B: int) -> Ints:
        """Index the pair of every learner."""
        return np.arange(B) // 2

    @property
    def has_groups(self) -> bool:
        """Whether learners avoid each other's rows: always."""
        return True


def round_to_groups(B: int, size: int, at_most: int) -> int:
    """Round B to whole groups: up, or down to stay within bounds; at least two."""
    up = -(-B // size) * size
    return max(2 * size, up if up <= at_most else at_most // size * size)


def check_whole_groups(B: int, size: int, design: str, option: str) -> None:
    """Refuse numbers of learners that are not whole groups, at least two."""
    if 2 * size > B or B % size:
        near = max(2, round(B / size)) * size
        raise ValueError(
            f"`B` must be a multiple of the {option} = {size}, and at least "
            f"{2 * size}, for design={design!r}; got {B}. Use {near}."
        )
