"""Warn of data that are probably not as meant: copies, leaks, far query points.

Each check returns a `Finding` or None. The rules are independent of units, and are
made so that data without these problems pass: see "Warnings about the data" in the
guide.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from vstatkit._typing import Floats, Ints
from vstatkit.exceptions import (
    ConstantResponseWarning,
    DataWarning,
    DuplicateRowsWarning,
    ExtrapolationWarning,
    LeakageWarning,
    UnobservedLevelWarning,
    warn_caller,
)
from vstatkit.formula.column_checks import is_number_kind
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.formula_text import quote
from vstatkit.formula.name_resolution import respell_columns
from vstatkit.formula.new_data_coding import Coding
from vstatkit.formula.parse import ParsedFormula
from vstatkit.text import row_name

LEAST_ROWS = 20  # fewest rows, and fewest different values, that a check needs
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
LEAK_ROWS = 2_000  # most rows in which columns are compared with the response
UNEXPLAINED = 5e-4  # share of the variance that a copy leaves unexplained, at most
FAR = 0.25  # distance from the training data, over their range, of far values
MOST_NAMED = 3  # columns that a warning names


class Finding(NamedTuple):
    """What a check found."""

    category: type[DataWarning]  # class of the warning
    message: str  # what was found, and what to do
    note: str  # the same in one sentence, for the notes of a summary


def warn_of(findings: Iterable[Finding | None]) -> tuple[str, ...]:
    """Warn of what was found, at the user's line, and return the notes."""
    known = [finding for finding in findings if finding is not None]
    for finding in known:
        warn_caller(finding.message, finding.category)
    return tuple(finding.note for finding in known)


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


