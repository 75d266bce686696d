"""Functions in formulas as R has them: cut, poly, ns, log with a base, round."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError


def as_variable(x: Any, usage: str) -> Floats:
    """Take a variable as an array of numbers; refuse several at once."""
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1:
        raise FormulaError(usage)
    return values


def is_whole(value: Any) -> bool:
    """Tell whether an argument is a whole number; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


CUT_USAGE = "`cut` takes one variable and its breaks."

MOST_DIGITS = 12  # digits in labels, where fewer do not tell neighbours apart


class Intervals:
    """Cut numbers into intervals: of equal width, or between given breaks.

    patsy calls `memorize_chunk` with the data, part by part, then `memorize_finish`,
    then `transform` with any data; the options are the same every time.

    Examples
    --------
    >>> cut([1.0, 2.0, 4.0], [0, 2, 5]).tolist()
    ['(0,2]', '(0,2]', '(2,5]']
    """

    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def memorize_chunk(
        self,
        x: Any,
        breaks: int | Sequence[float],
        labels: Sequence[str] | None = None,
        include_lowest: bool = False,
        right: bool = True,
    ) -> None:
        """Take part of the data."""
        values = as_variable(x, CUT_USAGE)
        self._low = min(self._low, float(np.nanmin(values, initial=np.inf)))
        self._high = max(self._high, float(np.nanmax(values, initial=-np.inf)))
        self._given, self._labels = breaks, labels
        self._include_lowest, self._right = include_lowest, right

    def memorize_finish(self) -> None:
        """Place the breaks."""
        if isinstance(self._labels, bool | np.bool_):  # R numbers the intervals then
            raise FormulaError(
                f"the labels of `cut` must be a list of texts; got labels="
                f"{self._labels}. Leave `labels` out for a category of intervals, or "
                "add the numbers of the intervals to the data as a column."
            )
        if np.ndim(self._given) > 0:
            self._breaks = np.sort(np.asarray(self._given, dtype=np.float64))
        else:
            self._breaks = _equal_breaks(self._low, self._high, self._given)
        if self._breaks.size < 2 or (np.diff(self._breaks) == 0).any():
            raise FormulaError(
                "`cut` needs a number of intervals, 2 or more, or a list of different "
                f"breaks; got {self._given!r}."
            )

    def transform(self, x: Any, *_: Any, **__: Any) -> "pd.Categorical[str]":
        """Tell the interval of every number; missing where it is in none."""
        values, edges, right = as_variable(x, CUT_USAGE), self._breaks, self._right
        codes = np.searchsorted(edges, values, side="left" if right else "right") - 1
        if self._include_lowest:
            end, code = (edges[0], 0) if right else (edges[-1], edges.size - 2)
            codes = np.where(values == end, code, codes)
        outside = (codes < 0) | (codes >= edges.size - 1) | np.isnan(values)
        names = interval_labels(edges, right, self._include_lowest)
        if self._labels is not None:
            names = [str(label) for label in self._labels]
        if len(names) != edges.size - 1:
            raise FormulaError(
                f"`cut` needs a label for each of {edges.size - 1} intervals; got "
                f"{len(names)}."
            )
        return pd.Categorical.from_codes(np.where(outside, -1, codes), pd.Index(names))


def _as_function(kind: Any) -> Any:
    """Make a function of formulas that learns from its own data outside of them."""

    def function(x: Any, *options: Any, **named: Any) -> Any:
        transform = kind()
        transform.memorize_chunk(x, *options, **named)
        transform.memorize_finish()
        return transform.transform(x, *options, **named)

    # By this attribute patsy knows that new data must be coded as the training data.
    function.__patsy_stateful_transform__ = kind  # type: ignore[attr-defined]
    return function


def interval_labels(breaks: Floats, right: bool, include_lowest: bool) -> list[str]:
    """Write intervals with as few digits, from 3 on, as tell neighbours apart."""
    texts: list[str] = []
    for digits in range(3, MOST_DIGITS + 1):
        texts = [_number(edge, digits) for edge in breaks]
        if all(a != b for a, b in pairwise(texts)):
            break
    first, last = ("(", "]") if right else ("[", ")")
    labels = [f"{first}{low},{high}{last}" for low, high in pairwise(texts)]
    if include_lowest and right:
        labels[0] = "[" + labels[0][1:]
    elif include_lowest:
        labels[-1] = labels[-1][:-1] + "]"
    return labels


def _number(value: float, digits: int) -> str:
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return f"{value + 0.0:.{digits}g}"


def _equal_breaks(low: float, high: float, count: Any) -> Floats:
    """Divide the range of the data; the ends are moved out by a thousandth of it."""
    if not is_whole(count) or count < 2 or not np.isfinite([low, high]).all():
        return np.empty(0)
    width = high - low
    if width == 0:
        shift = abs(low) / 1000
        return np.linspace(low - shift, high + shift, count + 1)
    breaks = np.linspace(low, high, count + 1)
    breaks[[0, -1]] = low - width / 1000, high + width / 1000
    return breaks


POLY_USAGE = "`poly` takes one variable, the degree and `raw`."


