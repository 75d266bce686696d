"""Random streams that depend on (seed, learner, purpose) and on nothing else."""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from vstatkit._typing import Seed


class Purpose(IntEnum):
    """Purposes of streams; streams of different purposes never overlap."""

    SUBSAMPLE = 0
    LEARNER = 1
    GROUP = 2
    ORDER = 3
    BAND = 4
    REFERENCE = 5
    DEALING = 6
    OUT_OF_BAG = 7
    COPY = 8
    QUESTION = 9
    SPREAD = 10
    BOOTSTRAP = 11
    AVERAGES = 12
    POOLING = 13


def resolve_seed(rng: Seed) -> int:
    """Convert the `rng` argument to the 64-bit seed of all streams."""
    if rng is None:
        rng = np.random.default_rng()
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**32))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(
            "`rng` must be an integer seed, a numpy Generator or None; "
            f"got {type(rng).__name__}."
        )
    if not 0 <= rng < 2**64:
        raise ValueError(f"`rng` must be a seed in [0, 2**64); got {rng}.")
    return int(rng)


def learner_keys(
    seed: int, start: int, stop: int, purpose: Purpose = Purpose.LEARNER
) -> NDArray[np.uint64]:
    """Hash (seed, purpose, learner) by splitmix64, as seeds for compiled code."""
    learners = np.arange(start, stop, dtype=np.uint64)
    root = _mix(np.full(1, seed, dtype=np.uint64)) + np.uint64(purpose)
    return _mix(learners + _mix(root))


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def stream(seed: int, index: int, purpose: Purpose) -> np.random.Generator:
    """Open the stream of one learner (or group, or block) for one purpose.

    The generator is counter-based and keyed by (seed, index), so a stream does not
    depend on which others were opened.
    """
    key = np.array([seed, index], dtype=np.uint64)
    counter = np.array([0, 0, 0, int(purpose)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))
