"""Effects of predictors at the typical row: their settings, and their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.prediction import output_labels
from vstatkit.formula.column_summaries import Variables, as_variables
from vstatkit.formula.new_data_coding import Coding
from vstatkit.kernels.base import Evaluation
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.text import short_repr
from vstatkit.variance.leaf_influence import LeafInfluence

if TYPE_CHECKING:
    from vstatkit.ensemble.query import Query

QUANTILES = (0.1, 0.9)  # quantiles between which a numeric predictor moves

# Most numbers in the rows of the effects; further predictors have no effect.
MAX_ENTRIES = 4_000_000


@dataclass(frozen=True)
class EffectSettings:
    """Query points of the effects."""

    # start, end: (e, p): rows of the design matrix before and after the move
    start: Floats
    end: Floats
    frame: pd.DataFrame  # (e, 2): columns `from` and `to`, indexed by predictor
    left_out: tuple[str, ...]  # predictors without a finite effect
    n_beyond: int  # last predictors, which exceed the size of the table


def effect_settings(
    coding: Coding, frame: pd.DataFrame | Variables, typical: pd.DataFrame
) -> EffectSettings | None:
    """Build the settings of the effects; None if no predictor varies."""
    most_rows = max(1, MAX_ENTRIES // coding.columns.size)
    moves: list[tuple[str, Any, Any]] = []
    looked_at = 0
    variables = as_variables(frame)
    quantiles = variables.quantiles(coding.numeric_variables, QUANTILES)
    for name in coding.variables:
        steps = list_moves(variables, name, quantiles.get(name), coding.reference(name))
        if moves and len(moves) + len(steps) > most_rows:
            break
        moves += [(name, start, end) for start, end in steps]
        looked_at += 1
    if not moves:
        return None
    both = [(name, a) for name, a, _ in moves] + [(name, b) for name, _, b in moves]
    start, end = np.split(coding.raw_matrix(_set_predictors(typical, both)), 2)
    usable = np.flatnonzero(coding.usable_rows(start) & coding.usable_rows(end))
    table = pd.DataFrame(
        [[a, b] for _, a, b in moves],
        index=pd.Index([name for name, _, _ in moves], name="predictor"),
        columns=["from", "to"],
        dtype=object,
    )
    return EffectSettings(
        start=start[usable],
        end=end[usable],
        frame=table.iloc[usable],
        left_out=tuple(dict.fromkeys(np.delete(table.index, usable))),
        n_beyond=len(coding.variables) - looked_at,
    )


def list_moves(
    variables: Variables, name: str, ends: list[float] | None, reference: Any
) -> list[tuple[Any, Any]]:
    """List the changes of a predictor: between quantiles, or from the reference level.

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


def _set_predictors(
    typical: pd.DataFrame, settings: Sequence[tuple[str, Any]]
) -> pd.DataFrame:
    """Repeat the typical row, each time with one predictor set."""
    columns = {
        name: [column.iloc[0]] * len(settings) for name, column in typical.items()
    }
    for row, (name, value) in enumerate(settings):
        columns[name][row] = value
    kinds = typical.dtypes.to_dict()
    return pd.DataFrame(
        {name: pd.Series(values, dtype=kinds[name]) for name, values in columns.items()}
    )


@pickled_plainly
@dataclass(frozen=True)
class EffectValues:
    """Kernel differences between two settings of one predictor."""

    values: Floats  # (B, e): differences, learner by learner
    # (e, 2): the settings: columns `from` and `to`, indexed by predictor (and class)
    frame: pd.DataFrame
    left_out: tuple[str, ...] = ()  # predictors without a finite effect
    n_beyond: int = 0  # last predictors, which exceed the size of the table
    # Influence of units on the differences if the splits of the trees were fixed
    leaf_influence: LeafInfluence | None = None

    __repr__ = short_repr


def effect_values(
    query: "Query", evaluation: Evaluation, classes: tuple[Any, ...] | None
) -> EffectValues | None:
    """Extract the differences of the effects from the values."""
    settings = query.settings
    if settings is None:
        return None
    moves, frame = evaluation.values[:, len(query.labels) :], settings.frame
    labels = output_labels(frame.index, classes)
    if isinstance(labels, pd.MultiIndex):  # the settings are repeated for every class
        rows = np.repeat(np.arange(len(frame)), len(labels) // len(frame))
        frame = frame.iloc[rows].set_axis(labels.set_names(["predictor", "class"]))
    return EffectValues(moves, frame, settings.left_out, settings.n_beyond)
