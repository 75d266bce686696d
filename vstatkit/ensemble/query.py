"""Query points of a fit, and the settings of its effects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints
from vstatkit.classical import classical_kernel
from vstatkit.ensemble.evaluation import Task, fit_learner
from vstatkit.ensemble.prediction import output_labels
from vstatkit.exceptions import FormulaError
from vstatkit.formula.column_summaries import Variables, as_variables
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.new_data_coding import Coding
from vstatkit.formula.parse import ParsedFormula
from vstatkit.kernels.base import AnyKernel, ArrayKernel, Evaluation, PredictiveModel
from vstatkit.kernels.registry import kernel_name
from vstatkit.kernels.user_defined import FunctionKernel, name_values
from vstatkit.pandas_pickling import pickled_plainly
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.text import short_repr
from vstatkit.variance.higher_orders import reference_rows

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

    __repr__ = short_repr


@dataclass(frozen=True)
class Query:
    """Where the kernel is evaluated."""

    labels: pd.Index  # names of the values at the query points
    # Query points, then settings of the effects; None if values are no predictions
    rows: Floats | None
    settings: EffectSettings | None  # settings of the effects


def build_query(kernel: AnyKernel, parsed: ParsedFormula, at: DataLike | None) -> Query:
    """Code the query points, and the settings of the effects after them."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        if at is not None:
            raise ValueError(
                "`at` is for kernels that predict; the estimates of this kernel are "
                "coefficients or statistics. Use get_prediction(at) on the results."
            )
        return Query(pd.Index(parsed.names), None, None)
    if at is None:
        points = parsed.typical_row
        rows = parsed.coding.raw_matrix(points)
        if not parsed.coding.usable_rows(rows).all():
            raise FormulaError(
                "the formula is not finite at the typical row (medians, most frequent "
                f"levels): {points.iloc[0].to_dict()}. Give query points as `at`."
            )
    else:
        points = as_frame(at)
        rows = parsed.coding.matrix(points)
    labels = output_labels(points.index, parsed.classes)
    settings = effect_settings(parsed.coding, parsed.frame, parsed.typical_row)
    if settings is not None:
        rows = np.concatenate([rows, settings.start, settings.end])
    return Query(labels, rows, settings)


def build_reference(
    kernel: AnyKernel, parsed: ParsedFormula, seed: int
) -> Floats | None:
    """Draw the rows on which the Hoeffding correction compares learners."""
    if not isinstance(kernel, PredictiveModel) or kernel.coefficients:
        return None
    return reference_rows(parsed.X, seed, kernel.n_outputs)


def probe_function(task: Task, kernel: FunctionKernel) -> tuple[Task, Query]:
    """Call the function once, for the names and the number of its values."""
    names, _ = name_values(fit_learner(replace(task, kernel=kernel), 0))
    known = replace(kernel, names=tuple(names))
    return replace(task, kernel=known), Query(pd.Index(names), None, None)


def statistic_task(
    h: str | Callable[..., Any],
    table: Any,
    design: SubsampleDesign,
    unit_of_row: Ints | None,
) -> tuple[Task, Query]:
    """Build the task of a statistic, and the labels of its values."""
    if isinstance(h, str):
        named = ArrayKernel(*classical_kernel(h, table, design.k))
        task = Task(named, design, None, unit_of_row, keep=False)
        return task, Query(pd.Index([h]), None, None)
    if not callable(h):
        raise TypeError(
            f"`h` must be a function or the name of a kernel; got {type(h).__name__}."
        )
    kernel = FunctionKernel(h, (table,))
    task = Task(kernel, design, None, unit_of_row, keep=False)
    task, query = probe_function(task, kernel)
    if list(query.labels) == ["statistic"]:
        query = replace(query, labels=pd.Index([kernel_name(h)]))
    return task, query


def effect_values(
    query: Query, evaluation: Evaluation, classes: tuple[Any, ...] | None
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
