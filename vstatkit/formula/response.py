"""The response of a formula: numbers, or codes of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Bools, Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import Learnt, Matrix
from vstatkit.formula.frames import check_finite


@dataclass(frozen=True)
class Response:
    """What the left-hand side of a formula gives.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Numbers, or class codes.
    classes : tuple or None
        Levels of a categorical response, those that occur.
    unused_levels : tuple
        Levels that no row has.
    """

    y: Floats
    classes: tuple[Any, ...] | None
    unused_levels: tuple[Any, ...]


def read_response(left: Matrix) -> Response:
    """Read the response: numbers, or codes of the levels that occur."""
    return settle_response(*response_values(left))


def response_values(
    left: Matrix, first: int = 0
) -> tuple[Floats, tuple[Any, ...] | None]:
    """Read numbers, or the place of every row's level among all levels.

    In messages rows are counted from `first`.
    """
    levels, names = response_levels(left.info), left.info.column_names
    if levels is not None:
        return _level_places(left.values, levels), levels
    if len(names) != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(names)}."
        )
    check_finite(left.values, names, first=first)
    return left.values[:, 0], None


def response_levels(info: Learnt) -> tuple[Any, ...] | None:
    """List all levels of the response; None for numbers."""
    factors = list(info.levels.values())
    return factors[0] if len(factors) == 1 else None


def _level_places(indicators: Floats, levels: tuple[Any, ...]) -> Floats:
    plain = indicators.shape[1] == len(levels) and np.isin(indicators, (0, 1)).all()
    if not plain or not (indicators.sum(axis=1) == 1).all():
        raise FormulaError(
            "a categorical response takes no contrast: write C(y), or y, on the "
            "left-hand side."
        )
    return np.asarray(indicators.argmax(axis=1), dtype=np.float64)


def settle_response(values: Floats, levels: tuple[Any, ...] | None) -> Response:
    """Code the levels that occur, given the values of all rows."""
    if levels is None:
        return Response(values, None, ())
    places = values.astype(np.int64)
    occurs = np.bincount(places, minlength=len(levels)) > 0
    return Response(class_codes(occurs)[places], *split_levels(levels, occurs))


def split_levels(
    levels: tuple[Any, ...], occurs: Bools
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """List the levels that occur, and those that do not; refuse fewer than two."""
    classes = tuple(level for level, kept in zip(levels, occurs, strict=True) if kept)
    unused = tuple(level for level in levels if level not in classes)
    if len(classes) < 2:
        raise FormulaError(
            f"a categorical response needs at least two levels; got {classes!r}."
        )
    return classes, unused


def class_codes(occurs: Bools) -> Floats:
    """Give the code of every level, by its place among all levels."""
    return (np.cumsum(occurs) - 1).astype(np.float64)
