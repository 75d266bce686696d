"""Which predictors move, how far, and what the averages of it are called."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Labels
from vstatkit.ensemble.marginal_averages import RowMove
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.query import QUANTILES, moves_of
from vstatkit.formula.coding import variables_of
from vstatkit.formula.input_checks import first_names, nearest
from vstatkit.results.rows import Observed, predictor_names

Variables = str | Sequence[str] | Mapping[str, tuple[Any, Any]]
"""Predictors that move; a mapping says from where to where."""


ROUNDING = 1e-9
"""Share of a predictor's range by which rounding may move the end of a step."""


class Move(NamedTuple):
    """A predictor that is set to one value, and to another."""

    name: str
    start: Any
    end: Any


def there_are(names: Sequence[Any]) -> str:
    """List the predictors.

    Examples
    --------
    >>> there_are(["x1", "x2"])
    'the predictors are x1, x2.'
    >>> there_are([])
    'the model has no predictors.'
    """
    if not names:
        return "the model has no predictors."
    return f"the predictors are {first_names([str(one) for one in names])}."


def check_variable(name: Any, names: Sequence[Any]) -> None:
    """Refuse what is not a predictor."""
    if name not in names:
        listed = ", ".join(map(str, names))
        near = nearest(str(name), [str(one) for one in names])
        raise ValueError(
            f"`variables` must be predictors of the model, some of {listed}; got "
            f"{name!r}{near}"
        )


def is_factor(predictor: Predictor, name: Any) -> bool:
    """Whether a predictor is a category."""
    return predictor.is_category(name)


def asked_variables(variables: Variables | None, predictor: Predictor) -> list[Any]:
    """List the predictors asked for; all of them by default."""
    names = predictor_names(predictor)
    if variables is None:
        return list(names)
    asked = [variables] if isinstance(variables, str | int) else list(variables)
    for name in asked:
        check_variable(name, names)
    if not asked:
        raise ValueError("`variables` must name at least one predictor; got none.")
    return asked


def sort_arguments(
    method: str, variables: Any, data: DataLike | None
) -> tuple[Any, DataLike | None]:
    """Take rows that were given in the place of `variables` as `data`.

    Examples
    --------
    >>> rows = pd.DataFrame({"x": [1.0]})
    >>> variables, data = sort_arguments("avg_effects", rows, None)
    >>> variables is None, data is rows
    (True, True)
    """
    if not _are_rows(variables):
        return variables, data
    if data is not None:
        raise ValueError(
            f"{method}() takes predictors as `variables` and rows as `data`; got rows "
            f"as both. Write {method}(data=...) for the rows to average over."
        )
    return None, variables


def _are_rows(variables: Any) -> bool:
    """Whether an argument is a table of rows, and not names of predictors."""
    table = hasattr(variables, "to_pydict") or hasattr(variables, "get_columns")
    array = isinstance(variables, np.ndarray) and variables.ndim == 2
    return table or array or isinstance(variables, pd.DataFrame)


def listed(variables: Sequence[Any]) -> tuple[Any, ...]:
    """List arguments that were given one by one, or as scikit-learn takes them.

    Examples
    --------
    >>> listed(("age", "dose")), listed((["age", "dose"],))
    (('age', 'dose'), ('age', 'dose'))
    """
    if any(map(_are_rows, variables)):
        raise ValueError(
            "predictors are given by their names, rows by their keyword: data=..."
        )
    if len(variables) == 1 and isinstance(variables[0], list | tuple):
        return tuple(variables[0])
    return tuple(variables)


def effect_moves(
    variables: Variables | None, predictor: Predictor, observed: Observed
) -> list[Move]:
    """Move as the effects table does: between quantiles, or from the reference."""
    if isinstance(variables, Mapping):
        asked_variables(list(variables), predictor)
        return [Move(name, *_both_ends(name, ends)) for name, ends in variables.items()]
    moves: list[Move] = []
    for name in asked_variables(variables, predictor):
        moves += [Move(name, *one) for one in default_moves(name, predictor, observed)]
    if not moves:
        raise ValueError(nothing_moves(asked_variables(variables, predictor)))
    return moves


