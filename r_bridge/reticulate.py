"""Functions that R's side of the bridge, `vstatkit.R`, calls."""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from r_bridge.convert import column_from_parts
from r_bridge.formula import translate_formula
from vstatkit import reticulate_hook
from vstatkit._typing import Floats
from vstatkit.formula.column_checks import is_number
from vstatkit.results.labels import label_texts

__all__ = [
    "array_from_parts",
    "array_values",
    "frame_columns",
    "frame_from_parts",
    "is_ours",
    "r_file",
    "r_folder",
    "register",
    "series_values",
    "translate_formula",
    "vector_from_part",
]


def r_file() -> str:
    """Return the path of the R file that converts formulas and tables for reticulate.

    Returns
    -------
    str
        For R: `source(import("r_bridge")$r_file())`.
    """
    return str(resources.files("r_bridge").joinpath("vstatkit.R"))


def r_folder() -> str:
    """Return the path of the R package that comes with the bridge.

    Returns
    -------
    str
        For a shell: `R CMD INSTALL "$(python -c 'import r_bridge;
        print(r_bridge.r_folder())')"`.
    """
    return str(resources.files("r_bridge").joinpath("vstatkit"))


def register() -> None:
    """Source the file in R, if R runs this Python."""
    reticulate_hook.evaluate_in_r(f"{{ source({json.dumps(r_file())}); NULL }}")


def is_ours(function: Any) -> bool:
    """Return whether a function, method or class belongs to vstatkit or this bridge."""
    holder = getattr(function, "__self__", None)
    owners = (function, holder, type(holder))
    homes = (str(getattr(one, "__module__", "")) for one in owners)
    return any(home.partition(".")[0] in ("vstatkit", "r_bridge") for home in homes)


def frame_from_parts(
    names: Sequence[str],
    parts: Sequence[Mapping[str, Any]],
    rows: Sequence[str],
    n: int,
) -> pd.DataFrame:
    """Build a data frame from the parts of columns that R sent; NA is missing.

    For the parts see `vector_from_part`; there are no row names if R only counts rows.
    """
    index = pd.Index(list(rows)) if rows else pd.RangeIndex(n)
    columns = [_column(name, part) for name, part in zip(names, parts, strict=True)]
    series = [pd.Series(column, index=index) for column in columns]
    made = pd.concat(series, axis=1) if series else pd.DataFrame(index=index)
    return made.set_axis(pd.Index(list(names), dtype=object), axis=1)


def vector_from_part(part: Mapping[str, Any]) -> Any:
    """Build a list from the parts of a vector that R sent, or return its only value.

    NA is None, or a missing date. The parts are `kind`, `values`, and what the kind
    needs: the mask `missing` of text, `levels` and `ordered` of a factor, `zone` of
    times.
    """
    column = pd.Series(_column("vector", part))
    values = column.tolist()
    if part["kind"] not in ("date", "time"):
        pairs = zip(values, column.isna(), strict=True)
        values = [None if missing else one for one, missing in pairs]
    if part["kind"] == "integer":
        values = [None if one is None else int(one) for one in values]
    return values[0] if len(values) == 1 else values


def array_from_parts(values: Sequence[float], shape: Sequence[int]) -> Floats:
    """Build an array from the parts of a matrix that R sent, in column-major order."""
    numbers = np.array(values, dtype=np.float64)
    return numbers.reshape([int(size) for size in shape], order="F")


def _column(name: str, part: Mapping[str, Any]) -> Any:
    """Read a column; text comes with a mask of missing values."""
    values = part["values"]
    if part["kind"] == "text":
        pairs = zip(values, part["missing"], strict=True)
        values = [None if missing else one for one, missing in pairs]
    else:
        values = np.array(values, dtype=np.float64)
    return column_from_parts(name, {**part, "values": values})


def frame_columns(frame: pd.DataFrame) -> dict[str, Any]:
    """Split a data frame into lists: numbers, booleans, other columns as text.

    Row names are those of the index, or None where they only count or repeat.
    """
    rows = label_texts(frame.index)
    counted = frame.index.equals(pd.RangeIndex(len(frame)))
    return {
        "names": label_texts(frame.columns),
        "values": [_values(frame.iloc[:, j]) for j in range(frame.shape[1])],
        "rows": None if counted or len(set(rows)) < len(rows) else rows,
    }


def series_values(series: pd.Series) -> dict[str, Any]:
    """Split a series into its values and, if R can use them as names, its labels."""
    parts = frame_columns(series.to_frame("values"))
    return {"values": parts["values"][0], "names": parts["rows"]}


def array_values(array: Any) -> dict[str, Any]:
    """Split an array into its values, in column-major order, and its shape."""
    column = pd.Series(np.asarray(array).ravel(order="F"))
    return {"values": _values(column), "shape": list(np.shape(array))}


def _values(column: pd.Series) -> list[Any]:
    if is_number(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).tolist()
    if column.dtype == bool:
        return column.tolist()
    return [None if pd.isna(one) else str(one) for one in column]
