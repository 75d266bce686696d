"""Write files whole: a file is always either the old one or the new one."""

import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from vstatkit.scratch import removed_if_ended


def write_whole(
    path: str | PathLike[str],
    write: Callable[[BinaryIO], object],
    *,
    temporary: Path | None = None,
) -> None:
    """Write a file under another name, then move it into place.

    If this is killed, interrupted or out of space, the old file stays as it was. A
    symbolic link stays a link, and the file keeps its permissions.

    Parameters
    ----------
    path : str or path
        Where the file is to be.
    write : callable
        Is given the open file.
    temporary : Path, optional
        Name while it is written, in the same directory; by default one that no
        other file has.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # a pipe or a device
        with place.open("wb") as file:
            write(file)
        return
    with uninterrupted():
        beside = _own_name(place) if temporary is None else temporary
        with removed_if_ended(beside):
            try:
                with beside.open("wb") as file:
                    if place.exists():
                        beside.chmod(stat.S_IMODE(place.stat().st_mode))
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(place)
            finally:
                beside.unlink(missing_ok=True)
        _sync_directory(place.parent)


def write_text_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text, as UTF-8, whole or not at all."""
    write_whole(path, lambda file: file.write(text.encode()))


def _own_name(place: Path) -> Path:
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    return place.with_name(f".{place.name[:50]}.{mark}.tmp")


def _sync_directory(directory: Path) -> None:
    """Make the new name permanent, on systems that offer a way to do so."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Postpone Ctrl-C until a file is whole."""
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if before is None or not main:  # the handler is not Python's, or not ours to set
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *press: pressed.append(press))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed and callable(before):
            before(*pressed[0])
