"""The `Kernel` protocol and its adapters.

A kernel is anything evaluated on a subsample. It is given the counts of every
observation, so the same design serves all of them.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, clone, is_classifier

from vstatkit._typing import Floats, Ints
from vstatkit.inference.intervals import Support
from vstatkit.kernels.evaluation import Evaluation
from vstatkit.variance.orders import KernelKind


@runtime_checkable
class Kernel(Protocol):
    """What is evaluated on each subsample."""

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Fit a learner to the observations, each repeated `counts` times."""

    def value(self, learner: Any, at: Floats | None) -> Floats:
        """Evaluate the learner: the statistic's value, shape (m,)."""


@runtime_checkable
class Predictive(Protocol):
    """Something whose learners predict at rows of the design matrix.

    Attributes
    ----------
    n_classes : int or None
        Classes of the response; None for regression.
    n_outputs : int
        Columns of a prediction (classes, or one).
    coefficients : bool
        Whether the kernel's value is its coefficients, not its predictions.
    """

    @property
    def n_classes(self) -> int | None:
        """Classes of the response."""

    @property
    def n_outputs(self) -> int:
        """Columns of a prediction."""

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""

    @property
    def coefficients(self) -> bool:
        """Whether the value is coefficients."""

    def predict(self, learner: Any, X: Floats) -> Floats:
        """Predict at rows of the design matrix, shape (rows, n_outputs)."""


@runtime_checkable
class PredictiveKernel(Kernel, Predictive, Protocol):
    """A kernel that fits one learner at a time, and whose learners predict."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""


@runtime_checkable
class BatchKernel(Predictive, Protocol):
    """A predictive kernel that evaluates many subsamples in one compiled call."""

    @property
    def X(self) -> Floats:  # noqa: N802
        """Design matrix."""

    def grow(
        self,
        counts: Floats,
        keys: NDArray[np.uint64],
        at: Floats,
        *,
        oob: bool,
        keep: bool,
    ) -> Evaluation:
        """Evaluate one learner for each row of counts."""


AnyKernel: TypeAlias = "Kernel | BatchKernel | ArrayKernel"


def learner_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that wants a legacy 32-bit one."""
    return int(rng.integers(2**31 - 1))


def output_columns(n_classes: int | None) -> int:
    """Columns of a prediction: two classes share one."""
    return 1 if n_classes is None or n_classes == 2 else n_classes


def class_columns(share: Floats, classes: Ints, n_classes: int) -> Floats:
    """Spread the classes a learner saw over all columns; two share one column."""
    full = np.zeros((len(share), n_classes))
    full[:, np.asarray(classes, dtype=np.int64)] = share
    return full[:, 1:] if n_classes == 2 else full


def value_limit(kernel: AnyKernel) -> float | None:
    """Largest standard deviation that a prediction can have, where it is known.

    Half the range of what a learner can predict: probabilities lie between zero
    and one, means of responses between the smallest and the largest.
    """
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return getattr(kernel, "limit", None) if kernel.n_classes is None else 0.5


def kind_of(kernel: Any) -> KernelKind:
    """Tell how a kernel depends on its observations, as far as it says."""
    return getattr(kernel, "kind", KernelKind.UNKNOWN)


def prediction_support(kernel: Predictive, nobs: int) -> Support | None:
    """Range of the predictions, where they are probabilities."""
    return None if kernel.n_classes is None else Support(0.0, 1.0, nobs)


def value_support(kernel: AnyKernel, nobs: int) -> Support | None:
    """Range of the kernel's values, where they are probabilities."""
    if not isinstance(kernel, Predictive) or kernel.coefficients:
        return None
    return prediction_support(kernel, nobs)


def _points(at: Floats | None) -> Floats:
    if at is None:
        raise ValueError("this kernel predicts, so it needs query points.")
    return at


