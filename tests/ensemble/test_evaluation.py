import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit import workers
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.kernels.tree import tree_kernel
from vstatkit.kernels.user_defined import FunctionKernel
from vstatkit.sampling.registry import make_design


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
    monkeypatch.setattr("vstatkit.workers.parallel.PROGRESS_DELAY", 0)
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


FINE_WORK = """
import os, signal, sys, threading, time
import numpy as np
import vstatkit as vs

rng = np.random.default_rng(1)
X, y = rng.normal(size=(4000, 5)), rng.normal(size=4000)
few = vs.ForestRegressor(100, random_state=1, n_jobs=2).fit(X, y)
many = np.repeat(X, 100, axis=0)
works = {{
    "fit": lambda: vs.ForestRegressor(20_000, random_state=1, n_jobs=2).fit(X, y),
    "predict": lambda: few.predict(many),
}}
for delay in (0.15, 0.3, 0.6):
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        works[{work!r}]()
        sys.exit("finished")
    except KeyboardInterrupt:
        used = time.process_time()
        time.sleep(0.3)
        print(time.process_time() - used < 0.1)
print("done", flush=True)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
works[{work!r}]()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize("work", ["fit", "predict"])
def test_ctrl_c_leaves_no_thread_in_compiled_code(work):
    """Nothing computes after it, and the process ends as Ctrl-C ends one."""
    command = [sys.executable, "-c", FINE_WORK.format(work=work)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["True", "True", "True", "done"], answer.stderr
    assert answer.stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert answer.returncode == -signal.SIGINT


COMMANDS = {
    "fit": ["fit", "y ~ .", "mars.csv", "--n-jobs", "2", "--B", "20000", "--seed", "1"],
    "reproduce": ["reproduce", "table2", "--n-jobs", "2", "--out", "paper"],
}

STARTED = """
import sys
from vstatkit.cli import main
print("started", flush=True)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
@pytest.mark.parametrize("delay", [0.5, 1.5])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_the_command_with_130(name, delay, tmp_path):
    vs.datasets.mars(3000, rng=1).to_csv(tmp_path / "mars.csv", index=False)
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, *COMMANDS[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout.readline() == "started\n", process.stderr.read()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()  # a failure must not hang
            raise
    assert errors.splitlines()[-1] == "vstatkit: interrupted"
    assert process.returncode == 130


def test_an_error_calls_off_the_other_workers():
    """The calls under way read the flag, those that wait never begin."""
    begun, ended = [], []
    together = threading.Barrier(2)

    def work(number):
        begun.append(number)
        together.wait(timeout=30)
        if number == 0:
            raise ValueError("no")
        while True:
            time.sleep(0.01)
            try:
                workers.go_on()
            except workers.CalledOffError:
                ended.append(number)
                raise

    with joblib.parallel_config("threading"), pytest.raises(ValueError, match="no"):
        list(workers.in_parallel(work, ((j,) for j in range(2)), n_jobs=2))
    assert sorted(begun) == [0, 1]
    assert ended == [1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_iterator_that_is_closed_leaves_nothing_running(n_jobs):
    """And joblib does not warn of answers that nobody has read."""
    answers = workers.in_parallel(abs, ((-j,) for j in range(100)), n_jobs=n_jobs)
    assert [next(answers), next(answers)] == [0, 1]
    answers.close()
    assert list(answers) == []


def test_calls_within_calls_stop_with_the_outer_ones():
    seen = []

    def inner(_):
        return workers.current_stop()

    def outer():
        seen.append(workers.current_stop())
        return list(workers.in_parallel(inner, [(1,), (2,)], n_jobs=1))

    ((first, second),) = workers.in_parallel(outer, [()], n_jobs=1)
    assert first is second is not seen[0]
    seen[0].set()
    assert first.is_set()
    assert workers.current_stop() is None
