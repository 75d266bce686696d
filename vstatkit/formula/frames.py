"""Read data of any accepted kind, and check it."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.expressions import quote

MAX_NAMES = 30
"""Names that a sentence lists."""

_PLAIN_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


def as_frame(data: DataLike) -> pd.DataFrame:
    """Read any accepted kind of data as a data frame.

    Nullable and Arrow-backed columns, and objects that are all numbers, become
    numpy columns, which patsy reads.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, Mapping):
        frame = _frame_of_mapping(data)
    elif hasattr(data, "to_pydict"):  # an Arrow table
        frame = pd.DataFrame(data.to_pydict())
    elif hasattr(data, "get_columns"):  # a polars frame
        frame = pd.DataFrame({column.name: column.to_list() for column in data})
    else:
        raise TypeError(
            "`data` must be a DataFrame, a dict of columns, a polars frame or an "
            f"Arrow table; got {type(data).__name__}. Give arrays as columns with "
            "names: {'x': x, 'y': y}."
        )
    bad = [name for name in frame.columns if not isinstance(name, str)]
    if bad:
        raise FormulaError(
            f"column names must be strings; got {bad[0]!r} "
            f"({type(bad[0]).__name__}). Use data.rename(columns=str)."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise FormulaError(
            f"column names must be unique; {twice!r} occurs twice. Rename one, or keep "
            "the first: data.loc[:, ~data.columns.duplicated()]."
        )
    if len(frame) == 0:
        raise FormulaError("`data` has no rows.")
    plain = {
        str(name): _plain_column(frame[name])
        for name, kind in frame.dtypes.items()
        if not _is_plain(kind) and _needs_conversion(frame[name])
    }
    return frame.assign(**plain) if plain else frame


def _frame_of_mapping(data: Mapping[str, Any]) -> pd.DataFrame:
    if all(np.ndim(value) == 0 for value in data.values()):
        return pd.DataFrame({name: [value] for name, value in data.items()})
    return pd.DataFrame(dict(data))


def _is_plain(kind: Any) -> bool:
    """Tell numpy's own kinds; the column itself need not be looked at."""
    return isinstance(kind, np.dtype) and kind.kind != "O"


def _needs_conversion(column: pd.Series) -> bool:
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype | pd.DatetimeTZDtype):
        return False
    extension = isinstance(kind, pd.api.extensions.ExtensionDtype)
    return extension or (kind.kind == "O" and _all_numbers(column))


def _all_numbers(column: pd.Series) -> bool:
    """Tell whether objects are numbers, such as decimals, or missing."""
    known = column.dropna()
    numbers = (isinstance(v, Number) and not isinstance(v, bool) for v in known)
    return len(known) > 0 and all(numbers)


def _plain_column(column: pd.Series) -> pd.Series:
    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.astype(bool)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return column.astype(np.float64)
    if not isinstance(kind, pd.api.extensions.ExtensionDtype):
        return column.astype(np.float64)
    return column.astype(object).where(column.notna(), None)


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


def first_wrong(
    column: pd.Series, right: Callable[[Any], bool] = reads_as_number
) -> Any:
    """Show why a column is not one of numbers: the first value that is none.

    Where all are written as numbers, it is the first, and None where none is there.

    Examples
    --------
    >>> first_wrong(pd.Series([1.5, "2", "oops"])), first_wrong(pd.Series(["1", "2"]))
    ('oops', '1')
    """
    values = column.dropna().tolist()
    words = (one for one in values if not right(one))
    return next(words, values[0] if values else None)


DATES = frozenset({"date", "datetime", "datetime64", "time", "timedelta", "period"})
"""What pandas calls objects that are dates or times."""


def check_dates(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse dates and times: patsy would make every one a category."""
    for name in names:
        if _holds_dates(frame[name]):
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


def _holds_dates(column: pd.Series) -> bool:
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or kind.kind == "m":
        return True
    return kind == np.object_ and pd.api.types.infer_dtype(column, skipna=True) in DATES


def missing_dates_as_none(frame: pd.DataFrame) -> pd.DataFrame:
    """Write missing dates and times as None: patsy takes NaT for a date."""
    gaps = {
        name: frame[name].astype(object).where(frame[name].notna(), None)
        for name in frame.columns
        if frame[name].dtype.kind in "mM" and frame[name].isna().any()
    }
    return frame.assign(**gaps) if gaps else frame


def nearest(name: str, columns: Sequence[str] | pd.Index) -> str:
    """Suggest the column that was probably meant."""
    close = difflib.get_close_matches(name, [str(c) for c in columns], n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def listed(names: Sequence[str] | pd.Index) -> str:
    """List names; of many, only the first."""
    shown = ", ".join(map(str, names[:12]))
    return f"{shown}, ..." if len(names) > 12 else shown


def first_names(names: Sequence[str]) -> str:
    """List names; of many the first, and how many more there are.

    Examples
    --------
    >>> first_names(["a", "b"])
    'a, b'
    >>> first_names(["a"] * 1_050)[-19:]
    'a, a and 1,020 more'
    """
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def row_name(label: Any) -> str:
    """Name a row by its label: numbers as they are, texts in quotes."""
    return repr(label) if isinstance(label, str) else str(label)


def check_infinite(frame: pd.DataFrame, used: Sequence[str]) -> None:
    """Refuse columns with infinite values."""
    for name in used:
        column = frame[name]
        if not pd.api.types.is_float_dtype(column.dtype):
            continue
        rows = np.flatnonzero(np.isinf(column.to_numpy()))
        if rows.size:
            raise FormulaError(
                f"column {name!r} must be finite; {rows.size} value(s) are infinite, "
                f"the first in row {rows[0]}. Remove or replace them."
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
    """Refuse a design matrix with infinite or, unless allowed, missing values.

    In messages rows have their labels, or are counted from `first`.
    """
    bad = np.isinf(X) if allow_missing else ~np.isfinite(X)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        called = row_name(first + row if labels is None else labels[row])
        raise FormulaError(
            f"{where}{names[column]!r} must be finite in every row; row {called} "
            f"has {X[row, column]}. Remove such rows, or change the transformation."
        )
