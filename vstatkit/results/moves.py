"""Which predictors move, how far, and what the averages of it are called."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Labels
from vstatkit.ensemble.averages import RowMove
from vstatkit.ensemble.effects import QUANTILES, moves_of
from vstatkit.ensemble.prediction import Predictor
from vstatkit.formula.frames import first_names, nearest
from vstatkit.formula.variables import variables_of
from vstatkit.results.rows import predictor_names

Variables = str | Sequence[str] | Mapping[str, tuple[Any, Any]]
"""Predictors that move; a mapping says from where to where."""


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
    return predictor.coding is not None and name in predictor.coding.categorical


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


def listed(variables: Sequence[Any]) -> tuple[Any, ...]:
    """List arguments that were given one by one, or as scikit-learn takes them.

    Examples
    --------
    >>> listed(("age", "dose")), listed((["age", "dose"],))
    (('age', 'dose'), ('age', 'dose'))
    """
    if len(variables) == 1 and isinstance(variables[0], list | tuple):
        return tuple(variables[0])
    return tuple(variables)


def effect_moves(
    variables: Variables | None, predictor: Predictor, frame: pd.DataFrame
) -> list[Move]:
    """Move as the effects table does: between quantiles, or from the first level."""
    if isinstance(variables, Mapping):
        asked_variables(list(variables), predictor)
        return [Move(name, *ends) for name, ends in variables.items()]
    moves: list[Move] = []
    for name in asked_variables(variables, predictor):
        known = variables_of(frame)
        factor = is_factor(predictor, name)
        ends = None if factor else known.quantiles([name], QUANTILES)[name]
        moves += [Move(name, *one) for one in moves_of(known, name, ends)]
    if not moves:
        asked = asked_variables(variables, predictor)
        if not asked:
            raise ValueError(f"there is nothing to move: {there_are(asked)}")
        names = ", ".join(map(str, asked))
        raise ValueError(
            f"there is nothing to move: {names} has the same value in every row. Ask "
            "for a predictor that varies."
        )
    return moves


def unmoved(
    variables: Variables | None, predictor: Predictor, moved: Sequence[Any]
) -> tuple[str, ...]:
    """List predictors that were asked for and do not vary."""
    asked = asked_variables(variables, predictor)
    return tuple(str(name) for name in asked if name not in moved)


def varying(names: Sequence[Any], frame: pd.DataFrame) -> list[Any]:
    """List the predictors that have more than one value; all of them if none has."""
    return [one for one in names if frame[one].min() < frame[one].max()] or list(names)


def slope_steps(
    asked: Sequence[Any], predictor: Predictor, frame: pd.DataFrame, step: Any
) -> dict[Any, float]:
    """Choose how far a numeric predictor moves; one standard deviation by default."""
    steps: dict[Any, float] = {}
    for name in asked:
        given = step.get(name) if isinstance(step, Mapping) else step
        width = float(frame[name].std()) if given is None else float(given)
        if not (np.isfinite(width) and width > 0):
            if given is None:
                raise ValueError(
                    f"{name!r} has the same value in every row, and so no slope. Leave "
                    "it out, or give `step`."
                )
            raise ValueError(
                f"the step of {name!r} must be a positive number; got {given!r}."
            )
        steps[name] = width
    return steps


def slope_move(
    name: Any, rows: pd.DataFrame, width: float, frame: pd.DataFrame
) -> RowMove:
    """Move every row half a step to each side, within the range of a frame.

    Beyond it forests are flat, which tells nothing of slopes. Rows that lie beyond it
    move towards it only; a predictor that does not vary has no range.

    Examples
    --------
    >>> data = pd.DataFrame({"x": [0.0, 5.0, 10.0]})
    >>> move = slope_move("x", data, 4.0, data)
    >>> move.start["x"].tolist(), move.end["x"].tolist(), move.widths.tolist()
    ([0.0, 3.0, 8.0], [2.0, 7.0, 10.0], [2.0, 4.0, 2.0])
    """
    x = rows[name].to_numpy(dtype=np.float64)
    low, high = float(frame[name].min()), float(frame[name].max())
    start, end = x - width / 2, x + width / 2
    if low < high:
        start = np.maximum(start, np.minimum(low, x))
        end = np.minimum(end, np.maximum(high, x))
    went = end - start
    # A missing value stays where it is, and so does one that the step cannot move.
    return RowMove({name: start}, {name: end}, np.where(went > 0, went, width))


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
