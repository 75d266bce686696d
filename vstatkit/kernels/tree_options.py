"""Options of the tree kernels, and unordered factors as columns of codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.native._engine import MOST_LEVELS
from vstatkit.pandas_pickling import pickled_plainly


@pickled_plainly
@dataclass(frozen=True)
class Factors:
    """Columns of a table that are unordered factors."""

    places: tuple[int, ...]  # places of the columns
    # Categories of the columns that do not hold codes, by place
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
        from_dtype = isinstance(given, str) and given == "from_dtype"
        places = tuple(by_dtype) if from_dtype else named_places(X, given)
        categories = {place: by_dtype[place] for place in places if place in by_dtype}
        for place, levels in categories.items():
            if len(levels) > MOST_LEVELS:
                raise ValueError(
                    f"a factor must have at most {MOST_LEVELS} levels; column "
                    f"{X.columns[place]!r} has {len(levels)}. Join rare ones."
                )
        return cls(places, categories)

    def encode(self, X: Any) -> Any:
        """Replace categories by their codes; unknown categories are missing."""
        if not self.categories or not isinstance(X, pd.DataFrame):
            return X
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
        for place, categories in self.categories.items():
            codes = categories.get_indexer(pd.Index(columns[place]))
            numbers = np.where(codes < 0, np.nan, codes)
            columns[place] = pd.Series(numbers, X.index, name=X.columns[place])
        return pd.concat(columns, axis=1)

    def check(self, X: Floats) -> None:
        """Raise an error if a factor does not hold codes."""
        for place in self.places:
            check_codes(X[:, place], MOST_LEVELS, f"column {place}")

    def observed_codes(self, X: Floats) -> dict[int, Floats]:
        """Find the codes of every factor that occur in the encoded table."""
        return {
            place: np.unique(X[~np.isnan(X[:, place]), place]) for place in self.places
        }

    def levels(self, X: Floats) -> list[int] | None:
        """Count the levels of every column of the encoded table."""
        if not self.places:
            return None
        self.check(X)
        n_levels = [0] * X.shape[1]
        for place, codes in self.observed_codes(X).items():
            n_levels[place] = 1 + int(codes.max(initial=0))
        return n_levels


def named_places(X: Any, given: Any) -> tuple[int, ...]:
    """Find the columns of a mask, of places or of names."""
    p = np.shape(X)[1]
    names = list(X.columns) if isinstance(X, pd.DataFrame) else []
    chosen = np.asarray(given)
    if chosen.shape == (p,) and chosen.dtype == bool:
        return tuple(np.flatnonzero(chosen).tolist())
    places: list[Any] = chosen.tolist() if chosen.ndim == 1 else [None]
    if chosen.dtype.kind in "UO":
        places = [names.index(name) if name in names else None for name in places]
    whole = all(type(place) is int and 0 <= place < p for place in places)
    if not whole:
        raise ValueError(
            "`categorical_features` must be 'from_dtype', a mask, or places or names "
            f"of the {p} columns; got {given!r}."
        )
    return tuple(places)


def check_levels(levels: Sequence[int] | None, X: Floats) -> tuple[int, ...] | None:
    """Check levels of columns and codes of factors; None if all columns are numbers."""
    if levels is None:
        return None
    counts = np.asarray(levels)
    whole = counts.dtype.kind in "iu" and counts.shape == (X.shape[1],)
    if not whole or counts.min() < 0 or counts.max() > MOST_LEVELS:
        raise ValueError(
            f"`levels` must have a whole number from 0 to {MOST_LEVELS} for each of "
            f"the {X.shape[1]} columns; got {levels!r}."
        )
    for f in np.flatnonzero(counts):
        check_codes(X[:, f], int(counts[f]), f"column {f}")
    return tuple(int(count) for count in counts) if counts.any() else None


def check_codes(column: Floats, n_levels: int, name: str) -> None:
    """Raise an error if a value is neither a code below `n_levels` nor missing."""
    known = column[~np.isnan(column)]
    wrong = known[(known < 0) | (known >= n_levels) | (known != np.floor(known))]
    if wrong.size:
        raise ValueError(
            f"{name} is a factor and must hold whole numbers from 0 to {n_levels - 1}, "
            f"or missing values; got {wrong[0]:g}. Code its levels from 0 on; at most "
            f"{MOST_LEVELS} are possible."
        )


# Options of the kernels "forest" and "tree", under scikit-learn's names. `honest` trees
# split with one half of their rows and estimate with the other.
TREE_OPTIONS = (
    "max_features",
    "min_samples_split",
    "min_samples_leaf",
    "max_depth",
    "max_leaf_nodes",
    "min_weight_fraction_leaf",
    "honest",
    "splitter",
    "criterion",
)

# Criteria of regression, as the grower numbers them.
LOSSES = {"squared_error": 0, "poisson": 1, "absolute_error": 2}
# Criteria of classification; entropy and log loss are the same.
CLASS_LOSSES = {"gini": 0, "entropy": 3, "log_loss": 3}
_NUMBERS = (int, float, np.number)
SPLITTERS = ("best", "random")  # try all thresholds of a feature, or one at random
# Default (None for no limit) and least value of the options that are whole numbers.
_COUNTS: dict[str, tuple[int | None, int]] = {
    "min_samples_split": (2, 2),
    "min_samples_leaf": (1, 1),
    "max_depth": (None, 1),
    "max_leaf_nodes": (None, 2),
}


def grower_options(options: Mapping[str, Any], n_features: int) -> dict[str, float]:
    """Turn scikit-learn's options into numbers for the grower."""
    settings: dict[str, Any] = {
        "max_features": feature_count(options.get("max_features"), n_features)
    }
    for name, (default, bound) in _COUNTS.items():
        value = options.get(name, default)
        if value is None and default is None:
            value = 0
        elif isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"`{name}` must be a whole number; got {value!r}.")
        elif value < bound:
            raise ValueError(f"`{name}` must be at least {bound}; got {value}.")
        settings[name] = value
    honest = options.get("honest", False)
    if not isinstance(honest, bool | np.bool_):
        raise TypeError(f"`honest` must be True or False; got {honest!r}.")
    settings["honest"] = honest
    splitter = options.get("splitter", "best")
    if splitter not in SPLITTERS:
        raise ValueError(f"`splitter` must be 'best' or 'random'; got {splitter!r}.")
    settings["random"] = splitter == "random"
    share = options.get("min_weight_fraction_leaf", 0.0)
    number = isinstance(share, _NUMBERS) and not isinstance(share, bool)
    if not (number and 0 <= share <= 0.5):
        raise ValueError(
            f"`min_weight_fraction_leaf` must lie between 0 and 0.5; got {share!r}."
        )
    whole = {name: int(value) for name, value in settings.items()}
    return whole | {"min_weight_fraction_leaf": float(share)}


