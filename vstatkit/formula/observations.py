"""Observations as they come: columns beside a formula, and data of a statistic."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import ConstantResponseWarning
from vstatkit.formula.frames import as_frame, first_wrong, nearest, row_name
from vstatkit.formula.parsed import ParsedFormula


def check_order(formula: Any, data: Any) -> None:
    """Refuse X and y, or data and formula, in the place of formula and data."""
    if isinstance(formula, str):
        return
    kind = type(formula).__name__
    if isinstance(data, str) and "~" in data:
        raise TypeError(
            f"the formula comes first, then the data: fit({data!r}, data); got a "
            f"{kind} first."
        )
    if _is_table(formula) and _is_table(data):
        named = isinstance(formula, pd.DataFrame) or isinstance(data, pd.DataFrame)
        frame = "X" if named else "pd.DataFrame(X).add_prefix('x')"
        raise TypeError(
            "`fit` takes a formula and a table of data, as in fit('y ~ x1 + x2', "
            f"data); got {kind} and {type(data).__name__}. With predictors X and a "
            f"response y write fit('y ~ .', {frame}.assign(y=y)), or use "
            "ForestRegressor().fit(X, y)."
        )


def _is_table(given: Any) -> bool:
    return isinstance(given, list | np.ndarray | pd.DataFrame | pd.Series)


def take_column(
    argument: str,
    given: Any,
    data: pd.DataFrame,
    rows: Ints | pd.RangeIndex,
    index: pd.Index,
) -> pd.Series | None:
    """Read `weights` or `groups`: a column's name, or one value for each row.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    given : str, array-like or None
        What was given.
    data : DataFrame
        Rows that are used.
    rows : ndarray of shape (n,) or RangeIndex
        Their positions in the data as given.
    index : Index
        Index of the data as given; a Series must have the same.
    """
    if given is None:
        return None
    if isinstance(given, str):
        check_column(argument, given, data.columns)
        column = data[given].reset_index(drop=True)
    else:
        if np.ndim(given) != 1:
            raise ValueError(
                f"`{argument}` must be the name of a column, or one value for each "
                f"row; got {np.ndim(given)} dimensions."
            )
        if len(given) != len(index):
            raise ValueError(
                f"`{argument}` must have one value for each of the {len(index)} rows "
                f"of the data; got {len(given)}."
            )
        aligned = _align(argument, given, index)
        column = pd.Series(np.asarray(aligned)).iloc[rows].reset_index(drop=True)
    gaps = np.flatnonzero(column.isna())
    if gaps.size:
        row = row_name(index[np.asarray(rows)[gaps[0]]])
        raise ValueError(
            f"`{argument}` must not have missing values; {gaps.size:,} value(s) are "
            f"missing, the first in row {row}. {_MISSING[argument]}"
        )
    return column


_MISSING = {
    "groups": "Leave such rows out, or give each of them a group of its own.",
    "weights": "Leave such rows out, or give them the weight 0.",
}


def column_name(
    given: Any, values: pd.Series | None = None, data: pd.DataFrame | None = None
) -> str | None:
    """Name `weights` or `groups` for tables: "given" for an array, None without them.

    Parameters
    ----------
    given : str, array-like or None
        What was given.
    values : Series, optional
        Its values in the rows that are used.
    data : DataFrame, optional
        These rows. A Series that was computed from one of their columns, and still
        has its name, is not that column.

    Examples
    --------
    >>> column_name("w"), column_name([1.0, 2.0]), column_name(None)
    ('w', 'given', None)
    >>> data = pd.DataFrame({"w": [1.0, 2.0]})
    >>> column_name(data["w"], data["w"], data)
    'w'
    >>> column_name(data["w"] ** 2, data["w"] ** 2, data)
    'given'
    """
    name = own_column(given, values, data)
    return "given" if name is None and given is not None else name


def own_column(
    given: Any, values: pd.Series | None = None, data: pd.DataFrame | None = None
) -> str | None:
    """Name the column that `weights` or `groups` were; None if they were an array.

    Parameters are those of `column_name`.

    Examples
    --------
    >>> own_column("given"), own_column([1.0, 2.0])
    ('given', None)
    """
    if given is None or isinstance(given, str):
        return given
    name = given.name if isinstance(given, pd.Series) else None
    if name is None:
        return None
    if values is not None and data is not None and name in data.columns:
        return str(name) if np.array_equal(values, data[name]) else None
    return str(name)


def check_column(argument: str, name: str, columns: pd.Index) -> None:
    """Refuse the name of a column that is not there."""
    if name not in columns:
        raise ValueError(
            f"`{argument}` names no column of the data: {name!r}"
            f"{nearest(name, columns)}"
        )


def _align(argument: str, given: Any, index: pd.Index) -> Any:
    """Bring a Series into the order of the data, never by position alone."""
    if not isinstance(given, pd.Series) or given.index.equals(index):
        return given
    unique = given.index.is_unique and index.is_unique
    if unique and given.index.isin(index).all():
        return given.reindex(index)
    raise ValueError(
        f"`{argument}` is a Series with another index than the data's. Give it the "
        f"data's index, or its values alone: {argument}.to_numpy()."
    )


def observation_weights(column: pd.Series | None) -> Floats | None:
    """Check weights: finite, not negative, not all zero."""
    if column is None:
        return None
    try:
        weights = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"`weights` must be numbers; got values such as {first_wrong(column)!r}. "
            "Name a column of numbers."
        ) from None
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            "`weights` must be finite and not negative, with at least one positive; "
            f"got values from {weights.min():g} to {weights.max():g}."
        )
    return weights


def warn_if_constant(parsed: ParsedFormula) -> None:
    """Warn when there is nothing to explain."""
    if np.all(parsed.y == parsed.y[0]):
        warnings.warn(
            f"the response {parsed.response!r} is constant, so every estimate is exact "
            "and every standard error zero.",
            ConstantResponseWarning,
            stacklevel=4,
        )


def response_name(parsed: ParsedFormula) -> str:
    """Name what is estimated: the response, or the probability of its class."""
    if parsed.classes is None or len(parsed.classes) != 2:
        return parsed.response
    return f"P({parsed.response} = {parsed.classes[1]})"


def read_observations(data: Any) -> tuple[Any, pd.Index]:
    """Read the data of a statistic: a frame, a Series, or an array of rows.

    Returns
    -------
    table, index
        Observations in rows, and their labels.
    """
    if isinstance(data, pd.DataFrame | pd.Series):
        table: Any = data
    elif isinstance(data, Mapping) or hasattr(data, "get_columns"):
        table = as_frame(data)
    else:
        table = np.asarray(data)
        if table.ndim not in (1, 2):
            raise ValueError(
                "`data` must have observations in rows: one or two dimensions; got "
                f"{table.ndim}."
            )
    frame = isinstance(table, pd.DataFrame)
    array = np.asarray(table.select_dtypes("number") if frame else table)
    if np.issubdtype(array.dtype, np.number) and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(
            f"`data` must be finite; row {row} is missing or infinite. Drop such rows."
        )
    labelled = isinstance(table, pd.DataFrame | pd.Series)
    return table, table.index if labelled else pd.RangeIndex(len(table))
