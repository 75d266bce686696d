"""Put results together from learners that were evaluated."""

from dataclasses import replace as changed

import pandas as pd

from vstatkit.ensemble.bias_reduction import Centred
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.oob_scores import out_of_bag_scores
from vstatkit.ensemble.prediction import build_predictor
from vstatkit.ensemble.query import Query, build_reference, effect_values
from vstatkit.formula.parse import ParsedFormula
from vstatkit.inference.intervals import value_limit, value_support, value_tails
from vstatkit.inference.stopping import scale_share
from vstatkit.kernels.base import Evaluation, kind_of
from vstatkit.results.aiming import aimed
from vstatkit.results.continuation import Continuation, recipe_of, with_centre
from vstatkit.results.ensemble_results import EnsembleResults
from vstatkit.results.model_info import ModelInfo
from vstatkit.results.observations import with_errors
from vstatkit.sampling.design import SubsampleDesign


def assembled(
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
    return with_errors(aimed(results.with_variance(method)))


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
