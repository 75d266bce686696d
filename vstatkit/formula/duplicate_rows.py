"""Find rows of the data that are copies of other rows."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import (
    DuplicateRowsWarning,
)
from vstatkit.formula.column_checks import is_number_kind
from vstatkit.formula.data_warnings import LEAST_ROWS, Finding
from vstatkit.formula.parse import ParsedFormula

COPIED_SHARE = 0.05  # share of rows that must be copies of others

COPIED_ROWS = 5  # number of rows that must be copies of others

ATOM_SHARE = 0.05  # share of rows from which ties in a value, as zero, mean nothing

DISTINCT_SHARE = 0.9  # share of different rows with values of their own that is proof

SMALL_GAP = 0.01  # quantile of the gaps between values that is their resolution

PEAK = 5.0  # density of a column at its peak, over that of even values

BEYOND_CHANCE = 4.0  # multiple of the expected coincidences that copies must exceed

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)  # all multiplicities may be multiples of one

MULTIPLE_SHARE = 0.9  # share of multiplicities that must be multiples of a prime

BY_CHANCE = 1e-6  # probability, at most, that so many are multiples by chance

NUMBERED_SHARE = 0.9  # share of copied rows that a numbering of them must number


def find_copies(parsed: ParsedFormula, unit_of_row: Ints | None) -> Finding | None:
    """Find rows that are copies of others and cannot be so by chance.

    Copies within a unit, a cluster of rows, are resampled together, and do not count.

    Notes
    -----
    A row is a copy if another one has the same response, the same predictors and the
    same values in all other columns of the data, apart from those that number rows or
    copies. This happens by chance in discrete data. So there must be a column (the
    response, or the predictor with most different values) in which nearly all
    *different* rows have values of their own, and there must be many more copies than
    values of that resolution coincide in: with u values whose smallest gaps are g,
    spread over a range r with a density of at most `PEAK / r`, about
    `PEAK u^2 g / (2 r)` pairs.
    Values that many rows share (zeros) do not count.

    Rounded data have no such column. Copies are reported then if nearly all rows are
    there m times, or a multiple of m; see `_are_multiples`.
    """
    y, X, n = parsed.y, parsed.X, len(parsed.y)
    if n < LEAST_ROWS or (parsed.classes is None and np.unique(y).size == n):
        return None
    codes, first = _row_codes(y, X)
    least = max(COPIED_ROWS, COPIED_SHARE * n)
    if _n_copies(codes, unit_of_row) < least:
        return None
    codes, first, ignored = _compare_other_columns(codes, parsed, unit_of_row)
    copies = _n_copies(codes, unit_of_row)
    if copies < least:
        return None
    proven = any(_is_proof(key, codes, first, unit_of_row) for key in _keys(parsed))
    if not proven and not _are_multiples(parsed, codes, first, unit_of_row):
        return None
    across = "" if unit_of_row is None else " in other groups"
    apart = f", apart from {', '.join(map(repr, ignored))}" if ignored else ""
    remedy = (
        "give `groups` that hold the copies of a row together, or keep one row of each "
        "and count the copies as `weights`"
    )
    return Finding(
        DuplicateRowsWarning,
        f"{copies:,} of {n:,} rows are exact copies of other rows{across}, in the "
        f"response, in all predictors and in the other columns{apart}. Standard errors "
        "assume independent rows, and are too small if these are copies of one "
        f"observation: {remedy}.",
        f"{copies:,} of {n:,} rows are exact copies of others{across}: the std err is "
        "too small unless they are independent observations; see `groups`.",
    )


def _keys(parsed: ParsedFormula) -> Iterable[Floats]:
    """Yield columns whose values may show that ties are no coincidence."""
    if parsed.classes is None:
        yield parsed.y
    numeric = np.flatnonzero(parsed.levels == 0)
    if numeric.size:
        counts = [np.unique(parsed.X[:, j]).size for j in numeric]
        yield parsed.X[:, numeric[int(np.argmax(counts))]]


def _row_codes(y: Floats, X: Floats) -> tuple[Ints, Ints]:
    """Give every different row a code, and find the first row of each."""
    combined = np.zeros(len(y), dtype=np.uint64)
    for column in (y, *X.T):
        hashed = pd.util.hash_array(np.asarray(column, np.float64) + 0.0)
        combined = combined * np.uint64(0x9E3779B97F4A7C15) + hashed
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    return codes, first


def _compare_other_columns(
    codes: Ints, parsed: ParsedFormula, unit_of_row: Ints | None
) -> tuple[Ints, Ints, list[str]]:
    """Tell rows apart by the other columns, too; name those that only number rows."""
    own = [*parsed.coding.variables, parsed.response]
    ignored, numberings = [], []
    for name in parsed.data.columns.difference(own, sort=False):
        column = parsed.data[name]
        try:
            coded = pd.factorize(column, use_na_sentinel=False)[0]
        except TypeError:  # values that are not hashable, such as lists
            continue
        values = np.asarray(coded, np.int64)
        if _are_clusters(values, unit_of_row):
            continue
        if int(values.max()) + 1 == codes.size:
            ignored.append(str(name))
        elif _may_number(column):
            numberings.append((str(name), column.to_numpy(dtype=np.float64)))
        else:
            codes = _refine_codes(codes, values)
    otherwise = codes
    for name, numbers in numberings:
        whole = (numbers - numbers.min()).astype(np.int64)
        if _numbers_copies(whole, otherwise):
            ignored.append(name)
        else:
            codes = _refine_codes(codes, whole)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes, first, ignored


def _refine_codes(codes: Ints, values: Ints) -> Ints:
    """Give rows a code for each pair of a code and a value."""
    pairs = codes * (int(values.max()) + 1) + values
    return np.asarray(pd.factorize(pairs)[0], dtype=np.int64)


def _are_clusters(values: Ints, unit_of_row: Ints | None) -> bool:
    """Whether a column is the one that was given as `groups`."""
    if unit_of_row is None:
        return False
    both = int(_refine_codes(values, unit_of_row).max())
    return both == int(values.max()) == np.unique(unit_of_row).size - 1


def _may_number(column: pd.Series) -> bool:
    """Whether a column has successive whole numbers, as a numbering of copies has."""
    if not is_number_kind(column.dtype) or column.isna().any():
        return False
    steps = np.diff(np.unique(column.to_numpy(dtype=np.float64)))
    return bool(steps.size and (steps == 1).all())


def _numbers_copies(values: Ints, codes: Ints) -> bool:
    """Whether rows that are otherwise equal have the numbers 0, 1, and so on."""
    order = np.lexsort((values, codes))
    _, start, counts = np.unique(codes[order], return_index=True, return_counts=True)
    ranks = np.arange(codes.size) - np.repeat(start, counts)
    several = np.repeat(counts > 1, counts)
    right = (values[order] == ranks)[several]
    return bool(right.size and right.mean() >= NUMBERED_SHARE)


def _n_copies(codes: Ints, unit_of_row: Ints | None) -> int:
    """Count rows beyond the first of each kind; with clusters, clusters beyond it."""
    rows = codes
    if unit_of_row is not None:
        rows = np.unique(np.column_stack([codes, unit_of_row]), axis=0)
    return int(len(rows) - np.unique(codes).size)


def _is_proof(key: Floats, codes: Ints, first: Ints, unit_of_row: Ints | None) -> bool:
    """Whether the values of a column show that copies are no coincidence."""
    values, places, counts = np.unique(key, return_inverse=True, return_counts=True)
    atoms = counts > ATOM_SHARE * key.size
    usual = ~atoms[places] & np.isfinite(key)
    values = values[~atoms & np.isfinite(values)]
    n_rows, u = int(usual[first].sum()), values.size
    if u < LEAST_ROWS or u < DISTINCT_SHARE * n_rows:
        return False
    usual_units = None if unit_of_row is None else unit_of_row[usual]
    copies = _n_copies(codes[usual], usual_units)
    scaled = values / np.abs(values).max()
    gaps = np.sort(np.diff(scaled)) / (scaled[-1] - scaled[0])
    gap = gaps[int(SMALL_GAP * gaps.size)]
    chance = PEAK * u**2 * gap / 2
    least = max(COPIED_ROWS, COPIED_SHARE * usual.sum(), BEYOND_CHANCE * chance)
    return bool(copies >= least)


def _are_multiples(
    parsed: ParsedFormula, codes: Ints, first: Ints, unit_of_row: Ints | None
) -> bool:
    """Whether the numbers of equal rows are multiples of two or more.

    If rows are independent, the number of rows that equal a given one is a multiple of
    a prime with a probability below 1/2. Rows with a frequent response do not count: in
    a balanced experiment all rows of a setting may have it.
    """
    if parsed.classes is not None:
        return False
    _, places, counts = np.unique(parsed.y, return_inverse=True, return_counts=True)
    atoms = (counts > ATOM_SHARE * len(parsed.y))[places]
    if unit_of_row is not None:  # copies within a cluster are resampled together
        codes = np.unique(np.column_stack([codes, unit_of_row]), axis=0)[:, 0]
    numbers = np.bincount(codes)[~atoms[first]]
    if numbers.size < LEAST_ROWS:
        return False
    most = max(int((numbers % prime == 0).sum()) for prime in PRIMES)
    chance = stats.binom.sf(most - 1, numbers.size, 0.5)
    return bool(most >= MULTIPLE_SHARE * numbers.size and chance < BY_CHANCE)
