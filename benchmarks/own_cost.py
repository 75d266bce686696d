"""How our own cost grows, and what threads and restricted growth gain."""

import math
import time
from dataclasses import asdict

import numpy as np

from benchmarks.python_peers import measure_python
from benchmarks.workloads import WORKLOADS, Workload, make_data

BASE = Workload(4000, 10, 1000, 400, 400, 3)
"""The workload from which each size is doubled."""


def growth_exponents() -> dict[str, float]:
    """Double n, k, B and m one at a time; the exponent of our cost in each."""
    base = min(measure_python("vstatkit", BASE)["seconds"] for _ in range(3))
    exponents = {}
    for name in ("n", "k", "B", "m"):
        load = Workload(**{**asdict(BASE), name: 2 * getattr(BASE, name)})
        seconds = min(measure_python("vstatkit", load)["seconds"] for _ in range(3))
        exponents[name] = math.log2(seconds / base)
    return exponents


def thread_speedup() -> float:
    """Time of growing W2 on one thread over that on two, best of three each."""
    from vstatkit.ensemble.evaluation import (  # noqa: PLC0415
        Task,
        evaluate,
    )
    from vstatkit.kernels.tree import tree_kernel  # noqa: PLC0415
    from vstatkit.sampling.registry import make_design  # noqa: PLC0415

    load = WORKLOADS["W2"]
    X, y, at = make_data(load)
    options = {"max_features": load.mtry}
    kernel = tree_kernel("forest", X, y, n_classes=None, weights=None, options=options)
    design = make_design("iid", load.n, load.k, replace=True, seed=1)
    task = Task(kernel, design, at, None, keep=True, oob=False)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for n_jobs, found in times.items():
            start = time.perf_counter()
            evaluate(task, 0, 400, n_jobs=n_jobs, progress=False)
            found.append(time.perf_counter() - start)
    return min(times[1]) / min(times[2])


def restricted_speedup() -> float:
    """Whole trees over paths of three points: W1, all features; median of seven."""
    from vstatkit.kernels.base import UnitDraw  # noqa: PLC0415
    from vstatkit.kernels.tree import tree_kernel  # noqa: PLC0415
    from vstatkit.sampling.design import to_dense  # noqa: PLC0415
    from vstatkit.sampling.registry import make_design  # noqa: PLC0415
    from vstatkit.sampling.streams import learner_keys  # noqa: PLC0415

    load = WORKLOADS["W1"]
    X, y, at = make_data(load)
    kernel = tree_kernel("tree", X, y, n_classes=None, weights=None, options={})
    design = make_design("iid", load.n, load.k, replace=True, seed=1)
    counts, keys = to_dense(design.counts(0, load.B)), learner_keys(1, 0, load.B)
    ratios = []
    for _ in range(7):
        start = time.perf_counter()
        whole = kernel.grow(UnitDraw(counts), keys, at[:3], keep=True)
        middle = time.perf_counter()
        paths = kernel.grow(UnitDraw(counts), keys, at[:3])
        ratios.append((middle - start) / (time.perf_counter() - middle))
        if not np.array_equal(whole.values, paths.values):
            raise RuntimeError("paths of query points gave other values than trees.")
    return float(np.median(ratios))