class Polynomial:
    """Polynomials, orthogonal over the data unless `raw`; used like `Intervals`.

    Notes
    -----
    Stieltjes' recurrence `p[j+1] = (x - a[j]) p[j] - (s[j] / s[j-1]) p[j-1]`, with
    `s[j]` the sum of squares of `p[j]`; new data go through the same recurrence.
    """

    def __init__(self) -> None:
        self._chunks: list[Floats] = []
        self._centres: list[float] = []
        self._squares: list[float] = []

    def memorize_chunk(self, x: Any, degree: int = 1, raw: bool = False) -> None:
        """Take part of the data."""
        self._chunks.append(as_variable(x, POLY_USAGE))
        if not is_whole(degree):
            raise FormulaError(
                f"`poly` needs a whole number as degree; got {degree!r}."
            )
        if degree < 1:
            raise FormulaError(f"`poly` needs a degree of at least 1; got {degree}.")
        self._degree, self._raw = int(degree), raw

    def memorize_finish(self) -> None:
        """Find the coefficients of the recurrence."""
        if self._raw:
            return
        x = np.concatenate(self._chunks)
        self._chunks.clear()
        distinct = np.unique(x).size
        if self._degree >= distinct:
            raise FormulaError(
                f"`poly` needs more distinct values than its degree {self._degree}; "
                f"there are {distinct}."
            )
        before, p, last = np.zeros_like(x), np.ones_like(x), 1.0
        for _ in range(self._degree):
            square = float(p @ p)
            centre = float(x @ p**2) / square
            self._squares.append(square)
            self._centres.append(centre)
            before, p = p, (x - centre) * p - square / last * before
            last = square
        self._squares.append(float(p @ p))

    def transform(self, x: Any, degree: int = 1, raw: bool = False) -> Floats:
        """Evaluate the polynomials, shape (rows, degree)."""
        values = as_variable(x, POLY_USAGE)
        if raw:
            return values[:, None] ** np.arange(1, degree + 1)
        columns, last = [np.zeros_like(values), np.ones_like(values)], 1.0
        for centre, square in zip(self._centres, self._squares, strict=False):
            p = (values - centre) * columns[-1] - square / last * columns[-2]
            columns.append(p)
            last = square
        return np.column_stack(columns[2:]) / np.sqrt(self._squares[1:])


NS_USAGE = "`ns` takes one variable, `df`, `knots` and `intercept`."


class NaturalSpline:
    """Cubic splines that are straight lines beyond the data; used like `Intervals`.

    Notes
    -----
    Cubic B-splines with fourfold knots at the ends of the data, and inner ones at
    quantiles unless given; of their combinations those whose second derivative is zero
    at both ends, in the coordinates of Householder's decomposition, as R has them.
    """

    def __init__(self) -> None:
        self._chunks: list[Floats] = []

    def memorize_chunk(
        self,
        x: Any,
        df: int | None = None,
        knots: Sequence[float] | None = None,
        intercept: bool = False,
    ) -> None:
        """Take part of the data."""
        self._chunks.append(as_variable(x, NS_USAGE))
        self._df, self._knots, self._intercept = df, knots, bool(intercept)

    def memorize_finish(self) -> None:
        """Place the knots, and find the combinations that are natural."""
        x = np.concatenate(self._chunks)
        self._chunks.clear()
        self._ends = float(x.min()), float(x.max())
        if self._ends[0] == self._ends[1]:
            raise FormulaError("`ns` needs a variable with more than one value.")
        self._all_knots = np.sort(np.r_[np.repeat(self._ends, 4), self._inner_knots(x)])
        self._first = 0 if self._intercept else 1
        bends = self._splines().derivative(2)(np.array(self._ends))[:, self._first :]
        self._natural = np.linalg.qr(bends.T, mode="complete")[0][:, 2:]

    def _inner_knots(self, x: Floats) -> Floats:
        """Take the knots that were given, or quantiles."""
        if self._knots is not None:
            return np.asarray(self._knots, dtype=np.float64).ravel()
        if self._df is None:
            return np.empty(0)
        least = 1 + self._intercept
        if not is_whole(self._df) or self._df < least:
            raise FormulaError(
                f"`ns` needs a whole number of at least {least} as df; got {self._df}."
            )
        count = self._df - 1 - self._intercept
        return np.quantile(x, np.linspace(0, 1, count + 2)[1:-1])

    def _splines(self) -> BSpline:
        return BSpline(self._all_knots, np.eye(self._all_knots.size - 4), 3)

    def transform(self, x: Any, *_: Any, **__: Any) -> Floats:
        """Evaluate the splines, shape (rows, columns)."""
        values = as_variable(x, NS_USAGE)
        within = np.clip(values, *self._ends)
        splines = self._splines()
        beyond = (values - within)[:, None]  # where the data end, a line goes on
        basis = splines(within) + beyond * splines.derivative()(within)
        return np.asarray(basis[:, self._first :] @ self._natural)


cut = _as_function(Intervals)
poly = _as_function(Polynomial)
ns = _as_function(NaturalSpline)


def log(x: Any, base: float | None = None) -> Any:
    """Logarithm: the natural one, or to a base, as in R."""
    if base is None:
        return np.log(x)
    if base in (2, 10):  # exact where that is possible
        return np.log2(x) if base == 2 else np.log10(x)
    return np.log(x) / np.log(base)


SURE_DIGITS = 15  # significant decimal digits that every double holds
LARGEST_POWER = 308  # largest power of ten that is a double


def r_round(x: Any, digits: int = 0) -> Floats:
    """Round to the nearer of the two doubles with so many decimal digits.

    numpy multiplies, rounds and divides, so that 0.15 becomes 0.2, though the double is
    below 0.15; R compares the two candidates with the number itself. Of two candidates
    equally far the one with an even last digit is taken. A number whose digits are all
    wanted stays as it is. Negative `digits` are before the point.

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
