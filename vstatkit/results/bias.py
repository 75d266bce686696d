"""Bias of forests as estimates of E[y|x], and what their intervals target."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats
from vstatkit.ensemble.bias_reduction import Choice, check_tree_kernel, smooth_bias
from vstatkit.kernels.base import AnyKernel, OutOfBag
from vstatkit.kernels.residual_trees import StagedKernel, Stages
from vstatkit.results.model_description import Aim

if TYPE_CHECKING:
    from vstatkit.ensemble.prediction import Predictor
    from vstatkit.results.continuation import Continuation
    from vstatkit.results.ensemble_results import EnsembleResults


def estimate_bias(results: "EnsembleResults", data: DataLike | None) -> pd.DataFrame:
    """Compute `EnsembleResults.bias_left`."""
    if data is None:
        aim = results.info.aim
        if aim is None or not aim.bias:
            aim = _with_bias(results, Aim("a tree"))
        bias, error = np.array(aim.bias), np.array(aim.bias_error)
        labels, bse = results.labels, results.bse.to_numpy()
    else:
        bse = results.get_prediction(data).estimates.bse
        recipe, oob = _recipe(results)
        rows, labels = cast("Predictor", results.predictor).rows(data)
        estimates = smooth_bias(recipe.task, oob, rows, recipe.n_jobs)
        bias, error = estimates.estimate, estimates.bse
    return pd.DataFrame({"bias": bias, "std_error": error, "share": bias / bse}, labels)


def _recipe(results: "EnsembleResults") -> tuple["Continuation", OutOfBag]:
    """Return the recipe and out-of-bag sums, or raise an error without them."""
    recipe = results.recipe
    if recipe is None:
        raise ValueError(
            "the bias is estimated from the training data, which these results do not "
            "have because they were loaded or adopted. Use the results of `fit`."
        )
    check_tree_kernel(recipe.task.kernel)
    if recipe.oob is None or not recipe.oob.times.any():
        raise ValueError(
            "the bias is estimated from out-of-bag predictions, which these results do "
            "not have. Fit with oob=True, and with a `k` that leaves rows out."
        )
    return recipe, recipe.oob


def _with_bias(results: "EnsembleResults", aim: Aim) -> Aim:
    recipe, oob = _recipe(results)
    at = cast(Floats, recipe.task.at)[: len(results.labels)]
    bias = smooth_bias(recipe.task, oob, at, recipe.n_jobs)
    return replace(
        aim, bias=tuple(bias.estimate.tolist()), bias_error=tuple(bias.bse.tolist())
    )


def aim_of(kernel: AnyKernel, choice: Choice | None) -> Aim | None:
    """Describe what the learners of a kernel target; None for plain ones."""
    stages = kernel.stages if isinstance(kernel, StagedKernel) else Stages()
    if choice is None:
        return Aim(stages.text) if any(stages) else None
    errors, mix = choice.least_errors, choice.stack_text
    return Aim(choice.learner, truth=True, errors=errors, mix=mix)


def measure_remaining_bias(results: "EnsembleResults") -> "EnsembleResults":
    """Estimate the remaining bias if the intervals target E[y|x]."""
    aim, recipe = results.info.aim, results.recipe
    if aim is None or not aim.truth or recipe is None or recipe.oob is None:
        return results
    return replace(results, info=replace(results.info, aim=_with_bias(results, aim)))
