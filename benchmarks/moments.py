"""Cost of the moments: one pass for all estimators, and its memory.

Run `python -m benchmarks.moments`. Times are printed as ratios to one dense
product `N.T @ H` in float64, taken in turn with ours in the same process.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vstatkit.sampling.registry import make_design
from vstatkit.variance.formulas import (
    zeta_1_bm,
    zeta_1_corrected_u,
    zeta_1_corrected_v,
    zeta_1_ij,
    zeta_1_ij_u,
)
from vstatkit.variance.moments import EnsembleSums, moments_from_sums, sum_ensemble

REPEATS = 7


def best_of(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Time functions in turn; the best of several rounds each."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(REPEATS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def one_pass() -> dict[str, float]:
    """Compare five estimators from one pass with a single product."""
    B, n, m, k = 1000, 5000, 1000, 2500
    design = make_design("iid", n, k, replace=True, seed=1)
    N = np.asarray(design.counts(0, B), dtype=np.float64)
    H = np.random.default_rng(1).normal(size=(B, m))

    def ours() -> list[Any]:
        sums = EnsembleSums.zero(n, k, H[0])
        sums.add(N, H)
        moments = moments_from_sums(sums)
        return [
            zeta_1_ij(moments),
            zeta_1_ij_u(moments, replace=True),
            zeta_1_bm(moments),
            zeta_1_corrected_v(moments),
            zeta_1_corrected_u(moments),
        ]

    return best_of({"product": lambda: N.T @ H, "ours": ours})


def streaming_memory() -> dict[str, float]:
    """Measure the peak of a pass over many learners, in a fresh process."""
    B, n, m = 20_000, 5000, 200
    design = make_design("iid", n, 911, replace=True, seed=1)
    values = np.random.default_rng(1).normal(size=(B, m))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 1024
    start = time.perf_counter()
    moments_from_sums(sum_ensemble(design, values))
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"raised_mb": (after - before) / 1024, "seconds": seconds}


def main() -> None:
    """Print the figures."""
    times = one_pass()
    ratio = times["ours"] / times["product"]
    print(
        f"one pass, B=1000 n=5000 m=1000, five estimators: {times['ours']:.3f} s "
        f"against {times['product']:.3f} s for N.T @ H, ratio {ratio:.2f}"
    )
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.moments", "--memory"],
        capture_output=True,
        text=True,
        check=True,
    )
    memory = json.loads(answer.stdout)
    print(
        f"streaming, B=20000 n=5000 m=200: peak raised by {memory['raised_mb']:.0f} MB "
        f"in {memory['seconds']:.1f} s"
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--memory"]:
        print(json.dumps(streaming_memory()))
    else:
        main()
