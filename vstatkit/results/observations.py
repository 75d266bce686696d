"""New observations: their limits, and the classes that they may have."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pandas as pd

from vstatkit._typing import Floats
from vstatkit.ensemble.oob_scores import Scores
from vstatkit.ensemble.prediction_intervals import (
    Errors,
    Limits,
    Spread,
    class_thresholds,
    collect_errors,
    jackknife_limits,
    local_limits,
)
from vstatkit.inference.conformal import least_units
from vstatkit.results.class_sets import ClassSets, probable_classes
from vstatkit.results.continuation import recipe_of
from vstatkit.results.learners import predictor_of
from vstatkit.validation import check_alpha

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.prediction_results import PredictionResults

METHODS = ("local", "residuals", "jackknife+")
"""What `obs_method` chooses from."""


def check_method(method: str | None) -> None:
    """Refuse methods that there are not."""
    if method is not None and method not in METHODS:
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"`obs_method` must be one of {names}; got {method!r}.")


def collected_errors(results: "EnsembleResults") -> Errors | None:
    """Collect the out-of-bag errors of results; None where it is not known whose."""
    scores, predictor = results.scores, results.predictor
    if results.errors is not None or scores is None or predictor is None:
        return results.errors
    clusters, n_jobs = None, predictor.n_jobs
    if results.recipe is not None:
        clusters = recipe_of(results).task.rows
    elif results.nobs != results.design.n:
        return None
    seed = results.design.seed
    return collect_errors(scores, predictor.kernel, clusters, seed=seed, n_jobs=n_jobs)


def with_errors(results: "EnsembleResults") -> "EnsembleResults":
    """Collect the out-of-bag errors now: tables and pickles then grow nothing."""
    return replace(results, errors=collected_errors(results))


class Bounds(NamedTuple):
    """What is known about where new observations fall.

    Attributes
    ----------
    method : str or None
        What was used; None without limits.
    limits : tuple of ndarray or None
        Lower and upper limits, not a number where there are too few units for the
        level; None where there are no residuals to make them of.
    note : str or None
        Why there are none; None for classes, which have no limits.
    """

    method: str | None
    limits: Limits | None
    note: str | None


def observation_limits(
    prediction: "PredictionResults", alpha: float, method: str | None
) -> Bounds:
    """Bound new observations.

    Parameters
    ----------
    prediction : PredictionResults
        Points.
    alpha : float
        One minus the coverage.
    method : str or None
        One of `METHODS`; None for "local", or "residuals" where nothing is known
        about whose errors they are.

    Returns
    -------
    Bounds
        Without limits only if no method was asked for.
    """
    check_method(method)
    check_alpha(alpha)
    results = prediction.results
    if results.scores is None or results.scores.residuals.size == 0:
        if method is None:
            note = None if _has_classes(results) else _without_residuals(results)
            return Bounds(None, None, note)
        raise ValueError(_without_residuals(results))
    errors = results.out_of_bag_errors
    if method is None:
        known = errors is not None and errors.spread is not None
        chosen = "local" if known else "residuals"
    else:
        chosen = method
    limits = _limits(prediction, alpha, chosen, errors)
    if limits is not None:
        return Bounds(chosen, limits, None)
    note = _too_few(results, errors, alpha, chosen)
    if method is not None:
        raise ValueError(note)
    unknown = np.full(len(prediction.labels), np.nan)
    return Bounds(None, (unknown, unknown), note)


def _limits(
    prediction: "PredictionResults", alpha: float, method: str, errors: Errors | None
) -> Limits | None:
    results, mean = prediction.results, prediction.estimates.estimate
    scores = cast("Scores", results.scores)
    if method == "residuals":
        offsets = scores.interval_offsets(alpha)
        return None if offsets is None else (mean + offsets[0], mean + offsets[1])
    if errors is None or (method == "local" and errors.spread is None):
        raise ValueError(_unknown(method))
    predictor = predictor_of(results)
    if method == "jackknife+":
        return jackknife_limits(errors, predictor, results.design, prediction.X, alpha)
    spread = cast("Spread", errors.spread)
    expected = spread.at(prediction.X, predictor.n_jobs)
    return local_limits(errors, mean, expected, alpha)


def _has_classes(results: "EnsembleResults") -> bool:
    predictor = results.predictor
    return predictor is not None and predictor.kernel.n_classes is not None


def _without_residuals(results: "EnsembleResults") -> str:
    if _has_classes(results):
        return (
            "`obs_method` is for a numeric response; this one has classes. Use "
            "class_sets(alpha) for the classes that a new observation may have."
        )
    return (
        "limits of new observations need out-of-bag residuals, and these results have "
        "none. Fit with oob=True, and a `k` that leaves rows out."
    )


def _unknown(method: str) -> str:
    return (
        f"obs_method={method!r} needs to know whose the out-of-bag residuals are, and "
        "their predictors. These results do not: they were saved by an earlier "
        "version, or fitted elsewhere. Use obs_method='residuals', or fit again."
    )


def _too_few(
    results: "EnsembleResults", errors: Errors | None, alpha: float, method: str
) -> str:
    share = alpha if method == "jackknife+" else alpha / 2
    if method == "residuals" or errors is None:
        there = cast("Scores", results.scores).residuals.size
    else:
        there = errors.n_units
    fewer = method != "jackknife+" and errors is not None
    other = ""
    if fewer and least_units(alpha) <= cast("Errors", errors).n_units:
        other = f", or obs_method='jackknife+', which needs {least_units(alpha):,}"
    return (
        f"limits at alpha={alpha:g} need out-of-bag residuals of "
        f"{least_units(share):,} units or more by {method!r}; there are {there:,}. Use "
        f"a larger `alpha`{other}."
    )


def class_sets(
    prediction: "PredictionResults", alpha: float, *, by_class: bool
) -> ClassSets:
    """Tabulate the classes that new observations may have; see `class_sets`."""
    check_alpha(alpha)
    results = prediction.results
    predictor = predictor_of(results)
    K = predictor.kernel.n_classes
    if K is None:
        raise ValueError(
            "sets of classes are for a response that has classes; this one is "
            "numeric. summary_frame(alpha) has the limits of a new observation."
        )
    errors = results.out_of_bag_errors
    if errors is None or errors.codes is None:
        raise ValueError(
            "sets of classes need out-of-bag probabilities of single observations, and "
            "these results have none: they were saved by an earlier version, fitted "
            "elsewhere, or with oob=False. Fit again, with oob=True."
        )
    classes = tuple(range(K)) if predictor.classes is None else predictor.classes
    least = class_thresholds(errors, K, alpha, by_class=by_class)
    if np.isnan(least).any():
        c = int(np.flatnonzero(np.isnan(least))[0])
        mine = errors.units[errors.codes == c] if by_class else errors.units
        of_class = f" of class {classes[c]!r}" if by_class else ""
        raise ValueError(
            f"sets at alpha={alpha:g} need {least_units(alpha):,} units or more"
            f"{of_class} that were out of bag; there are {np.unique(mine).size:,}. Use "
            "a larger `alpha`."
        )
    shares = class_shares(prediction.estimates.estimate, K)
    index = prediction.labels
    if K > 2:
        index = cast("pd.MultiIndex", index)[::K].droplevel("class")
    return probable_classes(shares, least, index, classes, alpha)


def class_shares(estimates: Floats, n_classes: int) -> Floats:
    """Give probabilities a column for each class; of two, the second is predicted."""
    if n_classes == 2:
        return np.column_stack([1 - estimates, estimates])
    return estimates.reshape(-1, n_classes)
