"""Input tables of the command: the data and the query points of `--at`."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TextIO

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.exceptions import DataError
from vstatkit.formula.column_checks import first_non_number, is_number
from vstatkit.formula.formula_to_terms import read_names
from vstatkit.formula.terms import variables
from vstatkit.shell.outputs import print_note
from vstatkit.sources.csv_files import (
    SPACES,
    CsvSource,
    encoding_error,
    find_line_error,
    read_records,
)
from vstatkit.sources.recognition import CSV, PARQUET, TSV, find_source, read_few
from vstatkit.sources.source import import_optional

STREAMED_BYTES = 2**28  # size from which a CSV file is read in batches
# Separators that are hard to type, by name.
SEPARATORS = {"tab": "\t", r"\t": "\t", "space": SPACES, " ": SPACES}
STDIN = "-"  # stands for standard input, as in other programs
# What unpacking raises.
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_SAVED_BY_R = "data saved by R; in R, write.csv(data, 'data.csv') writes a table"
_WEB_PAGE = "a web page, perhaps one that asks for a login"
# First bytes of other kinds of files, what they are, and what reads them, if anything.
_FOREIGN = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "pd.read_excel"),
    (b"<stata_dta>", "a Stata file", "pd.read_stata"),
    (b"$FL2", "an SPSS file", "pd.read_spss"),
    (b"$FL3", "an SPSS file", "pd.read_spss"),
    (b"ARROW1", "a Feather file", "pd.read_feather"),
    (b"\x89HDF", "an HDF5 file", "pd.read_hdf"),
    (b"{", "JSON", "pd.read_json"),
    (b"[", "JSON", "pd.read_json"),
    (b"RDX", _SAVED_BY_R, None),
    (b"X\n\0", _SAVED_BY_R, None),
    (b"SQLite format 3", "a database; write the table of a query to a CSV file", None),
    (b"%PDF", "a PDF document; it has to be a table as text", None),
    (b"<!doctype html", _WEB_PAGE, None),
    (b"<html", _WEB_PAGE, None),
)


def read_content(path: str, name: str) -> bytes:
    """Read the bytes of a file, or of standard input if the path is `-`, unpacked."""
    if path == STDIN:
        packed = sys.stdin.buffer.read()
    elif not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}{_suggest_file(Path(path))}")
    elif not os.access(path, os.R_OK):
        raise PermissionError(f"{path} may not be read: see its permissions.")
    else:
        packed = Path(path).read_bytes()
    unpack = next((f for mark, f in _PACKED if packed.startswith(mark)), None)
    try:
        data = packed if unpack is None else unpack(packed, name)
    except _DAMAGED as error:
        raise DataError(
            f"{name} is packed, and cannot be unpacked: {error}. It may be cut off."
        ) from error
    if not data.strip():
        raise DataError(f"{name} is empty; it needs a header row and rows of data.")
    return data


def check_text(name: str, data: bytes) -> None:
    """Refuse what is no text, and say what to do with it."""
    start = data[:64].lstrip().lower()
    for mark, what, reader in _FOREIGN:
        if start.startswith(mark.lower()):
            raise DataError(
                _read_elsewhere(name, what, reader)
                if reader
                else f"{name} is no table as text: it is {what}."
            )


def _read_elsewhere(name: str, what: str, reader: str) -> str:
    return (
        f"{name} is {what}. Save it as CSV, or in Python use "
        f'vs.fit(formula, {reader}("{name}")).'
    )


def _suggest_file(path: Path) -> str:
    """Name the file that was probably meant: the same name, another ending."""
    folder = path.parent
    if not folder.is_dir():
        return f"; there is no folder {folder} either."
    same = sorted(folder.glob(f"{path.stem}.*")) if path.stem.isidentifier() else []
    return f"; did you mean {same[0]}?" if same else "."


def _from_zip(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        for mark, what in (
            ("[Content_Types].xml", "an Excel workbook"),
            ("mimetype", "an OpenDocument file"),
        ):
            if mark in files:
                raise DataError(_read_elsewhere(name, what, "pd.read_excel"))
        if len(files) != 1:
            raise DataError(
                f"{name} is an archive of {len(files)} files; unpack it, and give one "
                "of them."
            )
        return archive.read(files[0])


def _from_zstd(data: bytes, name: str) -> bytes:
    pyarrow = import_optional("pyarrow", f"unpacking {name}")
    return bytes(pyarrow.CompressedInputStream(io.BytesIO(data), "zstd").read())


# First bytes of packed data, and what unpacks them.
_PACKED: tuple[tuple[bytes, Callable[[bytes, str], bytes]], ...] = (
    (b"\x1f\x8b", lambda data, name: gzip.decompress(data)),
    (b"BZh", lambda data, name: bz2.decompress(data)),
    (b"\xfd7zXZ\x00", lambda data, name: lzma.decompress(data)),
    (b"\x28\xb5\x2f\xfd", _from_zstd),
    (b"PK\x03\x04", _from_zip),
)


@dataclass(frozen=True)
class TextFormat:
    """How text files write a table."""

    # Separator of fields; None for a tab in .tsv and .tab files, and a comma in others
    sep: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."  # decimal sign
    thousands: str = ""  # sign between thousands; may be empty
    missing: tuple[str, ...] = ()  # missing values, besides the usual texts

    def separator_of(self, name: str) -> str:
        """Return the separator of the file with this name."""
        tabs = name.lower().endswith((".tab", *TSV))
        return self.sep or ("\t" if tabs else ",")

    @cached_property
    def _number(self) -> re.Pattern[str]:
        """Pattern of a number, with groups of three digits between thousands."""
        thousands, decimal = re.escape(self.thousands), re.escape(self.decimal)
        groups = rf"|\d{{1,3}}(?:{thousands}\d{{3}})+" if thousands else ""
        digits = rf"(?:(?:\d+{groups})(?:{decimal}\d*)?|{decimal}\d+)"
        return re.compile(rf"[+-]?{digits}(?:[eE][+-]?\d+)?")

    def is_number(self, value: object) -> bool:
        """Tell whether a text is a number in this format."""
        return self._number.fullmatch(str(value).strip()) is not None

    def convert(self, column: pd.Series) -> pd.Series:
        """Convert a column of text to numbers, if every value is one.

        Examples
        --------
        >>> german = TextFormat(decimal=",", thousands=".")
        >>> german.convert(pd.Series(["1.234,5", "-2"])).to_list()
        [1234.5, -2.0]
        """
        known = column.dropna().astype(str).str.strip()
        if not len(known) or not all(map(self.is_number, known)):
            return column
        plain = known.str.replace(self.thousands, "", regex=False)
        numbers = plain.str.replace(self.decimal, ".", regex=False).astype(float)
        whole = len(known) == len(column) and not plain.str.contains(r"\D").any()
        return numbers.astype(int) if whole else numbers.reindex(column.index)


def parse_format(
    sep: str | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
    missing: Sequence[str],
) -> TextFormat:
    """Check the options `--sep`, `--encoding`, `--decimal`, `--thousands`, `--na`."""
    separator = None if sep is None else SEPARATORS.get(sep, sep)
    if separator is not None and len(separator) != 1 and separator != SPACES:
        raise ValueError(f"--sep must be one character, or tab or space; got {sep!r}.")
    for option, sign in (("--decimal", decimal), ("--thousands", thousands)):
        if sign is not None and (len(sign) != 1 or sign.isalnum()):
            raise ValueError(
                f"{option} must be one sign, such as , or .; got {sign!r}."
            )
    decimal = decimal or ("," if thousands == "." else ".")
    if decimal == thousands:
        raise ValueError(
            f"--decimal and --thousands must differ; got {decimal!r} for both."
        )
    try:
        codecs.lookup(encoding or "utf-8")
    except LookupError:
        raise ValueError(
            f"--encoding must be one that Python knows, such as utf-8, cp1252, "
            f"latin-1 or utf-16; got {encoding!r}."
        ) from None
    return TextFormat(
        separator, encoding or "utf-8", decimal, thousands or "", tuple(missing)
    )


@dataclass(frozen=True)
class InputTable:
    """A table in memory, or one that is read in batches."""

    data: DataLike  # data that `fit` takes
    # Names the place of a row, counted from 0, in the file
    locate: Callable[[int], str] = lambda row: f"row {row + 1}"


def open_table(path: str, text_format: TextFormat) -> InputTable:
    """Read a file, or standard input; large files are left to be read in batches."""
    place = Path(path)
    if path != STDIN and place.is_dir():
        inside = sorted(file for file in place.rglob("*") if file.is_file())
        if any(file.name.lower().endswith(PARQUET) for file in inside):
            return InputTable(place)
        example = f", such as {inside[0]}" if inside else ""
        raise DataError(
            f"{place} is a folder without Parquet files; give the name of a "
            f"file{example}."
        )
    if path != STDIN and place.exists():
        ending = place.name.lower()
        if ending.endswith(PARQUET):
            return InputTable(place)
        if ending.endswith(CSV + TSV) and place.stat().st_size > STREAMED_BYTES:
            return InputTable(_open_large(place, text_format))
    name = "standard input" if path == STDIN else path
    data = read_content(path, name)
    if data.startswith(b"PAR1"):  # the mark of Parquet files
        import_optional("pyarrow", f"the Parquet file in {name}")
        return InputTable(pd.read_parquet(io.BytesIO(data)))
    return read_text(name, data, text_format)


def read_text(name: str, data: bytes, text_format: TextFormat) -> InputTable:
    """Read a table that is text; messages call it by its name."""
    check_text(name, data)
    text = _decode(name, data, text_format.encoding)
    sep = text_format.separator_of(name)
    open_text = partial(io.StringIO, text, newline="")
    header = _read_header(open_text(), sep, name)
    spaced = any(column != column.lstrip() for column in header)
    marked = text_format.decimal != "." or text_format.thousands
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=sep,
            dtype=str if marked else None,
            na_values=list(text_format.missing),
            low_memory=False,  # one type for all of a column
            skipinitialspace=spaced,
        )
    except ValueError as error:  # pandas' own errors are ValueErrors
        message = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise DataError(
            f"{name} cannot be read as CSV: {message}. Is --sep {_show(sep)} right?"
        ) from None
    if not len(frame):
        raise DataError(f"{name} has a header row and no rows of data.")
    first_rows = islice(read_records(open_text(), sep, spaced=spaced), 2)
    widths = [len(fields) for _, fields in first_rows]
    # R's write.table has no name above the names of rows.
    labelled = sep in (SPACES, "\t") and widths[1] == widths[0] + 1
    n_fields = len(header) + labelled
    line_error = find_line_error(name, open_text, sep, n_fields, spaced=spaced)
    if line_error is not None:
        raise line_error
    if spaced:
        frame = frame.rename(columns=str.strip)
    if marked:
        frame = pd.DataFrame({key: text_format.convert(frame[key]) for key in frame})
    unnamed = not header[0].strip()
    if unnamed or labelled:
        print_note(f"{name}: the first field of a row, without a name, names it")
    return InputTable(
        frame.set_index(frame.columns[0]) if unnamed else frame,
        partial(_locate, open_text, sep),
    )


def _decode(name: str, data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        raise encoding_error(name, encoding, error) from None
    if "\0" in text[:10_000]:
        raise DataError(
            f"{name} is no text; it has to be a table in CSV or Parquet. Give "
            "--encoding utf-16-le or utf-16-be if it is UTF-16 without a mark."
        )
    return text if "\n" in text else text.replace("\r", "\n")


def _show(sep: str) -> str:
    """Write a separator as it is given in a shell."""
    return {"\t": "tab", SPACES: "space"}.get(sep, f"'{sep}'")


def _read_header(file: TextIO, sep: str, name: str) -> list[str]:
    """Read the names of the columns, which must be there and differ.

    pandas would rename columns of the same name, and make up names that are missing.
    """
    try:
        _, header = next(read_records(file, sep))
    except (csv.Error, StopIteration):
        raise DataError(f"{name} has no header row that could be read.") from None
    names = [column.strip() for column in header]
    if len(names) == 1 and set(names[0]) & set(",;\t|"):
        raise DataError(
            f"{name} has one column, {names[0]!r}, if fields are separated by "
            f"{_show(sep)}. Give its separator, such as --sep ';' or --sep tab; it "
            "holds for the data and for --at."
        )
    for column, count in Counter(filter(None, names)).items():
        if count > 1:
            raise DataError(
                f"column names must be unique; {name} has {column!r} {count} times."
            )
    unnamed = [number for number, column in enumerate(names, 1) if not column]
    if unnamed and unnamed != [1]:
        raise DataError(
            f"every column needs a name; column {unnamed[-1]} of {name} has none."
        )
    return header


def _locate(open_text: Callable[[], TextIO], sep: str, row: int) -> str:
    """Name the first line of a row, which is counted from 0 below the header."""
    for number, (line, _) in enumerate(read_records(open_text(), sep)):
        if number == row + 1:
            return f"line {line}"
    return f"row {row + 1}"


def _open_large(path: Path, text_format: TextFormat) -> CsvSource:
    """Leave a large file to be read in batches, after a look at its header."""
    if text_format.thousands:
        raise DataError(
            f"{path} is too large for --thousands; write its numbers without marks, "
            "for example to a Parquet file."
        )
    sep = text_format.separator_of(path.name)
    source = CsvSource(
        path, sep, text_format.encoding, text_format.decimal, text_format.missing
    )
    with source.reading(), source.open_text() as file:
        header = _read_header(file, sep, str(path))
    if not header[0].strip():
        raise DataError(f"the first column of {path} has no name; give it one.")
    return source


@dataclass(frozen=True)
class QueryPoints:
    """Rows to predict."""

    frame: pd.DataFrame  # rows that have all predictors
    labels: pd.Index  # labels of all rows
    warning: str = ""  # which rows lack a value; empty if none does

    def align(self, predictions: pd.DataFrame) -> pd.DataFrame:
        """Extend predictions to all rows, with missing values where there is none."""
        if not self.warning:
            return predictions
        index = predictions.index
        if index.nlevels == 1:
            return predictions.reindex(self.labels.rename(index.name))
        classes = index.unique(level=1)
        whole = pd.MultiIndex.from_product([self.labels, classes], names=index.names)
        return predictions.reindex(whole)


def list_predictors(
    formula: str, data: DataLike, not_in_dot: Sequence[str | None]
) -> list[str]:
    """List the columns of the data that the right-hand side of a formula uses."""
    source = find_source(data)
    in_memory = data.columns if isinstance(data, pd.DataFrame) else ()
    columns = pd.Index(in_memory if source is None else source.columns)
    beside = tuple(name for name in not_in_dot if name is not None)
    named = read_names(formula, columns, None, beside)
    return variables(named.model(columns).right, columns)


def read_query_points(
    path: str,
    text_format: TextFormat,
    data: DataLike,
    predictors: Sequence[str],
    *,
    keep_missing: bool,
) -> QueryPoints:
    """Read query points, which are few.

    Predictors that are numbers in the training data must be numbers in the query points
    too. `keep_missing` passes missing values to the kernel.
    """
    table = open_table(path, text_format)
    frame = table.data
    if not isinstance(frame, pd.DataFrame):
        source = find_source(frame)
        assert source is not None
        frame = read_few(source, None, "--at takes fewer query points.")
    frame = frame if frame.index.is_unique else frame.reset_index(drop=True)
    needed = [name for name in predictors if name in frame.columns]
    for name in needed if isinstance(data, pd.DataFrame) else ():
        if is_number(data[name]) and not is_number(frame[name]):
            wrong = first_non_number(frame[name], text_format.is_number)
            raise DataError(
                f"column {name!r} has numbers in the data, and values such as "
                f"{str(wrong)!r} in {path}. Write both files alike: "
                "--decimal, --thousands and --na hold for both."
            )
    missing = frame[needed].isna()
    incomplete = missing.any(axis=1).to_numpy()
    if keep_missing or not incomplete.any():
        return QueryPoints(frame, frame.index)
    first = int(incomplete.argmax())
    column = needed[int(missing.iloc[first].to_numpy().argmax())]
    gap = f"{table.locate(first)} of {path} has no value in {column!r}"
    if incomplete.all():
        raise DataError(f"no row of {path} can be predicted: {gap}. Fill it in.")
    more = int(incomplete.sum()) - 1
    others = f", and {more} more rows lack one" if more else ""
    return QueryPoints(frame[~incomplete], frame.index, f"{gap}{others}: not predicted")
