"""Files that are written atomically; zip files of arrays and one JSON document."""

import hashlib
import io
import json
import math
import os
import secrets
import signal
import stat
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vstatkit.exceptions import FileError
from vstatkit.json_values import pack
from vstatkit.scratch import removed_if_ended


def write_whole(
    path: str | PathLike[str],
    write: Callable[[BinaryIO], object],
    *,
    temporary: Path | None = None,
) -> None:
    """Write a file under another name, then move it into place.

    If the process is killed or interrupted, or the disk is full, an old file is not
    changed. A symbolic link stays a link, and the file keeps its permissions. The path
    while it is written, `temporary`, is in the same directory; unique by default.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # a pipe or a device
        with place.open("wb") as file:
            write(file)
        return
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    draft = temporary or place.with_name(f".{place.name[:50]}.{mark}.tmp")
    with _postpone_interrupts():
        with removed_if_ended(draft):
            try:
                with draft.open("wb") as file:
                    if place.exists():
                        draft.chmod(stat.S_IMODE(place.stat().st_mode))
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(place)
            finally:
                draft.unlink(missing_ok=True)
        with suppress(OSError):  # some systems cannot flush a directory to disk
            handle = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def write_text_whole(path: str | PathLike[str], text: str) -> None:
    """Write a text as UTF-8, atomically; see `write_whole`."""
    write_whole(path, lambda file: file.write(text.encode()))


@contextmanager
def _postpone_interrupts() -> Iterator[None]:
    """Postpone Ctrl-C until a file is complete."""
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if before is None or not main:  # the handler is not Python's, or cannot be set
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


Arrays = dict[str, NDArray[Any]]

DOCUMENT, CHECKSUM = "document", "checksum"
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Largest expansion of a file when read; arrays that compress more are stored raw.
MAX_EXPANSION = 20
FREE_BYTES = 2**24  # size up to which any file may expand
MAX_HEADER = 4096  # largest header of an array, in bytes


def write_archive(
    path: str | PathLike[str],
    document: Mapping[str, Any],
    arrays: Arrays,
    *,
    compress: bool = True,
    temporary: Path | None = None,
) -> None:
    """Write a document and arrays atomically; see `write_whole`."""
    text = json.dumps(document, default=pack).encode()
    members = {DOCUMENT: np.frombuffer(text, dtype=np.uint8), **arrays}
    parts = {name: _array_bytes(array) for name, array in members.items()}
    parts[CHECKSUM] = _array_bytes(np.frombuffer(_digest(parts), dtype=np.uint8))

    def write(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, part in parts.items():
                kind = _compression(part) if compress else zipfile.ZIP_STORED
                archive.writestr(f"{name}.npy", part, kind)

    write_whole(path, write, temporary=temporary)


def _array_bytes(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def _compression(part: bytes) -> int:
    """Choose the compression; parts that expand too much are stored raw."""
    if len(part) < 2**20:
        return zipfile.ZIP_DEFLATED
    # The fastest compression is the weakest; the default may be twice as good.
    expands = len(part) > MAX_EXPANSION / 2 * len(zlib.compress(part, 1))
    return zipfile.ZIP_STORED if expands else zipfile.ZIP_DEFLATED


def _digest(parts: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name} {len(parts[name])}\n".encode())
        digest.update(parts[name])
    return digest.digest()


def read_archive(path: Path, known: Iterable[str]) -> tuple[Any, Arrays]:
    """Read the document and the arrays, whose names must be known."""
    if not zipfile.is_zipfile(path):
        raise FileError("it does not hold saved results.")
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            infos = _members(archive, {*known, DOCUMENT, CHECKSUM}, size)
            parts = {name: _read(archive, info) for name, info in infos.items()}
    arrays = {name: _parse_array(name, part) for name, part in parts.items()}
    if arrays[DOCUMENT].dtype.kind == "U":
        raise FileError(
            "it was saved by an earlier version. Fit again, and save the results."
        )
    checksum = parts.pop(CHECKSUM, b"")
    if checksum != _array_bytes(np.frombuffer(_digest(parts), dtype=np.uint8)):
        raise FileError("its checksum does not match: the file is damaged.")
    text = arrays.pop(DOCUMENT).tobytes()
    del arrays[CHECKSUM]
    return json.loads(text.decode()), arrays


def _members(
    archive: zipfile.ZipFile, known: set[str], size: int
) -> dict[str, zipfile.ZipInfo]:
    """List the members, after checks of their names and sizes."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name not in known or name in members:
            raise FileError(
                f"it does not hold saved results: {info.filename[:60]!r} is not part "
                "of them, or occurs twice."
            )
        if info.compress_type not in COMPRESSIONS or info.flag_bits & 1:
            raise FileError(f"{name!r} has an unsupported compression.")
        members[name] = info
    if DOCUMENT not in members:
        raise FileError("it does not hold saved results.")
    total = sum(info.file_size for info in members.values())
    if total > FREE_BYTES + MAX_EXPANSION * size:
        raise FileError(
            f"it would expand from {size:,} to {total:,} bytes, more than saved "
            "results do."
        )
    return members


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as member:
        part = member.read(info.file_size + 1)
    if len(part) != info.file_size:
        raise FileError(f"{info.filename!r} does not have its stated length.")
    return part


def _parse_array(name: str, part: bytes) -> NDArray[Any]:
    """Parse an array whose header matches its bytes; never a pickle."""
    file = io.BytesIO(part)
    if np.lib.format.read_magic(file) != (1, 0):
        raise FileError(f"{name!r} is not an array of a supported format.")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(file, MAX_HEADER)
    if kind.hasobject:
        raise FileError(f"{name!r} holds Python objects.")
    count = math.prod(shape)
    rest = part[file.tell() :]
    if min(shape, default=0) < 0 or count * kind.itemsize != len(rest):
        raise FileError(f"{name!r} has {len(rest)} bytes; its shape is {shape}.")
    flat = np.frombuffer(rest, dtype=kind, count=count)
    array = flat.reshape(shape, order="F" if fortran else "C")
    return array.astype(kind.newbyteorder("="))
