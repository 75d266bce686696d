"""What is measured: sizes of data, forests and query points."""

from dataclasses import dataclass
from typing import Any

import numpy as np

THREADS = 2


@dataclass(frozen=True)
class Workload:
    """Rows n, features p, subsample size k, trees B, query points m, and mtry."""

    n: int
    p: int
    k: int
    B: int
    m: int
    mtry: int


WORKLOADS = {
    "W1": Workload(500, 5, 500, 2000, 100, 1),
    "W1b": Workload(500, 5, 100, 2000, 100, 1),
    "W2": Workload(5000, 10, 5000, 1000, 1000, 3),
    "W2b": Workload(5000, 10, 500, 1000, 1000, 3),
    "W3": Workload(50_000, 10, 5000, 500, 200, 3),
}


def make_data(load: Workload) -> tuple[Any, Any, Any]:
    """Friedman's function of uniform features, and uniform query points."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(load.n, load.p))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + rng.standard_normal(load.n)
    return X, y, rng.uniform(size=(load.m, load.p))
