"""Functions of a subsample, and scikit-learn estimators, as kernels."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier

from vstatkit._typing import Floats, Ints
from vstatkit.kernels.base import (
    KernelKind,
    RowKernel,
    Training,
    class_columns,
    output_columns,
)


@dataclass(frozen=True)
class FunctionKernel(RowKernel):
    """A user's function of a subsample."""

    function: Callable[..., Any]  # returns a number, an array, a Series or a dict
    # Data sets whose rows are subsampled together, one positional argument each: arrays
    # or data frames with observations in rows
    arguments: tuple[Any, ...]
    names: tuple[str, ...] | None = None  # of all values; None before the first call

    # Statistics are smooth functions of the counts, as a rule.
    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Any:
        """Evaluate the function on the literal subsample."""
        rows = np.repeat(rows, times)
        return self.function(*(take_rows(data, rows) for data in self.arguments))

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Flatten the function's answer, components in the order of the first."""
        names, value = name_values(learner)
        if value.size == 0:
            raise ValueError("it returned no numbers.")
        if self.names is None or tuple(names) == self.names:
            return value
        if len(names) != len(self.names):
            raise ValueError(
                f"it returned {value.size} numbers, but {len(self.names)} on the first "
                "subsample. A kernel must return the same components every time."
            )
        if set(names) != set(self.names):
            raise ValueError(
                f"it returned the components {', '.join(names)}, but "
                f"{', '.join(self.names)} on the first subsample."
            )
        return value[[names.index(name) for name in self.names]]


def take_rows(data: Any, rows: Ints) -> Any:
    """Take rows of a frame, a Series or an array, in that order."""
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def name_values(result: Any) -> tuple[list[str], Floats]:
    """Name the components of what a kernel returned."""
    if isinstance(result, Mapping):
        result = pd.Series(result)
    if isinstance(result, pd.Series):
        return [str(name) for name in result.index], result.to_numpy(np.float64)
    value = np.asarray(result, dtype=np.float64)
    names = ["statistic"] if value.size == 1 else [f"h{j}" for j in range(value.size)]
    return names, value.ravel()


def n_positional(function: Callable[..., Any]) -> int:
    """Count the positional arguments that a kernel requires; 1 where unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return max(1, len(required))


def predict_columns(learner: Any, X: Floats, n_classes: int | None) -> Floats:
    """Predict means, or class probabilities, by a scikit-learn estimator."""
    if n_classes is None:
        return np.asarray(learner.predict(X), dtype=np.float64).reshape(len(X), 1)
    return class_columns(learner.predict_proba(X), learner.classes_, n_classes)


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
            name: int(rng.integers(2**31 - 1))
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
        return predict_columns(learner, X, self.n_classes)

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Predict at the query points."""
        return self.predict(learner, cast("Floats", at)).ravel()


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
