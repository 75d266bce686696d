"""Arguments of functions in formulas: one variable, one number for each row."""

from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError


def one_variable(x: Any, usage: str) -> Floats:
    """Take a variable as an array of numbers; refuse several at once.

    Examples
    --------
    >>> one_variable([1, 2], "`f` takes one variable.")
    array([1., 2.])
    """
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1:
        raise FormulaError(usage)
    return values


def is_whole(value: Any) -> bool:
    """Tell whether an argument is a whole number; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
