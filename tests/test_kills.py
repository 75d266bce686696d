"""Killed while saving, the old or the new file is there, and it can be read."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import vstatkit as vs

KILLS = 200
PROJECT = Path(__file__).parents[1]


def kill_while_saving(path, delays):
    """Start a process that saves, and kill it, once for every delay."""
    command = [sys.executable, "-m", "tests.save_repeatedly", str(path)]
    for delay in delays:
        with subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay)
            process.kill()
        yield


def test_the_old_or_the_new_file_is_always_there(tmp_path):
    data = vs.datasets.mars(100, rng=1)
    path = tmp_path / "results.npz"
    saved = []
    for name, seed in (("one.npz", 1), ("two.npz", 2)):
        results = vs.fit("y ~ x1 + x2", data, B=300, rng=seed)
        results.save(tmp_path / name)
        saved.append(results.values)
    path.write_bytes((tmp_path / "one.npz").read_bytes())
    delays = np.random.default_rng(1).uniform(0, 0.3, KILLS)
    found = []
    for _ in kill_while_saving(path, delays):
        values = vs.load(path).values
        found.append([np.array_equal(values, one) for one in saved])
    assert np.sum(found, axis=1).tolist() == [1] * KILLS
    assert np.any(found, axis=0).all()
