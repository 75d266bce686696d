"""Unordered factors as columns of codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.native._engine import MOST_LEVELS
from vstatkit.pickling import pickled_plainly


@pickled_plainly
@dataclass(frozen=True)
class Factors:
    """Columns of a table that are unordered factors.

    Attributes
    ----------
    places : tuple of int
        Which columns they are.
    categories : mapping of int to Index
        Categories of those that hold no codes.
    """

    places: tuple[int, ...]
    categories: Mapping[int, "pd.Index[Any]"]

    @classmethod
    def find(cls, X: Any, given: Any) -> "Factors":
        """Find the columns that `categorical_features` names."""
        if given is None:
            return cls((), {})
        kinds = list(X.dtypes) if isinstance(X, pd.DataFrame) else []
        by_dtype = {
            place: kind.categories
            for place, kind in enumerate(kinds)
            if isinstance(kind, pd.CategoricalDtype)
        }
        places = tuple(by_dtype) if _is_from_dtype(given) else named_places(X, given)
        categories = {place: by_dtype[place] for place in places if place in by_dtype}
        for place, one in categories.items():
            if len(one) > MOST_LEVELS:
                raise ValueError(
                    f"a factor must have at most {MOST_LEVELS} levels; column "
                    f"{X.columns[place]!r} has {len(one)}. Join rare ones."
                )
        return cls(places, categories)

    def coded(self, X: Any) -> Any:
        """Replace categories by their codes; those that are not known are missing."""
        if not self.categories or not isinstance(X, pd.DataFrame):
            return X
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
        for place, categories in self.categories.items():
            codes = categories.get_indexer(pd.Index(columns[place]))
            numbers = np.where(codes < 0, np.nan, codes)
            columns[place] = pd.Series(numbers, X.index, name=X.columns[place])
        return pd.concat(columns, axis=1)

    def check(self, X: Floats) -> None:
        """Refuse factors that hold no codes."""
        for place in self.places:
            check_codes(X[:, place], MOST_LEVELS, f"column {place}")

    def observed(self, X: Floats) -> dict[int, Floats]:
        """Find the codes of every factor that some row of the coded table has."""
        return {
            place: np.unique(X[~np.isnan(X[:, place]), place]) for place in self.places
        }

    def levels(self, X: Floats) -> list[int] | None:
        """Count the levels of every column of the coded table."""
        if not self.places:
            return None
        self.check(X)
        found = [0] * X.shape[1]
        for place in self.places:
            known = X[~np.isnan(X[:, place]), place]
            found[place] = 1 + int(known.max(initial=0))
        return found


def _is_from_dtype(given: Any) -> bool:
    return isinstance(given, str) and given == "from_dtype"


def named_places(X: Any, given: Any) -> tuple[int, ...]:
    """Find the columns of a mask, of places or of names.

    Examples
    --------
    >>> named_places(np.zeros((2, 3)), [False, True, True])
    (1, 2)
    """
    p = np.shape(X)[1]
    names = list(X.columns) if isinstance(X, pd.DataFrame) else []
    chosen = np.asarray(given)
    if chosen.shape == (p,) and chosen.dtype == bool:
        return tuple(np.flatnonzero(chosen).tolist())
    places: list[Any] = chosen.tolist() if chosen.ndim == 1 else [None]
    if chosen.dtype.kind in "UO":
        places = [names.index(one) if one in names else None for one in places]
    whole = all(type(place) is int and 0 <= place < p for place in places)
    if not whole:
        raise ValueError(
            "`categorical_features` must be 'from_dtype', a mask, or places or names "
            f"of the {p} columns; got {given!r}."
        )
    return tuple(places)


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
