"""Checkpoints of fits and of bootstraps, from which an interrupted run resumes."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Seed
from vstatkit.ensemble.evaluation import AbsentLearner, Batches, Task, evaluate
from vstatkit.ensemble.refit import Repeating
from vstatkit.exceptions import CheckpointError
from vstatkit.kernels.base import Evaluation, OutOfBag, PredictiveModel
from vstatkit.kernels.registry import codec_of
from vstatkit.packing import check, only, take, take_floats, take_size
from vstatkit.sampling.streams import resolve_seed
from vstatkit.storage.archive import Arrays, read_archive, write_archive
from vstatkit.storage.directory import (
    hash_arrays,
    hash_table,
    locked,
    own_name,
    recorded_settings,
    settle_settings,
)

LEARNERS = re.compile(r"learners-(\d{8,})-(\d+)\.npz")
"""Name of a file of learners: the first of them, and the first that is not in it."""

OOB = {f"oob_{field.name}": field.name for field in fields(OutOfBag)}
"""Arrays of the sums of out-of-bag predictions."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class Sums:
    """How far consecutive learners count, and what they add up to.

    Attributes
    ----------
    start, stop : int
        Range of learners.
    asked : int
        Where they were to end.
    oob : OutOfBag or None
        Sums of their out-of-bag predictions.
    """

    start: int
    stop: int
    asked: int
    oob: OutOfBag | None


def learner_files(directory: Path) -> dict[tuple[int, int], Path]:
    """List the files of learners by their ranges, in order."""
    files = {}
    for path in directory.glob("learners-*.npz"):
        match = LEARNERS.fullmatch(path.name)
        if match:
            files[int(match[1]), int(match[2])] = path
    return dict(sorted(files.items()))


def sums_files(directory: Path) -> dict[int, Path]:
    """List the files of sums by the first of their learners."""
    return {
        int(path.stem.removeprefix("sums-")): path
        for path in directory.glob("sums-*.npz")
        if path.stem.removeprefix("sums-").isdigit()
    }


def write_learners(
    directory: Path, task: Task, start: int, parts: list[Evaluation]
) -> None:
    """Write consecutive learners from `start` on, if their kernel can be written."""
    values = np.concatenate([part.values for part in parts])
    learners = [learner for part in parts for learner in part.learners]
    stop = start + len(values)
    codec = codec_of(task.kernel) if learners else None
    document: dict[str, Any] = {"start": start, "stop": stop, "kind": None}
    arrays: Arrays = {"values": values}
    if codec is not None:
        packed, stacked = codec.pack(task.kernel, learners)
        document |= {"kind": codec.name, **packed}
        arrays |= stacked
    write_part(directory / f"learners-{start:08d}-{stop}.npz", document, arrays)


def read_learners(path: Path, task: Task) -> Evaluation | None:
    """Read a file of learners; None where it lacks learners that are to be kept.

    Learners that no file can hold are fitted again when they are needed.
    """
    codec = codec_of(task.kernel) if task.keep else None
    names = ("values", *(() if codec is None else codec.arrays))

    def unpack(document: Any, arrays: Arrays) -> Evaluation | None:
        start, stop = take_size(document, "start", 0), take_size(document, "stop", 1)
        check(path.name == f"learners-{start:08d}-{stop}.npz", "it was renamed.")
        kind = take(document, "kind", str, type(None))
        values = take_floats(arrays, "values", 2)
        check(len(values) == stop - start, "values and learners differ in number.")
        if not task.keep:
            return Evaluation(values, [], None)
        if codec is None:
            again = [AbsentLearner(task, number) for number in range(start, stop)]
            return Evaluation(values, again, None)
        if kind is None:
            return None
        check(kind == codec.name, "its learners are of another kind.")
        only(document, ("start", "stop", "kind", *codec.fields), "the document")
        p = task.kernel.n_features if isinstance(task.kernel, PredictiveModel) else 0
        return Evaluation(
            values, codec.unpack(document, arrays, stop - start, p)[1], None
        )

    return read_part(path, names, unpack, "its learners are then grown again")


