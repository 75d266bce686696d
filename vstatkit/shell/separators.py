"""Separators and header rows of delimited text."""

import csv
import io
import re
from collections import Counter
from itertools import islice

from vstatkit.exceptions import DataError
from vstatkit.sources.find import TSV
from vstatkit.sources.text import SPACES

NAMED = {"tab": "\t", r"\t": "\t", "space": SPACES, " ": SPACES}
"""Separators that are hard to type, by name."""

CANDIDATES = (",", ";", "\t", "|")
LOOK = 200_000
"""Characters, and rows, that a separator is judged by."""
LOOK_ROWS = 50

_EXCEL_LINE = re.compile(r'"?sep=(.)"?\r?\n')
"""First line that tells Excel the separator."""


def read_separator(given: str | None) -> str | None:
    """Read `--sep`: one character, or a name."""
    if given is None:
        return None
    found = NAMED.get(given, given)
    if len(found) != 1 and found != SPACES:
        raise ValueError(
            f"--sep must be one character, or tab or space; got {given!r}."
        )
    return found


def shown(sep: str) -> str:
    """Write a separator as it is given in a shell."""
    names = {"\t": "tab", SPACES: "space"}
    return names.get(sep, f"'{sep}'")


def told_to_excel(text: str) -> tuple[str, str | None]:
    """Take off a first line such as `sep=;`, which is for Excel."""
    found = _EXCEL_LINE.match(text)
    return (text, None) if found is None else (text[found.end() :], found[1])


def find_separator(text: str, name: str) -> str:
    r"""Tell the separator of a table by its name and its first rows.

    It must give every row as many fields, two or more, as the header has.

    Examples
    --------
    >>> find_separator("a;b\n1,5;2,5\n", "data.csv")
    ';'
    """
    if name.lower().endswith((".tab", *TSV)):
        return "\t"
    fits = {sep: width for sep in CANDIDATES if (width := _width(text, sep)) > 1}
    if len(fits) > 1:
        ways = " or ".join(f"{shown(sep)} ({n} columns)" for sep, n in fits.items())
        raise DataError(f"the fields of {name} may be separated by {ways}: give --sep.")
    if fits:
        return next(iter(fits))
    if _width(text, SPACES) > 1:
        return SPACES
    # Rows of different lengths: what the header has most, and pandas names the row.
    return max(CANDIDATES, key=lambda sep: len(_first_rows(text, sep)[0]))


def _width(text: str, sep: str) -> int:
    """Count the fields of the first rows; 0 where their numbers differ."""
    rows = _first_rows(text, sep)
    widths = {len(row) for row in rows}
    # R's write.table has no name over the names of rows.
    named = sep in (SPACES, "\t") and widths == {len(rows[0]), len(rows[0]) + 1}
    return len(rows[0]) if len(widths) == 1 or named else 0


def _first_rows(text: str, sep: str) -> list[list[str]]:
    head = text[:LOOK]
    if len(text) > LOOK:
        head = head[: head.rfind("\n") + 1] or head
    spaces = sep == SPACES
    lines = io.StringIO(re.sub(r"[ \t]+", " ", head) if spaces else head, newline="")
    reader = csv.reader(lines, delimiter=" " if spaces else sep, skipinitialspace=True)
    try:
        rows = [row for row in islice(reader, LOOK_ROWS) if row]
    except csv.Error:  # no table by this separator
        rows = []
    return rows or [[]]


def header_of(text: str, sep: str, name: str) -> list[str]:
    """Names of the header row, as they are written."""
    if sep == SPACES:
        return _first_rows(text, sep)[0]
    reader = csv.reader(io.StringIO(text[:LOOK], newline=""), delimiter=sep)
    try:
        return next(row for row in reader if row)
    except (csv.Error, StopIteration):
        raise DataError(f"{name} has no header row that could be read.") from None


def line_of(text: str, sep: str, row: int) -> str:
    r"""Say in which line of a table a row stands; rows are counted from 0.

    Examples
    --------
    >>> line_of('sep=;\na;b\n1;"two\nlines"\n\n3;4\n', ";", 1)
    'line 6'
    """
    rest, told = told_to_excel(text)
    lines = 0 if told is None else 1
    spaces = sep == SPACES
    reader = csv.reader(io.StringIO(rest, newline=""), delimiter=" " if spaces else sep)
    start = 1
    for fields in reader:
        if fields and row < 0:
            break
        row -= bool(fields)
        start = reader.line_num + 1
    return f"line {lines + start}"


def rows_are_named(text: str, sep: str) -> bool:
    """Tell whether rows have a field more than the header, which names them."""
    rows = _first_rows(text, sep)
    return len(rows) > 1 and len(rows[1]) == len(rows[0]) + 1


def check_header(header: list[str], name: str) -> None:
    """Refuse names that stand there twice: they could not be told apart."""
    counts = Counter(one.strip() for one in header if one.strip())
    twice = [one for one, count in counts.items() if count > 1]
    if twice:
        raise DataError(
            f"column names must be unique; {name} has {twice[0]!r} "
            f"{counts[twice[0]]} times."
        )
    unnamed = [place for place, one in enumerate(header, 1) if not one.strip()]
    if unnamed and unnamed != [1]:
        raise DataError(
            f"every column needs a name; column {unnamed[-1]} of {name} has none."
        )
