"""A million rows: growing and standard errors beside other packages, and beside before.

Run `python -m benchmarks.scale` for forests of the packages that are installed, each in
a fresh process on two threads, one after the other; `--before PATH` compares this tree
with another checkout instead: fit and summary at a million rows, and standard errors
at 1,000 to 100,000 query points. Read ratios, not seconds.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.python_peers import _sklearn_forest, run_vstatkit
from benchmarks.workloads import THREADS, Workload, make_data

MILLION = Workload(1_000_000, 10, 5000, 200, 100, 3)

PATIENCE = 1200
"""Seconds after which a measurement is given up, unless told otherwise."""


def run_sklearn(load: Workload, X: Any, y: Any, at: Any) -> None:
    """scikit-learn's forest and the infinitesimal jackknife from sparse counts."""
    from scipy import sparse  # noqa: PLC0415 timed on its own

    forest = _sklearn_forest(load).fit(X, y)
    h = np.stack([tree.predict(at) for tree in forest.estimators_])
    rows = np.concatenate(forest.estimators_samples_)
    trees = np.repeat(np.arange(load.B), load.k)
    ones = np.ones(rows.size)
    N = sparse.csr_array((ones, (trees, rows)), shape=(load.B, load.n))
    centred = h - h.mean(axis=0)
    raw = ((N.T @ centred / load.B) ** 2).sum(axis=0)
    raw - load.k * (centred**2).mean(axis=0) / load.B


def run_intelex(load: Workload, X: Any, y: Any, at: Any) -> None:
    """Intel's forest: it does not say which rows a tree saw, so no standard errors."""
    from sklearnex.ensemble import RandomForestRegressor  # noqa: PLC0415

    forest = RandomForestRegressor(
        load.B,
        max_features=load.mtry,
        max_samples=load.k,
        n_jobs=THREADS,
        random_state=1,
    )
    forest.fit(X, y).predict(at)


PYTHON: dict[str, tuple[str, Callable[..., None]]] = {
    "vstatkit": ("vstatkit", run_vstatkit),
    "scikit-learn + scipy": ("sklearn", run_sklearn),
    "scikit-learn-intelex (no se)": ("sklearnex", run_intelex),
}

R_READ = """
arguments <- commandArgs(trailingOnly = TRUE)
sizes <- as.integer(arguments[2:6])
file <- file(arguments[1], "rb")
x <- matrix(readBin(file, "double", sizes[1] * sizes[2]), sizes[1], sizes[2])
y <- readBin(file, "double", sizes[1])
at <- matrix(readBin(file, "double", sizes[3] * sizes[2]), sizes[3], sizes[2])
colnames(x) <- colnames(at) <- paste0("x", seq_len(sizes[2]))
B <- sizes[4]; k <- sizes[5]
library({package})
started <- Sys.time()
{body}
cat("seconds", as.numeric(difftime(Sys.time(), started, units = "secs")), "\\n")
"""

R_BODIES = {
    "ranger": """
forest <- ranger(x = x, y = y, num.trees = B, mtry = 3, keep.inbag = TRUE,
                 sample.fraction = k / nrow(x), replace = TRUE, min.node.size = 1,
                 num.threads = 2, seed = 1)
suppressWarnings(predict(forest, data.frame(at), type = "se", num.threads = 2))
""",
    "grf": """
forest <- regression_forest(x, y, num.trees = B, mtry = 3, min.node.size = 1,
                            sample.fraction = k / nrow(x), num.threads = 2, seed = 1)
predict(forest, at, estimate.variance = TRUE, num.threads = 2)
""",
}


def measure_python(peer: str) -> dict[str, float] | None:
    """Run a Python peer in a fresh process; None where it is not installed."""
    if importlib.util.find_spec(PYTHON[peer][0]) is None:
        return None
    command = [sys.executable, "-m", "benchmarks.scale", "--peer", peer]
    return _measured(command)


def measure_r(package: str, folder: Path) -> dict[str, float] | None:
    """Run an R peer in a fresh process; None where it is not installed."""
    asked = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
    try:
        missing = subprocess.run(["Rscript", "--vanilla", "-e", asked], check=False)
    except FileNotFoundError:
        return None
    if missing.returncode:
        return None
    X, y, at = make_data(MILLION)
    data, script = folder / "data.bin", folder / f"{package}.R"
    with data.open("wb") as file:
        for part in (X.T, y, at.T):
            np.ascontiguousarray(part).tofile(file)
    body = R_READ.replace("{package}", package).replace("{body}", R_BODIES[package])
    script.write_text(body)
    sizes = (MILLION.n, MILLION.p, MILLION.m, MILLION.B, MILLION.k)
    return _measured(["Rscript", "--vanilla", str(script), str(data), *map(str, sizes)])


