"""Read data of any accepted kind as a data frame of columns that patsy reads."""

from collections.abc import Mapping
from numbers import Number

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_checks import is_number_kind


def as_frame(data: DataLike) -> pd.DataFrame:
    """Read any accepted kind of data as a data frame.

    Nullable and Arrow-backed columns, and objects that are all numbers, become
    numpy columns, which patsy reads.
    """
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, Mapping):
        columns = dict(data)
        if all(np.ndim(value) == 0 for value in columns.values()):
            columns = {name: [value] for name, value in columns.items()}
        frame = pd.DataFrame(columns)
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
        str(name): column
        for name, kind in frame.dtypes.items()
        # numpy's own kinds need no look at the column.
        if not (isinstance(kind, np.dtype) and kind.kind != "O")
        and (column := _plain_column(frame[name])) is not None
    }
    return frame.assign(**plain) if plain else frame


def _plain_column(column: pd.Series) -> pd.Series | None:
    """Convert a column to a kind of numpy's; None if it stays as it is."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype | pd.DatetimeTZDtype):
        return None
    if not isinstance(kind, pd.api.extensions.ExtensionDtype):
        # Objects may be numbers, such as decimals, or missing.
        known = column.dropna()
        numbers = (isinstance(v, Number) and not isinstance(v, bool) for v in known)
        return column.astype(np.float64) if len(known) > 0 and all(numbers) else None
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.astype(bool)
    return column.astype(np.float64) if is_number_kind(kind) else as_objects(column)


def replace_missing_dates(frame: pd.DataFrame) -> pd.DataFrame:
    """Write missing dates and times as None: patsy takes NaT for a date."""
    dates = (name for name in frame.columns if frame[name].dtype.kind in "mM")
    gaps = {name: as_objects(frame[name]) for name in dates if frame[name].isna().any()}
    return frame.assign(**gaps) if gaps else frame


def as_objects(column: pd.Series) -> pd.Series:
    """Convert a column to objects, with None for missing values."""
    return column.astype(object).where(column.notna(), None)
