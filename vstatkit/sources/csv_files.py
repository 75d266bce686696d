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
from typing import Any, TextIO

import pandas as pd

from vstatkit.exceptions import DataError
from vstatkit.sources.source import BATCH_ROWS, import_optional

SPACES = r"\s+"  # any number of spaces between fields, as pandas writes it


def read_records(
    file: TextIO, sep: str, *, spaced: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line and the fields of every row but blank ones.

    The file is opened with `newline=""`; the separator is one character or `SPACES`. If
    `spaced`, spaces after a separator are not part of the field.
    """
    spaces = sep == SPACES
    reader = csv.reader(
        (" ".join(line.split()) for line in file) if spaces else file,
        delimiter=" " if spaces else sep,
        skipinitialspace=spaced,
    )
    line = 1
    limit = csv.field_size_limit(sys.maxsize)
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield line, fields
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def find_line_error(
    name: str,
    reopen: Callable[[], TextIO],
    sep: str,
    n_columns: int,
    *,
    spaced: bool = False,
) -> DataError | None:
    """Return an error about the first row whose number of fields is wrong, or None.

    pandas cuts long rows if only some of the columns are read, and takes the first
    column for labels if the first row is long. It fills short rows with missing
    values at the end, so that values move to other columns if the field that is
    missing is not the last. `reopen` opens the text from its beginning; for `sep` and
    `spaced` see `read_records`.
    """
    with reopen() as file:
        # Counting separators is several times as fast as reading fields.
        doubts = (
            line.count(sep) != n_columns - 1 or '"' in line
            for line in file
            if line.strip(" \r\n")
        )
        if sep != SPACES and not any(doubts):
            return None
    with reopen() as file:
        records = read_records(file, sep, spaced=spaced)
        next(records, None)  # the header
        wrong = next((row for row in records if len(row[1]) != n_columns), None)
    if wrong is None:
        return None
    line, fields = wrong
    number = "is 1 field" if len(fields) == 1 else f"are {len(fields)} fields"
    remedy = (
        f"Quote fields that contain {sep!r}; if the first field names the row, give "
        "that column a name too."
        if len(fields) > n_columns
        else "Write NA where a value is missing, so that the others stay in their "
        "columns."
    )
    return DataError(
        f"{name}, line {line}: there {number} for the {n_columns} columns of the "
        f"header. {remedy}"
    )


def encoding_error(name: str, encoding: str, error: UnicodeError) -> DataError:
    """Make the error about text in another encoding than was expected."""
    return DataError(
        f"{name} must be text in {encoding.upper()}; {error}. Give its encoding, such "
        "as --encoding cp1252 or --encoding utf-16 on the command line; in Python read "
        "it by pd.read_csv(..., encoding='cp1252')."
    )


@dataclass(frozen=True)
class CsvSource:
    """A CSV file, or one with another separator, with a header row."""

    path: Path  # its ending determines the compression
    sep: str = ","  # separator of fields
    encoding: str = "utf-8"
    decimal: str = "."  # decimal sign
    missing: tuple[str, ...] = ()  # texts for missing values, besides the usual ones
    n_rows = None  # unknown before the file is read

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the header row."""
        with self.reading():
            return tuple(pd.read_csv(self.path, nrows=0, **self._format).columns)

    @property
    def _format(self) -> dict[str, Any]:
        """Arguments of `read_csv` that describe the file."""
        options = {name: getattr(self, name) for name in ("sep", "encoding", "decimal")}
        return {**options, "na_values": list(self.missing)}

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some of the columns; their types are inferred batch by batch."""
        wanted = list(columns)
        with self.reading():
            if self._line_error is not None:
                raise self._line_error
            with pd.read_csv(
                self.path,
                usecols=wanted,
                chunksize=BATCH_ROWS,
                low_memory=False,  # one type for every column of a batch
                **self._format,
            ) as reader:
                for batch in reader:
                    if len(batch):
                        yield batch[wanted].reset_index(drop=True)

    @cached_property
    def _line_error(self) -> DataError | None:
        """Error about a row with more or fewer fields than there are columns."""
        return find_line_error(str(self), self.open_text, self.sep, len(self.columns))

    def open_text(self) -> TextIO:
        """Open the file as text, decompressed."""
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        suffix = self.path.suffix.lower()
        if suffix == ".zst":
            openers[suffix] = import_optional("zstandard", f"reading {self.path}").open
        packed = openers.get(suffix, open)(self.path, "rb")
        return io.TextIOWrapper(packed, self.encoding, newline="")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of pandas, of the codec and of the disk into ours."""
        try:
            yield
        except DataError:
            raise
        except UnicodeError as error:
            raise encoding_error(str(self), self.encoding, error) from error
        except (ValueError, OSError, EOFError, csv.Error) as error:
            # pandas' own errors are ValueErrors.
            raise DataError(f"{self.path} cannot be read as CSV: {error}") from error
