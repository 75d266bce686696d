"""The path that all fits share: settle the scheme, grow, put results together."""

from dataclasses import replace as changed
from typing import Any, Literal, NamedTuple

import pandas as pd

from vstatkit._typing import Seed
from vstatkit.ensemble.evaluate import Task
from vstatkit.ensemble.growth import MAX_B, grow
from vstatkit.ensemble.keeping import within_budget
from vstatkit.ensemble.prediction import build_predictor
from vstatkit.ensemble.query import Query, build_reference, effect_values
from vstatkit.ensemble.scores import out_of_bag_scores
from vstatkit.formula.parsed import ParsedFormula
from vstatkit.inference.intervals import value_limit, value_support
from vstatkit.inference.precision import TOL
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.kernels.kind import KernelKind
from vstatkit.kernels.protocol import kind_of
from vstatkit.results.continuation import Continuation, recipe_of
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import Growth, ModelInfo
from vstatkit.sampling.design import SubsampleDesign
from vstatkit.sampling.registry import build_design
from vstatkit.sampling.sizes import ensemble_size
from vstatkit.sampling.streams import resolve_seed
from vstatkit.variance.registry import resolved


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
    """How subsamples are to be drawn, as it was asked for; see `fit`."""

    design: str
    k: int | float | None
    B: int | str
    replace: bool
    rng: Seed
    variance: str


def settle(
    drawing: Drawing, n: int, options: dict[str, Any], kind: KernelKind
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
    """
    design, size = build_design(
        drawing.design,
        n,
        drawing.k,
        ensemble_size(drawing.B),
        replace=drawing.replace,
        seed=resolve_seed(drawing.rng),
        options=options,
    )
    return Scheme(design, size, resolved(drawing.variance, design, kind))


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
    """

    growth: Growth
    n_jobs: int | None
    progress: bool | None


def evaluated(
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
    kernel, (growth, n_jobs, progress) = task.kernel, growing
    design, evaluation = grow(
        task,
        scheme.size,
        method=scheme.method,
        n_query=len(query.labels),
        tol=TOL if growth.tol is None else growth.tol,
        atol=growth.atol,
        max_B=MAX_B if growth.max_B is None else growth.max_B,
        n_jobs=n_jobs,
        progress=progress,
    )
    evaluation = within_budget(evaluation, task.keep_bytes, design)
    asked = growth if scheme.size == "auto" else Growth()
    results = EnsembleResults(
        design=design,
        values=evaluation.values[:, : len(query.labels)],
        labels=query.labels,
        variance=scheme.method,
        info=changed(info, growth=asked),
        units=units,
        limit=value_limit(kernel),
        support=value_support(kernel, info.nobs),
        kind=kind_of(kernel),
        recipe=Continuation(task, n_jobs=n_jobs, progress=progress),
    )
    if parsed is not None:
        results = _with_learners(results, evaluation, query, parsed)
    return results.with_variance(scheme.method)


def _with_learners(
    results: EnsembleResults,
    evaluation: Evaluation,
    query: Query,
    parsed: ParsedFormula,
) -> EnsembleResults:
    """Add what a formula gives: effects, predictions and their scores."""
    recipe = recipe_of(results)
    kernel = recipe.task.kernel
    return changed(
        results,
        effect_values=effect_values(query, evaluation, parsed.classes),
        predictor=build_predictor(kernel, evaluation, parsed, recipe.n_jobs),
        scores=out_of_bag_scores(kernel, evaluation, parsed),
        reference=build_reference(kernel, parsed, results.seed),
        recipe=changed(recipe, oob=evaluation.oob, y=parsed.y),
    )