def default_moves(
    name: Any, predictor: Predictor, observed: Observed
) -> list[tuple[Any, Any]]:
    """List the moves of one predictor in the effects table."""
    stored = observed.stored_moves(name)
    if stored:
        return stored
    known, coding = variables_of(observed.frame), predictor.coding
    factor = is_factor(predictor, name)
    ends = None if factor else known.quantiles([name], QUANTILES)[name]
    reference = None if coding is None else coding.reference(name)
    return moves_of(known, name, ends, reference)


def ends_note(
    variables: Variables | None, moves: Sequence[Move], observed: Observed
) -> tuple[str, ...]:
    """Say which ends of effects are those of the rows given, if any are."""
    if isinstance(variables, Mapping):
        return ()
    names = dict.fromkeys(move.name for move in moves)
    new = [str(name) for name in names if not observed.stored_moves(name)]
    note = observed.note(f"the ends of {first_names(new)} are") if new else None
    return () if note is None else (note,)


def _both_ends(name: Any, ends: Any) -> Any:
    """Check what a predictor moves between."""
    if isinstance(ends, list | tuple | np.ndarray) and len(ends) == 2:
        return ends
    raise ValueError(
        f"a dict of `variables` gives both ends of each move, such as "
        f"{{{name!r}: (0, 1)}}; got {reprlib.repr(ends)}. Rows to average over are "
        "given as data=..."
    )


def nothing_moves(asked: Sequence[Any]) -> str:
    """Explain why no predictor can be moved."""
    if not asked:
        return f"there is nothing to move: {there_are(asked)}"
    names = ", ".join(map(str, asked))
    return (
        f"there is nothing to move: {names} has the same value in every row. Ask for "
        "a predictor that varies."
    )


def unmoved(
    variables: Variables | None, predictor: Predictor, moved: Sequence[Any]
) -> tuple[str, ...]:
    """List predictors that were asked for and do not vary."""
    asked = asked_variables(variables, predictor)
    return tuple(str(name) for name in asked if name not in moved)


def varying(names: Sequence[Any], frame: pd.DataFrame) -> list[Any]:
    """List the predictors that have more than one value."""
    return [name for name in names if frame[name].min() < frame[name].max()]


def observed_values(frame: pd.DataFrame, name: Any) -> Floats:
    """List the distinct values of a numeric predictor, ascending."""
    column = frame[name].to_numpy(dtype=np.float64)
    return np.unique(column[np.isfinite(column)])


def slope_width(name: Any, frame: pd.DataFrame, step: Any) -> float:
    """Choose the least distance of a slope; one standard deviation by default."""
    given = step.get(name) if isinstance(step, Mapping) else step
    width = float(frame[name].std()) if given is None else float(given)
    if np.isfinite(width) and width > 0:
        return width
    if given is None:
        raise ValueError(
            f"{name!r} has the same value in every row, and so no slope. Leave it "
            "out, or give `step`."
        )
    raise ValueError(f"the step of {name!r} must be a positive number; got {given!r}.")


