"""Convert data frames and arrays between Python and R.

Arrays here have learners first; R's matrices have them last.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from r_bridge import session
from r_bridge.objects import RObject
from r_bridge.serial import NA_INTEGER
from vstatkit._typing import Floats, Ints
from vstatkit.formula.column_checks import is_number

_BUILD = """
function(columns, names, rows) {
  missing_as_na <- function(values) replace(values, is.nan(values), NA)
  made <- lapply(columns, function(column) switch(column$kind,
    number = missing_as_na(column$values),
    logical = as.logical(column$values),
    factor = structure(column$values, levels = column$levels,
                       class = c(if (column$ordered) "ordered", "factor")),
    date = as.Date(missing_as_na(column$values) / 86400, origin = "1970-01-01"),
    time = as.POSIXct(missing_as_na(column$values), origin = "1970-01-01",
                      tz = column$zone),
    column$values))
  names(made) <- names
  attr(made, "row.names") <- rows
  class(made) <- "data.frame"
  made
}
"""

_TAKE_APART = """
function(frame) lapply(as.list(frame), function(column) {
  if (is.factor(column)) {
    list(kind = "factor", values = as.integer(column), levels = levels(column),
         ordered = is.ordered(column))
  } else if (inherits(column, "Date")) {
    list(kind = "date", values = as.numeric(column))
  } else if (inherits(column, "POSIXt")) {
    zone <- attr(column, "tzone")[1]
    list(kind = "time", values = as.numeric(as.POSIXct(column)),
         zone = if (is.null(zone)) "" else zone)
  } else if (is.logical(column)) {
    list(kind = "logical", values = as.integer(column))
  } else if (is.integer(column)) {
    list(kind = "integer", values = as.vector(column))
  } else if (is.numeric(column) && is.null(dim(column))) {
    list(kind = "number", values = as.numeric(column))
  } else if (is.character(column)) {
    list(kind = "text", values = as.vector(column))
  } else {
    list(kind = class(column)[1])
  }
})
"""

_NANOSECONDS = 1_000_000_000


def to_r_frame(frame: pd.DataFrame) -> RObject:
    """Make an R data frame; categories become factors, dates dates, NaN NA.

    Column names go over as they are, whatever letters they have.
    """
    columns = [_column_to_r(frame[name]) for name in frame.columns]
    rows = np.arange(1, len(frame) + 1)
    return session.keep(_BUILD, columns, [str(name) for name in frame.columns], rows)


def _column_to_r(column: pd.Series) -> dict[str, Any]:
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _factor_to_r(column)
    if pd.api.types.is_datetime64_any_dtype(kind):
        return _time_to_r(column)
    if pd.api.types.is_bool_dtype(kind):
        values = np.where(column.isna(), NA_INTEGER, column.fillna(False))
        return {"kind": "logical", "values": values.astype(np.int64)}
    if is_number(column):
        return {
            "kind": "number",
            "values": column.to_numpy(np.float64, na_value=np.nan),
        }
    texts = [None if pd.isna(one) else str(one) for one in column]
    return {"kind": "text", "values": texts}


def _factor_to_r(column: pd.Series) -> dict[str, Any]:
    codes = column.cat.codes.to_numpy(dtype=np.int64)
    return {
        "kind": "factor",
        "values": np.where(codes < 0, NA_INTEGER, codes + 1),
        "levels": [str(level) for level in column.cat.categories],
        "ordered": bool(column.cat.ordered),
    }


def _time_to_r(column: pd.Series) -> dict[str, Any]:
    zone = getattr(column.dtype, "tz", None)
    moments = (
        column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
    )
    nanoseconds = moments.astype("datetime64[ns]").astype("int64").to_numpy()
    seconds = np.where(column.isna(), np.nan, nanoseconds / _NANOSECONDS)
    midnight = bool((moments.dropna() == moments.dropna().dt.normalize()).all())
    if zone is None and midnight:
        return {"kind": "date", "values": seconds}
    return {"kind": "time", "values": seconds, "zone": str(zone or "UTC")}


def from_r_frame(given: RObject) -> pd.DataFrame:
    """Make a pandas data frame; factors become categories, NA missing values."""
    parts = session.call(_TAKE_APART, given)
    columns = {name: _column_from_r(name, part) for name, part in parts.items()}
    names = session.call("function(frame) attr(frame, 'row.names')", given)
    numbered = np.array_equal(names, np.arange(1, len(names) + 1))
    return pd.DataFrame(columns, index=None if numbered else pd.Index(list(names)))


def _column_from_r(name: str, part: dict[str, Any]) -> Any:
    """Convert a column that R returns as vectors."""
    single = ("kind", "ordered", "zone")
    found = {key: one[0] if key in single else one for key, one in part.items()}
    return column_from_parts(name, found)


def column_from_parts(name: str, part: Mapping[str, Any]) -> Any:
    """Build a column from the parts that R returned.

    These are `kind`; `values`, numbers that are NaN where missing, or texts; `levels`
    and `ordered` of a factor, whose values count from one; `zone` of times.
    """
    kind, values = part["kind"], part.get("values")
    make = _COLUMNS.get(kind)
    if make is None or values is None:
        raise TypeError(
            f"column {name!r} has R's class {kind!r}, which pandas does not have; "
            "convert it in R, or leave it out."
        )
    return make(values, part)


def _factor(values: Any, part: Mapping[str, Any]) -> Any:
    codes = np.where(np.isnan(values), 0, values).astype(np.int64) - 1
    levels = pd.Index(list(part["levels"]))
    return pd.Categorical.from_codes(codes, levels, bool(part["ordered"]))


def _date(values: Any, _: Mapping[str, Any]) -> Any:
    return pd.to_datetime(pd.Series(values), unit="D").dt.as_unit("us").to_numpy()


def _time(values: Any, part: Mapping[str, Any]) -> Any:
    moments = pd.to_datetime(pd.Series(values), unit="s", utc=True)
    return moments.dt.as_unit("us").dt.tz_convert(part["zone"] or "UTC").array


def _logical(values: Any, _: Mapping[str, Any]) -> Any:
    if not np.isnan(values).any():
        return values.astype(bool)
    truth = [None if np.isnan(value) else bool(value) for value in values]
    return pd.array(truth, "boolean")


def _integer(values: Any, _: Mapping[str, Any]) -> Any:
    return values if np.isnan(values).any() else values.astype(np.int64)


# How a column is made, by its kind in R
_COLUMNS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "factor": _factor,
    "date": _date,
    "time": _time,
    "logical": _logical,
    "integer": _integer,
    "number": lambda values, _: values,
    "text": lambda values, _: pd.Series(list(values), dtype=object).array,
}


def counts_to_inbag(counts: Any) -> list[Ints]:
    """Write counts (B, n) as ranger's `inbag`: a vector for every tree."""
    return list(np.asarray(counts, dtype=np.int64))


def trees_first(matrix: Any) -> Floats:
    """Transpose R's (points, trees) or (points, classes, trees) to (trees, ...)."""
    return np.ascontiguousarray(
        np.moveaxis(np.asarray(matrix, dtype=np.float64), -1, 0)
    )
