"""Temporary files that do not outlive their process, however it ends.

Each process keeps its files in one folder, which it locks. They are removed when
nothing uses them any more, when the program ends, and when it is terminated. A killed
process leaves them behind, but the system releases its lock, and the next process that
needs temporary files removes them.
"""

import os
import shutil
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

PREFIX = "vstatkit-"  # what the names of all folders begin with
LOCK = "lock"  # file in a folder that its process keeps locked
# Signals that end a program which does not handle them
ENDINGS = [item for item in signal.Signals if item.name in ("SIGTERM", "SIGHUP")]


@dataclass
class _Folder:
    """Temporary files of a process."""

    path: Path  # the folder
    handle: int | None  # the open lock; None where there are no locks
    files: set[Path] = field(default_factory=set)  # files that are in use


_FOLDERS: dict[tuple[int, str], _Folder] = {}
_BESIDE: set[tuple[int, Path]] = set()
_CHANGING = threading.RLock()


def _begin_fork() -> None:
    """Replace the lock and the handlers in a forked process, which owns no files.

    A thread of the parent process may hold the lock. A handler in Python may never run
    if the process waits for work, so that a pool could not terminate its workers.
    """
    global _CHANGING  # noqa: PLW0603
    _CHANGING = threading.RLock()
    for number in ENDINGS:
        if signal.getsignal(number) == _end:
            with suppress(ValueError):  # not in the main thread of an interpreter
                signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_fork)


def scratch_file(suffix: str, base: str | None = None) -> Path:
    """Make an empty temporary file in the folder `base`, by default that of TMPDIR."""
    place = tempfile.gettempdir() if base is None else base
    with _CHANGING:
        key = os.getpid(), place
        if key not in _FOLDERS:
            remove_abandoned(Path(place))
            _FOLDERS[key] = _make_folder(place)
        folder = _FOLDERS[key]
        handle, name = tempfile.mkstemp(suffix, "", folder.path)
        os.close(handle)
        folder.files.add(Path(name))
        _watch()
    return Path(name)


def remove_with(
    owner: Any, path: Path, file: BinaryIO | None = None
) -> "weakref.finalize[Any, Any]":
    """Close and remove a file when its owner is gone, or when the program ends."""
    return weakref.finalize(owner, _remove, path, file, os.getpid())


def _remove(path: Path, file: BinaryIO | None, process: int) -> None:
    if file is not None:
        file.close()
    if os.getpid() != process:  # a forked worker does not own the file
        return
    with _CHANGING:
        with suppress(OSError):  # Windows keeps files that a worker has mapped
            path.unlink(missing_ok=True)
        for key, folder in list(_FOLDERS.items()):
            folder.files.discard(path)
            if not folder.files and key[0] == process:
                del _FOLDERS[key]
                shutil.rmtree(folder.path, ignore_errors=True)
                if folder.handle is not None:
                    with suppress(OSError):
                        os.close(folder.handle)
        _watch()


@contextmanager
def removed_if_ended(path: Path) -> Iterator[None]:
    """Remove a file that is being written if the program is terminated."""
    mine = os.getpid(), path
    with _CHANGING:
        _BESIDE.add(mine)
        _watch()
    try:
        yield
    finally:
        with _CHANGING:
            _BESIDE.discard(mine)
            _watch()


def _make_folder(place: str) -> _Folder:
    path = Path(tempfile.mkdtemp("", PREFIX, place))
    # The lock is complete before it has its name: others look for that name.
    new = path / f"new-{LOCK}"
    handle = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
    if _acquire(handle):
        new.rename(path / LOCK)
        return _Folder(path, handle)
    os.close(handle)
    return _Folder(path, None)


def remove_abandoned(place: Path) -> None:
    """Remove the folders of processes that have ended.

    Only folders of this user that are not locked are removed: the system releases a
    lock when a process ends, whichever machine or container it ran on.
    """
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(path: Path) -> None:
    if not hasattr(os, "getuid") or path.stat().st_uid != os.getuid():
        return
    handle = os.open(path / LOCK, os.O_RDWR)
    try:
        if _acquire(handle):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)


def is_alive(process: int) -> bool:
    """Return whether another process of this machine is running."""
    if os.name != "posix":
        return False  # an open file cannot be removed there
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return process != os.getpid()


LOCKED_BYTE = 2**30  # locked on Windows; beyond the text that other processes read

if sys.platform == "win32":
    import msvcrt

    def lock(handle: int) -> None:
        """Lock an open file; raise an `OSError` if another process has locked it."""
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(handle, 0, os.SEEK_SET)

    def unlock(handle: int) -> None:
        """Do nothing: the system releases the lock when the file is closed."""
else:
    import fcntl

    def lock(handle: int) -> None:
        """Lock an open file; raise an `OSError` if another process has locked it."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlock(handle: int) -> None:
        """Release the lock now, even if a process that is being forked has a copy."""
        with suppress(OSError):  # the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_UN)


def _acquire(handle: int) -> bool:
    if os.name != "posix":  # an open file is never removed there
        return False
    try:
        lock(handle)
    except OSError:  # somebody holds it, or the file system has no locks
        return False
    return True


def _watch() -> None:
    """Handle the signals that end a program while there are files to remove.

    Other handlers of the program are never replaced, and without files the default
    handlers are restored. Within R no signal is handled, because R would continue.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or "rpytools" in sys.modules:  # reticulate's own
        return
    needed = any(process == os.getpid() for process, _ in (*_FOLDERS, *_BESIDE))
    before, after = (signal.SIG_DFL, _end) if needed else (_end, signal.SIG_DFL)
    for number in ENDINGS:
        if signal.getsignal(number) == before:
            signal.signal(number, after)


def _end(number: int, frame: FrameType | None) -> None:
    """Remove the files, and end as if the signal had not been handled."""
    process = os.getpid()
    for (owner, _), folder in list(_FOLDERS.items()):
        if owner == process:
            shutil.rmtree(folder.path, ignore_errors=True)
    for owner, path in list(_BESIDE):
        if owner == process:
            with suppress(OSError):
                path.unlink(missing_ok=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(process, number)
