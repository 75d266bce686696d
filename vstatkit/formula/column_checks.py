"""Refuse columns that cannot be meant: dates, infinite values, numbers as text."""

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.exceptions import (
    FormulaError,
)
from vstatkit.formula.formula_text import quote
from vstatkit.formula.terms import Model, variables
from vstatkit.text import list_names, row_name

_PLAIN_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


def is_number(column: pd.Series) -> bool:
    """Tell numbers from categories; true and false are categories."""
    return is_number_kind(column.dtype)


def is_number_kind(kind: Any) -> bool:
    """Tell kinds of numbers from kinds of categories."""
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def reads_as_number(value: Any) -> bool:
    """Whether a value is a number, or text that is written as one."""
    if isinstance(value, str):
        return _PLAIN_NUMBER.fullmatch(value) is not None
    return isinstance(value, Number)


def first_non_number(
    column: pd.Series, right: Callable[[Any], bool] = reads_as_number
) -> Any:
    """Show the first value that is no number; if all read as numbers, the first."""
    values = column.dropna().tolist()
    words = (value for value in values if not right(value))
    return next(words, values[0] if values else None)


# What pandas calls objects that are dates or times.
DATES = frozenset({"date", "datetime", "datetime64", "time", "timedelta", "period"})


def check_dates(model: Model, frame: pd.DataFrame) -> None:
    """Refuse dates and times: patsy would make every one a category."""
    bare = set(model.columns.values())
    used = variables(model.right + model.left, frame.columns)
    for name in (name for name in used if name in bare):
        kind = frame[name].dtype
        dates = pd.api.types.is_datetime64_any_dtype(kind) or kind.kind == "m"
        if kind == np.object_:
            dates = pd.api.types.infer_dtype(frame[name], skipna=True) in DATES
        if dates:
            raise FormulaError(
                f"column {name!r} holds dates or times. {date_advice(name)}"
            )


def date_advice(name: str) -> str:
    """Say how dates become numbers."""
    column = f"data[{name!r}]"
    return (
        f"Convert them to numbers, such as days: {column} = (pd.to_datetime({column}) "
        f'- pd.Timestamp("2000-01-01")).dt.days; or write C({quote(name)}) for '
        "categories."
    )


def check_infinite(frame: pd.DataFrame, used: Sequence[str]) -> None:
    """Refuse columns with infinite values."""
    for name in used:
        if pd.api.types.is_float_dtype(frame[name].dtype):
            rows = np.flatnonzero(np.isinf(frame[name].to_numpy()))
            check_no_infinite(name, rows.size, rows[0] if rows.size else 0)


def check_no_infinite(name: str, count: int, first: int) -> None:
    """Refuse a column with infinite values, the first of them in row `first`."""
    if count:
        raise FormulaError(
            f"column {name!r} must be finite; {count} value(s) are infinite, the first "
            f"in row {first}. Remove or replace them."
        )


def check_finite(
    X: Floats,
    names: Sequence[str],
    *,
    allow_missing: bool = False,
    where: str = "",
    first: int = 0,
    labels: pd.Index | None = None,
) -> None:
    """Refuse infinite and, unless allowed, missing values of a design matrix."""
    bad = np.isinf(X) if allow_missing else ~np.isfinite(X)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        called = row_name(first + row if labels is None else labels[row])
        raise FormulaError(
            f"{where}{names[column]!r} must be finite in every row; row {called} "
            f"has {X[row, column]}. Remove such rows, or change the transformation."
        )


FEW = 20  # different texts that may be classes or levels, whatever they look like
MOSTLY = 0.8  # share of the different texts that must look like numbers, or dates
# Different units that the numbers of a column may have; `3a`, `3b`, ... are names.
UNITS = 4

_CODES = (
    "EUR USD GBP CHF JPY CNY INR RUB TRY BRL MXN CAD AUD NZD ZAR KRW SGD HKD SEK NOK "
    "DKK PLN CZK HUF kr Kr Rs Fr"
)
_BEFORE = rf"(?:[^\w\s.,#+-]{{0,2}}|[A-Z]{{1,2}}\$|(?:{_CODES.replace(' ', '|')})\.?)"
_AFTER = r"(?P<unit>[^\d\s.,+-]{0,4})"
_THOUSANDS = r"\d{1,3}(?:(?:[.' \u00a0\u202f’]\d{3})+|(?:,\d{2})*(?:,\d{3})+)"
_DIGITS = rf"(?:(?:{_THOUSANDS}|\d+)(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
# A number with a sign or code of money before it or a unit of up to four signs after
# it, such as `€1,200.50`; a word before it makes a name, such as `room 3`.
_NUMBER = re.compile(rf"\s*[+-]?\s*{_BEFORE}\s*[+-]?\s*{_DIGITS}\s*{_AFTER}\s*")

_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))"
    r"(?:[T ]\d{1,2}:\d{2}.*)?\s*"
)
_DECIMAL_COMMA = re.compile(r"[^,]*,(?!\d{3}(?!\d))\d+[^,]*|.*\..*,.*")


def check_mistakes(
    model: Model,
    frame: pd.DataFrame,
    missing: str,
    n_missing: Mapping[str, int],
    n_rows: int,
) -> tuple[list[str], list[str]]:
    """Refuse columns that are probably mistaken; return those that remain, by side.

    `frame` has rows in which every level of its columns of text occurs, `n_missing` the
    missing values of every column that is used, in all `n_rows` rows of the data.
    """
    bare = set(model.columns.values())
    sides = [variables(side, frame.columns) for side in (model.left, model.right)]
    # With "pass", predictors keep missing values.
    needed = sides[0] if missing == "pass" else [*sides[0], *sides[1]]
    gaps = {name: n_missing[name] for name in needed}
    check_empty(gaps, n_rows)
    if missing == "raise":
        check_complete(gaps, n_rows)
    left, right = ([name for name in side if name in bare] for side in sides)
    check_texts(frame, left, right, n_rows)
    check_strays(frame, left)
    return left, right


