"""The path that all fits share: choose the design, grow learners, make results."""

import warnings
from dataclasses import replace as changed
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from vstatkit._typing import Seed
from vstatkit.ensemble.auto_design import (
    AUTO,
    Wish,
    choose,
    feasible_size,
    whole_shards,
)
from vstatkit.ensemble.bias_reduction import Centred, Mix, centred, larger
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.growth import FIRST_B, MAX_B, grow
from vstatkit.ensemble.memory import check_memory, plan_of, room
from vstatkit.ensemble.oob_scores import out_of_bag_scores
from vstatkit.ensemble.prediction import build_predictor
from vstatkit.ensemble.query import Query, build_reference, effect_values
from vstatkit.ensemble.retention import warn_of_let_go, within_budget
from vstatkit.exceptions import VstatkitWarning
from vstatkit.formula.parse import ParsedFormula
from vstatkit.inference.intervals import value_limit, value_support, value_tails
from vstatkit.inference.stopping import TOL, scale_share
from vstatkit.kernels.base import Evaluation, KernelKind, kind_of
from vstatkit.results.bias import aimed
from vstatkit.results.continuation import Continuation, recipe_of, with_centre
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import Growth, ModelInfo
from vstatkit.results.prediction_results import with_residuals
from vstatkit.sampling.complete import CompleteDesign
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.registry import build_design, ensemble_size
from vstatkit.sampling.shards import ShardsDesign
from vstatkit.sampling.streams import resolve_seed
from vstatkit.storage.checkpoint import Checkpoint, kept_learners
from vstatkit.variance.registry import large_k_warning, resolve_for_design


class Scheme(NamedTuple):
    """How an ensemble is drawn, and its variance estimated.

    Attributes
    ----------
    design : SubsampleDesign
        Which units each learner sees.
    size : int, "auto" or "complete"
        Number of learners.
    method : str
        Name of the variance estimator.
    """

    design: SubsampleDesign
    size: int | Literal["auto", "complete"]
    method: str


class Drawing(NamedTuple):
    """How subsamples are to be drawn, as it was asked for; see `fit`.

    `aims` at E[y|x]: they are larger then, unless `k` says otherwise.
    """

    design: str
    k: int | float | None
    B: int | str
    replace: bool
    rng: Seed
    variance: str
    aims: bool = False


def settle(
    drawing: Drawing, n: int, options: dict[str, Any], kind: KernelKind, max_B: int
) -> Scheme:
    """Settle how n units are drawn, before anything is evaluated.

    Parameters
    ----------
    drawing : Drawing
        What was asked for.
    n : int
        Units.
    options : dict
        Options of the design.
    kind : KernelKind
        How the kernel depends on its observations.
    max_B : int
        Most learners that "auto" may grow.
    """
    B = ensemble_size(drawing.B)
    wish = Wish(drawing.design, drawing.variance, drawing.k, B, max_B)
    asked = options
    name, options = choose(wish, n, kind, options)
    B = feasible_size(wish, n, kind, name, asked)
    chosen = name == ShardsDesign.name and drawing.design == AUTO
    design, size = build_design(
        name,
        n,
        drawing.k,
        "auto" if chosen else B,
        replace=drawing.replace,
        seed=resolve_seed(drawing.rng),
        options=options,
    )
    if isinstance(design, ShardsDesign) and chosen:
        size = whole_shards(design, B) if isinstance(B, int) else B
    if drawing.aims and drawing.k is None:
        design = larger(design)
    method = resolve_for_design(drawing.variance, design, kind)
    warning = large_k_warning(method, design, kind)
    if warning:
        warnings.warn(warning, VstatkitWarning, stacklevel=3)
    return Scheme(design, size, method)


class Growing(NamedTuple):
    """How learners are grown.

    Attributes
    ----------
    growth : Growth
        When there are enough, if their number is not given.
    n_jobs : int or None
        Workers.
    progress : bool or None
        Whether to show a progress bar.
    checkpoint : Checkpoint or None
        Where learners are kept as they are grown.
    memory_limit : int or None
        Bytes that may be used; None for what the machine has left.
    mix : Mix or None
        Grows other learners besides, whose means are the estimates; None for none.
    """

    growth: Growth
    n_jobs: int | None
    progress: bool | None
    checkpoint: Checkpoint | None = None
    memory_limit: int | None = None
    mix: Mix | None = None


