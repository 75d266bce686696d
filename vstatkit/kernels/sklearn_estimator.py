"""Regressors and classifiers of scikit-learn as kernels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import (
    RowKernel,
    Training,
    class_columns,
    learner_seed,
    output_columns,
    require_points,
)


@dataclass(frozen=True)
class EstimatorKernel(RowKernel):
    """Any scikit-learn regressor or classifier, fitted to the literal subsample."""

    estimator: BaseEstimator  # template; every learner is a clone of it
    X: Floats  # (n, p): design matrix
    y: Floats  # (n,): response, or class codes
    n_classes: int | None  # none for regression
    weights: Floats | None  # (n,): handed over as `sample_weight`

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """One, or a column for each of more than two classes."""
        return output_columns(self.n_classes)

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""
        return int(self.X.shape[1])

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Any:
        """Fit a clone; a `random_state` that is not a number comes from the stream."""
        rows = np.repeat(rows, times)
        learner = clone(self.estimator)
        seeds = {
            name: learner_seed(rng)
            for name, value in sorted(learner.get_params(deep=True).items())
            if name.split("__")[-1] == "random_state"
            and not isinstance(value, int | np.integer)
        }
        learner.set_params(**seeds)
        if self.weights is None:
            return learner.fit(self.X[rows], self.y[rows])
        return learner.fit(self.X[rows], self.y[rows], sample_weight=self.weights[rows])

    def predict(self, learner: Any, X: Floats) -> Floats:
        """Predict means, or class probabilities."""
        if self.n_classes is None:
            return np.asarray(learner.predict(X), dtype=np.float64).reshape(len(X), 1)
        share = learner.predict_proba(X)
        return class_columns(share, learner.classes_, self.n_classes)

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Predict at the query points."""
        return self.predict(learner, require_points(at)).ravel()


def estimator_kernel(estimator: BaseEstimator, training: Training) -> EstimatorKernel:
    """Build a kernel from a scikit-learn estimator that suits the response."""
    name, n_classes = type(estimator).__name__, training.n_classes
    if is_classifier(estimator) and n_classes is None:
        raise ValueError(
            f"{name} is a classifier, but the response is numeric. Write C(y) on the "
            "left-hand side to treat its values as classes."
        )
    if not is_classifier(estimator) and n_classes is not None:
        raise ValueError(
            f"{name} is not a classifier, but the response is categorical. Use a "
            "classifier, or a numeric response."
        )
    if n_classes is not None and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} gives no class probabilities (it has no `predict_proba`). Use a "
            "classifier that does."
        )
    weights = training.weights
    return EstimatorKernel(estimator, training.X, training.y, n_classes, weights)
