"""Tables from delimited text and other files."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.exceptions import DataError
from vstatkit.shell.input_bytes import (
    STDIN,
    Content,
    check_folder,
    check_text,
    read_content,
)
from vstatkit.shell.letters import decode
from vstatkit.shell.numerals import PLAIN, Marks, check_mixture, convert, find_marks
from vstatkit.shell.separators import (
    check_header,
    find_separator,
    header_of,
    line_of,
    rows_are_named,
    shown,
    told_to_excel,
)
from vstatkit.sources.find import CSV, PARQUET, TSV
from vstatkit.sources.source import required
from vstatkit.sources.text import (
    SPACES,
    CsvSource,
    find_uneven_line,
    open_packed,
    uneven_error,
)

STREAMED_BYTES = 2**28
"""Size from which a CSV file is read batch after batch."""

HEAD_BYTES = 200_000
"""Bytes of a file that is read in batches by which its separator is judged."""

Tell = Callable[[str], None]
"""Says to the user what was found out about a file."""


@dataclass(frozen=True)
class Format:
    """How text is written; None where that is to be found out.

    Attributes
    ----------
    sep : str or None
        What stands between fields.
    encoding : str or None
        How letters are written as bytes.
    marks : Marks or None
        Marks within numbers.
    likely : Marks or None
        What to take for such marks where the table leaves doubt.
    missing : tuple of str
        Texts that stand for missing values, besides the usual ones.
    """

    sep: str | None = None
    encoding: str | None = None
    marks: Marks | None = None
    likely: Marks | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table that was read, or that is read in batches.

    Attributes
    ----------
    data : DataFrame, path or CsvSource
        What `fit` takes.
    marks : Marks or None
        Marks within its numbers.
    place : callable
        Says where a row, counted from 0, stands in the file.
    """

    data: DataLike
    marks: Marks | None = None
    place: Callable[[int], str] = lambda row: f"row {row + 1}"


def open_table(path: str, written: Format, tell: Tell) -> Table:
    """Read a table; leave what is large to be read in batches.

    Parameters
    ----------
    path : str
        A file, a folder of Parquet files, or `-`.
    written : Format
        How it is written.
    tell : callable
        Is told, as a sentence, what was found out rather than given.
    """
    place = Path(path)
    if path != STDIN and place.is_dir():
        check_folder(place)
        return Table(place)
    if path != STDIN and place.exists():
        name = place.name.lower()
        if name.endswith(PARQUET):
            return Table(place)
        if name.endswith(CSV + TSV) and place.stat().st_size > STREAMED_BYTES:
            return Table(_streamed(place, written), written.marks)
    content = read_content(path)
    if content.is_parquet:
        required("pyarrow", f"the Parquet file in {content.name}")
        return Table(pd.read_parquet(io.BytesIO(content.data)))
    return read_text(content, written, tell)


def read_text(content: Content, written: Format, tell: Tell) -> Table:
    """Read a table that is text."""
    check_text(content)
    letters = decode(content, written.encoding)
    text, told = told_to_excel(letters.text)
    sep = written.sep or told or find_separator(text, content.name)
    header = header_of(text, sep, content.name)
    check_header(header, content.name)
    absent = written.missing
    read = partial(
        _frame, text, sep=sep, name=content.name, header=header, absent=absent
    )
    frame = read()
    _check_rows(frame, text, sep, content.name)
    _check_lines(text, sep, header, content.name, int(told is not None))
    marks = written.marks or find_marks(frame, content.name, written.likely)
    if marks != PLAIN:
        frame = convert(read(dtype=str), marks)
        if written.marks is None:
            check_mixture(frame, content.name)
    _tell(content.name, written, replace(written, sep=sep, marks=marks), tell)
    unnamed = not header[0].strip()
    if unnamed or rows_are_named(text, sep):
        tell(f"{content.name}: the first field of a row, without a name, names it")
    place = partial(line_of, letters.text, sep)
    return Table(frame.set_index(frame.columns[0]) if unnamed else frame, marks, place)


def _frame(
    text: str,
    *,
    sep: str,
    name: str,
    header: list[str],
    absent: tuple[str, ...],
    dtype: Any = None,
) -> pd.DataFrame:
    spaced = _is_spaced(header)
    try:
        return pd.read_csv(
            io.StringIO(text),
            sep=sep,
            dtype=dtype,
            na_values=list(absent),
            low_memory=False,  # one kind for all of a column
            skipinitialspace=spaced,
        ).rename(columns=lambda column: str(column).strip() if spaced else column)
    except ValueError as error:  # pandas' own errors are ValueErrors
        hint = "" if sep == SPACES else f" Is --sep {shown(sep)} right?"
        said = str(error).replace("Error tokenizing data. C error: ", "")
        raise DataError(
            f"{name} cannot be read as CSV: {said.strip()}.{hint}"
        ) from None


def _check_rows(frame: pd.DataFrame, text: str, sep: str, name: str) -> None:
    """Refuse a table without rows, or with fields that no column has."""
    if not len(frame):
        raise DataError(f"{name} has a header row and no rows of data.")
    if rows_are_named(text, sep) and sep not in (SPACES, "\t"):
        raise DataError(
            f"the rows of {name} have more fields than its header; every column needs "
            "a name."
        )


def _check_lines(
    text: str, sep: str, header: list[str], name: str, n_before: int
) -> None:
    """Refuse lines with fewer fields than columns, which pandas fills at the end.

    Rows that are named have a field more than the header; lines that are too long have
    been refused by pandas. There are `n_before` lines before the text.
    """
    n_columns = len(header) + rows_are_named(text, sep)
    reopen = partial(io.StringIO, text, newline="")
    uneven = find_uneven_line(reopen, sep, n_columns, spaced=_is_spaced(header))
    if uneven is not None:
        line, n_fields = uneven
        raise uneven_error(name, line + n_before, n_fields, n_columns, sep)


def _is_spaced(header: list[str]) -> bool:
    """Whether spaces follow separators, which are no part of the fields."""
    return any(one != one.lstrip() for one in header)


def _tell(name: str, given: Format, found: Format, tell: Tell) -> None:
    """Say what was found out, in the words that would ask for it."""
    said = []
    if given.sep is None and found.sep != "," and not _ends_so(name, found.sep):
        said.append(f"--sep {shown(str(found.sep))}")
    if given.marks is None and found.marks is not None and found.marks != PLAIN:
        said.append(f"--decimal '{found.marks.decimal}'")
    if said:
        tell(f"{name} is read with {' '.join(said)}")


def _ends_so(name: str, sep: str | None) -> bool:
    return sep == "\t" and name.lower().endswith((".tab", *TSV))


def _streamed(path: Path, written: Format) -> CsvSource:
    """Leave a large file to be read in batches; its first rows tell how."""
    marks = written.marks or PLAIN
    if marks.thousands:
        raise DataError(
            f"{path} is too large for --thousands; write its numbers without marks, "
            "for example to a Parquet file."
        )
    letters = decode(Content(str(path), _head(path)), written.encoding)
    sep = written.sep or find_separator(letters.text, path.name)
    header = header_of(letters.text, sep, path.name)
    check_header(header, path.name)
    if not header[0].strip():
        raise DataError(f"the first column of {path} has no name; give it one.")
    return CsvSource(path, sep, letters.encoding, marks.decimal, written.missing)


def _head(path: Path) -> bytes:
    """Read the first lines, unpacked."""
    with open_packed(path) as file:
        head = file.read(HEAD_BYTES)
    return head[: head.rfind(b"\n") + 1] or head
