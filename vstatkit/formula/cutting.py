"""Numbers cut into intervals in formulas, as R's `cut` does."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.vectors import is_whole, one_variable

USAGE = "`cut` takes one variable and its breaks."

MOST_DIGITS = 12
"""Digits in labels, where fewer do not tell neighbours apart."""


class Intervals:
    """Intervals of the data that they were made from.

    patsy calls `memorize_chunk` with the data, part by part, then
    `memorize_finish`, then `transform` with any data.
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
        values = one_variable(x, USAGE)
        self._low = min(self._low, float(np.nanmin(values, initial=np.inf)))
        self._high = max(self._high, float(np.nanmax(values, initial=-np.inf)))
        self._given, self._labels = breaks, labels

    def memorize_finish(self) -> None:
        """Place the breaks."""
        _check_labels(self._labels)
        if np.ndim(self._given) > 0:
            self._breaks = np.sort(np.asarray(self._given, dtype=np.float64))
        else:
            self._breaks = _equal_breaks(self._low, self._high, self._given)
        if self._breaks.size < 2 or (np.diff(self._breaks) == 0).any():
            raise FormulaError(
                "`cut` needs a number of intervals, 2 or more, or a list of different "
                f"breaks; got {self._given!r}."
            )

    def transform(
        self,
        x: Any,
        breaks: int | Sequence[float],
        labels: Sequence[str] | None = None,
        include_lowest: bool = False,
        right: bool = True,
    ) -> "pd.Categorical[str]":
        """Tell the interval of every number; missing where it is in none."""
        values, edges = one_variable(x, USAGE), self._breaks
        codes = np.searchsorted(edges, values, side="left" if right else "right") - 1
        if include_lowest:
            end, code = (edges[0], 0) if right else (edges[-1], edges.size - 2)
            codes = np.where(values == end, code, codes)
        outside = (codes < 0) | (codes >= edges.size - 1) | np.isnan(values)
        names = interval_labels(edges, right, include_lowest)
        if labels is not None:
            names = [str(one) for one in labels]
        if len(names) != edges.size - 1:
            raise FormulaError(
                f"`cut` needs a label for each of {edges.size - 1} intervals; got "
                f"{len(names)}."
            )
        return pd.Categorical.from_codes(np.where(outside, -1, codes), pd.Index(names))


def _check_labels(labels: Any) -> None:
    """Refuse `labels=False`, by which R numbers the intervals."""
    if isinstance(labels, bool | np.bool_):
        raise FormulaError(
            f"the labels of `cut` must be a list of texts; got labels={labels}. Leave "
            "`labels` out for a category of intervals, or add the numbers of the "
            "intervals to the data as a column."
        )


def cut(
    x: Any,
    breaks: int | Sequence[float],
    labels: Sequence[str] | None = None,
    include_lowest: bool = False,
    right: bool = True,
) -> "pd.Categorical[str]":
    """Cut numbers into intervals: of equal width, or between given breaks.

    Examples
    --------
    >>> cut([1.0, 2.0, 4.0], [0, 2, 5]).tolist()
    ['(0,2]', '(0,2]', '(2,5]']
    """
    made = Intervals()
    made.memorize_chunk(x, breaks, labels, include_lowest, right)
    made.memorize_finish()
    return made.transform(x, breaks, labels, include_lowest, right)


# By this attribute patsy knows that new data must be coded as the training data.
cut.__patsy_stateful_transform__ = Intervals  # type: ignore[attr-defined]


def interval_labels(breaks: Floats, right: bool, include_lowest: bool) -> list[str]:
    """Write intervals with as few digits, from 3 on, as tell neighbours apart."""
    texts: list[str] = []
    for digits in range(3, MOST_DIGITS + 1):
        texts = [_number(one, digits) for one in breaks]
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
