"""Sizes of subsamples and ensembles, as they are asked for."""

import warnings
from typing import Any, Literal

import numpy as np

from vstatkit.exceptions import VstatkitWarning


def subsample_size(k: int | float | None, n: int, *, at_most: int | None = None) -> int:
    """Turn `k` into a number of units.

    Parameters
    ----------
    k : int, float or None
        A number, a fraction of n in (0, 1], or None for `ceil(n**0.8)`. A float above
        1 is a number if it is whole.
    n : int
        Units.
    at_most : int, optional
        Upper bound of the default.
    """
    if k is None:
        default = int(np.ceil(n**0.8))
        return default if at_most is None else max(1, min(default, at_most))
    if isinstance(k, bool) or not isinstance(k, int | float | np.number):
        raise TypeError(
            f"`k` must be a number of observations or a fraction of them; got {k!r}."
        )
    if k > 1:
        k = _whole(k)
    if isinstance(k, float | np.floating):
        if not 0 < k <= 1:
            raise ValueError(
                f"`k` as a fraction of n must lie in (0, 1]; got {k}. Give an integer "
                "for a number of observations."
            )
        return max(1, round(float(k) * n))
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}.")
    return int(k)


def ensemble_size(B: int | str) -> int | Literal["auto", "complete"]:
    """Check `B`: a number of learners (whole, if a float), "auto" or "complete"."""
    B = _whole(B)
    if B == "auto":
        return "auto"
    if B == "complete":
        return "complete"
    if isinstance(B, bool) or not isinstance(B, int | np.integer):
        raise TypeError(
            f"`B` must be a number of learners, 'auto' or 'complete'; got {B!r}."
        )
    if B < 2:
        raise ValueError(f"`B` must be at least 2, to see how learners vary; got {B}.")
    return int(B)


def _whole(size: Any) -> Any:
    """Turn a whole float, such as 1e3, into an integer; leave all else."""
    number = isinstance(size, float | np.floating)
    return int(size) if number and float(size).is_integer() else size


def warn_of_single_rows(k: Any) -> None:
    """Warn when k is the integer 1, which is easily confused with the fraction."""
    if isinstance(k, int | np.integer) and not isinstance(k, bool) and k == 1:
        warnings.warn(
            "k=1 is one observation a subsample; k=1.0, the fraction, is all of them.",
            VstatkitWarning,
            stacklevel=4,
        )