@dataclass(frozen=True)
class EstimatorKernel:
    """Any scikit-learn regressor or classifier, fitted to the literal subsample.

    Attributes
    ----------
    estimator : BaseEstimator
        Template; every learner is a clone of it.
    X : ndarray of shape (n, p)
        Design matrix.
    y : ndarray of shape (n,)
        KernelKind, or class codes.
    n_classes : int or None
        None for regression.
    weights : ndarray of shape (n,) or None
        Handed over as `sample_weight`.
    """

    estimator: BaseEstimator
    X: Floats
    y: Floats
    n_classes: int | None
    weights: Floats | None

    coefficients: ClassVar[bool] = False

    @property
    def n_outputs(self) -> int:
        """One, or a column for each of more than two classes."""
        return output_columns(self.n_classes)

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""
        return int(self.X.shape[1])

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Fit a clone; every `random_state` that is no number comes from the stream."""
        rows = np.repeat(np.arange(counts.size), counts)
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
        return self.predict(learner, _points(at)).ravel()


@dataclass(frozen=True)
class LinearKernel:
    """Coefficients of a least-squares or logistic regression.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Design matrix.
    y : ndarray of shape (n,)
        KernelKind; zeros and ones for the logit.
    logit : bool
        Logistic regression instead of least squares.
    weights : ndarray of shape (n,) or None
        Weight of every observation.
    rank : int
        Rank of the design matrix.
    """

    X: Floats
    y: Floats
    logit: bool
    weights: Floats | None
    rank: int = 0

    coefficients: ClassVar[bool] = True
    n_outputs: ClassVar[int] = 1
    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    @property
    def n_classes(self) -> int | None:
        """Two for the logit."""
        return 2 if self.logit else None

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""
        return int(self.X.shape[1])

    def fit(self, counts: Ints, rng: np.random.Generator) -> Floats:
        """Estimate the coefficients, counts as frequency weights."""
        drawn = np.flatnonzero(counts)
        weight = counts[drawn].astype(np.float64)
        if self.weights is not None:
            weight *= self.weights[drawn]
        X, y = self.X[drawn], self.y[drawn]
        if self.logit:
            return fit_logit(X, y, weight)
        coefficients, rank = fit_ols(X, y, weight)
        if rank < self.rank:
            raise ValueError(
                f"the design has rank {rank} in this subsample and {self.rank} in the "
                "data, so the coefficients are not determined. Raise `k`."
            )
        return coefficients

    def predict(self, learner: Floats, X: Floats) -> Floats:
        """Predict means, or probabilities of the second class."""
        eta = (X @ learner)[:, None]
        return np.asarray(special.expit(eta)) if self.logit else eta

    def value(self, learner: Floats, at: Floats | None) -> Floats:
        """Give the coefficients."""
        return learner


def fit_ols(X: Floats, y: Floats, weight: Floats) -> tuple[Floats, int]:
    """Weighted least squares, and the rank of the design.

    The solution has minimum norm where columns are collinear.
    """
    root = np.sqrt(weight)
    answer = np.linalg.lstsq(X * root[:, None], y * root, rcond=None)
    return np.asarray(answer[0]), int(answer[2])


LOGIT_STEPS = 50
"""Newton steps after which a logit is given up."""


def fit_logit(X: Floats, y: Floats, weight: Floats) -> Floats:
    """Weighted logistic regression by Newton's method with step halving.

    Its own few lines rather than statsmodels' GLM, which reports separation by
    warnings: those cannot be caught safely in threads.
    """
    used = weight > 0
    X, y, weight = X[used], y[used], weight[used]
    beta, fit = np.zeros(X.shape[1]), -np.inf
    for _ in range(LOGIT_STEPS):
        eta = X @ beta
        share = special.expit(eta)
        spread = weight * share * (1 - share)
        information = (X.T * spread) @ X
        step = np.linalg.lstsq(information, X.T @ (weight * (y - share)), rcond=None)[0]
        for _ in range(LOGIT_STEPS):
            fit_then = _log_likelihood(X @ (beta + step), y, weight)
            if fit_then >= fit:
                break
            step /= 2
        beta, fit = beta + step, fit_then
        perfect = fit > -1e-6 * weight.sum()
        if np.abs(X @ step).max() < 1e-8 and not perfect:
            return np.asarray(beta)
    raise ValueError(
        "the predictors separate the classes in this subsample (or it holds one class "
        "only), so the logit has no finite estimate. Raise `k`, or drop predictors."
    )


def _log_likelihood(eta: Floats, y: Floats, weight: Floats) -> float:
    return float(weight @ (y * eta - np.logaddexp(0, eta)))


@dataclass(frozen=True)
class FunctionKernel:
    """A user's function of a subsample.

    Attributes
    ----------
    function : callable
        Takes the subsample (see `arguments`) and returns a number, an array, a
        Series or a dict.
    arguments : tuple
        Data sets whose rows are subsampled together, one positional argument
        each: arrays or data frames with observations in rows.
    names : tuple of str or None
        Components that every value must have; None before the first call.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    names: tuple[str, ...] | None = None

    # Statistics are smooth functions of the counts, as a rule.
    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    def fit(self, counts: Ints, rng: np.random.Generator) -> Any:
        """Evaluate the function on the literal subsample."""
        rows = np.repeat(np.arange(counts.size), counts)
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


