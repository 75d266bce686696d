"""Predictions with their uncertainty."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from vstatkit._typing import DataLike, Floats, Labels
from vstatkit.ensemble.prediction import Predictor
from vstatkit.inference.estimate import Estimation
from vstatkit.inference.estimates import Estimates
from vstatkit.inference.intervals import prediction_support
from vstatkit.results.tables import mean_frame
from vstatkit.variance.components import VarianceComponents

if TYPE_CHECKING:
    from vstatkit.results.comparison import VarianceComparison
    from vstatkit.results.ensemble_results import EnsembleResults
    from vstatkit.results.transforming import Function, Transformed


@dataclass(frozen=True)
class PredictionResults:
    """Predictions with their uncertainty.

    Attributes
    ----------
    results : EnsembleResults
        The ensemble that predicts.
    X : ndarray of shape (q, p)
        Coded query points.
    labels : Index of length m
        Row, or row and class, of every prediction.
    estimates : Estimates
        Estimates as arrays, with stabilised variances.
    """

    results: "EnsembleResults"
    X: Floats
    labels: Labels
    estimates: Estimates

    @property
    def predicted_mean(self) -> pd.Series:
        """Ensemble means."""
        return pd.Series(self.estimates.estimate, self.labels, name="mean")

    @property
    def se_mean(self) -> pd.Series:
        """Standard errors of the means."""
        return pd.Series(self.estimates.bse, self.labels, name="mean_se")

    @property
    def components(self) -> VarianceComponents:
        """Raw variance components, as arrays; negative estimates are kept."""
        return self.estimates.components

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tabulate the predictions.

        Returns
        -------
        DataFrame
            `mean`, `mean_se`, `mean_ci_lower`, `mean_ci_upper`; for a numeric
            response `obs_ci_lower`, `obs_ci_upper`, the bounds of a new
            observation from out-of-bag residuals (left out where there are too
            few of them for the level); and `mc_se`, the Monte Carlo standard
            error of the raw total variance.
        """
        frame = mean_frame(self.estimates, self.labels, alpha)
        scores = self.results.scores
        offsets = None if scores is None else scores.interval_offsets(alpha)
        if offsets is not None:
            frame.insert(4, "obs_ci_lower", frame["mean"] + offsets[0])
            frame.insert(5, "obs_ci_upper", frame["mean"] + offsets[1])
        return frame

    def conf_int(self, alpha: float = 0.05, simultaneous: bool = False) -> pd.DataFrame:
        """Confidence intervals of the means, one by one or all at once."""
        if simultaneous:
            return self._joint.conf_int(alpha, simultaneous=True)
        frame = self.summary_frame(alpha)[["mean_ci_lower", "mean_ci_upper"]]
        return frame.set_axis(["lower", "upper"], axis=1)

    def cov(self) -> pd.DataFrame:
        """Covariance matrix of the predictions, positive semi-definite."""
        return self._joint.cov_params()

    def compare_variance(self, alpha: float = 0.05) -> "VarianceComparison":
        """Estimate the variances by every estimator that applies to the design."""
        return self._joint.compare_variance(alpha)

    def influence(self) -> pd.DataFrame:
        """Influence of every observation on every prediction, shape (n, m)."""
        return self._joint.influence()

    def transform(self, f: "Function") -> "Transformed":
        """Estimate a function of the predictions; see `EnsembleResults.transform`."""
        return self._joint.transform(f)

    @cached_property
    def _joint(self) -> "EnsembleResults":
        values = predictor_of(self.results).values(self.X)
        return replace(
            self.results,
            values=values,
            labels=self.labels,
            effect_values=None,
            support=self.estimates.support,
        )


def predictor_of(results: "EnsembleResults") -> Predictor:
    """Give what predicts, or say why nothing does."""
    if results.predictor is None:
        raise ValueError(
            f"these results hold no learners that predict: {results.info.kernel!r} is "
            "a statistic, or they were saved without learners. The estimates are "
            "in `params` and `summary()`."
        )
    if len(results.predictor.learners) < results.B:
        raise ValueError(
            f"of {results.B:,} learners only {len(results.predictor.learners):,} were "
            "kept, so these results do not predict. Give the query points to `fit` as "
            "`at`, or fit with keep_learners=True."
        )
    return results.predictor


def predicted_means(
    results: "EnsembleResults", data: DataLike
) -> pd.Series | pd.DataFrame:
    """Predict new data; see `EnsembleResults.predict`."""
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    mean = predictor.averages(X, results.design)
    if predictor.classes is not None and len(predictor.classes) > 2:
        table = mean.reshape(-1, len(predictor.classes))
        return pd.DataFrame(table, index, list(predictor.classes))
    return pd.Series(mean, index, name=results.info.response)


def predicted(results: "EnsembleResults", data: DataLike) -> PredictionResults:
    """Predict new data with standard errors, chunk after chunk."""
    predictor = predictor_of(results)
    X, index = predictor.rows(data)
    labels = predictor.labels(index)
    limit = None if results.limit is None else float(np.max(results.limit))
    found = predictor.estimates(
        X, Estimation(results.design, results.variance, limit, results.orders)
    )
    support = prediction_support(predictor.kernel, results.nobs)
    found = replace(found, support=support)
    return PredictionResults(results, X, labels, found)
