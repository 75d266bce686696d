"""Tell settings and data apart: descriptions of things, and hashes of numbers."""

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from vstatkit._typing import Floats

PRECISION = 2.0**40
"""Inverse of the relative change that fingerprints see; machines differ by less."""


def describe(thing: Any) -> str:
    """Name a function, or show a value, without addresses in memory."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, BaseEstimator):
        given = sorted(thing.get_params(deep=False).items())
        shown = ", ".join(f"{name}={_describe_inner(value)}" for name, value in given)
        return f"{type(thing).__qualname__}({shown})"
    if callable(thing) and not dataclasses.is_dataclass(thing):
        return str(getattr(thing, "__qualname__", type(thing).__qualname__))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def _describe_inner(value: Any) -> str:
    """Describe a parameter: an estimator, or steps of some, or anything."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_describe_inner(one) for one in value)}]"
    return repr(value) if isinstance(value, str) else describe(value)


def hash_arrays(arrays: Sequence[Floats]) -> str:
    """Fingerprint numbers and shapes, to the digits that machines agree on."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(_rounded(array).tobytes())
    return digest.hexdigest()[:16]


def hash_frame(frame: pd.DataFrame, *, exactly: bool = False) -> str:
    """Fingerprint names, kinds and values of columns, and levels that do not occur.

    Numbers to the digits that machines agree on, or exactly.
    """
    digest = hashlib.sha256()
    for name, column in frame.items():
        kind = column.dtype
        levels = list(kind.categories) if isinstance(kind, pd.CategoricalDtype) else []
        digest.update(repr((name, str(kind), list(map(str, levels)))).encode())
        if pd.api.types.is_float_dtype(kind):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            digest.update((values if exactly else _rounded(values)).tobytes())
        else:
            rows = pd.util.hash_pandas_object(column, index=False, categorize=False)
            digest.update(rows.to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _rounded(array: Floats) -> Floats:
    mantissa, exponent = np.frexp(array)
    with np.errstate(over="ignore"):  # the largest double may round to infinity
        return np.ldexp(np.round(mantissa * PRECISION), exponent) + 0.0


def hash_exactly(array: NDArray[Any]) -> str:
    """Fingerprint every bit of an array, in the order that it has in memory."""
    digest = hashlib.sha256(repr((array.shape, str(array.dtype))).encode())
    columns = array.ndim > 1 and not array.flags.c_contiguous
    digest.update(np.ascontiguousarray(array.T if columns else array).data)
    return digest.hexdigest()[:16]


def hash_table(table: Any) -> str:
    """Fingerprint observations in rows: a frame, a Series or an array."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        return hash_exactly(table)
    return hash_frame(pd.DataFrame(table), exactly=True)
