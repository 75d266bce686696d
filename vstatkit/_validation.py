"""Checks of arguments shared by the public functions."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse

from vstatkit._typing import Counts, Floats, Ints
from vstatkit.formula.frames import nearest
from vstatkit.sampling.counts import dense

MIN_UNITS = 2


def subsample_size(k: int | float | None, n: int, *, at_most: int | None = None) -> int:
    """Turn `k` into a number of units.

    Parameters
    ----------
    k : int, float or None
        A number, a fraction of n in (0, 1], or None for `ceil(n**0.8)`.
    n : int
        Units.
    at_most : int, optional
        Bound of the default.
    """
    if k is None:
        default = int(np.ceil(n**0.8))
        return default if at_most is None else max(1, min(default, at_most))
    if isinstance(k, bool) or not isinstance(k, int | float | np.number):
        raise TypeError(
            f"`k` must be a number of observations or a fraction of them; got {k!r}."
        )
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
    """Check `B`: a number of learners, "auto" or "complete"."""
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


def check_units(n: int, what: str = "observations") -> None:
    """Refuse data with too few units to estimate a variance from."""
    if n < MIN_UNITS:
        raise ValueError(
            f"a variance needs at least {MIN_UNITS} {what}; the data have {n}."
        )


def take_column(
    argument: str, given: Any, data: pd.DataFrame, rows: Ints, index: pd.Index
) -> pd.Series | None:
    """Read `weights` or `groups`: a column's name, or one value for each row.

    Parameters
    ----------
    argument : str
        Name of the argument, for messages.
    given : str, array-like or None
        What came.
    data : DataFrame
        Rows that are used.
    rows : ndarray of shape (n,)
        Their positions in the data as given.
    index : Index
        Index of the data as given; a Series must have the same.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given not in data.columns:
            raise ValueError(
                f"`{argument}` names no column of the data: {given!r}"
                f"{nearest(given, data.columns)}"
            )
        column = data[given].reset_index(drop=True)
    else:
        if len(given) != len(index):
            raise ValueError(
                f"`{argument}` must have one value for each of the {len(index)} rows "
                f"of the data; got {len(given)}."
            )
        aligned = _align(argument, given, index)
        column = pd.Series(np.asarray(aligned)).iloc[rows].reset_index(drop=True)
    if column.isna().any():
        raise ValueError(f"`{argument}` must not have missing values.")
    return column


def _align(argument: str, given: Any, index: pd.Index) -> Any:
    """Bring a Series into the order of the data, never by position alone."""
    if not isinstance(given, pd.Series) or given.index.equals(index):
        return given
    unique = given.index.is_unique and index.is_unique
    if unique and given.index.isin(index).all():
        return given.reindex(index)
    raise ValueError(
        f"`{argument}` is a Series with another index than the data's. Give it the "
        f"data's index, or its values alone: {argument}.to_numpy()."
    )


def observation_weights(column: pd.Series | None) -> Floats | None:
    """Check weights: finite, not negative, not all zero."""
    if column is None:
        return None
    weights = column.to_numpy(dtype=np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            "`weights` must be finite and not negative, with at least one positive; "
            f"got values from {weights.min()} to {weights.max()}."
        )
    return weights


def check_ensemble(counts: Any, values: Any) -> tuple[Counts, Floats, int]:
    """Check counts (B, n) and values (B, m) of an ensemble made elsewhere.

    Returns
    -------
    counts, values, k
        As arrays, and the size of every subsample.
    """
    table = _sparse_counts(counts) if sparse.issparse(counts) else np.asarray(counts)
    h = np.asarray(values, dtype=np.float64)
    h = h[:, None] if h.ndim == 1 else h
    if table.ndim != 2 or h.ndim != 2 or table.shape[0] != len(h):
        raise ValueError(
            "`counts` must have shape (B, n) and `values` (B, m) or (B,), learners "
            f"first; got {table.shape} and {np.shape(values)}."
        )
    if len(h) < 2:
        raise ValueError(f"an ensemble needs at least 2 learners; got {len(h)}.")
    check_units(table.shape[1])
    entries = np.asarray(table.data if sparse.issparse(table) else table)
    if not np.isfinite(h).all():
        learner = int(np.argwhere(~np.isfinite(h))[0, 0])
        raise ValueError(f"`values` must be finite; learner {learner} is not.")
    if (entries < 0).any() or (entries != np.round(entries)).any():
        raise ValueError("`counts` must be whole numbers, zero or more.")
    sizes = np.unique(np.asarray(table.sum(axis=1)))
    if sizes.size != 1 or sizes[0] < 1:
        raise ValueError(
            "every subsample must have the same size k, so every row of `counts` the "
            f"same sum; got sums from {sizes.min():g} to {sizes.max():g}."
        )
    return table, h, int(sizes[0])


def _sparse_counts(counts: Any) -> Counts:
    """Copy sparse counts as floats, entries of the same place added up.

    Counts made from lists of members have an entry for every draw.
    """
    table = sparse.csr_array(counts, dtype=np.float64, copy=True)
    table.sum_duplicates()
    return table


def collapse_clusters(counts: Counts, clusters: Any) -> Counts:
    """Count clusters instead of rows, where whole clusters were drawn."""
    codes, levels = pd.factorize(np.asarray(clusters))
    if codes.size != counts.shape[1]:
        raise ValueError(
            "`groups` must have one value for each observation (column of `counts`); "
            f"got {codes.size} for {counts.shape[1]}."
        )
    rows = dense(counts)
    first = np.array([np.flatnonzero(codes == g)[0] for g in range(len(levels))])
    units = rows[:, first]
    if (units[:, codes] != rows).any():
        raise ValueError(
            "`groups` are clusters that were resampled whole, so the rows of a "
            "cluster must have equal counts in every subsample; here they differ."
        )
    return units


def split_options(
    options: Mapping[str, Any], known: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword options into those of the design and the rest."""
    ours = {name: value for name, value in options.items() if name in known}
    rest = {name: value for name, value in options.items() if name not in known}
    return ours, rest


def check_options(options: Mapping[str, Any], known: tuple[str, ...], of: str) -> None:
    """Refuse options that nobody reads."""
    for name in options:
        if name not in known:
            listed = ", ".join(known) if known else "none"
            raise TypeError(
                f"{of} has no option {name!r}{nearest(name, known)} "
                f"Its options are: {listed}."
            )
