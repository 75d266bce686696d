"""Access to the learners of a fit: kept, or refitted on demand."""

from dataclasses import replace
from typing import TYPE_CHECKING

from vstatkit.ensemble.evaluation import TransientLearner
from vstatkit.ensemble.memory import format_bytes
from vstatkit.ensemble.prediction import Predictor
from vstatkit.ensemble.retention import learner_bytes

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def predictor_of(results: "EnsembleResults") -> Predictor:
    """Return the predictor of a fit, or raise an error if learners are missing."""
    predictor, B = results.predictor, results.B
    if predictor is None:
        raise ValueError(
            f"these results have no learners that predict: {results.info.kernel!r} is "
            "a statistic, or they were saved without learners. The estimates are in "
            "`params` and `summary()`."
        )
    n_kept, size = predictor.n_kept, ""
    if n_kept >= B:
        return predictor
    if n_kept:
        bytes_of_each = learner_bytes(predictor.learners[:n_kept]) / n_kept
        size = f" (about {format_bytes(bytes_of_each * B)} in all)"
    raise ValueError(
        f"predictions need all {B:,} learners, but only {n_kept:,} were kept. Fit "
        f"again with keep_learners=True{size}, or with a smaller `B` (`max_B` for "
        "B='auto'). Query points given to `fit` as `at` do not need kept learners."
    )


def averaging_predictor(results: "EnsembleResults") -> Predictor:
    """Return a predictor for averages over rows.

    Learners that were not kept are refitted in each pass; averages need one pass.
    """
    predictor, recipe = results.predictor, results.recipe
    if predictor is None or recipe is None or recipe.centre is not None:
        return predictor_of(results)
    missing = range(len(predictor.learners), results.B)
    if not missing:
        return predictor
    learners = [TransientLearner(recipe.task, number) for number in missing]
    return replace(
        predictor, learners=predictor.learners + learners, progress=recipe.progress
    )
