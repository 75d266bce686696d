"""Short text for objects that hold arrays."""

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

FEW = 4  # values that are written out
WIDTH = 60  # characters of anything else


def short_repr(shown: Any) -> str:
    """Write a data class in a line; of arrays and lists only what they are.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pair:
    ...     few: np.ndarray
    ...     many: np.ndarray
    ...     __repr__ = short_repr
    >>> Pair(np.array([1 / 3, 2.0]), np.zeros((20, 3)))
    Pair(few=[0.3333, 2], many=<20 x 3 numbers>)
    """
    parts = [
        f"{one.name}={_short(getattr(shown, one.name))}"
        for one in fields(shown)
        if one.repr and getattr(shown, one.name) is not None
    ]
    return f"{type(shown).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, list | tuple | dict) and len(value) > FEW:
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= WIDTH else f"<{type(value).__name__}>"


def _array(value: np.ndarray[Any, Any]) -> str:
    if value.ndim == 1 and value.size <= FEW and value.dtype.kind in "fiu":
        return f"[{', '.join(f'{one:.4g}' for one in value)}]"
    return f"<{' x '.join(map(str, value.shape))} numbers>"


def shown_estimates(labels: list[str], columns: dict[str, Any]) -> str:
    """Write the first estimates in a line.

    Examples
    --------
    >>> shown_estimates(["a", "b"], {"": [1.0, 2.0], "std err": [0.1, 0.25]})
    'a: 1 (std err 0.1), b: 2 (std err 0.25)'
    """
    (_, estimates), *others = columns.items()
    written = [
        f"{label}: {estimates[at]:.4g} "
        f"({', '.join(f'{name} {values[at]:.3g}' for name, values in others)})"
        for at, label in enumerate(labels[: FEW - 1])
    ]
    hidden = len(labels) - len(written)
    return ", ".join([*written, f"and {hidden} more"] if hidden else written)
