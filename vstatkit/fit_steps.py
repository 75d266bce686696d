"""The path of all fits: read the data, grow the learners, assemble the results."""

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Ints
from vstatkit.classical import classical_kernel
from vstatkit.ensemble.bias_reduction import CentredEvaluation, Stack, centre_values
from vstatkit.ensemble.evaluation import Task, fit_learner
from vstatkit.ensemble.growth import FIRST_B, grow
from vstatkit.ensemble.memory import available_bytes, check_memory, plan_memory
from vstatkit.ensemble.oob_scores import score_rows
from vstatkit.ensemble.prediction import build_predictor
from vstatkit.ensemble.query import Query, build_reference
from vstatkit.ensemble.retention import trim_to_budget, warn_of_dropped
from vstatkit.ensemble.sampling_plan import SamplingPlan
from vstatkit.ensemble.typical_row_effects import effect_values
from vstatkit.exceptions import VstatkitWarning, warn_caller
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.data_warnings import warn_if_constant
from vstatkit.formula.parse import ParsedFormula, check_order, parse
from vstatkit.formula.streaming.parse import parse_source
from vstatkit.formula.weights_and_groups import (
    check_column,
    column_name,
    observation_weights,
    own_column,
    take_column,
)
from vstatkit.inference.intervals import (
    prediction_support,
    prediction_tails,
    value_limit,
)
from vstatkit.inference.stopping import scale_share
from vstatkit.kernels.base import ArrayKernel, Evaluation, PredictiveModel, kind_of
from vstatkit.kernels.registry import kernel_name
from vstatkit.kernels.user_defined import FunctionKernel, name_values
from vstatkit.results.bias import measure_remaining_bias
from vstatkit.results.continuation import Continuation, with_centre
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_description import Growth, ModelInfo
from vstatkit.results.prediction_results import with_residuals
from vstatkit.sampling.design import (
    CompleteDesign,
    SubsampleDesign,
    check_units,
    unit_codes,
)
from vstatkit.sources.recognition import find_source
from vstatkit.storage.checkpoint import Checkpoint, open_checkpoint
from vstatkit.validation import check_workers


class Observations(NamedTuple):
    """What was observed: the data of a fit after the formula was applied."""

    parsed: ParsedFormula  # response, design matrix and coding
    # (n_rows,): unit of every row; None if every row is its own unit
    unit_of_row: Ints | None
    units: pd.Index  # labels of the units
    weights: Floats | None  # (n_rows,): weight of every row
    # The columns that `groups` and `weights` are, "given" if they have no name
    groups_name: str | None
    weights_name: str | None
    weights_in_column: bool  # whether `weights` are a column of the data, not an array


def read_fit_data(
    formula: str,
    data: DataLike,
    *,
    groups: Any,
    weights: Any,
    n_jobs: int | None,
    **options: Any,
) -> Observations:
    """Apply the formula, and read `groups` and `weights`; `options` are of `parse`."""
    check_workers(n_jobs)
    check_order(formula, data)
    arguments = {"groups": groups, "weights": weights}
    names = {key: value for key, value in arguments.items() if isinstance(value, str)}
    source = find_source(data)
    if source is None:
        frame = as_frame(data)
        parsed = parse(formula, frame, not_in_dot=tuple(names.values()), **options)
        columns, index = parsed.data, frame.index
    else:
        for key, name in names.items():
            check_column(key, name, pd.Index(source.columns))
        named = tuple(names.values())
        options["n_jobs"] = n_jobs
        parsed, beside = parse_source(formula, source, beside=named, **options)
        columns = beside.to_frame()
        index = pd.RangeIndex(len(parsed.y) + parsed.n_dropped)
    clusters, weight_column = (
        take_column(key, value, columns, parsed.rows, index)
        for key, value in arguments.items()
    )
    check_units(len(parsed.y))
    warn_if_constant(parsed)
    unit_of_row, units = unit_codes(clusters, parsed.data.index)
    return Observations(
        parsed=parsed,
        unit_of_row=unit_of_row,
        units=units,
        weights=observation_weights(weight_column),
        groups_name=column_name(groups),
        weights_name=column_name(weights, weight_column, columns),
        weights_in_column=own_column(weights, weight_column, columns) is not None,
    )


class GrowthOptions(NamedTuple):
    """How learners are grown."""

    # When "auto" stops; see `fit`
    tol: float
    max_B: int
    atol: float | None
    n_jobs: int | None  # workers
    progress: bool | None  # whether to show a progress bar
    checkpoint: Checkpoint | None = None  # where learners are saved as they are grown
    memory_limit: int | None = None  # bytes; None for the available memory
    # Grows the stacked ensemble that estimates come from; None for none
    stack: Stack | None = None