def grow_results(
    task: Task,
    scheme: Scheme,
    query: Query,
    *,
    info: ModelInfo,
    units: pd.Index,
    growing: Growing,
    parsed: ParsedFormula | None = None,
) -> EnsembleResults:
    """Grow the learners, and put the results together: the path of all fits."""
    growth, n_jobs = growing.growth, growing.n_jobs
    max_B = MAX_B if growth.max_B is None else growth.max_B
    most = room_for(task, scheme.size, growing, max_B)
    with kept_learners(growing.checkpoint) as keeper:
        design, evaluation = grow(
            task,
            scheme.size,
            method=scheme.method,
            n_query=len(query.labels),
            tol=TOL if growth.tol is None else growth.tol,
            atol=growth.atol,
            max_B=most,
            n_jobs=n_jobs,
            progress=growing.progress,
            keeper=keeper,
        )
    if len(evaluation.values) >= most < max_B:
        _warn_of_memory(most, growing.memory_limit)
    evaluation = within_budget(evaluation, task.keep_bytes, design)
    found = centred(
        changed(task, design=design),
        growing.mix,
        evaluation,
        len(query.labels),
        n_jobs=n_jobs,
        progress=growing.progress,
    )
    asked = growth if scheme.size == "auto" else Growth()
    results = assemble_results(
        task,
        design,
        found.evaluation,
        query,
        info=changed(info, growth=asked),
        units=units,
        method=scheme.method,
        n_jobs=n_jobs,
        progress=growing.progress,
        parsed=parsed,
        found=found,
    )
    if results.predictor is not None:
        learners, n_kept = results.predictor.learners, results.predictor.n_kept
        warn_of_let_go(learners, n_kept, results.B, task.keep_bytes)
    return results


def room_for(
    task: Task,
    size: int | Literal["auto", "complete"],
    growing: Growing,
    max_B: int,
) -> int:
    """Check that there is memory, and say how far an ensemble may grow by itself.

    One that grows by itself must have room for its first learners; others for all.
    """
    plan = plan_of(task, growing.n_jobs, growing.mix or ())
    limit = growing.memory_limit
    X = getattr(task.kernel, "X", None)
    held = 0 if X is None or isinstance(X, np.memmap) else int(X.nbytes)
    if size != "auto":
        design = task.design
        B = design.n_subsamples if isinstance(design, CompleteDesign) else int(size)
        check_memory(plan.needs(B), limit, held=held)
        return max_B
    first = task.design.rounded(FIRST_B, at_most=max_B)
    check_memory(plan.needs(first), limit, held=held)
    there = room(sum(plan.needs(max_B).values())) if limit is None else limit - held
    return max_B if there is None else min(max_B, max(first, plan.most(there)))


def _warn_of_memory(most: int, limit: int | None) -> None:
    allowed = "there is memory" if limit is None else "`memory_limit` leaves room"
    warnings.warn(
        f"the ensemble stopped at {most} learners, because {allowed} for no more; "
        "`max_B` allows them. Use a smaller `k`, fewer query points (`at`) or larger "
        "leaves (`min_samples_leaf`).",
        VstatkitWarning,
        stacklevel=4,
    )


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
    found: Centred | None = None,
) -> EnsembleResults:
    """Put results together.

    Parameters
    ----------
    task : Task
        What was evaluated.
    design : SubsampleDesign
        How subsamples were drawn, with the number of learners as it came out.
    evaluation : Evaluation
        Values at the query points, then the differences behind the effects.
    query : Query
        Where they were evaluated.
    info : ModelInfo
        What the summary's header says.
    units : Index
        Labels of the units.
    method : str
        Name of the variance estimator.
    n_jobs, progress
        Of later work.
    parsed : ParsedFormula, optional
        The formula and its data, for what it gives: effects, predictions, scores.
    found : Centred, optional
        Where estimates are those of other learners: how the evaluation was moved.
    """
    kernel = task.kernel
    results = EnsembleResults(
        design=design,
        values=evaluation.values[:, : len(query.labels)],
        labels=query.labels,
        variance=method,
        info=changed(info, scale_share=scale_share(kernel)),
        units=units,
        limit=value_limit(kernel),
        support=value_support(kernel, design.n),
        tails=value_tails(kernel),
        kind=kind_of(kernel),
        recipe=Continuation(task, n_jobs=n_jobs, progress=progress),
    )
    if parsed is not None:
        results = _with_learners(results, evaluation, query, parsed)
    if found is not None:
        results = with_centre(results, found)
    return with_residuals(aimed(results.with_variance(method)))


def _with_learners(
    results: EnsembleResults,
    evaluation: Evaluation,
    query: Query,
    parsed: ParsedFormula,
) -> EnsembleResults:
    """Add what a formula gives: effects, predictions and their scores."""
    recipe = recipe_of(results)
    kernel = recipe.task.kernel
    held = parsed.data if isinstance(parsed.data, pd.DataFrame) else None
    return changed(
        results,
        effect_values=effect_values(query, evaluation, parsed.classes),
        predictor=build_predictor(kernel, evaluation, parsed, recipe.n_jobs),
        scores=out_of_bag_scores(kernel, evaluation, parsed),
        reference=build_reference(kernel, parsed, results.seed),
        recipe=changed(recipe, oob=evaluation.oob, y=parsed.y, data=held),
    )
