"""Directories of checkpoints: locks, and hashes of settings and data."""

import dataclasses
import errno
import hashlib
import json
import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from vstatkit._typing import Floats
from vstatkit.exceptions import CheckpointError, VstatkitWarning
from vstatkit.scratch import is_alive
from vstatkit.storage.archive import write_whole

LOCK = "lock"  # file that is locked. It is not removed: only the system's lock matters.
# Error numbers of a lock that another process holds.
TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
LOCKED_BYTE = 2**30  # locked on Windows; beyond the text that other processes read

_HANDLES: set[int] = set()


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Lock a directory against other processes, and other calls in this process.

    The lock is the operating system's. It ends with the process, even if that is
    killed, and a file that was left behind does not lock the directory. The directory
    is created if it does not exist; if it is in use, the error names the process.
    """
    if directory.exists() and not directory.is_dir():
        raise CheckpointError(
            f"`checkpoint` must be a directory; {directory} is a file."
        )
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _HANDLES.add(handle)
    try:
        try:
            _acquire(handle)
        except OSError as error:
            if error.errno in TAKEN:
                raise CheckpointError(_in_use(directory, handle)) from None
            warnings.warn(
                f"{directory} cannot be locked ({error.strerror}): its file system "
                "has no locks. Use it from one process at a time.",
                VstatkitWarning,
                stacklevel=3,
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield
    finally:
        if handle in _HANDLES:  # unless a forked process has closed it
            _HANDLES.discard(handle)
            _release(handle)
            os.close(handle)


def _in_use(directory: Path, handle: int) -> str:
    process, _, host = os.read(handle, 300).decode(errors="replace").partition(" ")
    who = f"process {process} on {host.strip()}" if process else "another process"
    if process == str(os.getpid()) and host.strip() == socket.gethostname():
        who = f"this process ({process})"
    return (
        f"the checkpoints in {directory} are in use by {who}. Wait for it to end, or "
        "choose another directory."
    )


if sys.platform == "win32":
    import msvcrt

    def _acquire(handle: int) -> None:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

    def _release(handle: int) -> None:
        """Do nothing: the system releases the lock when the file is closed."""
else:
    import fcntl

    def _acquire(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(handle: int) -> None:
        """Release the lock now, even if a process that is being forked has a copy."""
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_UN)


def _close_copies() -> None:
    """Close the handles that a forked process has inherited with their locks."""
    while _HANDLES:
        os.close(_HANDLES.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)


PRECISION = 2.0**40  # inverse of the relative precision of hashes


def describe(thing: Any) -> str:
    """Describe a function or a value without memory addresses."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, BaseEstimator):
        parameters = sorted(thing.get_params(deep=False).items())
        pairs = [f"{name}={_describe_inner(value)}" for name, value in parameters]
        return f"{type(thing).__qualname__}({', '.join(pairs)})"
    if callable(thing) and not dataclasses.is_dataclass(thing):
        return str(getattr(thing, "__qualname__", type(thing).__qualname__))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def _describe_inner(value: Any) -> str:
    """Describe a parameter, which may be an estimator or a list of steps."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe_inner(item) for item in value)}]"
    return repr(value) if isinstance(value, str) else describe(value)


def hash_arrays(arrays: Sequence[Floats]) -> str:
    """Hash numbers, rounded to `PRECISION`, and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(_round_digits(array).tobytes())
    return digest.hexdigest()[:16]


