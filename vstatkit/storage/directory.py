"""Directories of checkpoints: whole files, and the settings that they were made with.

Every file is written under another name and moved into place, so a file that
exists is complete. Settings are recorded with the numbers; numbers made with other
settings are refused, not mixed in.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vstatkit.exceptions import CheckpointError
from vstatkit.scratch import is_alive
from vstatkit.storage.files import write_whole

MANIFEST = "settings.json"
TEMPORARY = re.compile(
    r"(?:settings\.json|(?:[a-z]+-)?\d{6,}(?:-\d+)?\.npz)\.(\d+)\.tmp"
)
"""Name of an unfinished file; it holds the number of the process that writes it."""

SHOWN = 60
"""Number of characters of a setting that a message shows."""


def settle_settings(
    directory: Path,
    settings: Mapping[str, Any],
    *,
    hashed: Mapping[str, str],
    note: str = "",
) -> None:
    """Record settings in a directory, or refuse those that are not the recorded ones.

    Parameters
    ----------
    directory : Path
        Made if it does not exist. What killed runs were writing there is removed.
    settings : mapping
        All that the numbers depend on; the version of vstatkit is added.
    hashed : mapping
        What each setting that is a fingerprint was taken of. Each one depends on those
        before it, and all of them on the other settings.
    note : str
        What to add where a fingerprint differs.
    """
    directory.mkdir(parents=True, exist_ok=True)
    remove_unfinished(directory)
    full = {"vstatkit": metadata.version("vstatkit"), **settings}
    wanted = json.loads(json.dumps(full, default=_plain))
    if not (directory / MANIFEST).exists():
        text = json.dumps(wanted, indent=1)
        write_file(directory / MANIFEST, lambda file: file.write(text.encode()))
        return
    changed = _changes(recorded_settings(directory), wanted, hashed, note)
    if changed:
        raise CheckpointError(
            f"the checkpoints in {directory} were made with other settings: "
            f"{'; '.join(changed)}. Choose another directory, or remove this one "
            "to start again."
        )


def recorded_settings(directory: Path) -> dict[str, Any]:
    """Read the settings in a directory; none where nothing is recorded yet."""
    path = directory / MANIFEST
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(_unreadable_manifest(path, str(error))) from error
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise CheckpointError(_unreadable_manifest(path, f"it holds a {kind}"))
    return found


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write under a name that is this process's own, then move into place."""
    write_whole(path, write, temporary=own_name(path))


def own_name(path: Path) -> Path:
    """Name of a file while this process writes it."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def remove_unfinished(directory: Path) -> None:
    """Remove what killed runs were writing; keep the files of live ones."""
    for path in directory.glob("*.tmp"):
        match = TEMPORARY.fullmatch(path.name)
        if match and not is_alive(int(match[1])):
            with suppress(OSError):  # another run was faster, or has it open
                path.unlink()


def _changes(
    found: Mapping[str, Any],
    wanted: Mapping[str, Any],
    hashed: Mapping[str, str],
    note: str,
) -> list[str]:
    """Say what differs, the seed first, and nothing that follows from the rest."""
    keys = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    if "seed" in keys:
        # Query points may be drawn from the seed.
        keys = ["seed", *(key for key in keys if key not in ("seed", "at"))]
    plain = [key for key in keys if key not in hashed]
    if plain:
        return [_other_setting(key, found, wanted) for key in plain]
    first = [key for key in hashed if key in keys][:1]
    return [
        f"{hashed[key]} are not the same as then{note}"
        if key in found
        else f"{hashed[key]} were not recorded"
        for key in first
    ]


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


def _unreadable_manifest(path: Path, why: str) -> str:
    return (
        f"the settings of the checkpoints, {path}, cannot be read: {why}. What the "
        "files beside it were made with is not known: choose another directory, or "
        "remove this one to start again."
    )
