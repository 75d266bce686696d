"""Repetitions of a fit kept on disk, so that a bootstrap that was killed can resume."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.bootstrap import Repeating
from vstatkit.exceptions import CheckpointError
from vstatkit.packing import check, only, take_floats, take_size
from vstatkit.storage.archive import Arrays
from vstatkit.storage.directory import settle_settings
from vstatkit.storage.fingerprints import hash_arrays, hash_table
from vstatkit.storage.learner_files import read_part, write_part
from vstatkit.storage.locks import locked

REPETITIONS = re.compile(r"repetitions-(\d{8,})-(\d+)\.npz")
"""Name of a file of repetitions: the first, and the first that is not in it."""

SAME = 1e-8
"""Relative difference of a repetition that two machines may have."""

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
    found: list[Any] = []
    if is_dataclass(kernel):
        for one in fields(kernel):
            value = getattr(kernel, one.name)
            found += value if isinstance(value, tuple) else [value]
    kinds = (np.ndarray, pd.DataFrame, pd.Series)
    return [hash_table(one) for one in found if isinstance(one, kinds)]


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
        found = {}
        for path in self._directory.glob("repetitions-*.npz"):
            match = REPETITIONS.fullmatch(path.name)
            if match:
                found[int(match[1]), int(match[2])] = path
        return sorted(found.items())

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
