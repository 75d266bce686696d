"""Pickle pandas objects as arrays and lists, so that pandas versions do not matter."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

T = TypeVar("T")


class Plain:
    """A pandas object that is pickled without the internals of pandas."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the function and arguments that rebuild the object."""
        value = self.value
        if isinstance(value, pd.DataFrame):
            columns = [_column(value.iloc[:, j]) for j in range(value.shape[1])]
            names, index = Plain(value.columns), Plain(value.index)
            return _make_frame, (columns, names, index, dict(value.attrs))
        if isinstance(value, pd.Series):
            return _make_series, (_column(value), Plain(value.index), value.name)
        if isinstance(value, pd.MultiIndex):
            levels = [Plain(level) for level in value.levels]
            codes = [np.asarray(code) for code in value.codes]
            return _make_levels, (levels, codes, list(value.names))
        if isinstance(value, pd.RangeIndex):
            return _make_range, (value.start, value.stop, value.step, value.name)
        return _make_index, (_column(value), value.name)


Column = tuple[str, Any]  # the format of a column, and its data


def _column(values: Any) -> Column:
    """Write a column, or an index, without pandas."""
    kind = values.dtype
    if isinstance(kind, np.dtype):
        plain = kind.kind != "O"
        return ("numpy", np.asarray(values)) if plain else ("object", _objects(values))
    if isinstance(kind, pd.CategoricalDtype):
        codes = np.asarray(pd.Categorical(values).codes)
        return "category", (codes, Plain(kind.categories), bool(kind.ordered))
    if isinstance(kind, pd.DatetimeTZDtype):
        return "zone", (np.asarray(values.astype("int64")), kind.unit, str(kind.tz))
    if isinstance(kind, pd.IntervalDtype):
        ends = pd.IntervalIndex(values)
        sides = np.asarray(ends.left), np.asarray(ends.right)
        return "interval", (*sides, str(ends.closed))
    if isinstance(kind, pd.StringDtype) and str(kind) == "str":
        return "text", _objects(values)
    return "named", (_objects(values), str(kind))


def _objects(values: Any) -> list[Any]:
    """List values, with None for missing ones."""
    return [None if value is pd.NA or value is pd.NaT else value for value in values]


def _read_zone(stamps: NDArray[Any], unit: str, zone: str) -> Any:
    there = pd.DatetimeIndex(stamps.view(f"M8[{unit}]")).tz_localize("UTC")
    return there.tz_convert(zone)


# Readers of columns that are written in several parts, by format.
_READERS: dict[str, Callable[..., Any]] = {
    "category": pd.Categorical.from_codes,
    "zone": _read_zone,
    "interval": pd.arrays.IntervalArray.from_arrays,
    "named": pd.array,
}


def _values(written: Column) -> Any:
    """Read what `_column` wrote."""
    how, what = written
    if how == "numpy":
        return what
    if how == "object":
        return pd.Series(what, dtype="object")
    if how == "text":  # of the type that this pandas version uses
        return pd.Series(what, dtype=None if what else "str")
    return _READERS[how](*what)


def _make_index(written: Column, name: Any) -> Any:
    how = written[0]
    kind = object if how == "object" else None
    return pd.Index(_values(written), dtype=kind, name=name, tupleize_cols=False)


def _make_range(start: int, stop: int, step: int, name: Any) -> Any:
    return pd.RangeIndex(start, stop, step, name=name)


def _make_levels(levels: list[Any], codes: list[Any], names: list[Any]) -> Any:
    return pd.MultiIndex(levels, codes, names=names)


def _make_series(written: Column, index: Any, name: Any) -> Any:
    return pd.Series(_with_index(written, index), index, name=name)


def _with_index(written: Column, index: Any) -> Any:
    values = _values(written)
    return values.set_axis(index) if isinstance(values, pd.Series) else values


def _make_frame(
    columns: list[Column], names: Any, index: Any, attrs: dict[Any, Any]
) -> Any:
    frame = pd.DataFrame(
        {place: _with_index(column, index) for place, column in enumerate(columns)},
        index,
    )
    frame.columns = names
    frame.attrs.update(attrs)
    return frame


def plain_state(state: dict[str, Any]) -> dict[str, Any]:
    """Replace pandas objects by `Plain` ones."""
    return {name: _plain(value) for name, value in state.items()}


def _plain(value: Any) -> Any:
    if type(value) in (pd.DataFrame, pd.Series) or isinstance(value, pd.Index):
        return Plain(value)
    return plain_state(value) if type(value) is dict else value


def take_state(target: Any, state: dict[str, Any]) -> None:
    """Restore the state of an object; copies in memory still hold `Plain` objects."""
    target.__dict__.update(_restore(state))


def _restore(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.value
    if type(value) is dict:
        return {key: _restore(item) for key, item in value.items()}
    return value


def pickled_plainly(kind: type[T]) -> type[T]:
    """Make the pickles of a class independent of pandas internals; a decorator.

    A class that defines `__getstate__` must call `plain_state` in it.
    """
    if "__getstate__" not in vars(kind):
        setattr(kind, "__getstate__", lambda self: plain_state(self.__dict__))  # noqa: B010
    if "__setstate__" not in vars(kind):
        setattr(kind, "__setstate__", take_state)  # noqa: B010
    return kind
