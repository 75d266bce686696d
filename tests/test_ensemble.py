import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit import ensemble
from vstatkit.ensemble import Task, evaluate
from vstatkit.forest.trees import tree_kernel
from vstatkit.kernels import FunctionKernel
from vstatkit.subsample import make_design


@pytest.fixture
def task():
    data = vs.datasets.mars(60, rng=2)
    X, y = data[["x1", "x2"]].to_numpy(), data["y"].to_numpy()
    kernel = tree_kernel("forest", X, y, n_classes=None, weights=None, options={})
    design = make_design("iid", 60, 20, replace=True, seed=9)
    return Task(kernel, design, X[:4], None, keep=True)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_values_do_not_depend_on_workers_or_batches(task, n_jobs, batch_size):
    whole = evaluate(task, 0, 80, n_jobs=1, batch_size=80)
    parts = evaluate(task, 0, 80, n_jobs=n_jobs, batch_size=batch_size)
    np.testing.assert_array_equal(whole.values, parts.values)
    np.testing.assert_array_equal(whole.oob.times, parts.oob.times)
    assert_allclose(whole.oob.mean, parts.oob.mean, rtol=1e-13)
    assert len(parts.learners) == 80


def test_summaries_do_not_depend_on_workers():
    data = vs.datasets.mars(60, rng=2)
    one, two = (
        str(vs.fit("y ~ .", data, B=100, rng=1, n_jobs=n_jobs).summary())
        for n_jobs in (1, 2)
    )
    assert one == two


def test_processes_give_the_same_values(task):
    here = evaluate(task, 0, 10)
    with joblib.parallel_config("loky", n_jobs=2):
        there = evaluate(task, 0, 10, batch_size=5)
    np.testing.assert_array_equal(here.values, there.values)


def test_continuing_equals_starting_over(task):
    whole = evaluate(task, 0, 50)
    joined = evaluate(task, 0, 20) + evaluate(task, 20, 50)
    np.testing.assert_array_equal(whole.values, joined.values)
    assert_allclose(whole.oob.total, joined.oob.total, rtol=1e-13)


def test_out_of_bag_means_use_only_learners_that_missed_the_row(task):
    result = evaluate(task, 0, 30)
    counts = task.design.counts(0, 30)
    row = 7
    outside = [b for b in range(30) if counts[b, row] == 0]
    by_hand = [
        task.kernel.predict(result.learners[b], task.kernel.X[[row]]).item()
        for b in outside
    ]
    assert result.oob.times[row] == len(outside)
    assert_allclose(result.oob.mean[row, 0], np.mean(by_hand), rtol=1e-12)


def test_clusters_enter_and_leave_together():
    data = vs.datasets.mars(30, rng=1).assign(site=np.repeat(list("abcdef"), 5))
    seen = []

    def note(frame):
        seen.append(frame["site"].value_counts())
        return 1.0

    res = vs.fit("y ~ x1", data, kernel=note, groups="site", k=3, B=20, rng=1)
    assert all((sizes % 5 == 0).all() and sizes.sum() == 15 for sizes in seen)
    assert res.design.n == 6
    assert list(res.units) == list("abcdef")


def test_progress_bar_on_request(task, capsys):
    evaluate(task, 0, 20, progress=True)
    assert "learners" in capsys.readouterr().err


def test_no_progress_bar_off_a_terminal(task, capsys, monkeypatch):
    monkeypatch.setattr(ensemble, "PROGRESS_DELAY", 0)
    evaluate(task, 0, 20)
    assert capsys.readouterr().err == ""


def test_an_interrupt_ends_the_work(task):
    def interrupted(_):
        raise KeyboardInterrupt

    stopped = Task(
        FunctionKernel(interrupted, (pd.Series(range(60)),)),
        task.design,
        None,
        None,
        keep=False,
    )
    with pytest.raises(KeyboardInterrupt):
        evaluate(stopped, 0, 20, n_jobs=2, batch_size=5)


LONG_WORK = """
import joblib, os, time, numpy as np, vstatkit as vs

def slow(x):
    os.write(1, b"w")
    time.sleep(0.2)
    return x.mean()

with joblib.parallel_config({backend!r}, n_jobs=2):
    vs.statistic(slow, np.arange(20.0), k=5, B=5000, rng=1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_ctrl_c_leaves_no_stray_process(backend):
    with subprocess.Popen(
        [sys.executable, "-c", LONG_WORK.format(backend=backend)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        started = process.stdout.read(4)
        assert started == "wwww", process.stderr.read()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # a failure must not hang
            raise
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    deadline = time.monotonic() + 30
    while _group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _group_lives(process.pid)


def _group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