def find_leaks(parsed: ParsedFormula) -> Finding | None:
    """Find predictors that are almost copies of the response.

    A predictor is one if it explains all but `UNEXPLAINED` of the response's variance,
    as a number or by ranks, or if its values and those of a response with few values
    belong to each other one to one. A sole predictor is meant.
    """
    n = len(parsed.y)
    if n < LEAST_ROWS or len(parsed.coding.variables) < 2:
        return None
    some = slice(None, None, -(-n // LEAK_ROWS))
    leaks = [*_near_copies(parsed, some), *_one_to_one_variables(parsed)]
    names = list(dict.fromkeys(leaks))
    if not names:
        return None
    listed, more = ", ".join(map(repr, names[:MOST_NAMED])), len(names) - MOST_NAMED
    listed += f" and {more} more" if more > 0 else ""
    are, them, known = (
        ("is almost a copy", "it", "it is")
        if len(names) == 1
        else ("are almost copies", "them", "they are")
    )
    terms = [quote(name) if name in parsed.frame.columns else name for name in names]
    left_out = " ".join(f"- {term}" for term in terms)
    return Finding(
        LeakageWarning,
        f"{listed} {are} of the response {parsed.response!r}: the other predictors "
        f"have nothing left to explain. Leave {them} out of the formula "
        f"(`{left_out}`), unless {known} known before the response is.",
        f"{listed} {are} of the response.",
    )


def _near_copies(parsed: ParsedFormula, some: slice) -> list[str]:
    """Name numeric columns that explain the response, linearly or by ranks."""
    y = parsed.y[some]
    if parsed.classes is not None or np.unique(y).size < LEAST_ROWS:
        return []
    X = np.asarray(parsed.X[some])
    columns = np.flatnonzero(np.isfinite(X).all(axis=0) & (parsed.levels == 0))
    if not columns.size:
        return []
    X = X[:, columns]
    linear = _squared_correlations(X, y)
    monotone = _squared_correlations(stats.rankdata(X, axis=0), stats.rankdata(y))
    close = np.maximum(linear, monotone) > 1 - UNEXPLAINED
    return [parsed.names[j] for j in columns[close]]


def _squared_correlations(X: Floats, y: Floats) -> Floats:
    """Squared correlations of columns with y; 0 for constant columns."""
    return np.asarray((_unit_columns(y[:, None]).T @ _unit_columns(X))[0] ** 2)


def _unit_columns(X: Floats) -> Floats:
    """Centre columns and scale them to length one; squares must not overflow."""
    largest = np.abs(X).max(axis=0)
    X = X / np.where(largest > 0, largest, 1.0)
    X = X - X.mean(axis=0)
    spread = np.abs(X).max(axis=0)
    constant = spread < 1e-12
    X = np.where(constant, 0.0, X / np.where(constant, 1.0, spread))
    length = np.sqrt((X**2).sum(axis=0))
    return np.asarray(X / np.where(length > 0, length, 1.0))


def _one_to_one_variables(parsed: ParsedFormula) -> list[str]:
    """Name variables whose values stand for the response's, one to one."""
    y = pd.factorize(parsed.y)[0]
    levels = int(y.max()) + 1
    if levels < 2 or levels > y.size / LEAST_ROWS:
        return []
    coded = ((n, pd.factorize(parsed.frame[n])[0]) for n in parsed.coding.variables)
    return [
        name
        for name, codes in coded
        if codes.max() + 1 == levels
        and codes.min() >= 0
        and np.unique(codes * levels + y).size == levels
    ]


def find_far_rows(
    frame: pd.DataFrame, ranges: Mapping[str, tuple[float, float]]
) -> Finding | None:
    """Find rows far outside the `ranges` of numeric predictors in the training data."""
    any_far, texts = np.zeros(len(frame), dtype=bool), []
    for name, (low, high) in ranges.items():
        values, step = frame[name].to_numpy(dtype=np.float64), FAR * high - FAR * low
        far = (values < low - step) | (values > high + step)
        if far.any():
            any_far |= far
            first = int(np.flatnonzero(far)[0])
            value, row = frame[name].iloc[first], row_name(frame.index[first])
            texts.append(
                f"{name} = {value:.4g} in row {row}, where the training data go from "
                f"{low:.4g} to {high:.4g}"
            )
    if not texts:
        return None
    rows = f"{int(any_far.sum()):,} of {len(frame):,} rows"
    shown, more = "; ".join(texts[:MOST_NAMED]), len(texts) - MOST_NAMED
    shown += f"; and {more} more columns" if more > 0 else ""
    return Finding(
        ExtrapolationWarning,
        f"{rows} to predict lie far outside the training data: {shown}. Predictions "
        "there are extrapolated, and their standard errors do not include the error of "
        "that. Check the units, or leave such rows out.",
        f"{rows} to predict lie far outside the training data ({shown}); the std err "
        "does not include the error of extrapolation.",
    )


def find_unobserved_levels(frame: pd.DataFrame, coding: Coding) -> Finding | None:
    """Find levels that the training data declare and no training row has."""
    trained, passes = coding.recipe.frame, coding.recipe.missing == "pass"
    for name in coding.variables:
        declared = getattr(trained[name].dtype, "categories", None)
        if declared is None:
            continue
        known = (trained if passes else trained.dropna())[name]
        given = pd.Series(frame[name]).dropna()
        unseen = given[given.isin(declared) & ~given.isin(known.unique())]
        if len(unseen):
            return unobserved_finding(name, unseen, len(frame))
    return None


def unobserved_finding(name: str, unseen: pd.Series, n_rows: int) -> Finding:
    """Report values of a predictor, labelled by rows, that no training row has."""
    text = f"{name} = {str(unseen.iloc[0])!r} in row {row_name(unseen.index[0])}"
    return Finding(
        UnobservedLevelWarning,
        f"{len(unseen):,} of {n_rows:,} rows to predict have a level that no training "
        f"row has: {text}. The learners know nothing about it. Leave such rows out, or "
        "give them a level that was observed.",
        f"Rows to predict have a level that no training row has: {text}.",
    )


def warn_of_new_rows(
    data: Any, coding: Coding, ranges: Mapping[str, tuple[float, float]]
) -> tuple[str, ...]:
    """Warn of coded rows about which the training data say nothing; return notes."""
    frame = respell_columns(as_frame(data), coding.variables)
    findings = find_far_rows(frame, ranges), find_unobserved_levels(frame, coding)
    return warn_of(findings)


def warn_if_constant(parsed: ParsedFormula) -> None:
    """Warn when there is nothing to explain."""
    if np.all(parsed.y == parsed.y[0]):
        warn_caller(
            f"the response {parsed.response!r} is constant, so every estimate is exact "
            "and every standard error zero.",
            ConstantResponseWarning,
        )
