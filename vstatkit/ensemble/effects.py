"""Settings of the effects table: move one predictor, keep the others typical."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import output_labels
from vstatkit.formula.coding import Coding
from vstatkit.formula.variables import Variables, variables_of

QUANTILES = (0.1, 0.9)
"""Quantiles between which a numeric predictor moves."""


MAX_ENTRIES = 4_000_000
"""Most numbers in the rows before the moves; further predictors are not moved."""


@dataclass(frozen=True)
class Settings:
    """Query points of the effects.

    Attributes
    ----------
    start, end : ndarray of shape (e, p)
        Rows of the design matrix before and after the move.
    frame : DataFrame of shape (e, 2)
        Columns `from` and `to`, indexed by predictor.
    left_out : tuple of str
        Predictors whose move is not finite when the others are typical.
    n_beyond : int
        Number of predictors, the last ones, for which the table has no room.
    """

    start: Floats
    end: Floats
    frame: pd.DataFrame
    left_out: tuple[str, ...]
    n_beyond: int


def effect_settings(
    coding: Coding,
    frame: pd.DataFrame | Variables,
    typical: pd.DataFrame | None = None,
) -> Settings | None:
    """List the moves; None when no predictor of the formula varies.

    Parameters
    ----------
    coding : Coding
        Codes rows of the data.
    frame : DataFrame or Variables
        The variables of the right-hand side.
    typical : DataFrame, optional
        The typical row, if it is known already.
    """
    room = max(1, MAX_ENTRIES // coding.columns.size)
    moves: list[tuple[str, Any, Any]] = []
    looked_at = 0
    variables = variables_of(frame)
    quantiles = variables.quantiles(coding.numeric, QUANTILES)
    for name in coding.variables:
        found = moves_of(variables, name, quantiles.get(name), coding.reference(name))
        if moves and len(moves) + len(found) > room:
            break
        moves += [(name, start, end) for start, end in found]
        looked_at += 1
    if not moves:
        return None
    typical = coding.typical(frame) if typical is None else typical
    both = [(name, a) for name, a, _ in moves] + [(name, b) for name, _, b in moves]
    start, end = np.split(coding.raw_matrix(_moved(typical, both)), 2)
    usable = np.flatnonzero(coding.usable(start) & coding.usable(end))
    table = pd.DataFrame(
        [[a, b] for _, a, b in moves],
        index=pd.Index([name for name, _, _ in moves], name="predictor"),
        columns=["from", "to"],
        dtype=object,
    )
    return Settings(
        start=start[usable],
        end=end[usable],
        frame=table.iloc[usable],
        left_out=tuple(dict.fromkeys(np.delete(table.index, usable))),
        n_beyond=len(coding.variables) - looked_at,
    )


def moves_of(
    variables: Variables, name: str, ends: list[float] | None, reference: Any = None
) -> list[tuple[Any, Any]]:
    """List the moves of a predictor: between quantiles, or from the reference level.

    That is the first level, unless the formula names another one that occurs, as in
    `C(x, Treatment("south"))` or `C(x, levels=["south", "north"])`.
    """
    if ends is None:
        levels = variables.levels(name)
        start = levels[levels.index(reference) if reference in levels else 0]
        return [(start, level) for level in levels if level != start]
    low, high = ends
    if low == high:  # a rare value outside the quantiles, such as a dummy's one
        low, high = variables.extremes([name])[name]
    return [(low, high)] if low < high else []


def _moved(typical: pd.DataFrame, settings: Sequence[tuple[str, Any]]) -> pd.DataFrame:
    """Repeat the typical row, each time with one predictor set."""
    columns = {
        name: [column.iloc[0]] * len(settings) for name, column in typical.items()
    }
    for row, (name, value) in enumerate(settings):
        columns[name][row] = value
    kinds = typical.dtypes.to_dict()
    return pd.DataFrame(
        {name: _of_kind(one, kinds[name]) for name, one in columns.items()}
    )


def _of_kind(values: list[Any], kind: Any) -> Any:
    if isinstance(kind, np.dtype) and kind.kind == "f":
        return np.array(values, dtype=kind)
    return pd.Series(values, dtype=kind)


def effect_frame(settings: Settings, classes: tuple[Any, ...] | None) -> pd.DataFrame:
    """Repeat the settings for every class where there are several columns."""
    frame = settings.frame
    labels = output_labels(frame.index, classes)
    repeats = len(labels) // len(frame)
    repeated = frame.iloc[np.repeat(np.arange(len(frame)), repeats)]
    index = (
        labels.set_names(["predictor", "class"])
        if isinstance(labels, pd.MultiIndex)
        else labels
    )
    return repeated.set_axis(index)
