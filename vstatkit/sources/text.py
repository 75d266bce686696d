"""CSV and tab-separated files, compressed ones too."""

import bz2
import csv
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.source import BATCH_ROWS, required

SPACES = r"\s+"
"""Any number of spaces between fields, as pandas writes it."""


def open_packed(path: Path) -> BinaryIO:
    """Open a file that may be compressed, as its name says."""
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return cast("BinaryIO", required("zstandard", f"reading {path}").open(path))
    return cast("BinaryIO", openers.get(suffix, open)(path, "rb"))


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let fields be as long as they are."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def find_uneven_line(
    reopen: Callable[[], TextIO], sep: str, n_fields: int, *, spaced: bool = False
) -> tuple[int, int] | None:
    """Find the first line with another number of fields, and this number.

    pandas cuts long lines if only some of the columns are read, and takes the first
    column for labels of rows if the first line is long. It fills short lines with
    missing values at the end, so that values move to other columns if the field that
    is missing is not the last.

    Parameters
    ----------
    reopen : callable
        Opens the text from its beginning.
    sep : str
        One character, or `SPACES`.
    n_fields : int
        How many fields the lines below the header must have, unless they are blank.
    spaced : bool
        Whether spaces after a separator are no part of the field.
    """
    spaces = sep == SPACES
    with reopen() as file:
        # Counting separators is several times as fast as reading fields.
        doubts = (
            line.count(sep) != n_fields - 1 or '"' in line
            for line in file
            if line.strip(" \r\n")
        )
        if not spaces and not any(doubts):
            return None
    with reopen() as file, _long_fields():
        reader = csv.reader(
            (" ".join(line.split()) for line in file) if spaces else file,
            delimiter=" " if spaces else sep,
            skipinitialspace=spaced,
        )
        full = (
            fields for fields in reader if len(fields) > 1 or "".join(fields).strip()
        )
        next(full, None)  # the header
        for fields in full:
            if len(fields) != n_fields:
                return reader.line_num, len(fields)
    return None


def uneven_error(
    name: str, line: int, n_fields: int, n_columns: int, sep: str
) -> DataError:
    """Make the error about a line with another number of fields than columns."""
    number = "1 field" if n_fields == 1 else f"{n_fields} fields"
    are = "is" if n_fields == 1 else "are"
    remedy = (
        f"Quote fields that contain {sep!r}; if the first field names the row, give "
        "that column a name too."
        if n_fields > n_columns
        else "Write NA where a value is missing, so that the others stay in their "
        "columns."
    )
    return DataError(
        f"{name}, line {line}: there {are} {number} for the {n_columns} columns of the "
        f"header. {remedy}"
    )


@dataclass(frozen=True)
class CsvSource:
    """A CSV file, or one with another separator, with a header row.

    Attributes
    ----------
    path : Path
        The file; its name says how it is compressed.
    sep, encoding, decimal : str
        What stands between fields; how letters are written as bytes; what stands
        before decimals.
    missing : tuple of str
        Texts that stand for missing values, besides the usual ones.
    """

    path: Path
    sep: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the header row."""
        with self._reading():
            return tuple(pd.read_csv(self.path, nrows=0, **self._written).columns)

    @property
    def _written(self) -> dict[str, Any]:
        """How the file is written, in pandas' words."""
        return {
            "sep": self.sep,
            "encoding": self.encoding,
            "decimal": self.decimal,
            "na_values": list(self.missing),
        }

    @property
    def n_rows(self) -> None:
        """Only reading tells."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns; their kinds are found batch by batch."""
        wanted = list(columns)
        self._check_lines()
        with (
            self._reading(),
            pd.read_csv(
                self.path,
                usecols=wanted,
                chunksize=BATCH_ROWS,
                low_memory=False,  # one kind for every column of a batch
                **self._written,
            ) as reader,
        ):
            for batch in reader:
                if len(batch):
                    yield batch[wanted].reset_index(drop=True)

    @cached_property
    def _uneven(self) -> tuple[int, int] | None:
        """Find the first line with more or fewer fields than there are columns."""
        if len(self.sep) != 1 and self.sep != SPACES:
            return None  # a regular expression, with which pandas cuts nothing
        with self._reading():
            return find_uneven_line(self._open, self.sep, len(self.columns))

    def _open(self) -> TextIO:
        return io.TextIOWrapper(open_packed(self.path), self.encoding, newline="")

    def _check_lines(self) -> None:
        if self._uneven is not None:
            n_columns = len(self.columns)
            raise uneven_error(str(self.path), *self._uneven, n_columns, self.sep)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError, EOFError, csv.Error) as error:
            # pandas' own errors are ValueErrors; ours say enough already.
            if isinstance(error, DataError):
                raise
            raise DataError(f"{self.path} cannot be read as CSV: {error}") from error
