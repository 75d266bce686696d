"""Directories of checkpoints: locks, fingerprints of settings, complete files."""

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
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from vstatkit._typing import Floats
from vstatkit.exceptions import CheckpointError, VstatkitWarning
from vstatkit.scratch import is_alive
from vstatkit.storage.archive import write_whole

LOCK = "lock"
"""File that is locked. It stays there: only the system's lock counts."""

TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
"""What systems say of a lock that somebody else holds."""

LOCKED_BYTE = 2**30
"""Byte that is locked where locks are of bytes, beyond the text that others read."""

_HELD: set[int] = set()


@contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Keep other processes, and other calls in this one, out of a directory.

    The lock is the operating system's: it ends with the process, however that ends,
    and a file that a dead process has left behind keeps nobody out.

    Parameters
    ----------
    directory : Path
        Made if it does not exist.

    Raises
    ------
    CheckpointError
        When the directory is in use; the message names the process.
    """
    handle = _open(directory)
    _HELD.add(handle)
    try:
        try:
            _acquire(handle)
        except OSError as error:
            if error.errno in TAKEN:
                raise CheckpointError(_in_use(directory, handle)) from None
            warnings.warn(
                f"{directory} cannot be locked ({error.strerror}): its file system "
                "has no locks. Let only one process use it at a time.",
                VstatkitWarning,
                stacklevel=3,
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield
    finally:
        if handle in _HELD:  # a forked process has closed it
            _HELD.discard(handle)
            _release(handle)
            os.close(handle)


def _open(directory: Path) -> int:
    if directory.exists() and not directory.is_dir():
        raise CheckpointError(
            f"`checkpoint` must be a directory; {directory} is a file."
        )
    directory.mkdir(parents=True, exist_ok=True)
    return os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)


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
        """Leave it to the system, which releases what is closed."""
else:
    import fcntl

    def _acquire(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(handle: int) -> None:
        """Release it at once, even if a process that is being forked has a copy."""
        with suppress(OSError):  # there was no lock to be had
            fcntl.flock(handle, fcntl.LOCK_UN)


def _close_copies() -> None:
    """Close what a forked process has inherited: it would hold the lock as well."""
    while _HELD:
        os.close(_HELD.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)


PRECISION = 2.0**40
"""Inverse of the relative change that fingerprints see; machines differ by less."""


def describe(thing: Any) -> str:
    """Name a function, or show a value, without addresses in memory."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, BaseEstimator):
        parameters = sorted(thing.get_params(deep=False).items())
        shown = ", ".join(
            f"{name}={_describe_inner(value)}" for name, value in parameters
        )
        return f"{type(thing).__qualname__}({shown})"
    if callable(thing) and not dataclasses.is_dataclass(thing):
        return str(getattr(thing, "__qualname__", type(thing).__qualname__))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def _describe_inner(value: Any) -> str:
    """Describe a parameter: an estimator, or steps of some, or anything."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe_inner(item) for item in value)}]"
    return repr(value) if isinstance(value, str) else describe(value)


def hash_arrays(arrays: Sequence[Floats]) -> str:
    """Fingerprint numbers and shapes, to the digits that machines agree on."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(_rounded(array).tobytes())
    return digest.hexdigest()[:16]


def hash_frame(frame: pd.DataFrame, *, exactly: bool = False) -> str:
    """Fingerprint names, kinds and values of columns, and levels that do not occur.

    Numbers to the digits that machines agree on, or exactly.
    """
    digest = hashlib.sha256()
    for name, column in frame.items():
        kind = column.dtype
        levels = list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else []
        digest.update(repr((name, str(kind), list(map(str, levels)))).encode())
        if pd.api.types.is_float_dtype(kind):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            digest.update((values if exactly else _rounded(values)).tobytes())
        else:
            rows = pd.util.hash_pandas_object(column, index=False, categorize=False)
            digest.update(rows.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _rounded(array: Floats) -> Floats:
    mantissa, exponent = np.frexp(array)
    with np.errstate(over="ignore"):  # the largest double may round to infinity
        return np.ldexp(np.round(mantissa * PRECISION), exponent) + 0.0


def hash_exactly(array: NDArray[Any]) -> str:
    """Fingerprint every bit of an array, in the order that it has in memory."""
    digest = hashlib.sha256(repr((array.shape, str(array.dtype))).encode())
    columns = array.ndim > 1 and not array.flags.c_contiguous
    digest.update(np.ascontiguousarray(array.T if columns else array).data)
    return digest.hexdigest()[:16]


def hash_table(table: Any) -> str:
    """Fingerprint observations in rows: a frame, a Series or an array."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        return hash_exactly(table)
    return hash_frame(pd.DataFrame(table), exactly=True)


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
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(_unreadable_manifest(path, str(error))) from error
    if not isinstance(manifest, dict):
        kind = type(manifest).__name__
        raise CheckpointError(_unreadable_manifest(path, f"it holds a {kind}"))
    return manifest


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
        repr(settings[key]) if key in settings else "not recorded"
        for settings in (found, wanted)
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