def _measured(command: list[str], **settings: Any) -> dict[str, float]:
    """Run a command that prints its seconds, and measure its memory."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **settings)
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} failed.")
    lines = [line.split() for line in output.splitlines() if line.startswith("seconds")]
    return {"seconds": float(lines[-1][1]), "peak_mb": usage.ru_maxrss / 1024}


def run_peer(peer: str) -> None:
    """Run one Python peer in this process, and print its seconds."""
    X, y, at = make_data(MILLION)
    small = Workload(60, MILLION.p, 20, 8, 4, MILLION.mtry)
    PYTHON[peer][1](small, *make_data(small))  # imports are not the work
    start = time.perf_counter()
    PYTHON[peer][1](MILLION, X, y, at)
    print("seconds", time.perf_counter() - start)


def compare_peers() -> None:
    """Print time and memory of every peer, and their ratios to ours."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for peer in PYTHON:
            found[peer] = measure_python(peer)
        for package in R_BODIES:
            found[package] = measure_r(package, Path(folder))
    ours = found["vstatkit"]
    print(f"{'':32}{'seconds':>9}{'ratio':>7}{'MB':>8}{'ratio':>7}")
    for peer, figures in found.items():
        if figures is None or ours is None:
            print(f"{peer:32} not installed")
            continue
        time_ratio = figures["seconds"] / ours["seconds"]
        memory_ratio = figures["peak_mb"] / ours["peak_mb"]
        print(
            f"{peer:32}{figures['seconds']:9.1f}{time_ratio:7.1f}"
            f"{figures['peak_mb']:8.0f}{memory_ratio:7.1f}"
        )


PREPARE = """
import time, numpy as np, pandas as pd, vstatkit as vs
names = [f"x{j}" for j in range(10)]
rng = np.random.default_rng(1)

def made(n):
    x = pd.DataFrame(rng.uniform(size=(n, 10)), columns=names)
    y = 10 * np.sin(np.pi * x.x0 * x.x1) + 20 * (x.x2 - 0.5) ** 2 + 10 * x.x3 + 5 * x.x4
    return x.assign(y=y + rng.standard_normal(n))

formula = "y ~ " + " + ".join(names)
"""

FIT = """
data, at = made(1_000_000), made(100)
start = time.perf_counter()
fitted = vs.fit(formula, data, k=5000, B=200, at=at, rng=1, n_jobs=2)
"""

TASKS = {
    "fit, n = 1e6": f"{PREPARE}{FIT}print('seconds', time.perf_counter() - start)",
    "fit and summary, n = 1e6": (
        f"{PREPARE}{FIT}str(fitted.summary())\n"
        "print('seconds', time.perf_counter() - start)"
    ),
    **{
        f"get_prediction, m = {m:g}": (
            f"{PREPARE}\ndata, at = made(5000), made({m})\n"
            "fitted = vs.fit(formula, data, B=1000, rng=1, n_jobs=2)\n"
            "start = time.perf_counter()\nfitted.get_prediction(at)\n"
            "print('seconds', time.perf_counter() - start)"
        )
        for m in (10_000, 100_000)
    },
}


def measure_task(task: str, tree: Path, patience: int) -> dict[str, float] | None:
    """Run a task with the code of a checkout; None where it takes too long."""
    own = tree / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    limit = ["timeout", str(patience)]
    try:
        return _measured([*limit, python, "-c", TASKS[task]], cwd=tree)
    except RuntimeError:
        return None


def compare_before(before: Path, patience: int) -> None:
    """Print time and memory of the tasks in both checkouts, in turn."""
    now = Path(__file__).resolve().parent.parent
    print(f"{'':32}{'before':>9}{'now':>9}{'ratio':>7}{'MB before':>11}{'MB now':>8}")
    for task in TASKS:
        old, new = (measure_task(task, tree, patience) for tree in (before, now))
        if new is None:
            print(f"{task:32} failed")
            continue
        then = {"seconds": float(patience), "peak_mb": np.nan} if old is None else old
        sign = ">" if old is None else " "
        print(
            f"{task:32}{sign}{then['seconds']:8.1f}{new['seconds']:9.1f}"
            f"{sign}{then['seconds'] / new['seconds']:6.1f}"
            f"{then['peak_mb']:11.0f}{new['peak_mb']:8.0f}",
            flush=True,
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--patience", type=int, default=PATIENCE, metavar="SECONDS")
    parser.add_argument("--peer", help="run one Python peer, in this process")
    asked = parser.parse_args()
    if asked.peer is not None:
        run_peer(asked.peer)
    elif asked.before is not None:
        compare_before(asked.before.resolve(), asked.patience)
    else:
        compare_peers()


if __name__ == "__main__":
    main()
