"""Forests with standard errors in Python: ours and those of other packages.

A measurement runs `python -m benchmarks.python_peers PEER WORKLOAD`, a fresh process.
"""

import importlib
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.workloads import THREADS, Workload, make_data


def run_vstatkit(load: Workload, X: Any, y: Any, at: Any) -> None:
    """Grow our forest, keep its trees, and estimate as the default does."""
    from vstatkit.ensemble.evaluation import (  # noqa: PLC0415
        Task,
        evaluate,
    )
    from vstatkit.ensemble.prediction import Predictor  # noqa: PLC0415
    from vstatkit.inference.estimates import estimate  # noqa: PLC0415
    from vstatkit.kernels.tree import tree_kernel  # noqa: PLC0415
    from vstatkit.sampling.registry import make_design  # noqa: PLC0415
    from vstatkit.variance.higher_orders import (  # noqa: PLC0415
        measure_orders,
        reference_rows,
    )

    kernel = tree_kernel(
        "forest",
        X,
        y,
        n_classes=None,
        weights=None,
        options={"max_features": load.mtry},
    )
    design = make_design("iid", load.n, load.k, replace=True, seed=1)
    task = Task(kernel, design, at, None, keep=True, oob=False)
    grown = evaluate(task, 0, load.B, n_jobs=THREADS, progress=False)
    predictor = Predictor(kernel, grown.learners, None, None, THREADS)
    rows = reference_rows(X, design.seed)
    orders = measure_orders(
        design, load.B, lambda L: predictor.first(L).values(rows), kernel.kind
    )
    estimate(design, grown.values, "hoeffding", orders=orders)


def run_sklearn(load: Workload, X: Any, y: Any, at: Any) -> None:
    """scikit-learn's forest and the bias-corrected infinitesimal jackknife."""
    forest = _sklearn_forest(load).fit(X, y)
    h = np.stack([tree.predict(at) for tree in forest.estimators_])
    samples = forest.estimators_samples_
    N = np.stack([np.bincount(drawn, minlength=load.n) for drawn in samples])
    centred = h - h.mean(axis=0)
    raw = ((N.T.astype(float) @ centred / load.B) ** 2).sum(axis=0)
    spread = N.var(axis=0).mean() * load.n
    raw - spread * (centred**2).mean(axis=0) / load.B


def _sklearn_forest(load: Workload) -> Any:
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    return RandomForestRegressor(
        load.B,
        max_features=load.mtry,
        max_samples=load.k,
        n_jobs=THREADS,
        random_state=1,
    )


def run_forestci(load: Workload, X: Any, y: Any, at: Any) -> None:
    """scikit-learn's forest and forestci's variance, not calibrated."""
    import forestci  # noqa: PLC0415

    forest = _sklearn_forest(load).fit(X, y)
    forestci.random_forest_error(forest, X.shape, at, calibrate=False)


def run_econml(load: Workload, X: Any, y: Any, at: Any) -> None:
    """EconML's forest: honest, half-samples at most, little bags."""
    from econml.grf import RegressionForest  # noqa: PLC0415

    share = min(0.45, load.k / load.n)
    forest = RegressionForest(
        load.B,
        max_features=load.mtry,
        max_samples=share,
        n_jobs=THREADS,
        random_state=1,
    )
    forest.fit(X, y.reshape(-1, 1)).prediction_stderr(at)


PYTHON_PEERS: dict[str, tuple[str, Callable[..., None]]] = {
    "vstatkit": ("vstatkit", run_vstatkit),
    "scikit-learn + numpy": ("sklearn", run_sklearn),
    "forestci": ("forestci", run_forestci),
    "EconML": ("econml", run_econml),
}


def run_once(peer: str, load: Workload) -> dict[str, float]:
    """Run one Python peer in this process."""
    X, y, at = make_data(load)
    module, function = PYTHON_PEERS[peer]
    importlib.import_module(module)
    small = Workload(60, load.p, 20, 8, 4, load.mtry)
    function(small, *make_data(small))  # imports and first calls are not the work
    start = time.perf_counter()
    function(load, X, y, at)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak}


def measure_python(peer: str, load: Workload) -> dict[str, float]:
    """Run a Python peer in a fresh process."""
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.python_peers",
            peer,
            json.dumps(asdict(load)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    name, sizes = sys.argv[1:]
    print(json.dumps(run_once(name, Workload(**json.loads(sizes)))))
