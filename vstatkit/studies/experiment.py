"""What an experiment is: settings, and iterations with streams of their own."""

import zlib
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from vstatkit._typing import Floats

Record: TypeAlias = dict[str, Floats]
"""What one iteration gives; in results, iterations are the first axis."""


class Experiment(Protocol):
    """Independent iterations of one simulation."""

    @property
    def name(self) -> str:
        """Name of its streams and of its checkpoints."""

    def settings(self) -> dict[str, Any]:
        """All that the numbers depend on apart from the seed, as JSON can hold it."""

    def run(self, seed: int, iteration: int) -> Record:
        """Run one iteration; a pure function of its arguments."""


@runtime_checkable
class Fingerprinted(Protocol):
    """An experiment made of functions, which their names do not tell apart."""

    def fingerprint(self, seed: int) -> dict[str, str]:
        """Hash what the functions give, under the keys of `FINGERPRINTS`."""


FINGERPRINTS = {
    "drawn": "the data that the generator draws",
    "values": "the kernel's values",
}
"""What each fingerprint is taken of; each one depends on those before it."""


class Draw(IntEnum):
    """What a stream of an iteration is for."""

    DATA = 0
    ENSEMBLE = 1
    POINTS = 2


def iteration_stream(
    seed: int, name: str, iteration: int, draw: Draw
) -> np.random.Generator:
    """Open the stream of one iteration, whatever ran before it.

    Parameters
    ----------
    seed : int
        Seed of the whole study.
    name : str
        Experiment.
    iteration : int
        Iteration, from zero.
    draw : Draw
        What the stream is for.
    """
    key = zlib.crc32(name.encode())
    sequence = np.random.SeedSequence([check_seed(seed), key, iteration, int(draw)])
    return np.random.default_rng(sequence)


def check_seed(seed: Any) -> int:
    """Refuse seeds from which no stream can be made."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"`seed` must be a whole number; got {seed!r}.")
    if seed < 0:
        raise ValueError(f"`seed` must be zero or more; got {seed}.")
    return int(seed)
