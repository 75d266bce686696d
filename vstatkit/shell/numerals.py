"""Numbers in text: decimal commas and thousands separators."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vstatkit.exceptions import DataError

_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+")
_POINT = re.compile(r"[+-]?\d*\.\d+")


@dataclass(frozen=True)
class Marks:
    """Marks within numbers.

    Attributes
    ----------
    decimal : str
        Before decimals.
    thousands : str
        Between thousands; empty where there is none.
    """

    decimal: str = "."
    thousands: str = ""


PLAIN = Marks()


def check_marks(decimal: str | None, thousands: str | None) -> Marks | None:
    """Read `--decimal` and `--thousands`; None where neither was given."""
    if decimal is None and thousands is None:
        return None
    for option, one in (("--decimal", decimal), ("--thousands", thousands)):
        if one is not None and (len(one) != 1 or one.isalnum()):
            raise ValueError(f"{option} must be one sign, such as , or .; got {one!r}.")
    other = "," if thousands == "." else "."
    marks = Marks(decimal or other, thousands or "")
    if marks.decimal == marks.thousands:
        raise ValueError(
            f"--decimal and --thousands must differ; got {decimal!r} for both."
        )
    return marks


def find_marks(frame: pd.DataFrame, name: str, likely: Marks | None = None) -> Marks:
    """Tell from columns of text whether decimals follow a comma.

    Where `1,234` could be either, nobody is asked but the user, unless another table
    has told what is `likely`.
    """
    doubtful = None
    for column in _texts(frame):
        values = [str(one).strip() for one in frame[column].dropna()]
        commas = [one for one in values if "," in one]
        if not commas or not all(map(_with_comma, values)):
            continue
        if not all(_GROUPED.fullmatch(one) for one in commas):
            return Marks(",")
        doubtful = doubtful or (column, commas[0])
    if doubtful is not None and likely is not None:
        return likely
    if doubtful is not None:
        raise DataError(
            f"column {doubtful[0]!r} of {name} has values such as {doubtful[1]!r}: "
            "give --decimal , if the comma stands before decimals, or --thousands , if "
            "it stands between thousands."
        )
    return PLAIN


def _with_comma(value: str) -> bool:
    return _pattern(Marks(",")).fullmatch(value) is not None or bool(
        _GROUPED.fullmatch(value)
    )


def convert(frame: pd.DataFrame, marks: Marks) -> pd.DataFrame:
    """Make numbers of the columns of text that are numbers by these marks alone."""
    return frame.assign(
        **{name: as_numbers(frame[name], marks) for name in _texts(frame)}
    )


def check_mixture(frame: pd.DataFrame, name: str) -> None:
    """Refuse a table whose columns write decimals in two ways, unless told how."""
    for column in _texts(frame):
        values = [str(one).strip() for one in frame[column].dropna()]
        points = [one for one in values if _POINT.fullmatch(one)]
        if points and len(points) == len(values):
            raise DataError(
                f"{name} has decimal commas, and in column {column!r} values such as "
                f"{points[0]!r}. Give --decimal , --thousands . if such a point stands "
                "between thousands; --decimal . if commas are not decimal."
            )


def as_numbers(column: pd.Series, marks: Marks) -> pd.Series:
    """Read a column of text as numbers, if every value is one; else leave it.

    Examples
    --------
    >>> as_numbers(pd.Series(["1.234,5", "-2"]), Marks(",", ".")).to_list()
    [1234.5, -2.0]
    """
    known = column.dropna().astype(str).str.strip()
    pattern = _pattern(marks)
    if not len(known) or not all(pattern.fullmatch(one) for one in known):
        return column
    plain = known.str.replace(marks.thousands, "", regex=False)
    numbers = plain.str.replace(marks.decimal, ".", regex=False).astype(float)
    whole = len(known) == len(column) and not plain.str.contains(r"\D").any()
    return numbers.astype(int) if whole else numbers.reindex(column.index)


def reads_by(marks: Iterable[Marks], value: Any) -> bool:
    """Whether a value is a number by any of some marks.

    Examples
    --------
    >>> reads_by([PLAIN, Marks(",")], "0,5"), reads_by([PLAIN], "0,5")
    (True, False)
    """
    text = str(value).strip()
    return any(_pattern(one).fullmatch(text) is not None for one in marks)


def _pattern(marks: Marks) -> re.Pattern[str]:
    grouped = rf"|\d{{1,3}}(?:{re.escape(marks.thousands)}\d{{3}})+"
    whole = rf"(?:\d+{grouped if marks.thousands else ''})"
    decimal = re.escape(marks.decimal)
    digits = rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)"
    return re.compile(rf"[+-]?{digits}(?:[eE][+-]?\d+)?")


def _texts(frame: pd.DataFrame) -> list[Any]:
    """Columns of text."""
    return [
        name
        for name, kind in frame.dtypes.items()
        if pd.api.types.is_string_dtype(kind)
    ]
