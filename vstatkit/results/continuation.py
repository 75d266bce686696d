"""Continue a fit: grow the learners that are missing, and only those."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.bias_reduction import (
    Centre,
    CentredEvaluation,
    centre_predictor,
    centre_values,
    undo_centring,
)
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.growth import MAX_B, grow
from vstatkit.ensemble.oob_scores import score_rows
from vstatkit.ensemble.retention import trim_to_budget
from vstatkit.inference.stopping import TOL
from vstatkit.kernels.base import Evaluation, OutOfBag
from vstatkit.results.bias import measure_remaining_bias
from vstatkit.results.model_description import Growth
from vstatkit.sampling.registry import ensemble_size
from vstatkit.text import short_repr

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


@dataclass(frozen=True)
class Continuation:
    """Data and settings to grow more learners."""

    task: Task  # kernel with the data, design and query points
    oob: OutOfBag | None = None  # out-of-bag sums so far
    # (n_rows,): the response that out-of-bag predictions are scored against
    y: Floats | None = None
    n_jobs: int | None = None  # workers
    progress: bool | None = None  # whether to show a progress bar
    # The rows that were used, with all columns; None if not available
    data: pd.DataFrame | None = None
    # Learners that the estimates come from, and the shift of the values, if these are
    # not the learners of the standard errors
    centre: Centre | None = None

    __repr__ = short_repr


def recipe_of(results: "EnsembleResults") -> Continuation:
    """Return the recipe of results, or raise an error without one."""
    if results.recipe is not None:
        return results.recipe
    if results.design.name == "given":
        reason = "their learners were fitted elsewhere"
    else:
        reason = (
            "they were loaded from a file or a pickle, which have no training data. "
            f"Fit again with the same data, rng={results.seed} and a larger `B`: the "
            f"first {results.B} learners will be the same"
        )
    raise ValueError(f"these results cannot grow more learners: {reason}.")


def check_size(
    results: "EnsembleResults", B: int | str, max_B: int
) -> int | Literal["auto"]:
    """Check that the ensemble can grow to B learners in total."""
    design, present = results.design, results.B
    size = ensemble_size(B)
    if size == "complete" or design.complete:
        raise ValueError(
            "a complete ensemble has every subsample once, so it cannot grow, and "
            "other ensembles cannot become complete. Fit with B='complete'."
        )
    total, name = (max_B, "max_B") if size == "auto" else (size, "B")
    if total <= present:
        raise ValueError(
            f"`{name}` is the total number of learners and must exceed the present "
            f"{present}; got {total}."
        )
    obstacle = design.obstacle(present, total)
    if obstacle is not None:
        raise ValueError(obstacle)
    if size != "auto":
        design.with_size(size)
    return size


def with_centre(
    results: "EnsembleResults", centred_fit: CentredEvaluation
) -> "EnsembleResults":
    """Add the learners that the estimates come from, if these are others."""
    predictor, centre = results.predictor, centred_fit.centre
    if centre is None:
        return results
    if predictor is not None:
        predictor = centre_predictor(predictor, centre.stack, centred_fit.learners)
    recipe = replace(recipe_of(results), centre=centre)
    return replace(results, predictor=predictor, recipe=recipe)


def continue_fit(
    results: "EnsembleResults",
    B: int | str,
    growth: Growth,
    *,
    n_jobs: int | None,
    progress: bool | None,
) -> "EnsembleResults":
    """Compute `EnsembleResults.more`."""
    max_B = MAX_B if growth.max_B is None else growth.max_B
    recipe, n_query = recipe_of(results), len(results.labels)
    size = check_size(results, B, max_B)
    n_jobs = recipe.n_jobs if n_jobs is None else n_jobs
    progress = recipe.progress if progress is None else progress
    moves, predictor = results.effect_values, results.predictor
    values = results.values
    if moves is not None:
        values = np.concatenate([values, moves.values], axis=1)
    learners = [] if predictor is None else predictor.learners
    design, evaluation = grow(
        recipe.task,
        size,
        method=results.variance,
        n_query=n_query,
        tol=TOL if growth.tol is None else growth.tol,
        atol=growth.atol,
        max_B=max_B,
        start=undo_centring(Evaluation(values, learners, recipe.oob), recipe.centre),
        n_jobs=n_jobs,
        progress=progress,
    )
    evaluation = trim_to_budget(evaluation, recipe.task.keep_bytes, design)
    centred_fit = centre_values(
        replace(recipe.task, design=design),
        None if recipe.centre is None else recipe.centre.stack,
        evaluation,
        n_query,
        n_jobs=n_jobs,
        progress=progress,
    )
    evaluation, scores = centred_fit.evaluation, results.scores
    if moves is not None:
        values = evaluation.values[:, n_query:]
        moves = replace(moves, values=values, leaf_influence=None)
    if predictor is not None:
        predictor = replace(predictor, learners=evaluation.learners)
    oob = evaluation.oob
    if oob is not None and recipe.y is not None:
        scores = score_rows(recipe.y, oob, recipe.task.kernel)
    growth = growth if size == "auto" else Growth()
    larger = replace(
        results,
        design=design,
        values=evaluation.values[:, :n_query],
        info=replace(results.info, growth=growth),
        effect_values=moves,
        predictor=predictor,
        scores=scores,
        errors=None,
        recipe=replace(recipe, oob=oob),
        orders=None,
        pooled=None,
        leaf_influence=None,
        row_residuals=None,
    )
    larger = with_centre(larger, centred_fit)
    return measure_remaining_bias(larger.with_variance(results.variance))
