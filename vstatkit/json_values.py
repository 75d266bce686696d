"""Convert scalars, indexes and data frames to JSON and back.

All input is checked, because files may be damaged or malicious.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vstatkit._typing import Floats, Labels
from vstatkit.exceptions import FileError, VstatkitError

MAX_DEPTH = 4  # largest depth of nested tuples
# Types of columns that are written item by item.
KINDS = re.compile(
    r"bool|object|u?int(8|16|32|64)|float(16|32|64)"
    r"|datetime64\[(s|ms|us|ns)(, [A-Za-z0-9_/+:-]{1,40})?\]"
)


LISTED = 100_000  # longest range index that is written item by item


def check(holds: Any, otherwise: str) -> None:
    """Raise a `FileError` unless a condition holds."""
    if not holds:
        raise FileError(otherwise)


def take(packed: Any, name: str, *kinds: type) -> Any:
    """Read a field of one of the given types; a bool does not count as an int."""
    check(type(packed) is dict and name in packed, f"the field {name!r} is missing.")
    value = packed[name]
    check(type(value) in kinds, f"the field {name!r} is a {type(value).__name__}.")
    return value


def take_size(packed: Any, name: str, low: int, high: int = 2**31 - 1) -> int:
    """Read a whole number between bounds."""
    value = take(packed, name, int)
    check(low <= value <= high, f"the field {name!r} is {str(value)[:30]}.")
    return int(value)


def take_floats(
    arrays: dict[str, NDArray[Any]], name: str, ndim: int, *, missing: bool = False
) -> Floats:
    """Take an array of numbers; finite ones, unless some may be missing."""
    check(name in arrays, f"the array {name!r} is missing.")
    array = arrays.pop(name)
    fits = array.dtype == np.float64 and array.ndim == ndim
    check(fits, f"the array {name!r} is of another kind or shape.")
    good = ~np.isinf(array) if missing else np.isfinite(array)
    check(good.all(), f"the array {name!r} has values that are not finite.")
    return array


def take_texts(packed: Any, name: str) -> list[str]:
    """Read a list of texts."""
    values: list[str] = take(packed, name, list)
    check(all(type(value) is str for value in values), f"{name!r} must hold texts.")
    return values


def check_fields(packed: Any, names: Sequence[str], what: str) -> None:
    """Raise a `FileError` if fields are missing or unknown."""
    check(type(packed) is dict, f"{what} is no list of fields.")
    check(set(packed) == set(names), f"{what} must have the fields {', '.join(names)}.")


def pack(value: Any) -> Any:
    """Convert a scalar to JSON; types that JSON does not have are tagged."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, pd.Timestamp):
        return {"timestamp": value.isoformat()}
    if isinstance(value, pd.Interval):
        return {"interval": [pack(value.left), pack(value.right), value.closed]}
    if isinstance(value, tuple):
        return {"tuple": [pack(part) for part in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise VstatkitError(
        f"labels and levels must be numbers, text, dates or intervals to be saved; got "
        f"{type(value).__name__}."
    )


def unpack(packed: Any, depth: int = 0) -> Any:
    """Read what `pack` wrote."""
    if packed is None or type(packed) in (bool, int, float, str):
        return packed
    check(type(packed) is dict and len(packed) == 1, "a label is of no known kind.")
    check(depth <= MAX_DEPTH, "a label is nested too deeply.")
    ((kind, value),) = packed.items()
    if kind == "timestamp":
        check(type(value) is str and len(value) < 60, "a date is no text.")
        return pd.Timestamp(value)
    check(type(value) is list, "a label has no parts.")
    if kind == "tuple":
        return tuple(unpack(part, depth + 1) for part in value)
    check(kind == "interval" and len(value) == 3, "a label is of no known kind.")
    left, right = (unpack(end, depth + 1) for end in value[:2])
    return pd.Interval(left, right, value[2])


def pack_index(index: Labels) -> dict[str, Any]:
    """Write an index."""
    if isinstance(index, pd.MultiIndex):
        names = [pack(name) for name in index.names]
        return {"rows": [pack(row) for row in index], "names": names}
    if isinstance(index, pd.RangeIndex) and len(index) > LISTED:
        ends = [index.start, index.stop, index.step]
        return {"range": ends, "name": pack(index.name)}
    return {"items": [pack(item) for item in index], "name": pack(index.name)}


def unpack_index(packed: Any, length: int) -> Labels:
    """Read an index of the length that it must have."""
    check(type(packed) is dict, "an index is no list of fields.")
    kind = next((kind for kind in ("range", "rows") if kind in packed), "items")
    names = "names" if kind == "rows" else "name"
    check_fields(packed, (kind, names), "an index")
    parts = take(packed, kind, list)
    if kind == "range":
        whole = [type(end) for end in parts] == [int, int, int] and parts[2] != 0
        check(whole and max(map(abs, parts)) < 2**62, "an index has no such range.")
        index: Labels = pd.RangeIndex(*parts)
        check(len(index) == length, "an index has a range of another length.")
        return index.rename(unpack(packed["name"]))
    items = [unpack(item) for item in parts]
    check(len(items) == length, f"an index has {len(items)} labels for {length}.")
    if kind == "items":
        index = pd.Index(items, name=unpack(packed["name"]), tupleize_cols=False)
        return index
    labels = [unpack(name) for name in take(packed, "names", list)]
    check(
        all(type(row) is tuple and len(row) == len(labels) for row in items),
        "an index has rows of several lengths.",
    )
    return pd.MultiIndex.from_tuples(items, names=labels)


def pack_frame(frame: pd.DataFrame) -> tuple[dict[str, Any], NDArray[Any]]:
    """Write a data frame: its columns of floats as one array, the others as JSON."""
    floats = [name for name, kind in frame.dtypes.items() if kind == np.float64]
    others = [name for name in frame.columns if name not in set(floats)]
    document = {
        "names": list(frame.columns),
        "floats": floats,
        "others": [_pack_column(name, frame[name]) for name in others],
        "index": pack_index(frame.index),
    }
    return document, frame[floats].to_numpy(dtype=np.float64).T.copy()


def _pack_column(name: str, column: pd.Series) -> dict[str, Any]:
    kind = column.dtype
    items = [None if pd.isna(value) else pack(value) for value in column]
    packed: dict[str, Any] = {"name": name, "items": items}
    if isinstance(kind, pd.CategoricalDtype):
        packed["categories"] = [pack(level) for level in kind.categories]
        packed["ordered"] = bool(kind.ordered)
    else:
        packed["dtype"] = str(kind) if kind.kind in "biufM" else "object"
    return packed


def unpack_frame(packed: Any, numbers: NDArray[Any]) -> pd.DataFrame:
    """Read a data frame; `numbers` are its columns of floats, column by column."""
    check_fields(packed, ("names", "floats", "others", "index"), "a table")
    names, floats = take_texts(packed, "names"), take_texts(packed, "floats")
    check(numbers.ndim == 2 and len(numbers) == len(floats), "columns are missing.")
    check(not np.isinf(numbers).any(), "a column has infinite values.")
    rows = numbers.shape[1]
    index = unpack_index(packed["index"], rows)
    columns: dict[str, Any] = dict(zip(floats, numbers, strict=True))
    for column in take(packed, "others", list):
        columns[take(column, "name", str)] = _unpack_column(column, index)
    listed = sorted(names) == sorted(columns) and len(set(names)) == len(names)
    check(listed, "the columns of a table are not those that it lists.")
    return pd.DataFrame({name: columns[name] for name in names}, index)


def _unpack_column(packed: Any, index: Labels) -> Any:
    items = [unpack(item) for item in take(packed, "items", list)]
    check(len(items) == len(index), "the columns of a table differ in length.")
    if "categories" in packed:
        check_fields(packed, ("name", "items", "categories", "ordered"), "a column")
        levels = [unpack(level) for level in take(packed, "categories", list)]
        ordered = take(packed, "ordered", bool)
        values = pd.Categorical(items, levels, ordered)
        missing = sum(item is None for item in items)
        check((values.codes < 0).sum() == missing, "an item is none of the levels.")
        return values
    check_fields(packed, ("name", "items", "dtype"), "a column")
    kind = take(packed, "dtype", str)
    check(KINDS.fullmatch(kind), "a column is of no known kind.")
    finite = all(type(item) is not float or math.isfinite(item) for item in items)
    check(finite, "a column has values that are not finite.")
    return pd.Series(items, index, dtype=kind)
