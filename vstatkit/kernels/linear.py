"""Coefficients of linear and logistic regressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from vstatkit._typing import Floats, Ints
from vstatkit.json_values import check, take, take_floats
from vstatkit.kernels.base import (
    Arrays,
    Fields,
    KernelCodec,
    KernelKind,
    RowKernel,
    Training,
)


@dataclass(frozen=True)
class LinearKernel(RowKernel):
    """Coefficients of a least-squares or logistic regression."""

    X: Floats  # (n, p): design matrix
    y: Floats  # (n,): response; zeros and ones for the logit
    logit: bool  # logistic regression instead of least squares
    weights: Floats | None  # (n,): weight of every observation
    rank: int = 0  # rank of the design matrix

    coefficients: ClassVar[bool] = True
    n_outputs: ClassVar[int] = 1
    kind: ClassVar[KernelKind] = KernelKind.SMOOTH

    @property
    def n_classes(self) -> int | None:
        """Two for the logit, none otherwise."""
        return 2 if self.logit else None

    @property
    def n_features(self) -> int:
        """Columns of the design matrix."""
        return int(self.X.shape[1])

    def fit_rows(self, rows: Ints, times: Ints, rng: np.random.Generator) -> Floats:
        """Estimate the coefficients, with `times` as frequency weights."""
        weight = times.astype(np.float64)
        if self.weights is not None:
            weight *= self.weights[rows]
        X, y = self.X[rows], self.y[rows]
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
        """Return the coefficients."""
        return learner


def fit_ols(X: Floats, y: Floats, weight: Floats) -> tuple[Floats, int]:
    """Weighted least squares, of minimum norm if not unique, and the rank."""
    root = np.sqrt(weight)
    answer = np.linalg.lstsq(X * root[:, None], y * root, rcond=None)
    return np.asarray(answer[0]), int(answer[2])


RANK_ROWS = 65_536  # rows of the design matrix that are read at a time to find its rank
LOGIT_STEPS = 50  # newton steps after which a logit fit is abandoned


def fit_logit(X: Floats, y: Floats, weight: Floats) -> Floats:
    """Weighted logistic regression by Newton's method with step halving.

    It replaces statsmodels' GLM, which reports separation by warnings, since these
    cannot be caught safely in threads.
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
            eta = X @ (beta + step)
            fit_then = float(weight @ (y * eta - np.logaddexp(0, eta)))
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


def linear_kernel(
    name: str, training: Training, options: Mapping[str, Any]
) -> LinearKernel:
    """Build the kernel "ols" or "logit", after checking the response."""
    y, classes = training.y, training.classes
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
    X = training.X
    return LinearKernel(X, y, name == "logit", training.weights, rank_of(X))


def rank_of(X: Floats) -> int:
    """Count the independent columns, as numpy's `matrix_rank` does.

    Rows are read in blocks, since the data may not fit into memory: the triangular
    factor of the rows so far replaces them.
    """
    n, p = X.shape
    triangle = np.empty((0, p))
    for first in range(0, n, RANK_ROWS):
        rows = np.concatenate([triangle, X[first : first + RANK_ROWS]])
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    sizes = np.linalg.svd(triangle, compute_uv=False)
    if not sizes.size:
        return 0
    return int(np.sum(sizes > sizes.max() * max(n, p) * np.finfo(np.float64).eps))


def _pack(kernel: LinearKernel, learners: list[Floats]) -> tuple[Fields, Arrays]:
    return {"logit": kernel.logit}, {"coefficients": np.stack(learners)}


def _unpack(
    fields: Mapping[str, Any], arrays: Arrays, B: int, p: int
) -> tuple[LinearKernel, list[Floats]]:
    coefficients = take_floats(arrays, "coefficients", 2)
    check(coefficients.shape == (B, p), "coefficients and columns differ.")
    logit = take(fields, "logit", bool)
    kernel = LinearKernel(np.empty((0, p)), np.empty(0), logit, None)
    return kernel, list(coefficients)


LINEAR_CODEC = KernelCodec(
    "linear", LinearKernel, ("logit",), ("coefficients",), _pack, _unpack
)
