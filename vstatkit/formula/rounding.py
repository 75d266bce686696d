"""Rounding to decimal digits as R does since version 4.0.0."""

from typing import Any

import numpy as np

from vstatkit._typing import Floats

SURE_DIGITS = 15
"""Significant decimal digits that every double holds."""


LARGEST_POWER = 308
"""Largest power of ten that is a double."""


def r_round(x: Any, digits: int = 0) -> Floats:
    """Round to the nearer of the two doubles with so many decimal digits.

    numpy multiplies, rounds and divides, so that 0.15 becomes 0.2, though the
    double is below 0.15; R compares the two candidates with the number itself.

    Parameters
    ----------
    x : array-like
        Numbers.
    digits : int
        Digits after the point; before it where negative.

    Notes
    -----
    Of two candidates equally far the one with an even last digit is taken. A number
    whose digits are all wanted stays as it is.

    Examples
    --------
    >>> r_round([0.15, 2.675, -1234.5], 1).tolist()
    [0.1, 2.7, -1234.5]
    >>> r_round([150.0, 250.0], -2).tolist()
    [200.0, 200.0]
    """
    values = np.asarray(x, dtype=np.float64)
    whole = int(np.floor(digits + 0.5))
    if whole == 0:
        return np.asarray(np.rint(values))
    if abs(whole) > LARGEST_POWER:
        return values if whole > 0 else np.where(np.isfinite(values), 0.0, values)
    with np.errstate(all="ignore"):
        size = np.abs(values)
        below, above, even = _candidates(size, whole)
        down, up = size - below, above - size
        nearer = np.where((down < up) | ((down == up) & even), below, above)
        # The middle of the powers of two around a number stands for its size.
        places = whole + np.log10(2) * (np.frexp(size)[1] - 0.5)
    wanted = (places <= SURE_DIGITS) & np.isfinite(values) & (values != 0)
    return np.where(wanted, np.copysign(nearer, values), values)


def _candidates(size: Floats, digits: int) -> tuple[Floats, Floats, Any]:
    """Doubles next below and above with so many digits; whether the lower is even.

    A negative power is the inverse of a positive one, as in R, though the products
    may miss a whole number by the last bit.
    """
    power = 10.0**digits if digits > 0 else 1 / 10.0**-digits
    low, high = np.floor(size * power), np.ceil(size * power)
    return low / power, high / power, np.fmod(low, 2) == 0
