"""Unordered factors as columns of codes."""

from collections.abc import Sequence

import numpy as np

from vstatkit._typing import Floats
from vstatkit.native._engine import MOST_LEVELS


def checked_levels(levels: Sequence[int] | None, X: Floats) -> tuple[int, ...] | None:
    """Check the levels of every column, and that factors hold their codes.

    Returns
    -------
    tuple of int or None
        None where all columns are numbers.
    """
    if levels is None:
        return None
    given = np.asarray(levels)
    whole = given.dtype.kind in "iu" and given.shape == (X.shape[1],)
    if not whole or given.min() < 0 or given.max() > MOST_LEVELS:
        raise ValueError(
            f"`levels` must have a whole number from 0 to {MOST_LEVELS} for each of "
            f"the {X.shape[1]} columns; got {levels!r}."
        )
    for f in np.flatnonzero(given):
        check_codes(X[:, f], int(given[f]), f"column {f}")
    return tuple(int(one) for one in given) if given.any() else None


def check_codes(column: Floats, n_levels: int, name: str) -> None:
    """Refuse what is neither a code below `n_levels` nor missing."""
    known = column[~np.isnan(column)]
    wrong = known[(known < 0) | (known >= n_levels) | (known != np.floor(known))]
    if wrong.size:
        raise ValueError(
            f"{name} is a factor and must hold whole numbers from 0 to {n_levels - 1}, "
            f"or missing values; got {wrong[0]:g}. Code its levels from 0 on; at most "
            f"{MOST_LEVELS} are possible."
        )
