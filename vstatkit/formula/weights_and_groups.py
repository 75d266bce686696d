"""The columns or arrays that `weights` and `groups` are given as."""

from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats, Ints
from vstatkit.formula.column_checks import first_non_number
from vstatkit.text import row_name, suggest_name


def take_column(
    argument: str,
    given: Any,
    data: pd.DataFrame,
    rows: Ints | pd.RangeIndex,
    index: pd.Index,
) -> pd.Series | None:
    """Read `weights` or `groups`: a column's name, or one value for each row.

    `data` has the rows that are used, and `rows` their positions in the data as given,
    of which `index` is the index; a Series must have the same.
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
        otherwise = {
            "groups": "each of them a separate group",
            "weights": "them the weight 0",
        }[argument]
        raise ValueError(
            f"`{argument}` must not have missing values; {gaps.size:,} value(s) are "
            f"missing, the first in row {row}. Leave such rows out, or give "
            f"{otherwise}."
        )
    return column


def column_name(
    given: Any, values: pd.Series | None = None, data: pd.DataFrame | None = None
) -> str | None:
    """Name `weights` or `groups` for tables: "given" for an array, None without them.

    `data` has the rows that are used, and `values` what was given in these rows. A
    Series that was computed from a column, and still has its name, is not that column.

    Examples
    --------
    >>> column_name("w"), column_name([1.0, 2.0]), column_name(None)
    ('w', 'given', None)
    >>> data = pd.DataFrame({"w": [1.0, 2.0]})
    >>> column_name(data["w"] ** 2, data["w"] ** 2, data)
    'given'
    """
    name = own_column(given, values, data)
    return "given" if name is None and given is not None else name


def own_column(
    given: Any, values: pd.Series | None = None, data: pd.DataFrame | None = None
) -> str | None:
    """Name the column that `weights` or `groups` were; None if they were an array."""
    if isinstance(given, str):
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
            f"{suggest_name(name, columns)}"
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
        value = first_non_number(column)
        raise ValueError(
            f"`weights` must be numbers; got values such as {value!r}. Name a "
            "column of numbers."
        ) from None
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            "`weights` must be finite and not negative, with at least one positive; "
            f"got values from {weights.min():g} to {weights.max():g}."
        )
    return weights
