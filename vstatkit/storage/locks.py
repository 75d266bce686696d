"""One process at a time: locks that the system releases when their holder dies."""

import errno
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vstatkit.exceptions import CheckpointError, VstatkitWarning

LOCK = "lock"
"""File that is locked. It stays there: only the system's lock counts."""

TAKEN = (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
"""What systems say of a lock that somebody else holds."""

LOCKED_BYTE = 2**30
"""Byte that is locked where locks are of bytes, beyond the text that others read."""

_HELD: set[int] = set()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
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
