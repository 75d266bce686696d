"""What an experiment is: settings, and iterations with streams of their own."""

import dataclasses
import zlib
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

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
        """All that the numbers depend on beside the seed, as JSON can hold it."""

    def run(self, seed: int, iteration: int) -> Record:
        """Run one iteration; a pure function of its arguments."""


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
    sequence = np.random.SeedSequence([seed, key, iteration, int(draw)])
    return np.random.default_rng(sequence)


def describe(thing: Any) -> str:
    """Name a function or show a data class, without addresses in memory."""
    if dataclasses.is_dataclass(thing):
        return repr(thing)
    if isinstance(thing, str):
        return thing
    return str(getattr(thing, "__qualname__", type(thing).__qualname__))
