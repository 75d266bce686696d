"""Forests with standard errors: our seconds beside those of the peers.

Run `python -m benchmarks.peers [--quick] [--out DIR]`. Every measurement is a fresh
process that grows a forest and computes standard errors at query points, on two
threads; peers take turns, and the best of three rounds counts. Peers that are not
installed are named and left out (the extra `bench` installs the Python ones).
"""

import argparse
import importlib.util
import json
import math
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 2


@dataclass(frozen=True)
class Workload:
    """n rows, p features, subsamples of k, B trees, m query points, mtry."""

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
BASE = Workload(4000, 10, 1000, 400, 400, 3)
"""Where the growth of the cost is measured from."""


def make_data(load: Workload) -> tuple[Any, Any, Any]:
    """Friedman's function of uniform features, and uniform query points."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(load.n, load.p))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y += 10 * X[:, 3] + 5 * X[:, 4] + rng.standard_normal(load.n)
    return X, y, rng.uniform(size=(load.m, load.p))


def run_vstatkit(load: Workload, X: Any, y: Any, at: Any) -> None:
    """Grow our forest, keep its trees, and estimate as the default does."""
    from vstatkit.ensemble.evaluate import Task, evaluate  # noqa: PLC0415 timed on its own
    from vstatkit.ensemble.prediction import Predictor  # noqa: PLC0415
    from vstatkit.inference.estimate import estimate  # noqa: PLC0415
    from vstatkit.kernels.trees import tree_kernel  # noqa: PLC0415
    from vstatkit.sampling.registry import make_design  # noqa: PLC0415
    from vstatkit.variance.orders import measure_orders  # noqa: PLC0415
    from vstatkit.variance.reference import reference_rows  # noqa: PLC0415

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

R_PEERS = {
    "ranger": """
library(ranger)
started <- Sys.time()
forest <- ranger(y ~ ., data, num.trees = B, mtry = mtry, keep.inbag = TRUE,
                 sample.fraction = k / nrow(data), replace = TRUE, min.node.size = 1,
                 num.threads = 2, seed = 1)
suppressWarnings(predict(forest, at, type = "se", num.threads = 2))
""",
    "grf": """
library(grf)
started <- Sys.time()
x <- as.matrix(data[, names(data) != "y"])
forest <- regression_forest(x, data$y, num.trees = B, mtry = mtry, min.node.size = 1,
                            sample.fraction = min(0.5, k / nrow(data)),
                            num.threads = 2, seed = 1)
