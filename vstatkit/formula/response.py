"""The response of a formula: numbers, or codes of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Floats
from vstatkit.exceptions import FormulaError
from vstatkit.formula.engine import Matrix
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
    factors, names = list(left.info.levels.values()), left.info.column_names
    if len(factors) == 1 and factors[0] is not None:
        return _level_places(left.values, factors[0]), factors[0]
    if len(names) != 1:
        raise FormulaError(
            "the left-hand side must be one response; it has the columns "
            f"{', '.join(names)}."
        )
    check_finite(left.values, names, first=first)
    return left.values[:, 0], None


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
    classes = tuple(level for level, kept in zip(levels, occurs, strict=True) if kept)
    unused = tuple(level for level in levels if level not in classes)
    if len(classes) < 2:
        raise FormulaError(
            f"a categorical response needs at least two levels; got {classes!r}."
        )
    codes = (np.cumsum(occurs) - 1)[places]
    return Response(codes.astype(np.float64), classes, unused)
