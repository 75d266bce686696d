"""Fit in a separate process; print how much its memory grew, and the plan."""

import gc
import json
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import vstatkit as vs
from vstatkit import fit_steps
from vstatkit.ensemble.memory import plan_memory


def peak():
    """Return the largest memory of this process in bytes.

    Linux hands `ru_maxrss` on from the process that started this one, which may be
    larger; its own mark is in its status.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(case):
    warnings.simplefilter("ignore")
    n, p, q = (case.pop(name) for name in ("n", "p", "q"))
    rng = np.random.default_rng(1)
    names = [f"x{j}" for j in range(p)]
    X, points = rng.normal(size=(n, p)), rng.normal(size=(q, p))
    data = pd.DataFrame(X, columns=names).assign(y=X[:, 0] + rng.normal(size=n))
    at = pd.DataFrame(points, columns=names)
    vs.fit("y ~ .", data.head(200), at=at.head(2), k=20, B=10, rng=1)
    seen = {}
    original = fit_steps.check_fit_memory

    def watched(task, size, options):
        needs = plan_memory(task, options.n_jobs, options.stack or ()).needs(size)
        seen.update(needs=sum(needs.values()) + task.kernel.X.nbytes)
        return original(task, size, options)

    fit_steps.check_fit_memory = watched
    gc.collect()
    before = peak()
    vs.fit("y ~ .", data, at=at, rng=1, variance="ij", **case)
    print(json.dumps({"grown": peak() - before, "planned": seen["needs"]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
