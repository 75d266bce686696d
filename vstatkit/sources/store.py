"""Arrays on disk: written block after block, mapped into memory, removed after use.

Files lie in the directory for temporary files, which the environment variable TMPDIR
names.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vstatkit.exceptions import DataError

PREFIX = "vstatkit-"
"""What the names of all temporary files begin with."""


COPIED_BYTES = 1 << 20
"""Bytes that are held at a time where a file is copied."""


def scratch_file(suffix: str, folder: Path | None = None) -> Path:
    """Make an empty temporary file."""
    handle, name = tempfile.mkstemp(suffix, PREFIX, folder)
    os.close(handle)
    return Path(name)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for files of workers; all that is in it goes at the end."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # A worker that was called off may just have made a file.
        shutil.rmtree(folder, ignore_errors=True)


def remove_with(
    owner: Any, path: Path, file: BinaryIO | None = None
) -> "weakref.finalize[Any, Any]":
    """Close and remove a file when its owner is gone, or when the program ends."""
    return weakref.finalize(owner, _remove, path, file, os.getpid())


def _remove(path: Path, file: BinaryIO | None, process: int) -> None:
    if file is not None:
        file.close()
    if os.getpid() == process:  # a forked worker does not own the file
        path.unlink(missing_ok=True)


class GrowingArray:
    """An array that grows on disk by blocks of rows.

    Parameters
    ----------
    kind : dtype
        Kind of its elements.
    width : int, optional
        Number of columns; without it the array has one dimension.
    folder : Path, optional
        Where its file is made.
    """

    def __init__(
        self, kind: DTypeLike, width: int | None = None, folder: Path | None = None
    ) -> None:
        self._kind = np.dtype(kind)
        self._row: tuple[int, ...] = () if width is None else (width,)
        self._n_rows = 0
        self._path = scratch_file(".rows", folder)
        self._file = self._path.open("wb")
        self._removal = remove_with(self, self._path, self._file)

    def append(self, block: NDArray[Any]) -> None:
        """Write rows below those that are there."""
        rows = np.ascontiguousarray(block, dtype=self._kind)
        if rows.shape[1:] != self._row:
            raise ValueError(f"rows must have shape {self._row}; got {rows.shape[1:]}.")
        with self._writing():
            rows.tofile(self._file)
        self._n_rows += len(rows)

    def take(self, block: "Block") -> None:
        """Copy rows from the file of another array of this kind, and remove it."""
        with block.path.open("rb") as file, self._writing():
            shutil.copyfileobj(file, self._file, COPIED_BYTES)
        block.path.unlink()
        self._n_rows += block.n_rows

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"the rows cannot be written to {self._path.parent}: {error}. Let the "
                "environment variable TMPDIR name a directory with more space."
            ) from error

    def handed_over(self) -> "Block":
        """End the writing; the file is now somebody else's."""
        self._file.close()
        self._removal.detach()
        return Block(self._path, self._n_rows)

    def filed(self) -> "ArrayFile":
        """End the writing; the rows are mapped each time they are read."""
        self._file.close()
        self._removal.detach()
        return ArrayFile(self._path, self._kind, (self._n_rows, *self._row))

    def mapped(self) -> NDArray[Any]:
        """Map all rows into memory, to be read.

        The file is removed when the array, and all that is made of its memory, is
        gone.
        """
        self._file.close()
        shape = (self._n_rows, *self._row)
        if 0 in shape:
            return np.empty(shape, self._kind)
        held = np.memmap(self._path, self._kind, "r", shape=shape)
        self._removal.detach()
        remove_with(held, self._path)
        return np.asarray(held)


class Block(NamedTuple):
    """Rows in a file that another process may have written.

    Attributes
    ----------
    path : Path
        The file.
    n_rows : int
        Number of rows.
    """

    path: Path
    n_rows: int

    def chunks(self, kind: DTypeLike) -> Iterator[NDArray[Any]]:
        """Read an array of one dimension, some of it at a time."""
        with self.path.open("rb") as file:
            count = COPIED_BYTES // np.dtype(kind).itemsize
            while (found := np.fromfile(file, kind, count)).size:
                yield found


class ArrayFile:
    """An array on disk that takes memory only while it is read.

    Parameters
    ----------
    path : Path
        The file; it is removed with this object.
    kind : dtype
        Kind of the elements.
    shape : tuple of int
        Shape of the array.
    """

    def __init__(self, path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._path, self._kind, self._shape = path, kind, shape
        remove_with(self, path)

    def __len__(self) -> int:
        return self._shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Read rows into memory."""
        found: NDArray[Any]
        if 0 in self._shape:  # which cannot be mapped
            found = np.empty(self._shape, self._kind)
        else:
            found = np.memmap(self._path, self._kind, "r", shape=self._shape)
        return np.array(found[rows])


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
