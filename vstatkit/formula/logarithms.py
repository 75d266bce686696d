"""Logarithms in formulas, to any base."""

from typing import Any

import numpy as np


def log(x: Any, base: float | None = None) -> Any:
    """Logarithm: the natural one, or to a base, as in R.

    Examples
    --------
    >>> float(log(8.0, 2))
    3.0
    """
    if base is None:
        return np.log(x)
    if base in (2, 10):  # exact where that is possible
        return np.log2(x) if base == 2 else np.log10(x)
    return np.log(x) / np.log(base)
