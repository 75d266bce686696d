"""Classical kernels by name, each defined on a subsample of any size.

Each is the unbiased estimate of its parameter from the subsample; at the
smallest size allowed it is the textbook kernel. Many subsamples of one size are
evaluated at once, as rows of an array.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Floats


@dataclass(frozen=True)
class ClassicalKernel:
    """A named kernel."""

    # Takes a subsample as an array of its observations, or many subsamples with one
    # more axis in front
    function: Callable[[Floats], Floats]
    degree: int  # smallest subsample it is defined on
    n_columns: int = 1  # columns that the data must have


def mean(x: Floats) -> Floats:
    """Arithmetic mean of the last axis."""
    return np.asarray(x.mean(axis=-1))


def variance(x: Floats) -> Floats:
    """Sample variance of the last axis; `(x - y)**2 / 2` on pairs."""
    return np.asarray(x.var(axis=-1, ddof=1))


def gini(x: Floats) -> Floats:
    """Gini's mean difference of the last axis; `|x - y|` on pairs."""
    k = x.shape[-1]
    ranks = 2 * np.arange(1, k + 1) - k - 1
    return np.asarray(2 / (k * (k - 1)) * (np.sort(x, axis=-1) @ ranks))


def kendall(xy: Floats) -> Floats:
    """Kendall's tau-a of pairs in the last axis; the sign of concordance on two."""
    rows, columns = np.triu_indices(xy.shape[-2], 1)
    step = np.sign(xy[..., rows, :] - xy[..., columns, :])
    return np.asarray((step[..., 0] * step[..., 1]).mean(axis=-1))


def moment3(x: Floats) -> Floats:
    """Unbiased third central moment of the last axis."""
    k = x.shape[-1]
    centred = x - x.mean(axis=-1, keepdims=True)
    return np.asarray(k / ((k - 1) * (k - 2)) * (centred**3).sum(axis=-1))


# Kernels that `statistic` knows by name.
CLASSICAL: dict[str, ClassicalKernel] = {
    "mean": ClassicalKernel(mean, 1),
    "variance": ClassicalKernel(variance, 2),
    "gini": ClassicalKernel(gini, 2),
    "kendall": ClassicalKernel(kendall, 2, n_columns=2),
    "moment3": ClassicalKernel(moment3, 3),
}


def classical_kernel(
    name: str, data: Any, k: int
) -> tuple[Callable[[Floats], Floats], Floats]:
    """Look up a kernel, and shape the data that it takes subsamples of."""
    if name not in CLASSICAL:
        raise ValueError(
            f"`h` must be a function or one of {', '.join(map(repr, CLASSICAL))}; "
            f"got {name!r}."
        )
    kernel = CLASSICAL[name]
    array = np.asarray(data, dtype=np.float64)
    columns = 1 if array.ndim == 1 else array.shape[1]
    if columns != kernel.n_columns:
        raise ValueError(
            f"{name!r} needs data with {kernel.n_columns} column(s); got {columns}."
        )
    if k < kernel.degree:
        raise ValueError(
            f"{name!r} is a statistic of {kernel.degree} observations, so `k` must be "
            f"at least {kernel.degree}; got {k}."
        )
    return kernel.function, array.ravel() if kernel.n_columns == 1 else array
