"""Fit with a checkpoint in processes that are killed at any time, until one finishes.

Prints, for every case, how many learners each kill left on disk, how many there are in
the end, and what differs from a fit that nobody interrupted.
"""

import json
import os
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from vstatkit.ensemble import evaluation
from vstatkit.storage import checkpoint
from vstatkit.storage.checkpoint import range_files, read_sums, sums_files

KILLS = 4


def ratio(frame):
    return {"ratio": frame["y"].mean() / frame["x1"].mean(), "y": frame["y"].median()}


def cases(data):
    """Functions of a checkpoint and workers, each a fit of a fraction of a second."""
    common = {"k": 40, "B": 120, "rng": 5}
    new = data.head(4)
    return {
        "forest": lambda **c: vs.fit("y ~ x1 + x4", data, at=new, **common, **c),
        "three classes": lambda **c: vs.fit("kind ~ x1 + x4", data, **common, **c),
        "clusters": lambda **c: vs.fit(
            "y ~ x1", data, k=10, B=120, groups="clinic", weights="x2", rng=5, **c
        ),
        "auto": lambda **c: vs.fit("y ~ x1 + x4", data, k=20, tol=0.3, rng=5, **c),
        "balanced": lambda **c: vs.fit(
            "y ~ x1", data, design="balanced", block=50, **common, **c
        ),
        "OLS": lambda **c: vs.fit("y ~ x1 + x4", data, kernel="ols", **common, **c),
        "scikit-learn": lambda **c: vs.fit(
            "y ~ x1 + x4", data, kernel=KNeighborsRegressor(3), **common, **c
        ),
        "function": lambda **c: vs.fit("y ~ x1", data, kernel=ratio, **common, **c),
        "statistic": lambda **c: vs.statistic(ratio, data, **common, **c),
        "complete": lambda **c: vs.statistic(
            "gini", data["y"].to_numpy()[:12], k=3, B="complete", replace=False, **c
        ),
    }


def small_batches(n):
    """Have many files to be killed between; batches decide how sums are rounded."""
    evaluation.BATCH_SIZE = 4
    evaluation.BATCH_ENTRIES = 4 * n
    evaluation.ARRAY_ENTRIES = 4
    checkpoint.SAVE_SECONDS = 0.0
    # A process is killed here, not the machine, so nothing needs to reach the disk.
    # The pause leaves time to kill a process before it has finished.
    os.fsync = lambda handle: time.sleep(0.003)


def numbers(res, data):
    """All that a fit gives, by name."""
    found = {
        "values": res.values,
        "bse": res.bse.to_numpy(),
        "summary": np.array(str(res.summary())),
    }
    if res.effect_values is not None:
        found["effects"] = res.effects.to_numpy(dtype=str)
        found["moves"] = res.effect_values.values
    if res.predictor is not None:
        found["predictions"] = np.asarray(res.predict(data))
        found["standard errors"] = res.get_prediction(data.head(9)).se_mean.to_numpy()
    if res.scores is not None:
        found["out-of-bag sums"] = res.recipe.oob.total
        found["residuals"] = res.scores.residuals
        found["scores"] = pd.Series(res.scores.table).to_numpy()
    return found


def differing(one, other):
    names = {**one, **other}
    return [n for n in names if not np.array_equal(one.get(n), other.get(n))]


def on_disk(directory):
    return sum(stop - start for start, stop in range_files(directory, "learners"))


def counted(directory):
    """Count learners whose sums are there too: the next process begins after them."""
    return max(
        (read_sums(one).stop for one in sums_files(directory).values()), default=0
    )


def kill_after(child, directory, learners, delay):
    """Kill a process some time after it has kept so many learners, or has ended."""
    while on_disk(directory) < learners and not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.001)
    time.sleep(delay)
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run_killed(fit, directory, B, rng):
    """Run in forked processes; returns the learners on disk after every kill."""
    left = []
    for learners in np.sort(rng.integers(0, 0.8 * B, KILLS)):
        child = os.fork()
        if child == 0:
            fit(checkpoint=directory, n_jobs=1 + len(left) % 2)
            os._exit(0)
        kill_after(child, directory, learners, rng.uniform(0, 0.02))
        left.append(counted(directory))
    return left


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(7)
    data = vs.datasets.mars(80, rng=4).assign(clinic=np.arange(80) % 20)
    data["kind"] = np.array(["a", "b", "c"])[np.arange(80) % 3]
    small_batches(len(data))
    found = {}
    for name, fit in cases(data).items():
        whole = fit()
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            left = run_killed(fit, directory, len(whole.values), rng)
            again = fit(checkpoint=directory, n_jobs=2)
        unlike = differing(numbers(again, data), numbers(whole, data))
        found[name] = {"left": left, "B": len(whole.values), "unlike": unlike}
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
