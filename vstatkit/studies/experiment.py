"""Experiments: independent iterations with their own streams, run and checkpointed."""

import sys
import time
import zipfile
import zlib
from collections.abc import Generator
from contextlib import closing
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from vstatkit._typing import Floats
from vstatkit.exceptions import CheckpointError
from vstatkit.storage.directory import lock_directory, settle_settings, write_file
from vstatkit.workers import in_parallel

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


NOTE = (
    " (a function that draws random numbers other than from its stream cannot go on "
    "either)"
)


class Checkpoints:
    """Finished iterations of one experiment.

    Parameters
    ----------
    directory : Path
        Where the files are; created if it does not exist.
    experiment : Experiment
        Its settings must be those that the files were made with.
    seed : int
        Seed of the study.
    """

    def __init__(self, directory: Path, experiment: Experiment, seed: int) -> None:
        self._directory = directory
        settings = {
            "experiment": experiment.name,
            "seed": seed,
            **experiment.settings(),
        }
        if isinstance(experiment, Fingerprinted):
            settings |= experiment.fingerprint(seed)
        settle_settings(directory, settings, hashed=FINGERPRINTS, note=NOTE)

    def load(self) -> dict[int, Record]:
        """Read all finished iterations."""
        records: dict[int, Record] = {}
        for path in sorted(self._directory.glob("[0-9]*-[0-9]*.npz")):
            stacked = _read_arrays(path)
            for row, iteration in enumerate(stacked.pop("iteration").tolist()):
                records[iteration] = {name: a[row] for name, a in stacked.items()}
        return records

    def save(self, records: dict[int, Record]) -> None:
        """Add finished iterations, in a file of their own."""
        if not records:
            return
        iterations = sorted(records)
        stacked: dict[str, Any] = {"iteration": np.array(iterations)}
        stacked |= stack([records[iteration] for iteration in iterations])
        path = self._directory / f"{iterations[0]:06d}-{len(iterations)}.npz"
        write_file(path, lambda file: np.savez(file, **stacked))


def _read_arrays(path: Path) -> Record:
    broken = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            stacked = {name: file[name] for name in file.files}
        lengths = {len(array) for array in stacked.values()}
        if len(lengths) != 1 or "iteration" not in stacked:
            raise ValueError("it does not hold iterations")
    except broken as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error}. Remove this file; its "
            "iterations are then run again, and those of the others kept."
        ) from error
    return stacked


def stack(records: list[Record]) -> Record:
    """Put iterations together, as the first axis of every array."""
    return {name: np.stack([one[name] for one in records]) for name in records[0]}


SAVE_SECONDS = 5.0
"""Finished work that a kill may cost at most, in seconds."""


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

    The numbers depend on (seed, experiment, iteration) alone: not on `n_jobs`, on
    the order, or on how often the run was interrupted.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    iterations : int
        Number of iterations.
    seed : int
        Seed of the study.
    directory : Path, optional
        Where finished iterations are kept; nowhere by default. One process at a time
        can use it.
    n_jobs : int, optional
        Workers, as joblib counts them.
    progress : bool, optional
        Show progress with the time remaining; by default on a terminal.

    Returns
    -------
    dict of ndarray
        Arrays with iterations as their first axis.
    """
    iterations, seed = check_iterations(iterations), check_seed(seed)
    if directory is None:
        return _run(experiment, iterations, seed, n_jobs=n_jobs, progress=progress)
    with lock_directory(directory):
        with one_thread():
            kept = Checkpoints(directory, experiment, seed)
        return _run(
            experiment, iterations, seed, kept, n_jobs=n_jobs, progress=progress
        )


def _run(
    experiment: Experiment,
    iterations: int,
    seed: int,
    kept: Checkpoints | None = None,
    *,
    n_jobs: int | None,
    progress: bool | None,
) -> Record:
    records = {} if kept is None else kept.load()
    missing = [one for one in range(iterations) if one not in records]
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
    try:
        with bar, closing(_finished(experiment, missing, seed, n_jobs)) as finished:
            for iteration, record in finished:
                records[iteration] = fresh[iteration] = record
                bar.update()
                if kept is not None and time.monotonic() - saved > SAVE_SECONDS:
                    kept.save(fresh)
                    fresh, saved = {}, time.monotonic()
    finally:
        if kept is not None:
            kept.save(fresh)
    return stack([records[iteration] for iteration in range(iterations)])


def check_iterations(iterations: Any) -> int:
    """Refuse what is no number of data sets, and numbers that are too small."""
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer):
        raise TypeError(f"`iterations` must be a whole number; got {iterations!r}.")
    if iterations < 2:
        raise ValueError(
            f"`iterations` must be at least 2, to see how they vary; got {iterations}."
        )
    return int(iterations)


def one_thread() -> threadpool_limits:
    """Give matrix products one thread each.

    The iterations fill the cores, and sums come out the same to the last bit for
    any number of them.
    """
    return threadpool_limits(limits=1, user_api="blas")


def _finished(
    experiment: Experiment, missing: list[int], seed: int, n_jobs: int | None
) -> Generator[tuple[int, Record], None, None]:
    """Yield iterations as they finish."""
    with one_thread():
        yield from in_parallel(
            _run_one,
            ((iteration,) for iteration in missing),
            n_jobs=n_jobs,
            ordered=False,
            shared=(experiment, seed),
        )


def _run_one(experiment: Experiment, seed: int, iteration: int) -> tuple[int, Record]:
    with one_thread():  # in other processes, too
        return iteration, experiment.run(seed, iteration)
