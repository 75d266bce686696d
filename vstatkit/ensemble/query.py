"""Where a kernel is evaluated: query points, then the moves behind the effects."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints
from vstatkit.classical import classical_kernel
from vstatkit.ensemble.effects import Settings, effect_frame, effect_settings
from vstatkit.ensemble.evaluate import Task, evaluate
from vstatkit.ensemble.prediction import output_labels
from vstatkit.exceptions import FormulaError
from vstatkit.formula.frames import as_frame
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.kernels.base import AnyKernel, ArrayKernel, Evaluation, Predictive
from vstatkit.kernels.function import FunctionKernel, name_values
from vstatkit.kernels.registry import kernel_name
from vstatkit.pickling import pickled_plainly
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.showing import short_repr
from vstatkit.variance.hoeffding import reference_rows


@pickled_plainly
@dataclass(frozen=True)
class EffectValues:
    """Kernel differences between two settings of one predictor.

    Attributes
    ----------
    values : ndarray of shape (B, e)
        Differences, learner by learner.
    frame : DataFrame of shape (e, 2)
        The settings: columns `from` and `to`, indexed by predictor (and class).
    left_out : tuple of str
        Predictors whose move is not finite when the others are typical.
    n_beyond : int
        Number of predictors, the last ones, for which the table has no room.
    """

    values: Floats
    frame: pd.DataFrame
    left_out: tuple[str, ...] = ()
    n_beyond: int = 0

    __repr__ = short_repr


@dataclass(frozen=True)
class Query:
    """Where the kernel is evaluated.

    Attributes
    ----------
    labels : Index
        Names of the values at the query points.
    rows : ndarray or None
        Query points, then the settings of the effects; None for kernels whose
        value is not a prediction.
    settings : Settings or None
        Settings of the effects.
    """

    labels: pd.Index
    rows: Floats | None
    settings: Settings | None


def build_query(kernel: AnyKernel, parsed: ParsedFormula, at: DataLike | None) -> Query:
    """Code the query points, and the settings of the effects after them."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        if at is not None:
            raise ValueError(
                "`at` is for kernels that predict; the estimates of this kernel are "
                "coefficients or statistics. Use get_prediction(at) on the results."
            )
        return Query(pd.Index(parsed.names), None, None)
    if at is None:
        points, rows = parsed.typical, _typical_rows(parsed)
    else:
        points = as_frame(at)
        rows = parsed.coding.matrix(points)
    labels = output_labels(points.index, parsed.classes)
    settings = effect_settings(parsed.coding, parsed.frame, parsed.typical)
    if settings is not None:
        rows = np.concatenate([rows, settings.start, settings.end])
    return Query(labels, rows, settings)


def _typical_rows(parsed: ParsedFormula) -> Floats:
    rows = parsed.coding.raw_matrix(parsed.typical)
    if not parsed.coding.usable(rows).all():
        raise FormulaError(
            "the formula is not finite at the typical row (medians, most frequent "
            f"levels): {parsed.typical.iloc[0].to_dict()}. Give query points as `at`."
        )
    return rows


def build_reference(
    kernel: AnyKernel, parsed: ParsedFormula, seed: int
) -> Floats | None:
    """Draw the rows on which learners are compared beyond the first order."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return reference_rows(parsed.X, seed, kernel.n_outputs)


def probe(task: Task, kernel: FunctionKernel) -> tuple[Task, Query]:
    """Call the function once, to learn the names and number of its values."""
    one = changed(task, kernel=kernel, keep=True)
    first = evaluate(one, 0, 1, n_jobs=1, progress=False)
    names, _ = name_values(first.learners[0])
    known = changed(kernel, names=tuple(names))
    return changed(task, kernel=known), Query(pd.Index(names), None, None)


def statistic_task(
    h: str | Callable[..., Any],
    table: Any,
    design: SubsampleDesign,
    members: Ints | None,
) -> tuple[Task, Query]:
    """Build the task of a statistic, and the labels of its values."""
    if isinstance(h, str):
        named = ArrayKernel(*classical_kernel(h, table, design.k))
        task = Task(named, design, None, members, keep=False)
        return task, Query(pd.Index([h]), None, None)
    if not callable(h):
        raise TypeError(
            f"`h` must be a function or the name of a kernel; got {type(h).__name__}."
        )
    kernel = FunctionKernel(h, (table,))
    task, query = probe(Task(kernel, design, None, members, keep=False), kernel)
    if list(query.labels) == ["statistic"]:
        query = changed(query, labels=pd.Index([kernel_name(h)]))
    return task, query


def effect_values(
    query: Query, evaluation: Evaluation, classes: tuple[Any, ...] | None
) -> EffectValues | None:
    """Take the differences behind the effects out of the values."""
    if query.settings is None:
        return None
    moves = evaluation.values[:, len(query.labels) :]
    frame = effect_frame(query.settings, classes)
    settings = query.settings
    return EffectValues(moves, frame, settings.left_out, settings.n_beyond)
