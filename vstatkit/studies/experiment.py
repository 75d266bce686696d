"""What an experiment is: settings, and iterations with streams of their own."""

import dataclasses
import hashlib
import re
import zlib
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

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

PRECISION = 2.0**40
"""Inverse of the relative change that fingerprints see; machines differ by less."""


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


def describe(thing: Any) -> str:
    """Name a function, or show a value, without addresses in memory."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, BaseEstimator):
        given = sorted(thing.get_params(deep=False).items())
        shown = ", ".join(f"{name}={_describe_inner(value)}" for name, value in given)
        return f"{type(thing).__qualname__}({shown})"
    if callable(thing) and not dataclasses.is_dataclass(thing):
        return str(getattr(thing, "__qualname__", type(thing).__qualname__))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def _describe_inner(value: Any) -> str:
    """Describe a parameter: an estimator, or steps of some, or anything."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe_inner(one) for one in value)}]"
    return repr(value) if isinstance(value, str) else describe(value)


def hash_arrays(arrays: Sequence[Floats]) -> str:
    """Fingerprint numbers and shapes, to the digits that machines agree on."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(_rounded(array).tobytes())
    return digest.hexdigest()[:16]


def hash_frame(frame: pd.DataFrame) -> str:
    """Fingerprint names, kinds and values of columns, and levels that do not occur."""
    digest = hashlib.sha256()
    for name, column in frame.items():
        kind = column.dtype
        levels = list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else []
        digest.update(repr((name, str(kind), list(map(str, levels)))).encode())
        if pd.api.types.is_float_dtype(kind):
            digest.update(_rounded(column.to_numpy(dtype=np.float64)).tobytes())
        else:
            rows = pd.util.hash_pandas_object(column, index=False, categorize=False)
            digest.update(rows.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _rounded(array: Floats) -> Floats:
    mantissa, exponent = np.frexp(array)
    with np.errstate(over="ignore"):  # the largest double may round to infinity
        return np.ldexp(np.round(mantissa * PRECISION), exponent) + 0.0
