"""Classical kernels by name, each defined on a subsample of any size.

Each is the unbiased estimate of its parameter from the subsample; at the
smallest size allowed it is the textbook kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vstatkit._typing import Floats


@dataclass(frozen=True)
class ClassicalKernel:
    """A named kernel.

    Attributes
    ----------
    function : callable
        Takes the subsample as an array with observations in rows.
    degree : int
        Smallest subsample it is defined on.
    n_columns : int
        Columns that the data must have.
    """

    function: Callable[[Floats], float]
    degree: int
    n_columns: int = 1


def mean(x: Floats) -> float:
    """Arithmetic mean."""
    return float(x.mean())


def variance(x: Floats) -> float:
    """Sample variance; `(x - y)**2 / 2` on pairs."""
    return float(x.var(ddof=1))


def gini(x: Floats) -> float:
    """Gini's mean difference; `|x - y|` on pairs."""
    k = x.size
    ranks = 2 * np.arange(1, k + 1) - k - 1
    return float(2 / (k * (k - 1)) * (ranks @ np.sort(x)))


def kendall(xy: Floats) -> float:
    """Kendall's tau-a; the sign of concordance on pairs."""
    k = len(xy)
    rows, columns = np.triu_indices(k, 1)
    step = np.sign(xy[rows] - xy[columns])
    return float((step[:, 0] * step[:, 1]).mean())


def moment3(x: Floats) -> float:
    """Unbiased third central moment."""
    k = x.size
    return float(k / ((k - 1) * (k - 2)) * ((x - x.mean()) ** 3).sum())


CLASSICAL: dict[str, ClassicalKernel] = {
    "mean": ClassicalKernel(mean, 1),
    "variance": ClassicalKernel(variance, 2),
    "gini": ClassicalKernel(gini, 2),
    "kendall": ClassicalKernel(kendall, 2, n_columns=2),
    "moment3": ClassicalKernel(moment3, 3),
}
"""Kernels that `statistic` knows by name."""


def classical_kernel(
    name: str, data: Any, k: int
) -> tuple[Callable[..., Any], tuple[Floats]]:
    """Look a kernel up and shape the data for it.

    Returns
    -------
    function, data
        The kernel, and its argument: an array with observations in rows.
    """
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
    return kernel.function, (array.ravel() if kernel.n_columns == 1 else array,)
