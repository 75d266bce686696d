"""Iterations kept on disk, so that a run that was killed can go on.

Every file is written under another name and moved into place, so a file that
is there is whole. Settings are recorded beside the numbers; other settings are
refused rather than mixed with them.
"""

import json
import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vstatkit.exceptions import VstatkitError
from vstatkit.studies.experiment import Experiment, Record

MANIFEST = "settings.json"


class CheckpointError(VstatkitError):
    """Checkpoints of other settings are in the way."""


class Checkpoints:
    """Finished iterations of one experiment.

    Parameters
    ----------
    directory : Path
        Where the files are; made if it is not there.
    experiment : Experiment
        Its settings must be those that the files were made with.
    seed : int
        Seed of the study.
    """

    def __init__(self, directory: Path, experiment: Experiment, seed: int) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {
            "vstatkit": metadata.version("vstatkit"),
            "experiment": experiment.name,
            "seed": seed,
            **experiment.settings(),
        }
        self._check(json.loads(json.dumps(manifest)))

    def _check(self, wanted: dict[str, Any]) -> None:
        path = self._directory / MANIFEST
        if not path.exists():
            text = json.dumps(wanted, indent=1)
            _write(path, lambda file: file.write(text.encode()))
            return
        found = json.loads(path.read_text(encoding="utf-8"))
        changed = [
            f"{key} (was {found.get(key)!r}, now {wanted.get(key)!r})"
            for key in sorted({*found, *wanted})
            if found.get(key) != wanted.get(key)
        ]
        if changed:
            raise CheckpointError(
                f"the checkpoints in {self._directory} were made with other settings: "
                f"{'; '.join(changed)}. Choose another directory, or remove this one "
                "to start again."
            )

    def load(self) -> dict[int, Record]:
        """Read all finished iterations."""
        records: dict[int, Record] = {}
        for path in sorted(self._directory.glob("*.npz")):
            with np.load(path, allow_pickle=False) as file:
                stacked = {name: file[name] for name in file.files}
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
        _write(
            path,
            lambda file: np.savez(file, **stacked),
        )


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write under a name of this process's own, then move into place."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def stack(records: list[Record]) -> Record:
    """Put iterations together, as the first axis of every array."""
    return {name: np.stack([one[name] for one in records]) for name in records[0]}