def loss_of(criterion: Any, n_classes: int | None) -> int:
    """Return the grower's code of a criterion; None is the default."""
    known = LOSSES if n_classes is None else CLASS_LOSSES
    if criterion is None:
        return 0
    if not isinstance(criterion, str) or criterion not in known:
        what = "a numeric response" if n_classes is None else "classes"
        raise ValueError(
            f"`criterion` must be one of {', '.join(map(repr, known))} for {what}; got "
            f"{criterion!r}."
        )
    return known[criterion]


def check_counts(y: Floats) -> None:
    """Raise an error for responses that are impossible for a Poisson mean."""
    if float(np.min(y)) < 0 or not float(np.max(y)) > 0:
        raise ValueError(
            "criterion='poisson' needs a response that is never negative and not "
            f"always zero; got values from {np.min(y):g} to {np.max(y):g}. Use "
            "criterion='squared_error'."
        )


def feature_count(max_features: Any, p: int) -> int:
    """Count the features tried at a split.

    Examples
    --------
    >>> [feature_count(given, 10) for given in (None, 4, 0.25, "sqrt", "log2")]
    [10, 4, 2, 3, 3]
    """
    if max_features is None:
        return p
    if max_features in ("sqrt", "log2"):
        root = np.sqrt(p) if max_features == "sqrt" else np.log2(p)
        return max(1, int(root))
    if isinstance(max_features, bool) or not isinstance(max_features, _NUMBERS):
        raise TypeError(
            "`max_features` must be a number, a fraction, 'sqrt', 'log2' or None; "
            f"got {max_features!r}."
        )
    if isinstance(max_features, int | np.integer):
        if not 1 <= max_features <= p:
            raise ValueError(
                f"`max_features` must lie between 1 and {p}, the columns of the "
                f"design; got {max_features}."
            )
        return int(max_features)
    if not 0 < max_features <= 1:
        raise ValueError(
            "`max_features` as a fraction of the columns must lie in (0, 1]; got "
            f"{max_features}."
        )
    return max(1, int(max_features * p))