def write_sums(directory: Path, sums: Sums) -> None:
    """Write how far learners count, in place of what was there."""
    document = {"start": sums.start, "stop": sums.stop, "asked": sums.asked}
    arrays = {
        name: getattr(sums.oob, field)
        for name, field in OOB.items()
        if sums.oob is not None and getattr(sums.oob, field) is not None
    }
    write_part(directory / f"sums-{sums.start:08d}.npz", document, arrays)


def read_sums(path: Path) -> Sums:
    """Read how far learners count."""

    def unpack(document: Any, arrays: Arrays) -> Sums:
        only(document, ("start", "stop", "asked"), "the document")
        start = take_size(document, "start", 0)
        check(path.name == f"sums-{start:08d}.npz", "it was renamed.")
        stop = take_size(document, "stop", start + 1)
        sums = {field: arrays[name] for name, field in OOB.items() if name in arrays}
        oob = OutOfBag(**sums) if sums else None
        return Sums(start, stop, take_size(document, "asked", stop), oob)

    start = path.stem.removeprefix("sums-").lstrip("0") or "0"
    what = f"the learners from number {start} on are then grown again"
    return read_part(path, tuple(OOB), unpack, what)


def write_part(path: Path, document: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a file of a checkpoint, whole or not at all."""
    # Compression would take longer than the seconds between two files.
    write_archive(path, document, arrays, compress=False, temporary=own_name(path))


def read_part(
    path: Path,
    names: tuple[str, ...],
    unpack: Callable[[Any, Arrays], Read],
    what: str,
) -> Read:
    """Read a file of a checkpoint; `what` says what its removal costs."""
    try:
        return unpack(*read_archive(path, names))
    except Exception as error:
        raise CheckpointError(
            f"the checkpoint {path} cannot be read: {error} Remove this file; {what}, "
            "and the others kept."
        ) from error


SAVE_SECONDS = 5.0
"""Seconds between two files: finished work that a kill costs at most."""

SAME = 1e-8
"""Relative difference between two machines that is allowed for the same values."""

TABLES = {
    "data": "the data",
    "predictors": "the values of the predictors",
    "response": "the values of the response",
    "weights": "the weights",
    "groups": "the groups",
    "points": "the query points",
}
"""What is hashed."""


@dataclass(frozen=True)
class Checkpoint:
    """Where the learners of a fit are kept, and what they depend on.

    Attributes
    ----------
    directory : Path
        Holds files of one fit, and nothing else.
    settings : dict
        All that the learners depend on; data as hashes.
    """

    directory: Path
    settings: dict[str, Any]

    @classmethod
    def of(
        cls,
        directory: str | PathLike[str] | None,
        task: Task,
        settings: Mapping[str, Any],
        tables: Mapping[str, Any],
    ) -> "Checkpoint | None":
        """Describe a fit, if its learners are to be kept.

        Parameters
        ----------
        directory : str, path or None
            Where.
        task : Task
            What is evaluated; its design is one of the settings.
        settings : mapping
            What else was asked for.
        tables : mapping
            Data by the names in `TABLES`.
        """
        if directory is None:
            return None
        drawn = {"design": task.design.name, **asdict(task.design), "oob": task.oob}
        hashes = {
            name: None if table is None else hash_table(table)
            for name, table in tables.items()
        }
        return cls(Path(directory), {**settings, **drawn, **hashes})


def kept_seed(directory: str | PathLike[str] | None, rng: Seed) -> Seed:
    """Give the seed that a directory was begun with, where no other is asked for."""
    if directory is None:
        return rng
    seed = recorded_settings(Path(directory)).get("seed")
    return seed if rng is None and type(seed) is int else resolve_seed(rng)


@contextmanager
def kept_learners(checkpoint: Checkpoint | None) -> Iterator["KeptLearners | None"]:
    """Open a directory for this process alone; None where nothing is to be kept."""
    if checkpoint is None:
        yield None
        return
    with locked(checkpoint.directory):
        settle_settings(checkpoint.directory, checkpoint.settings, hashed=TABLES)
        yield KeptLearners(checkpoint.directory)


class KeptLearners:
    """Learners of one ensemble in a directory; see `Keeper` of the evaluation.

    Parameters
    ----------
    directory : Path
        Locked, and with the settings of this fit. Learners that do not count, because
        a process was killed before it could say so, are removed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        counted = [read_sums(path).stop for path in sums_files(directory).values()]
        for (_, stop), path in learner_files(directory).items():
            if stop > max(counted, default=0):
                path.unlink()

    def passing(
        self, task: Task, start: int, stop: int, grow: Callable[[int], Batches]
    ) -> Batches:
        """Yield learners `start` to `stop`: those kept, then those that are missing."""
        known = self._known(task, start, stop)
        m = 0
        for part in self._kept(task, start, known.stop):
            if start == m == 0:
                self._check_first(task, part.values[0])
            m = part.values.shape[1]
            yield part
        if known.oob is not None:
            yield Evaluation(np.empty((0, m)), [], known.oob)
        if known.stop < stop:
            yield from self._saved(task, known, grow)

    def _known(self, task: Task, start: int, stop: int) -> Sums:
        """Find how far the learners from `start` on are there.

        An ensemble that was grown in several steps continues over all of them.
        """
        files, known = sums_files(self._directory), Sums(start, start, stop, None)
        while known.stop < stop and known.stop in files:
            sums = read_sums(files[known.stop])
            self._check_range(task, sums, stop)
            known = replace(known, stop=sums.stop, oob=_added(known.oob, sums.oob))
        return known

    def _check_range(self, task: Task, found: Sums, stop: int) -> None:
        if found.stop > stop:
            raise CheckpointError(
                f"the checkpoints in {self._directory} hold learners {found.start} to "
                f"{found.stop}, with sums that cannot be taken apart, and this fit "
                f"asks for learners up to {stop} only. Ask for {found.stop} or more, "
                "or choose another directory."
            )
        # The last learners of some designs depend on how many there are to be.
        changed = None
        if found.asked != stop:
            changed = task.design.obstacle(found.stop, stop)
        if changed is not None:
            raise CheckpointError(
                f"the checkpoints in {self._directory} cannot be used: {changed} "
                "Choose another directory."
            )

    def _kept(self, task: Task, start: int, stop: int) -> Iterator[Evaluation]:
        """Read learners, file after file; grow those again whose file was removed."""
        files = learner_files(self._directory)
        while start < stop:
            later = [edges for edges in files if start <= edges[0] < stop]
            first, last = min(later, default=(stop, stop))
            if first > start:
                last = first
            part = None
            if first == start:
                part = read_learners(files[first, last], task)
            if part is None:
                part = replace(evaluate(task, start, last, progress=False), oob=None)
                write_learners(self._directory, task, start, [part])
            yield part
            start = last

    def _check_first(self, task: Task, values: Floats) -> None:
        """Compare a learner with what the kernel gives now: names do not tell."""
        now = evaluate(task, 0, 1, progress=False).values[0]
        if now.shape == values.shape:
            unit = np.abs(values).max()
            if np.abs(now - values).max() <= SAME * unit:
                return
        raise CheckpointError(
            f"the checkpoints in {self._directory} cannot be used: the first learner "
            "now has other values. Its code, or a package that it uses, has changed, "
            "or it draws random numbers of its own. Choose another directory, or "
            "remove this one to start again."
        )

    def _saved(
        self, task: Task, known: Sums, grow: Callable[[int], Batches]
    ) -> Batches:
        """Pass fresh batches on, and write them every few seconds and at the end."""
        fresh: list[Evaluation] = []
        sums, written = known, time.monotonic()

        def write() -> None:
            if fresh:
                write_learners(self._directory, task, sums.stop - _length(fresh), fresh)
                write_sums(self._directory, sums)
                fresh.clear()

        with closing(grow(known.stop)) as batches:
            try:
                for part in batches:
                    fresh.append(part)
                    end = sums.stop + len(part.values)
                    sums = replace(sums, stop=end, oob=_added(sums.oob, part.oob))
                    if time.monotonic() - written > SAVE_SECONDS:
                        write()
                        written = time.monotonic()
                    yield part
            finally:
                write()


def _length(parts: list[Evaluation]) -> int:
    return sum(len(part.values) for part in parts)


def _added(sums: OutOfBag | None, more: OutOfBag | None) -> OutOfBag | None:
    if sums is None or more is None:
        return sums or more
    return sums + more


REPETITIONS = re.compile(r"repetitions-(\d{8,})-(\d+)\.npz")
"""Name of a file of repetitions: the first, and the first that is not in it."""

HASHED = {
    "data": "the training data",
    "groups": "the groups",
    "points": "the query points",
    "learners": "the learners of the fit",
}
"""What is hashed, each with what it was taken of."""


@contextmanager
def kept_repetitions(
    directory: str | PathLike[str] | None, repeating: Repeating, values: Floats
) -> Iterator["KeptRepetitions | None"]:
    """Open a directory for this process alone; None where nothing is to be kept.

    Parameters
    ----------
    directory : str, path or None
        Where; made if it does not exist.
    repeating : Repeating
        What is repeated. Its settings are recorded, and others refused.
    values : ndarray of shape (B, m)
        Learners of the fit: they depend on all that was asked for.
    """
    if directory is None:
        yield None
        return
    where, task = Path(directory), repeating.task
    with locked(where):
        settings = {
            "repeats": "bootstrap",
            "seed": repeating.seed,
            "B": repeating.B,
            "design": task.design.name,
            "fit": {**asdict(task.design)},
            "estimates": repeating.n_values,
            "data": _hash_data(task.kernel),
            "groups": None if task.rows is None else hash_table(task.rows),
            "points": None if task.at is None else hash_table(task.at),
            "learners": hash_arrays([values]),
        }
        settle_settings(where, settings, hashed=HASHED)
        yield KeptRepetitions(where, repeating.n_values)


def _hash_data(kernel: Any) -> list[str]:
    """Fingerprint the observations that a kernel holds."""
    values: list[Any] = []
    if is_dataclass(kernel):
        for field in fields(kernel):
            value = getattr(kernel, field.name)
            values += value if isinstance(value, tuple) else [value]
    kinds = (np.ndarray, pd.DataFrame, pd.Series)
    return [hash_table(table) for table in values if isinstance(table, kinds)]


class KeptRepetitions:
    """Repetitions in a directory; see `RepetitionKeeper` of the bootstrap.

    Parameters
    ----------
    directory : Path
        Locked, and with the settings of this bootstrap.
    n_values : int
        Estimates of every repetition.
    """

    def __init__(self, directory: Path, n_values: int) -> None:
        self._directory, self._n_values = directory, n_values

    def known(self, R: int) -> Floats:
        """Read the repetitions up to R that follow each other from the first on."""
        parts, stop = [np.empty((0, self._n_values))], 0
        for (first, last), path in self._files():
            if first == stop:
                parts.append(self._read(path, first, last))
                stop = last
        return np.concatenate(parts)[:R]

    def save(self, first: int, estimates: Floats) -> None:
        """Write consecutive repetitions from `first` on."""
        last = first + len(estimates)
        path = self._directory / f"repetitions-{first:08d}-{last}.npz"
        write_part(path, {"first": first, "last": last}, {"estimates": estimates})

    def check_first(self, then: Floats, now: Floats) -> None:
        """Compare a repetition with what it gives now: names do not tell."""
        if np.abs(now - then).max() <= SAME * np.abs(then).max():
            return
        raise CheckpointError(
            f"the checkpoints in {self._directory} cannot be used: the first "
            "repetition now has other values. The kernel's code, or a package that it "
            "uses, has changed, or it draws random numbers of its own. Choose another "
            "directory, or remove this one to start again."
        )

    def _files(self) -> list[tuple[tuple[int, int], Path]]:
        """List the files in order."""
        files = {}
        for path in self._directory.glob("repetitions-*.npz"):
            match = REPETITIONS.fullmatch(path.name)
            if match:
                files[int(match[1]), int(match[2])] = path
        return sorted(files.items())

    def _read(self, path: Path, first: int, last: int) -> Floats:
        def unpack(document: Any, arrays: Arrays) -> Floats:
            only(document, ("first", "last"), "the document")
            named = take_size(document, "first", 0), take_size(document, "last", 1)
            check(named == (first, last), "it was renamed.")
            estimates = take_floats(arrays, "estimates", 2)
            shape = (last - first, self._n_values)
            check(estimates.shape == shape, "repetitions and estimates differ.")
            return estimates

        what = f"the repetitions from number {first} on are then made again"
        return read_part(path, ("estimates",), unpack, what)
