"""Iterations kept on disk, so that a run that was killed can resume.

Every file is written under another name and moved into place, so a file that
exists is complete. Settings are recorded with the numbers, and so is a fingerprint
of what functions return; numbers made with other settings are refused, not mixed in.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vstatkit.exceptions import VstatkitError
from vstatkit.storage.files import write_whole
from vstatkit.studies.experiment import FINGERPRINTS, Experiment, Fingerprinted, Record

MANIFEST = "settings.json"
TEMPORARY = re.compile(r"(?:settings\.json|\d{6,}-\d+\.npz)\.(\d+)\.tmp")
"""Name of an unfinished file; it holds the number of the process that writes it."""

SHOWN = 60
"""Number of characters of a setting that a message shows."""


class CheckpointError(VstatkitError):
    """Existing checkpoints cannot be used."""


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
        directory.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(directory)
        manifest = {
            "vstatkit": metadata.version("vstatkit"),
            "experiment": experiment.name,
            "seed": seed,
            **experiment.settings(),
        }
        if isinstance(experiment, Fingerprinted):
            manifest |= experiment.fingerprint(seed)
        self._check(json.loads(json.dumps(manifest, default=_plain)))

    def _check(self, wanted: dict[str, Any]) -> None:
        path = self._directory / MANIFEST
        if not path.exists():
            text = json.dumps(wanted, indent=1)
            _write(path, lambda file: file.write(text.encode()))
            return
        changed = _changes(_read_manifest(path), wanted)
        if changed:
            raise CheckpointError(
                f"the checkpoints in {self._directory} were made with other settings: "
                f"{'; '.join(changed)}. Choose another directory, or remove this one "
                "to start again."
            )

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
        _write(
            path,
            lambda file: np.savez(file, **stacked),
        )


def _changes(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Say what differs, the seed first, and nothing that follows from the rest."""
    keys = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if "seed" in keys:
        # Query points may be drawn from the seed.
        keys = ["seed", *(key for key in keys if key not in ("seed", "at"))]
    plain = [key for key in keys if key not in FINGERPRINTS]
    if plain:
        return [_other_setting(key, found, wanted) for key in plain]
    hashes = [key for key in FINGERPRINTS if key in keys][:1]
    return [_other_functions(key, found) for key in hashes]


def _other_functions(key: str, found: Mapping[str, Any]) -> str:
    what = FINGERPRINTS[key]
    if key not in found:
        return f"{what} were not recorded"
    return (
        f"{what} are not the same as then (a function that draws random numbers "
        "other than from its stream cannot go on either)"
    )


def _other_setting(
    key: str, found: Mapping[str, Any], wanted: Mapping[str, Any]
) -> str:
    was, now = (
        repr(one[key]) if key in one else "not recorded" for one in (found, wanted)
    )
    pairs = enumerate(zip(was, now, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(was), len(now)))
    return f"{key} (was {_shown(was, same)}, now {_shown(now, same)})"


def _shown(text: str, same: int) -> str:
    """Shorten a long text to the part that tells it from another."""
    start = max(0, min(same - SHOWN // 2, len(text) - SHOWN))
    part = text[start : start + SHOWN]
    return f"{'...' * (start > 0)}{part}{'...' * (start + SHOWN < len(text))}"


def _plain(value: Any) -> Any:
    """Convert a value to what JSON can hold."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(_unreadable_manifest(path, str(error))) from error
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise CheckpointError(_unreadable_manifest(path, f"it holds a {kind}"))
    return found


def _unreadable_manifest(path: Path, why: str) -> str:
    return (
        f"the settings of the checkpoints, {path}, cannot be read: {why}. What the "
        "files beside it were made with is not known: choose another directory, or "
        "remove this one to start again."
    )


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


def _remove_unfinished(directory: Path) -> None:
    """Remove what killed runs were writing; keep the files of live ones."""
    for path in directory.glob("*.tmp"):
        match = TEMPORARY.fullmatch(path.name)
        if match and not _alive(int(match[1])):
            with suppress(OSError):  # another run was faster, or has it open
                path.unlink()


def _alive(process: int) -> bool:
    if os.name != "posix":
        return False  # an open file cannot be removed there
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write under a name that is this process's own, then move into place."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    write_whole(path, write, temporary=temporary)


def stack(records: list[Record]) -> Record:
    """Put iterations together, as the first axis of every array."""
    return {name: np.stack([one[name] for one in records]) for name in records[0]}