SUBSAMPLE_ENTRIES = 1_000_000
"""Pairs of observations that an array kernel takes at a time."""


@dataclass(frozen=True)
class ArrayKernel:
    """A function that many subsamples are handed to in one array.

    Attributes
    ----------
    function : callable
        Takes subsamples of one size, shape (L, k) or (L, k, c), and returns their
        values, shape (L,).
    data : ndarray of shape (n,) or (n, c)
        Observations.
    """

    function: Callable[[Floats], Floats]
    data: Floats

    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    def values(self, rows: Ints) -> Floats:
        """Evaluate subsamples, given as rows of the data, shape (L, k) to (L, 1)."""
        step = max(1, SUBSAMPLE_ENTRIES // rows.shape[1] ** 2)
        parts = [
            self.function(self.data[rows[first : first + step]])
            for first in range(0, len(rows), step)
        ]
        return np.concatenate(parts)[:, None]


def take_rows(data: Any, rows: Ints) -> Any:
    """Take rows of a frame, a Series or an array, in that order."""
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def name_values(result: Any) -> tuple[list[str], Floats]:
    """Name the components of what a kernel returned.

    Examples
    --------
    >>> name_values({"a": 1.0, "b": 2.0})
    (['a', 'b'], array([1., 2.]))
    """
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
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return max(1, len(required))


def linear_kernel(
    name: str,
    X: Floats,
    y: Floats,
    *,
    classes: tuple[Any, ...] | None,
    weights: Floats | None,
) -> LinearKernel:
    """Build the kernel "ols" or "logit", after checking the response."""
    if name == "ols" and classes is not None:
        raise ValueError(
            "kernel='ols' needs a numeric response; this one is categorical with "
            f"levels {list(classes)}. Use 'logit', 'forest' or 'tree'."
        )
    if name == "logit":
        if classes is not None and len(classes) != 2:
            raise ValueError(
                f"kernel='logit' needs a response with two classes; got {len(classes)}"
                ". Use 'forest', or scikit-learn's LogisticRegression()."
            )
        if classes is None and not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(
                "kernel='logit' needs a response of zeros and ones or of two classes; "
                f"got numbers from {y.min():g} to {y.max():g}."
            )
    rank = int(np.linalg.matrix_rank(X))
    return LinearKernel(X, y, logit=name == "logit", weights=weights, rank=rank)


def estimator_kernel(
    estimator: BaseEstimator,
    X: Floats,
    y: Floats,
    *,
    n_classes: int | None,
    weights: Floats | None,
) -> EstimatorKernel:
    """Build a kernel from a scikit-learn estimator that fits the response."""
    name = type(estimator).__name__
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
    return EstimatorKernel(estimator, X, y, n_classes, weights)
