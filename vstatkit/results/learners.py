"""The learners of results, where they are."""

from typing import TYPE_CHECKING

from vstatkit.ensemble.prediction import Predictor

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults


def predictor_of(results: "EnsembleResults") -> Predictor:
    """Give what predicts, or say why nothing does."""
    if results.predictor is None:
        raise ValueError(
            f"these results hold no learners that predict: {results.info.kernel!r} is "
            "a statistic, or they were saved without learners, or are combinations of "
            "other results. The estimates are in `params` and `summary()`."
        )
    if results.predictor.n_kept < results.B:
        raise ValueError(
            f"of {results.B:,} learners only {results.predictor.n_kept:,} were "
            "kept, so these results do not predict. Give the query points to `fit` as "
            "`at`, or fit with keep_learners=True."
        )
    return results.predictor
