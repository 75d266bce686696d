"""What forests are fitted to: errors that say more than scikit-learn's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd


def check_one_response(y: Any, wrapper: str) -> None:
    """Refuse several responses at once."""
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"`y` must have one column; got {shape[1]}. Each response needs a forest "
            f"of its own: use sklearn.multioutput.{wrapper}(forest), or fit one forest "
            "to each column."
        )


def check_response(y: Any, *, numeric: bool) -> None:
    """Refuse responses with missing values; and text, where numbers are needed."""
    values = np.asarray(y)
    if values.dtype.kind not in "OUSf" or values.ndim == 0:
        return
    column = pd.Series(values.reshape(len(values), -1)[:, 0])
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise ValueError(
            f"`y` must not have missing values; row {missing[0]} has one, and "
            f"{missing.size} of {len(values)} rows in all. Leave such rows out. "
            "(Input contains NaN.)"
        )
    text = [one for one in column if isinstance(one, str)]
    if numeric and text and not _all_numbers(column):
        raise ValueError(
            f"`y` must be numeric; got text such as {str(text[0])!r}. Use "
            "ForestClassifier for classes."
        )


def _all_numbers(column: pd.Series) -> bool:
    return bool(pd.to_numeric(column, errors="coerce").notna().all())


def check_distinct_names(X: Any) -> None:
    """Refuse a frame in which several columns have one name."""
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(
            f"column names must be unique; {twice!r} occurs "
            f"{int((X.columns == twice).sum())} times in `X`. Rename such columns, or "
            "keep the first of each: X.loc[:, ~X.columns.duplicated()]."
        )


@contextmanager
def telling_of_text(X: Any) -> Iterator[None]:
    """Say which column of a frame holds text, and what to do, where reading fails."""
    try:
        yield
    except ValueError as error:
        if not isinstance(X, pd.DataFrame) or "could not convert" not in str(error):
            raise
        texts = [name for name, column in X.items() if _is_text(column)]
        if not texts:
            raise
        name = texts[0]
        said = (
            f"column {name!r} holds text, which is no number. Make it categorical, "
            f"X.astype({{{name!r}: 'category'}}), and set "
            "categorical_features='from_dtype'; or encode it, as by OneHotEncoder."
        )
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            said = (
                f"column {name!r} is categorical, and `categorical_features` does not "
                "name it. Set categorical_features='from_dtype', which takes all "
                f"categorical columns, or list it: [{name!r}]; or encode it, as by "
                "OneHotEncoder."
            )
        raise ValueError(said) from error


def _is_text(column: pd.Series) -> bool:
    """Tell whether some value of a column cannot be read as a number."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = pd.Series(column.to_numpy(dtype=object))
    known = values[values.notna()]
    return bool(pd.to_numeric(known, errors="coerce").isna().any())