def slope_move(
    name: Any, rows: pd.DataFrame, width: float, observed: Floats
) -> RowMove:
    r"""Move every row between two observed values at least a width apart.

    Parameters
    ----------
    name : str
        A numeric predictor.
    rows : DataFrame
        Rows that move.
    width : float
        Least distance between the two values, as far as the range allows.
    observed : ndarray
        Distinct values of the predictor in the training data, ascending.

    Notes
    -----
    The window of a row at x has the given width h, is centred at x, and is shifted
    into the range :math:`[a, b]` of the observed values where it leaves it. Its ends
    are moved outwards to the nearest observed values:

    .. math::

        x^- = \max\{v : v \le l\}, \quad x^+ = \min\{v : v \ge l + h\}, \qquad
        l = \min\{\max(x - h/2, a), b - h\} .

    If h exceeds the range, both ends are those of the range. Trees split between
    observed values, so that the difference between two of them does not depend on
    where exactly. A single observed value has no such neighbours: rows move by half
    a width to each side of where they are. Rows without a value do not count.

    Examples
    --------
    >>> data = pd.DataFrame({"x": [0.0, 3.0, 5.0, 10.0], "d": [0, 1, 0, 0]})
    >>> move = slope_move("x", data, 4.0, np.array([0.0, 3.0, 5.0, 10.0]))
    >>> move.start["x"].tolist(), move.end["x"].tolist(), move.widths.tolist()
    ([0.0, 0.0, 3.0, 5.0], [5.0, 5.0, 10.0, 10.0], [5.0, 5.0, 7.0, 5.0])
    >>> move = slope_move("d", data, 0.5, np.array([0.0, 1.0]))
    >>> move.start["d"].tolist(), move.end["d"].tolist()
    ([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])
    """
    x = rows[name].to_numpy(dtype=np.float64)
    if observed.size < 2:
        start, end = x - width / 2, x + width / 2
    else:
        low, high = observed[0], observed[-1]
        left = np.maximum(np.minimum(np.maximum(x - width / 2, low), high - width), low)
        slack = min(ROUNDING * (high - low), width / 4)
        below = np.searchsorted(observed, left + slack, side="right") - 1
        above = np.searchsorted(observed, left + width - slack, side="left")
        start = observed[np.clip(below, 0, observed.size - 1)]
        end = observed[np.clip(above, 0, observed.size - 1)]
    known = ~np.isnan(x)
    widths = np.where(known, end - start, width)
    return RowMove({name: start}, {name: end}, widths, None if known.all() else known)


class Slope(NamedTuple):
    """A slope along a numeric predictor, or a contrast between levels of a factor.

    Attributes
    ----------
    name : str
        The predictor.
    start, end : object
        Both values, where they are the same for all rows: levels of a factor, or of a
        predictor with two values; None otherwise.
    step : float
        Least distance between the values that are compared; NaN for levels.
    move : RowMove
        How rows move.
    """

    name: Any
    start: Any
    end: Any
    step: float
    move: RowMove


def slopes_of(
    variables: Variables | None,
    predictor: Predictor,
    rows: pd.DataFrame,
    observed: Observed,
    step: Any,
) -> list[Slope]:
    """List slopes along numeric predictors, and contrasts of factors, in their order.

    Parameters
    ----------
    variables : str, list of str or None
        Predictors asked for; all by default, without numbers that do not vary.
    predictor : Predictor
        The learners.
    rows : DataFrame
        Rows that move.
    observed : Observed
        Observed values of the predictors.
    step : float, dict or None
        Least distances.
    """
    asked = asked_variables(variables, predictor)
    numeric = [name for name in asked if not is_factor(predictor, name)]
    if variables is None and step is None:
        numeric = varying(numeric, observed.frame)
    slopes: list[Slope] = []
    for name in asked:
        if is_factor(predictor, name):
            whole = np.ones(len(rows))
            slopes += [
                Slope(name, a, b, np.nan, RowMove({name: a}, {name: b}, whole))
                for a, b in default_moves(name, predictor, observed)
            ]
        elif name in numeric:
            width = slope_width(name, observed.frame, step)
            values = observed_values(observed.frame, name)
            start, end = None, None
            if values.size == 2:
                start, end = values.tolist()
                width = end - start
            move = slope_move(name, rows, width, values)
            slopes.append(Slope(name, start, end, width, move))
    if not slopes:
        raise ValueError(nothing_moves(asked))
    return slopes


def output_index(index: Labels, classes: tuple[Any, ...] | None) -> Labels:
    """Add the classes to labels where there are several columns of predictions."""
    if classes is None or len(classes) == 2:
        return index
    tuples = [
        (*(one if isinstance(one, tuple) else (one,)), c)
        for one in index
        for c in classes
    ]
    return pd.MultiIndex.from_tuples(tuples, names=[*index.names, "class"])
