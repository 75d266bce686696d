"""Learners kept on disk while an ensemble grows.

Values and learners are in files of consecutive learners, written every few seconds.
The sums of their out-of-bag predictions are as large as the data: only the last ones
are kept, in a file that is replaced. It says how far the learners count, so a process
that is killed between the two writes loses the last learners, and counts none twice.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from vstatkit._typing import Floats, Seed
from vstatkit.ensemble.evaluate import Batches, Task, evaluate
from vstatkit.exceptions import CheckpointError
from vstatkit.kernels.evaluation import Evaluation, OutOfBag
from vstatkit.sampling.streams import resolve_seed
from vstatkit.storage.directory import recorded_settings, settle_settings
from vstatkit.storage.fingerprints import hash_table
from vstatkit.storage.learner_files import (
    Sums,
    learner_files,
    read_learners,
    read_sums,
    sums_files,
    write_learners,
    write_sums,
)
from vstatkit.storage.locks import locked

SAVE_SECONDS = 5.0
"""Seconds between two files: finished work that a kill costs at most."""

SAME = 1e-8
"""Relative difference of a learner's values that two machines may have."""

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
    found = recorded_settings(Path(directory)).get("seed")
    return found if rng is None and type(found) is int else resolve_seed(rng)


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
            found = read_sums(files[known.stop])
            self._check_range(task, found, stop)
            known = replace(known, stop=found.stop, oob=_added(known.oob, found.oob))
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
