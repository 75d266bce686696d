"""Short text: objects that hold arrays, lists of names, suggestions of a name."""

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

FEW = 4  # most values that are printed
WIDTH = 60  # most characters of other values
MAX_NAMES = 30  # names that a sentence lists


def short_repr(shown: Any) -> str:
    """Format a data class in one line; arrays and lists by their type and size."""
    parts = [
        f"{field.name}={_short(getattr(shown, field.name))}"
        for field in fields(shown)
        if field.repr and getattr(shown, field.name) is not None
    ]
    return f"{type(shown).__name__}({', '.join(parts)})"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and value.size <= FEW and value.dtype.kind in "fiu":
            return f"[{', '.join(f'{number:.4g}' for number in value)}]"
        return f"<{' x '.join(map(str, value.shape))} numbers>"
    long = isinstance(value, list | tuple | dict) and len(value) > FEW
    if long or isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= WIDTH else f"<{type(value).__name__}>"


def shown_estimates(labels: list[str], columns: dict[str, Any]) -> str:
    """Format the first estimates in one line."""
    (_, estimates), *others = columns.items()
    written = [
        f"{label}: {estimates[at]:.4g} "
        f"({', '.join(f'{name} {values[at]:.3g}' for name, values in others)})"
        for at, label in enumerate(labels[: FEW - 1])
    ]
    hidden = len(labels) - len(written)
    return ", ".join([*written, f"and {hidden} more"] if hidden else written)


def suggest_name(name: str, columns: Sequence[str] | pd.Index) -> str:
    """Suggest the column that was probably meant."""
    close = difflib.get_close_matches(name, [str(c) for c in columns], n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def list_names(names: Sequence[Any] | pd.Index) -> str:
    """List names; of many the first, and how many more there are."""
    first, more = ", ".join(map(str, names[:MAX_NAMES])), len(names) - MAX_NAMES
    return f"{first} and {more:,} more" if more > 0 else first


def row_name(label: Any) -> str:
    """Name a row by its label: numbers as they are, texts in quotes."""
    return repr(label) if isinstance(label, str) else str(label)