def hash_frame(frame: pd.DataFrame, *, exactly: bool = False) -> str:
    """Hash names, dtypes, categories and values of columns.

    Floats are rounded to `PRECISION`, unless `exactly`.
    """
    digest = hashlib.sha256()
    for name, column in frame.items():
        kind = column.dtype
        levels = list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else []
        digest.update(repr((name, str(kind), list(map(str, levels)))).encode())
        if pd.api.types.is_float_dtype(kind):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            digest.update((values if exactly else _round_digits(values)).tobytes())
        else:
            rows = pd.util.hash_pandas_object(column, index=False, categorize=False)
            digest.update(rows.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _round_digits(array: Floats) -> Floats:
    mantissa, exponent = np.frexp(array)
    with np.errstate(over="ignore"):  # the largest double may round to infinity
        return np.ldexp(np.round(mantissa * PRECISION), exponent) + 0.0


def hash_table(table: Any) -> str | None:
    """Hash observations exactly: a frame, a Series or an array; None if there are none.

    Arrays of numbers are hashed in their memory order.
    """
    if table is None:
        return None
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "biuf":
        return hash_frame(pd.DataFrame(table), exactly=True)
    digest = hashlib.sha256(repr((table.shape, str(table.dtype))).encode())
    columns = table.ndim > 1 and not table.flags.c_contiguous
    digest.update(np.ascontiguousarray(table.T if columns else table).data)
    return digest.hexdigest()[:16]


MANIFEST = "settings.json"
# Name of an unfinished file; it contains the id of the process that writes it.
TEMPORARY = re.compile(
    r"(?:settings\.json|(?:[a-z]+-)?\d{6,}(?:-\d+)?\.npz)\.(\d+)\.tmp"
)
SHOWN = 60  # number of characters of a setting that a message shows


def settle_settings(
    directory: Path,
    settings: Mapping[str, Any],
    *,
    hashed: Mapping[str, str],
    note: str = "",
) -> None:
    """Record settings in a directory, or check that they equal the recorded ones.

    The settings are everything that the numbers depend on; the version of vstatkit is
    added. `hashed` describes those that are hashes: each one depends on those before
    it, and all of them on the other settings. The `note` is added to the message if a
    hash differs. Unfinished files of killed runs are removed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(directory)
    full = {"vstatkit": metadata.version("vstatkit"), **settings}
    current = json.loads(json.dumps(full, default=_to_json))
    if not (directory / MANIFEST).exists():
        text = json.dumps(current, indent=1)
        write_file(directory / MANIFEST, lambda file: file.write(text.encode()))
        return
    changed = _changes(recorded_settings(directory), current, hashed, note)
    if changed:
        raise CheckpointError(
            f"the checkpoints in {directory} were made with other settings: "
            f"{'; '.join(changed)}. Choose another directory, or remove this one "
            "to start again."
        )


def recorded_settings(directory: Path) -> dict[str, Any]:
    """Read the settings of a directory; empty if none are recorded."""
    path = directory / MANIFEST
    if not path.exists():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        obstacle = f"it holds a {type(manifest).__name__}"
    except ValueError as error:
        manifest, obstacle = None, str(error)
    if isinstance(manifest, dict):
        return manifest
    raise CheckpointError(
        f"the settings of the checkpoints, {path}, cannot be read: {obstacle}. The "
        "other files in this directory cannot be used without them: choose another "
        "directory, or remove this one to start again."
    )


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file under a name of this process, then move it into place."""
    write_whole(path, write, temporary=own_name(path))


def own_name(path: Path) -> Path:
    """Return the name of a file while this process writes it."""
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")


def _remove_unfinished(directory: Path) -> None:
    """Remove unfinished files of killed runs; keep those of live ones."""
    for path in directory.glob("*.tmp"):
        match = TEMPORARY.fullmatch(path.name)
        if match and not is_alive(int(match[1])):
            with suppress(OSError):  # another run has removed it, or has it open
                path.unlink()


def _changes(
    recorded: Mapping[str, Any],
    current: Mapping[str, Any],
    hashed: Mapping[str, str],
    note: str,
) -> list[str]:
    """Describe changed settings, without those that follow from other changes."""
    keys = [
        key for key in {**current, **recorded} if recorded.get(key) != current.get(key)
    ]
    if "seed" in keys:
        # Query points may be drawn from the seed.
        keys = ["seed", *(key for key in keys if key not in ("seed", "at"))]
    plain = [key for key in keys if key not in hashed]
    if plain or not keys:
        return [_describe_change(key, recorded, current) for key in plain]
    first = next(key for key in hashed if key in keys)
    if first in recorded:
        return [f"{hashed[first]} are not the same as then{note}"]
    return [f"{hashed[first]} were not recorded"]


def _describe_change(
    key: str, recorded: Mapping[str, Any], current: Mapping[str, Any]
) -> str:
    was, now = (
        repr(settings[key]) if key in settings else "not recorded"
        for settings in (recorded, current)
    )
    pairs = enumerate(zip(was, now, strict=False))
    same = next((i for i, (a, b) in pairs if a != b), min(len(was), len(now)))
    return f"{key} (was {_excerpt(was, same)}, now {_excerpt(now, same)})"


def _excerpt(text: str, same: int) -> str:
    """Shorten a long text to the part around its first difference from another."""
    start = max(0, min(same - SHOWN // 2, len(text) - SHOWN))
    part = text[start : start + SHOWN]
    return f"{'...' * (start > 0)}{part}{'...' * (start + SHOWN < len(text))}"


def _to_json(value: Any) -> Any:
    """Convert a value to a JSON type."""
    return value.item() if isinstance(value, np.generic) else str(value)
