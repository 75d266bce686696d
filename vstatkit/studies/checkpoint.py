"""Iterations kept on disk, so that a run that was killed can resume.

A fingerprint of what functions return is recorded with the settings: their names do
not tell them apart.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from vstatkit.exceptions import CheckpointError
from vstatkit.storage.directory import settle_settings, write_file
from vstatkit.studies.experiment import FINGERPRINTS, Experiment, Fingerprinted, Record

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