predict(forest, as.matrix(at), estimate.variance = TRUE, num.threads = 2)
""",
}

R_FRAME = """
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[1]); at <- read.csv(arguments[2])
B <- as.integer(arguments[3]); k <- as.integer(arguments[4])
mtry <- as.integer(arguments[5])
{body}
seconds <- as.numeric(difftime(Sys.time(), started, units = "secs"))
cat("seconds", seconds, "\\n")
"""


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
            "benchmarks.peers",
            "--one",
            peer,
            json.dumps(asdict(load)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def measure_r(peer: str, load: Workload, folder: Path) -> dict[str, float]:
    """Run an R peer in a fresh process; its own memory is what counts."""
    X, y, at = make_data(load)
    names = [f"x{j}" for j in range(load.p)]
    train, query = folder / "train.csv", folder / "at.csv"
    header = ",".join([*names, "y"])
    np.savetxt(
        train, np.column_stack([X, y]), delimiter=",", header=header, comments=""
    )
    np.savetxt(query, at, delimiter=",", header=",".join(names), comments="")
    script = folder / "peer.R"
    script.write_text(R_FRAME.replace("{body}", R_PEERS[peer]))
    sizes = [str(load.B), str(load.k), str(load.mtry)]
    process = subprocess.Popen(
        ["Rscript", "--vanilla", str(script), str(train), str(query), *sizes],
        stdout=subprocess.PIPE,
        text=True,
    )
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{peer} failed in R.")
    line = next(line for line in output.splitlines() if line.startswith("seconds"))
    return {"seconds": float(line.split()[1]), "peak_mb": usage.ru_maxrss / 1024}


def installed() -> tuple[list[str], list[str]]:
    """Peers that can run here, and those that cannot."""
    there, missing = [], []
    for peer, (module, _) in PYTHON_PEERS.items():
        found = importlib.util.find_spec(module) is not None
        (there if found else missing).append(peer)
    for peer in R_PEERS:
        (there if _has_r_package(peer) else missing).append(peer)
    return there, missing


def _has_r_package(name: str) -> bool:
    if shutil.which("Rscript") is None:
        return False
    code = f"quit(status = !requireNamespace('{name}', quietly = TRUE))"
    asked = ["Rscript", "--vanilla", "-e", code]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def compare(quick: bool) -> dict[str, Any]:
    """Measure every workload and peer, taking turns."""
    there, missing = installed()
    for peer in missing:
        print(f"not installed, left out: {peer}")
    names = ["W1b", "W2b"] if quick else list(WORKLOADS)
    rounds = 1 if quick else 3
    best: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for name in names:
                for peer in there:
                    load = WORKLOADS[name]
                    found = (
                        measure_python(peer, load)
                        if peer in PYTHON_PEERS
                        else measure_r(peer, load, Path(folder))
                    )
                    kept = best[name].setdefault(peer, found)
                    if found["seconds"] < kept["seconds"]:
                        best[name][peer] = found
                    print(f"round {turn + 1} {name} {peer}: {found['seconds']:.3f} s")
    return {"workloads": {n: asdict(WORKLOADS[n]) for n in names}, "best": best}


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
    from vstatkit.ensemble.evaluate import Task, evaluate  # noqa: PLC0415
    from vstatkit.kernels.trees import tree_kernel  # noqa: PLC0415
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
    from vstatkit.kernels.trees import tree_kernel  # noqa: PLC0415
    from vstatkit.sampling.counts import dense  # noqa: PLC0415
    from vstatkit.sampling.registry import make_design  # noqa: PLC0415
    from vstatkit.sampling.streams import learner_keys  # noqa: PLC0415

    load = WORKLOADS["W1"]
    X, y, at = make_data(load)
    kernel = tree_kernel("tree", X, y, n_classes=None, weights=None, options={})
    design = make_design("iid", load.n, load.k, replace=True, seed=1)
    counts, keys = dense(design.counts(0, load.B)), learner_keys(1, 0, load.B)
    ratios = []
    for _ in range(7):
        start = time.perf_counter()
        whole = kernel.grow(counts, keys, at[:3], keep=True)
        middle = time.perf_counter()
        paths = kernel.grow(counts, keys, at[:3])
        ratios.append((middle - start) / (time.perf_counter() - middle))
        if not np.array_equal(whole.values, paths.values):
            raise RuntimeError("paths of query points gave other values than trees.")
    return float(np.median(ratios))


def as_markdown(report: dict[str, Any]) -> str:
    """Tabulate seconds, ratios to ours and peak memory."""
    lines = [
        f"Machine: {report['machine']}. Two threads each, best of {report['rounds']}.",
        "",
        "| workload | peer | seconds | times ours | peak MB |",
        "|---|---|---|---|---|",
    ]
    for name, peers in report["best"].items():
        ours = peers["vstatkit"]["seconds"]
        for peer, found in peers.items():
            ratio = found["seconds"] / ours
            lines.append(
                f"| {name} | {peer} | {found['seconds']:.3f} | {ratio:.1f} | "
                f"{found['peak_mb']:.0f} |"
            )
    if "exponents" in report:
        shown = ", ".join(f"{n}: {e:.2f}" for n, e in report["exponents"].items())
        lines += ["", f"Exponent of our cost in each size, doubled alone: {shown}."]
        lines += [f"Two threads over one, growing W2: {report['threads']:.2f} x."]
        lines += [
            "Growing only the paths of three query points (W1, all features) over "
            f"whole trees: {report['restricted']:.2f} x, the same values bit by bit."
        ]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Describe the processor."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """Run the comparison and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two workloads, one round")
    parser.add_argument("--out", type=Path, help="folder for peers.json and peers.md")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        peer, load = options.one
        print(json.dumps(run_once(peer, Workload(**json.loads(load)))))
        return
    report = compare(options.quick)
    report |= {"machine": machine(), "rounds": 1 if options.quick else 3}
    if not options.quick:
        report |= {
            "exponents": growth_exponents(),
            "threads": thread_speedup(),
            "restricted": restricted_speedup(),
        }
    text = as_markdown(report)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "peers.json").write_text(json.dumps(report, indent=1))
        (options.out / "peers.md").write_text(text)


if __name__ == "__main__":
    main()
