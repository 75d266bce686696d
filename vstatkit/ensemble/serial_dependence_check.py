"""Test whether out-of-bag residuals of neighbouring rows are correlated."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from vstatkit._typing import Bools, Floats, Ints
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.exceptions import SerialDependenceWarning
from vstatkit.formula.column_checks import is_number_kind
from vstatkit.formula.data_warnings import Finding

LEAST_UNITS = 30  # fewest rows, or clusters, whose order is tested
SIGNIFICANT = 1e-4  # largest one-sided p-value that is reported
# Smallest correlation that is reported: below it standard errors suffer little.
NOTABLE = 0.2
# Most blocks of rows that a column by which the data are sorted may have.
MOST_BLOCKS = 10
FREQUENT = 0.05  # share of the rows in which a response is frequent
# Length of the blocks that are advised, in units of 1 / (1 - correlation).
CORRELATION_TIMES = 6.0
LEAST_BLOCKS = 20  # number of blocks that the advice leaves, at least

# Largest one-sided p-value at which a correlation is seen to end with a unit.
ENDS_AT_UNITS = 0.01


class _Order(NamedTuple):
    """An order of the rows."""

    rows: Ints  # (n,): positions of the rows in it
    name: str  # what it is called
    # (n,): column by which the rows are sorted, if it may be either a number that
    # matters or the identifier of a unit. A correlation counts then if it ends with the
    # unit.
    units: Floats | None = None


def find_serial_dependence(
    scores: Scores | None,
    y: Floats,
    frame: pd.DataFrame | None,
    unit_of_row: Ints | None,
    n_classes: int | None,
) -> Finding | None:
    """Find correlated residuals of neighbours, in row order or along a date.

    The order is inferred from the `frame`, which has all columns of the data; it is
    None if they are not in memory. If there are clusters, the means of successive
    clusters are compared. More than two classes are not tested.

    Notes
    -----
    The statistic is the correlation of normal scores of successive residuals. If rows
    are independent and in random order, residuals are exchangeable, and its
    distribution does not depend on how well the learners fit. Rows that are sorted by
    the response or by a number are not tested in that order, because a smooth bias
    looks like dependence there, unless a column counts time or units in that order, or
    identifies units: within units residuals are correlated then, and from the last row
    of a unit to the first one of the next they are not. Along a number that matters
    both correlations are alike.
    If rows are sorted by a category, its means are subtracted.
    """
    residuals = _residuals(scores, n_classes)
    if frame is None or residuals is None or scores is None or scores.rows is None:
        return None
    largest = float(np.abs(residuals).max(initial=0.0))
    if residuals.size < LEAST_UNITS or not 0 < largest < np.inf:
        return None
    scored = np.asarray(scores.rows)
    for order in _orders(frame, y):
        place = np.empty(len(y), dtype=np.int64)
        place[order.rows] = np.arange(len(y))
        sequence = np.argsort(place[scored])
        rows = scored[sequence]
        values, at = _normal_scores(residuals[sequence]), place[rows]
        values = values - _block_means(values, y[rows], frame.iloc[rows])
        if unit_of_row is not None:
            grouped = _cluster_means(values, unit_of_row[rows])
            if grouped is None:
                continue
            values, at = grouped, np.arange(grouped.size)
            rows = rows[np.append(True, _changes(unit_of_row[rows]))]
        correlation = _lag_correlation(values, at)
        if correlation is None:
            continue
        if order.units is None or _ends_at_units(values, at, order.units[rows]):
            clusters = unit_of_row is not None
            return _finding(correlation, order.name, values.size, clusters)
    return None


def _residuals(scores: Scores | None, n_classes: int | None) -> Floats | None:
    """Out-of-bag residuals of a numeric response, or of one class of two."""
    if scores is None or not scores.n_scored:
        return None
    if n_classes is None:
        return scores.residuals
    if n_classes > 2 or scores.codes is None or scores.shares is None:
        return None
    return np.where(scores.codes == 1, 1.0, -1.0) * (1.0 - scores.shares)


def _orders(frame: pd.DataFrame, y: Floats) -> Iterator[_Order]:
    """Yield the orders in which rows may be correlated, each once."""
    here = np.arange(len(frame))
    for name, date in _dates(frame):
        rows = np.argsort(date, kind="stable")
        yield _Order(rows, f"in the order of {name}")
        if np.array_equal(rows, here):
            return
    numbers = [column for _, column in frame.items() if is_number_kind(column.dtype)]
    by = [column for column in numbers if _is_sorted_by(column)]
    name = "in the order of the rows"
    if any(map(_is_counter, by)) or not (by or _is_sorted(y)):
        yield _Order(here, name)
        return
    for column in by:
        units = column.to_numpy(dtype=np.float64)
        # Unless rows are sorted by the response within each unit.
        steps = np.diff(y)[units[1:] == units[:-1]]
        if (steps > 0).any() and (steps < 0).any():
            yield _Order(here, name, units)


def _dates(frame: pd.DataFrame) -> Iterator[tuple[str, Floats]]:
    """Yield the index and the columns that are dates, as numbers."""
    columns: list[tuple[str, Any]] = [("the index", frame.index)]
    columns += [(repr(str(name)), frame[name].array) for name in frame]
    for name, values in columns:
        period = isinstance(values.dtype, pd.PeriodDtype)
        dates = pd.DatetimeIndex(values.to_timestamp()) if period else values
        if not pd.api.types.is_datetime64_any_dtype(dates.dtype):
            continue
        index = pd.DatetimeIndex(dates)
        if not index.hasnans and index.nunique() > 2:
            yield name, index.asi8.astype(np.float64)


def _is_sorted(values: Floats) -> bool:
    before, after = values[:-1], values[1:]
    return bool((before <= after).all() or (before >= after).all())


def _is_sorted_by(column: pd.Series) -> bool:
    """Whether rows are sorted by a number; `_block_means` sees to few values."""
    values = column.to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    return _is_sorted(values) and np.unique(values).size > MOST_BLOCKS


def _is_counter(column: pd.Series) -> bool:
    """Whether a sorted column counts time or units, so that rows are in their order.

    It has whole numbers, each for the same number of rows (the first and the last may
    be incomplete), which are consecutive or stand for several rows each: years with
    their quarters, or persons with their waves.
    """
    levels, counts = np.unique(column.dropna().to_numpy(), return_counts=True)
    whole = np.array_equal(levels, np.round(levels))
    consecutive = np.unique(np.diff(levels)).size == 1
    equal_counts = np.unique(counts[1:-1]).size <= 1
    return bool(whole and equal_counts and (consecutive or counts[1] > 1))


def _block_means(values: Floats, y: Floats, frame: pd.DataFrame) -> Floats:
    """Mean residuals of blocks sorted by a category, or by a frequent response."""
    levels, counts = np.unique(y, return_counts=True)
    columns = [column for _, column in frame.items()]
    if counts.max() >= FREQUENT * y.size:
        columns.append(pd.Series(y == levels[np.argmax(counts)]))
    cuts = np.zeros(values.size - 1, dtype=bool)
    for column in columns:
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        changes = _changes(column.to_numpy() if plain else pd.factorize(column)[0])
        if changes.sum() < MOST_BLOCKS:
            cuts |= changes
    blocks = np.append(0, np.cumsum(cuts))
    means = np.bincount(blocks, values) / np.bincount(blocks)
    return np.asarray(means[blocks])


def _changes(values: NDArray[Any]) -> Bools:
    """Whether each row but the first has another value than the row before."""
    return np.asarray(values[1:] != values[:-1])


def _cluster_means(values: Floats, unit_of_row: Ints) -> Floats | None:
    """Mean residual of every cluster in turn; None if clusters are interleaved."""
    runs = np.append(0, np.cumsum(_changes(unit_of_row)))
    n_runs = int(runs[-1]) + 1
    if n_runs != np.unique(unit_of_row).size or n_runs < LEAST_UNITS:
        return None
    return np.asarray(np.bincount(runs, values) / np.bincount(runs))


def _normal_scores(values: Floats) -> Floats:
    """Compute normal quantiles of the ranks.

    Ranks come before the means of blocks are subtracted. Most residuals of a rare
    outcome are equal; ranked afterwards, they would form a series of steps.
    """
    return np.asarray(stats.norm.ppf((stats.rankdata(values) - 0.5) / values.size))


def _lag_correlation(scores: Floats, at: Ints) -> float | None:
    """Correlation of successive scores, if it is significant."""
    next_to = np.diff(at) == 1
    pairs = int(next_to.sum())
    if pairs < LEAST_UNITS - 1:
        return None
    scores = scores - scores.mean()
    spread = float(np.mean(scores**2))
    if spread == 0:
        return None
    products = scores[1:][next_to] * scores[:-1][next_to]
    correlation = float(products.mean() / spread)
    significant = stats.norm.sf(correlation * np.sqrt(pairs)) < SIGNIFICANT
    return correlation if significant and correlation > NOTABLE else None


def _ends_at_units(scores: Floats, at: Ints, units: Floats) -> bool:
    """Whether successive scores are correlated within units only.

    The correlation between units must be significantly smaller, and less than half of
    that within them.
    """
    next_to, same = np.diff(at) == 1, units[1:] == units[:-1]
    scores = scores - scores.mean()
    products = scores[1:] * scores[:-1] / np.mean(scores**2)
    within, between = products[next_to & same], products[next_to & ~same]
    if min(within.size, between.size) < 2:
        return False
    difference = within.mean() - between.mean()
    error = np.sqrt(within.var(ddof=1) / within.size + 1 / between.size)
    smaller = between.mean() < within.mean() / 2
    return bool(smaller and stats.norm.sf(difference / error) < ENDS_AT_UNITS)


def _finding(correlation: float, order: str, n: int, clusters: bool) -> Finding:
    wanted = int(np.ceil(CORRELATION_TIMES / (1 - correlation)))
    length = max(2, min(wanted, n // LEAST_BLOCKS))
    what = "clusters" if clusters else "rows"
    advice = (
        "larger `groups`, which hold neighbouring clusters together"
        if clusters
        else "`groups`: what belongs together, or blocks of successive rows in that "
        f"order, such as groups=np.arange(n) // {length}"
    )
    return Finding(
        SerialDependenceWarning,
        f"out-of-bag residuals of neighbouring {what}, {order}, are correlated: "
        f"{correlation:.2f}. There are two possible causes. Either {what} depend on "
        "each other, because the order is time or because neighbours belong together; "
        f"then standard errors are too small: give {advice}. Or {what} are independent "
        "and sorted by a variable that matters and is not in the formula; then "
        "standard errors are right: add the variable to the formula, or ignore this "
        "warning.",
        f"Residuals of neighbouring {what}, {order}, are correlated "
        f"({correlation:.2f}). The std err is too small if {what} depend on each other "
        "(see `groups`), and right if they are sorted by a variable that is not in "
        "the formula (add it).",
    )