def grow_results(
    task: Task,
    plan: SamplingPlan,
    query: Query,
    options: GrowthOptions,
    *,
    info: ModelInfo,
    units: pd.Index,
    parsed: ParsedFormula | None = None,
) -> EnsembleResults:
    """Grow the learners, and assemble the results: the path of all fits."""
    work: dict[str, Any] = {"n_jobs": options.n_jobs, "progress": options.progress}
    most = check_fit_memory(task, plan.size, options)
    with open_checkpoint(options.checkpoint) as keeper:
        design, evaluation = grow(
            task,
            plan.size,
            method=plan.variance,
            n_query=len(query.labels),
            tol=options.tol,
            atol=options.atol,
            max_B=most,
            keeper=keeper,
            **work,
        )
    if len(evaluation.values) >= most < options.max_B:
        limited = options.memory_limit is not None
        allowed = "`memory_limit` leaves room" if limited else "there is memory"
        warn_caller(
            f"the ensemble stopped at {most} learners, because {allowed} for no more; "
            "`max_B` allows them. Use a smaller `k`, fewer query points (`at`) or "
            "larger leaves (`min_samples_leaf`).",
            VstatkitWarning,
        )
    evaluation = trim_to_budget(evaluation, task.keep_bytes, design)
    sized = changed(task, design=design)
    centred = centre_values(sized, options.stack, evaluation, len(query.labels), **work)
    growth = Growth()
    if plan.size == "auto":
        growth = Growth(options.tol, options.max_B, options.atol)
    results = assemble_results(
        task,
        design,
        centred.evaluation,
        query,
        info=changed(info, growth=growth),
        units=units,
        method=plan.variance,
        parsed=parsed,
        centred=centred,
        **work,
    )
    if results.predictor is not None:
        learners, n_kept = results.predictor.learners, results.predictor.n_kept
        warn_of_dropped(learners, n_kept, results.B, task.keep_bytes)
    return results


def check_fit_memory(
    task: Task, size: int | Literal["auto", "complete"], options: GrowthOptions
) -> int:
    """Check that the memory suffices, and return the most learners that fit into it.

    With "auto" it must suffice for the first learners, otherwise for all of them.
    """
    plan = plan_memory(task, options.n_jobs, options.stack or ())
    limit, max_B = options.memory_limit, options.max_B
    X = getattr(task.kernel, "X", None)
    data_bytes = 0 if X is None or isinstance(X, np.memmap) else int(X.nbytes)
    if size != "auto":
        design = task.design
        B = design.n_subsamples if isinstance(design, CompleteDesign) else int(size)
        check_memory(plan.needs(B), limit, held=data_bytes)
        return max_B
    first = task.design.round_size(FIRST_B, at_most=max_B)
    check_memory(plan.needs(first), limit, held=data_bytes)
    if limit is None:
        free = available_bytes(sum(plan.needs(max_B).values()))
    else:
        free = limit - data_bytes
    return max_B if free is None else min(max_B, max(first, plan.most(free)))


def assemble_results(
    task: Task,
    design: SubsampleDesign,
    evaluation: Evaluation,
    query: Query,
    *,
    info: ModelInfo,
    units: pd.Index,
    method: str,
    n_jobs: int | None = None,
    progress: bool | None = None,
    parsed: ParsedFormula | None = None,
    centred: CentredEvaluation | None = None,
) -> EnsembleResults:
    """Assemble the results of a fit, from the evaluation of a task.

    The evaluation has values at the query points, then the differences behind the
    effects. `design` has the final number of learners, `parsed` the formula and data
    for effects, predictions and scores, and `centred` the stacked ensemble that
    estimates come from, if they do. `n_jobs` and `progress` are for later work.
    """
    kernel, recipe = task.kernel, Continuation(task, n_jobs=n_jobs, progress=progress)
    results = EnsembleResults(
        design=design,
        values=evaluation.values[:, : len(query.labels)],
        labels=query.labels,
        variance=method,
        info=changed(info, scale_share=scale_share(kernel)),
        units=units,
        limit=value_limit(kernel),
        kind=kind_of(kernel),
        recipe=recipe,
    )
    if isinstance(kernel, PredictiveModel) and not kernel.coefficients:
        support, tails = prediction_support(kernel, design.n), prediction_tails(kernel)
        results = changed(results, support=support, tails=tails)
    if parsed is not None:
        frame = parsed.data if isinstance(parsed.data, pd.DataFrame) else None
        results = changed(
            results,
            effect_values=effect_values(query, evaluation, parsed.classes),
            predictor=build_predictor(kernel, evaluation, parsed, n_jobs),
            scores=score_rows(parsed.y, evaluation.oob, kernel),
            reference=build_reference(kernel, parsed, results.seed),
            recipe=changed(recipe, oob=evaluation.oob, y=parsed.y, data=frame),
        )
    if centred is not None:
        results = with_centre(results, centred)
    return with_residuals(measure_remaining_bias(results.with_variance(method)))


def probe_function(task: Task, kernel: FunctionKernel) -> tuple[Task, Query]:
    """Call the function once, for the names and the number of its values."""
    names, _ = name_values(fit_learner(changed(task, kernel=kernel), 0))
    known = changed(kernel, names=tuple(names))
    return changed(task, kernel=known), Query(pd.Index(names), None, None)


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
        query = changed(query, labels=pd.Index([kernel_name(h)]))
    return task, query
