"""Arrays on disk: written in blocks, mapped into memory, removed after use."""

import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vstatkit.exceptions import DataError
from vstatkit.scratch import remove_with, scratch_file

# Size of the blocks that only one process writes to; no page of memory is larger.
BLOCK_BYTES = 65_536
MOVED_BYTES = 1 << 22  # bytes in memory at a time while rows are moved within a file


class GrowingArray:
    """An array that grows on disk by blocks of rows.

    `width` is the number of columns; without it the array has one dimension.
    """

    def __init__(self, kind: DTypeLike, width: int | None = None) -> None:
        self._kind = np.dtype(kind)
        self._row: tuple[int, ...] = () if width is None else (width,)
        self._n_rows = 0
        self._path = scratch_file(".rows")
        self._file = self._path.open("w+b")
        self._removal = remove_with(self, self._path, self._file)

    def append(self, block: NDArray[Any]) -> None:
        """Write rows below those that are there."""
        rows = _rows(block, self._kind, self._row)
        with self._writing():
            rows.tofile(self._file)
        self._n_rows += len(rows)

    def place(self, first: int) -> "Place":
        """Return the place of rows, from row `first` on, for another process."""
        return Place(self._path, self._kind, self._row, first)

    def take(self, block: "Block") -> None:
        """Add rows that another process wrote: move them below those before."""
        source, target = self._bytes(block.first), self._bytes(self._n_rows)
        size = self._bytes(block.n_rows)
        self._n_rows += block.n_rows
        with self._writing():
            for at, edge in block.edges:
                self._file.seek(at)
                self._file.write(edge)
            if source != target:
                for at in range(0, size, MOVED_BYTES):
                    self._file.seek(source + at)
                    data = self._file.read(min(MOVED_BYTES, size - at))
                    self._file.seek(target + at)
                    self._file.write(data)
            self._file.seek(target + size)

    def _bytes(self, n_rows: int) -> int:
        return n_rows * math.prod(self._row) * self._kind.itemsize

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"the rows cannot be written to {self._path.parent}: {error}. Let the "
                "environment variable TMPDIR name a directory with more space."
            ) from error

    def _close(self) -> None:
        """End the writing; cut off what moved rows left behind the last row."""
        with self._writing():
            self._file.truncate(self._bytes(self._n_rows))
            self._file.close()

    def to_file(self) -> "ArrayFile":
        """End the writing; the rows are mapped each time they are read."""
        self._close()
        self._removal.detach()
        return ArrayFile(self._path, self._kind, (self._n_rows, *self._row))

    def map_array(self) -> NDArray[Any]:
        """Map all rows into memory, to be read.

        The file is removed with the array and all its views.
        """
        self._close()
        memory = _map(self._path, self._kind, (self._n_rows, *self._row))
        self._removal.detach()
        remove_with(memory, self._path)
        return np.asarray(memory)


def _rows(
    block: NDArray[Any], kind: np.dtype[Any], row: tuple[int, ...]
) -> NDArray[Any]:
    """Bring rows to the kind and the order in which they are written."""
    rows = np.ascontiguousarray(block, dtype=kind)
    if rows.shape[1:] != row:
        raise ValueError(f"rows must have shape {row}; got {rows.shape[1:]}.")
    return rows


class Place(NamedTuple):
    """Where rows are written in a file, beside others who write to it."""

    path: Path
    kind: np.dtype[Any]  # of the elements
    row: tuple[int, ...]  # shape of a row
    first: int  # number of the first row


class Block(NamedTuple):
    """Rows that were written to their place."""

    first: int  # number of the first row
    n_rows: int
    edges: list[tuple[int, bytes]]  # what was not written, after its byte in the file


class PlacedArray:
    """Rows that grow at their place of a file, to which other processes write too.

    Processes that write to one page of a file at a time may lose what others wrote, if
    the file is on another machine. Only whole blocks of `BLOCK_BYTES` are therefore
    written; the edges are left to the process that made the file.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._n_rows = 0
        self._at = math.prod(place.row) * place.kind.itemsize * place.first
        self._edge = bytearray()
        self._edges: list[tuple[int, bytes]] = []

    def append(self, block: NDArray[Any]) -> None:
        """Write rows below those that are there."""
        rows = _rows(block, self._place.kind, self._place.row)
        self._n_rows += len(rows)
        if rows.nbytes:
            self._write(rows.reshape(-1).view(np.uint8).data)

    def _write(self, data: memoryview) -> None:
        """Write whole blocks; what follows the last one waits for more."""
        low = -(-self._at // BLOCK_BYTES) * BLOCK_BYTES
        high = (self._at + len(data)) // BLOCK_BYTES * BLOCK_BYTES
        if high < low:
            low = high = self._at + len(data)
        low, high = low - self._at, high - self._at
        self._edge += data[:low]
        self._at += low
        if self._at % BLOCK_BYTES == 0:
            first = self._at - len(self._edge)
            if first % BLOCK_BYTES:
                self._end_edge()
            # Open for this moment alone: there may be many columns.
            with self._place.path.open("r+b") as file:
                file.seek(first if self._edge else self._at)
                file.write(self._edge)
                file.write(data[low:high])
            self._edge = bytearray(data[high:])
            self._at += len(data) - low

    def _end_edge(self) -> None:
        if self._edge:
            self._edges.append((self._at - len(self._edge), bytes(self._edge)))
        self._edge.clear()

    def handed_over(self) -> Block:
        """End the writing."""
        self._end_edge()
        return Block(self._place.first, self._n_rows, self._edges)


class ArrayFile:
    """An array on disk that takes memory only while it is read.

    The file is removed with this object.
    """

    def __init__(self, path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._path, self._kind, self._shape = path, kind, shape
        remove_with(self, path)

    def __len__(self) -> int:
        return self._shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Read rows into memory."""
        return np.array(_map(self._path, self._kind, self._shape)[rows])


def _map(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Map an array to be read; empty ones cannot be mapped."""
    if 0 in shape:
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r", shape=shape)


def check_directory(path: str | os.PathLike[str]) -> None:
    """Check that there is a directory to write a file in."""
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"there is no directory {place.parent} to write {place.name} in; make it "
            "first."
        )


def check_space(n_bytes: int) -> None:
    """Refuse to write more than the disk has room for."""
    place = tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if n_bytes > free:
        raise DataError(
            f"the coded rows take {n_bytes / 1e9:,.1f} GB on disk; {place} has "
            f"{free / 1e9:,.1f} GB left. Let the environment variable TMPDIR name a "
            "directory with more space, or use fewer columns."
        )
