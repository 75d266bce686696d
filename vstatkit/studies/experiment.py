"""Experiments: independent iterations with their own random streams and checkpoints."""

import sys
import time
import zlib
from contextlib import closing, nullcontext
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from zipfile import BadZipFile

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from vstatkit._typing import Floats
from vstatkit.exceptions import CheckpointError
from vstatkit.storage.checkpoint import lock_directory, settle_settings, write_file
from vstatkit.validation import is_whole
from vstatkit.workers import in_parallel

# Arrays of one iteration; in results, iterations are the first axis.
Record: TypeAlias = dict[str, Floats]


class Experiment(Protocol):
    """Independent iterations of one simulation.

    An experiment with functions that their names do not identify also has a method
    `fingerprint(seed)`, which hashes their values under the keys of `FINGERPRINTS`.
    """

    @property
    def name(self) -> str:
        """Name of its random streams and checkpoints."""

    def settings(self) -> dict[str, Any]:
        """Describe, for JSON, all that the numbers depend on apart from the seed."""

    def run(self, seed: int, iteration: int) -> Record:
        """Run one iteration; a pure function of its arguments."""


# Description of each fingerprint; each one depends on those before it.
FINGERPRINTS = {
    "drawn": "the data that the generator draws",
    "values": "the kernel's values",
}
FINGERPRINT_NOTE = (
    " (a function that draws random numbers other than from its stream cannot be "
    "resumed either)"
)


class Draw(IntEnum):
    """Purpose of a random stream."""

    DATA = 0
    ENSEMBLE = 1
    POINTS = 2


def iteration_stream(
    seed: int, name: str, iteration: int, draw: Draw
) -> np.random.Generator:
    """Create the random stream of one iteration of the experiment `name`."""
    key = zlib.crc32(name.encode())
    sequence = np.random.SeedSequence([check_seed(seed), key, iteration, int(draw)])
    return np.random.default_rng(sequence)


def check_seed(seed: Any) -> int:
    """Return the seed as an int; raise if it is not a whole number from zero on."""
    return _check_whole("seed", seed, 0, "zero or more")


def check_iterations(iterations: Any) -> int:
    """Return the number of iterations as an int; raise unless it is at least 2."""
    return _check_whole(
        "iterations", iterations, 2, "at least 2, to estimate variances"
    )


def _check_whole(name: str, value: Any, least: int, bound: str) -> int:
    if not is_whole(value):
        raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be {bound}; got {value}.")
    return int(value)


class Checkpoints:
    """Files of the finished iterations of one experiment.

    The settings of the experiment must be those recorded in the directory.
    """

    def __init__(self, directory: Path, experiment: Experiment, seed: int) -> None:
        self._directory = directory
        settings = {"experiment": experiment.name, "seed": seed}
        settings |= experiment.settings()
        if hasattr(experiment, "fingerprint"):
            settings |= experiment.fingerprint(seed)
        settle_settings(directory, settings, hashed=FINGERPRINTS, note=FINGERPRINT_NOTE)

    def load(self) -> dict[int, Record]:
        """Read all finished iterations."""
        records: dict[int, Record] = {}
        for path in sorted(self._directory.glob("[0-9]*-[0-9]*.npz")):
            stacked = _read_arrays(path)
            for row, iteration in enumerate(stacked.pop("iteration").tolist()):
                records[iteration] = {name: a[row] for name, a in stacked.items()}
        return records

    def save(self, records: dict[int, Record]) -> None:
        """Write finished iterations to a new file."""
        if not records:
            return
        iterations = sorted(records)
        stacked: Any = stack([records[iteration] for iteration in iterations])
        path = self._directory / f"{iterations[0]:06d}-{len(iterations)}.npz"
        write_file(path, lambda file: np.savez(file, iteration=iterations, **stacked))


def _read_arrays(path: Path) -> Record:
    broken = (ValueError, EOFError, KeyError, BadZipFile, zlib.error)
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            stacked = {name: file[name] for name in file.files}
        lengths = {len(array) for array in stacked.values()}
        if len(lengths) != 1 or "iteration" not in stacked:
            raise ValueError("it does not contain iterations")
    except broken as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error}. Remove this file; its "
            "iterations are then run again, and those of the others kept."
        ) from error
    return stacked


def stack(records: list[Record]) -> Record:
    """Stack records along a new first axis of every array."""
    return {name: np.stack([record[name] for record in records]) for name in records[0]}


SAVE_SECONDS = 5.0  # longest time between two saves, in seconds


def run_experiment(
    experiment: Experiment,
    iterations: int,
    *,
    seed: int,
    directory: Path | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Record:
    """Run the iterations that are not finished yet, and return all of them.

    The numbers depend on the seed, the experiment and the iteration only: not on
    `n_jobs`, the order, or interruptions. Checkpoints go into `directory`, which one
    process uses at a time. Iterations are the first axis of the returned arrays.
    """
    iterations, seed = check_iterations(iterations), check_seed(seed)
    lock = nullcontext() if directory is None else lock_directory(directory)
    with lock, one_thread():
        checkpoints = (
            None if directory is None else Checkpoints(directory, experiment, seed)
        )
        records = checkpoints.load() if checkpoints else {}
        missing = [number for number in range(iterations) if number not in records]
        fresh: dict[int, Record] = {}
        saved = time.monotonic()
        bar = tqdm(
            desc=experiment.name,
            total=iterations,
            initial=iterations - len(missing),
            unit="it",
            disable=None if progress is None else not progress,
            mininterval=0.5 if sys.stderr.isatty() else 20,
        )
        finished = in_parallel(
            _run_iteration,
            ((number,) for number in missing),
            n_jobs=n_jobs,
            ordered=False,
            shared=(experiment, seed),
        )
        try:
            with bar, closing(finished):
                for iteration, record in finished:
                    records[iteration] = fresh[iteration] = record
                    bar.update()
                    if checkpoints and time.monotonic() - saved > SAVE_SECONDS:
                        checkpoints.save(fresh)
                        fresh, saved = {}, time.monotonic()
        finally:
            if checkpoints:
                checkpoints.save(fresh)
    return stack([records[iteration] for iteration in range(iterations)])


def one_thread() -> threadpool_limits:
    """Limit BLAS to one thread, so that sums are the same to the last bit."""
    return threadpool_limits(limits=1, user_api="blas")


def _run_iteration(
    experiment: Experiment, seed: int, iteration: int
) -> tuple[int, Record]:
    with one_thread():  # in other processes, too
        return iteration, experiment.run(seed, iteration)