def is_numeric(column: pd.Series) -> bool:
    """Whether a column has numbers, truth values or times."""
    return is_number_kind(column.dtype) or column.dtype.kind in "bmMc"


def check_texts(
    frame: pd.DataFrame, left: Sequence[str], right: Sequence[str], n_rows: int
) -> None:
    """Refuse text in place of numbers: every value would be a category of its own."""
    for name in [*left, *right]:
        values = texts_of(frame[name])
        if len(values) <= FEW or (name not in left and 2 * len(values) <= n_rows):
            continue
        dates = _matches(_DATE, values)
        if len(dates) >= MOSTLY * len(values):
            raise FormulaError(
                f"column {name!r} is text that looks like dates, such as "
                f"{dates[0][0]!r}. {date_advice(name)}"
            )
        numbers = _matches(_NUMBER, values)
        units = {match["unit"] for match in numbers}
        if len(numbers) >= MOSTLY * len(values) and len(units) <= UNITS:
            texts = [match[0] for match in numbers]
            others = [text for text in values if _NUMBER.fullmatch(text) is None]
            but = f", and others such as {list_names(others[:3])}" if others else ""
            conversion = _conversion(name, texts, bool(others))
            raise FormulaError(
                f"column {name!r} is text that looks like numbers, such as "
                f"{texts[0]!r}{but}: its {len(values)} different values in {n_rows} "
                f"rows would be as many categories. Convert it: {conversion}; or write "
                f"C({quote(name)}) if they are categories."
            )
        if name in left and 2 * len(values) > n_rows:
            raise FormulaError(
                f"the response {name!r} is text with {len(values)} different values in "
                f"{n_rows} rows, such as {values[0]!r}: too many to be classes. Write "
                f"C({quote(name)}) if they are."
            )


def _matches(pattern: re.Pattern[str], values: list[str]) -> list[re.Match[str]]:
    return [match for match in map(pattern.fullmatch, values) if match is not None]


def check_strays(frame: pd.DataFrame, left: Sequence[str]) -> None:
    """Refuse a response of numbers among which a few words make all of them classes."""
    for name in left:
        column = frame[name]
        values = list(pd.unique(column.dropna())) if texts_of(column) else []
        words = [value for value in values if not reads_as_number(value)]
        if not words or 2 * len(words) >= len(values):
            continue
        row = row_name(column.index[column == words[0]][0])
        code = f"data[{name!r}]"
        raise FormulaError(
            f"the response {name!r} has numbers and {words[0]!r} (row {row}), which "
            f"would make classes of all {len(values)} different values. Correct such "
            f"values, or make them missing: {code} = pd.to_numeric({code}, "
            f"errors='coerce'); write C({quote(name)}) if they are classes."
        )


def texts_of(column: pd.Series) -> list[str]:
    """Different values of a column of text, in the order in which they come."""
    if is_numeric(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return []  # categories are meant
    return [value for value in pd.unique(column.dropna()) if isinstance(value, str)]


def holds_text(column: pd.Series) -> bool:
    """Tell whether a column holds text or categories, with which nobody computes."""
    return isinstance(column.dtype, pd.CategoricalDtype) or bool(texts_of(column))


def _conversion(name: str, numbers: list[str], others: bool) -> str:
    """Write the line that makes numbers of such texts."""
    column, strip = f"data[{name!r}]", ""
    signs = {sign for number in numbers for sign in number}
    if signs - set("0123456789.,+-"):
        power = any(re.search(r"\d[eE][+-]?\d", number) for number in numbers)
        pattern = "[^0-9.,eE+-]" if power else "[^0-9.,+-]"
        strip = f".str.replace({pattern!r}, '', regex=True)"
    how = ", errors='coerce'" if others else ""
    point = ".str.replace('.', '')" if "." in signs else ""
    decimal = f"pd.to_numeric({column}{strip}{point}.str.replace(',', '.'){how})"
    grouped = f"pd.to_numeric({column}{strip}.str.replace(',', ''){how})"
    if "," not in signs:
        return f"{column} = pd.to_numeric({column}{strip}{how})"
    if all("," not in n or _DECIMAL_COMMA.fullmatch(n) is not None for n in numbers):
        return f"{column} = {decimal}"
    if "." in signs:
        return f"{column} = {grouped}"
    return (
        f"{column} = {decimal} if the comma stands before decimals, {column} = "
        f"{grouped} if it stands between thousands"
    )


def check_empty(missing: Mapping[str, int], n_rows: int) -> None:
    """Refuse columns without any value, given the missing values of each."""
    empty = [name for name, count in missing.items() if count == n_rows]
    if empty:
        several = len(empty) > 1
        which = (
            f"the columns {list_names(empty)}" if several else f"column {empty[0]!r}"
        )
        have, them = ("have", "them") if several else ("has", "it")
        raise FormulaError(
            f"{which} {have} no value: all {n_rows} rows are missing. Leave {them} out "
            f"of the formula, or fill {them} in."
        )


def check_complete(missing: Mapping[str, int], n_rows: int) -> None:
    """Refuse columns with missing values; see `check_empty`."""
    for name, count in missing.items():
        if count:
            raise FormulaError(
                f"column {name!r} must have a value in every row; {count} of {n_rows} "
                "are missing. Use missing='drop' to leave such rows out."
            )
