"""Results in a line, the answer in it."""

from typing import TYPE_CHECKING, Any

from vstatkit.results.tables import label_texts
from vstatkit.text import shown_estimates

if TYPE_CHECKING:
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.prediction_results import PredictionResults

MOST = 200
"""Estimates that are computed only to be shown."""


def shown(results: "EnsembleResults") -> str:
    """Write the first estimates with their standard errors; of tests the p-values."""
    if len(results.labels) > MOST:
        return f"{len(results.labels):,} estimates"
    found = results.estimates
    columns: dict[str, Any] = {"": found.estimate, "std err": found.bse}
    if results.null is not None:
        columns["p"] = results.pvalues.to_numpy()
    return shown_estimates(label_texts(results.labels), columns)


def shown_means(predictions: "PredictionResults") -> str:
    """Write the first predictions with their standard errors."""
    found = predictions.estimates
    columns = {"": found.estimate, "std err": found.bse}
    return shown_estimates(label_texts(predictions.labels), columns)
