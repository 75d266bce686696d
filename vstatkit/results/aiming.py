"""What the intervals of a forest aim at, and what bias it is left with."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike
from vstatkit.ensemble.bias_reduction import Choice, bias_left, checked_trees
from vstatkit.kernels.base import AnyKernel, OutOfBag
from vstatkit.kernels.staged_tree import StagedKernel, Stages
from vstatkit.results.model_info import Aim

if TYPE_CHECKING:
    from vstatkit._typing import Floats
    from vstatkit.ensemble.prediction import Predictor
    from vstatkit.results.continuation import Continuation
    from vstatkit.results.ensemble_results import EnsembleResults


class Aiming:
    """Methods of results about the bias of a forest."""

    def bias_left(self, data: DataLike | None = None) -> pd.DataFrame:
        """Estimate the bias of predictions as estimates of E[y|x], out of bag.

        Parameters
        ----------
        data : DataFrame or dict of columns, optional
            New data; the query points by default.

        Returns
        -------
        DataFrame
            `bias`, what predictions are too high by; `std_error`, of the estimate of
            the bias; and `share`, the bias in units of the prediction's own standard
            error. Where that is well above a half, intervals cover E[y|x] less often
            than they say.

        Notes
        -----
        Out-of-bag predictions less responses, smoothed by a forest. It flattens what
        it smooths, so that the bias is rather larger than shown.
        `res.plot(kind="bias")` draws it, with `data=` for new data.

        Examples
        --------
        >>> import vstatkit as vs
        >>> data = vs.datasets.mars(200, rng=1)
        >>> at = {name: [0.9] for name in ["x1", "x2", "x3", "x4", "x5"]}
        >>> for trend in (None, "linear"):
        ...     res = vs.fit("y ~ .", data, at=at, B=500, rng=1, trend=trend)
        ...     print(res.bias_left().round(1).to_string(index=False))
         bias  std_error  share
         -2.2        0.5   -2.2
         bias  std_error  share
          0.2        0.5    0.2
        """
        results = cast("EnsembleResults", self)
        if data is None:
            aim = results.info.aim
            if aim is None or not aim.bias:
                aim = _with_bias(results, Aim("a tree"))
            return _table(results, aim)
        prediction = results.get_prediction(data)
        recipe, oob = _recipe(results)
        rows, labels = cast("Predictor", results.predictor).rows(data)
        found = bias_left(recipe.task, oob, rows, recipe.n_jobs)
        frame = pd.DataFrame({"bias": found.estimate, "std_error": found.bse}, labels)
        return frame.assign(share=found.estimate / prediction.estimates.bse)


def _recipe(results: "EnsembleResults") -> tuple["Continuation", OutOfBag]:
    """Find what the bias is estimated from, or say what is missing."""
    recipe = results.recipe
    if recipe is None:
        raise ValueError(
            "the bias is estimated from the training data, which results that were "
            "loaded, adopted or combined do not hold. Ask the results of `fit`."
        )
    checked_trees(recipe.task.kernel)
    if recipe.oob is None or not recipe.oob.times.any():
        raise ValueError(
            "the bias is estimated from out-of-bag predictions, and there are none. "
            "Fit with oob=True, and with a `k` that leaves rows out."
        )
    return recipe, recipe.oob


def _table(results: "EnsembleResults", aim: Aim) -> pd.DataFrame:
    bias = np.array(aim.bias)
    return pd.DataFrame(
        {
            "bias": bias,
            "std_error": np.array(aim.bias_error),
            "share": bias / results.bse.to_numpy(),
        },
        index=results.labels,
    )


def _with_bias(results: "EnsembleResults", aim: Aim) -> Aim:
    recipe, oob = _recipe(results)
    at = cast("Floats", recipe.task.at)[: len(results.labels)]
    found = bias_left(recipe.task, oob, at, recipe.n_jobs)
    return replace(
        aim, bias=tuple(found.estimate.tolist()), bias_error=tuple(found.bse.tolist())
    )


def aim_of(kernel: AnyKernel, choice: Choice | None) -> Aim | None:
    """Say what the learners of a kernel aim at; None for plain ones."""
    stages = kernel.stages if isinstance(kernel, StagedKernel) else Stages()
    if choice is None:
        return Aim(stages.text) if any(stages) else None
    errors, mix = choice.least_errors, choice.mixture
    return Aim(choice.learner, truth=True, errors=errors, mix=mix)


def aimed(results: "EnsembleResults") -> "EnsembleResults":
    """Measure what bias is left, where the intervals aim at E[y|x]."""
    aim = results.info.aim
    if aim is None or not aim.truth or results.recipe is None:
        return results
    if results.recipe.oob is None:
        return results
    return replace(results, info=replace(results.info, aim=_with_bias(results, aim)))
