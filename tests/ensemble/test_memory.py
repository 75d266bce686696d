"""Memory: the plan of a fit beside what is measured, limits, and what is available."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.available_memory import available_memory
from vstatkit.cli import main
from vstatkit.ensemble import memory
from vstatkit.ensemble.evaluation import Task
from vstatkit.ensemble.memory import (
    MemoryPlan,
    learner_bytes,
    memory_bytes,
    plan_memory,
)
from vstatkit.sampling.registry import make_design

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(600, rng=1)


def starved(monkeypatch, size):
    monkeypatch.setattr(memory, "available_memory", lambda: size)
    monkeypatch.setattr(memory, "SMALL", 0)


# The plan beside what is there


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured on Linux")
@pytest.mark.parametrize(
    "case",
    [
        {"n": 5000, "k": 3000, "B": 1200, "q": 5},
        {"n": 2000, "k": 200, "B": 800, "q": 8000},
        {"n": 200_000, "k": 20_000, "B": 24, "q": 5},
        {"n": 2000, "k": 100, "B": 1500, "q": 8000, "target": "truth"},
    ],
    ids=["learners", "values", "ranks", "a mix"],
)
def test_the_plan_is_within_a_factor_of_two(case):
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.fit_memory",
            json.dumps({"p": 5, **case}),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert 0.5 < found["planned"] / found["grown"] < 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"replace": False},
        {"min_samples_leaf": 5},
        {"min_samples_split": 20},
        {"max_depth": 4},
        {"max_leaf_nodes": 9},
        {"honest": True},
        {"groups": np.arange(600) // 3, "k": 70},
    ],
    ids=lambda options: " ".join(options) or "default",
)
def test_trees_are_as_large_as_planned(data, options):
    res = vs.fit("y ~ .", data, **{"k": 200, "B": 20, "rng": 1, **options})
    trees = res.predictor.learners
    kernel, rest = res.predictor.kernel, memory.OBJECT_BYTES
    found = np.mean([tree.nbytes for tree in trees])
    planned = learner_bytes(kernel, res.design, 600) - rest
    assert 0.7 < planned / found < 1.4


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_trees_of_classes_are_within_a_factor_of_two(data, noise):
    drawn = np.random.default_rng(1).normal(size=600)
    kind = np.where(data["y"] + noise * drawn > 14, "a", "b")
    res = vs.fit("kind ~ .", data.drop(columns="y").assign(kind=kind), B=20, rng=1)
    found = np.mean([tree.nbytes for tree in res.predictor.learners])
    planned = learner_bytes(res.predictor.kernel, res.design, 600)
    assert 0.5 < (planned - memory.OBJECT_BYTES) / found < 2.2


def test_the_parts_add_up():
    fixed = {memory.RANKS: 720, memory.COUNTS: 320, memory.SUMS: 648}
    plan = MemoryPlan(fixed, values=64.0, learner=50.0)
    assert sum(plan.needs(7).values()) == 720 + 320 + 648 + 7 * (64 + 50)
    for B in (1, 7, 100):
        limit = sum(plan.needs(B).values())
        assert plan.most(limit) == B
        assert plan.most(limit - 1) == B - 1


def test_trees_beyond_a_size_go_to_disk():
    fixed = {memory.RANKS: 720, memory.COUNTS: 320, memory.SUMS: 648}
    plan = MemoryPlan(fixed, values=64.0, learner=2.0**20 + 9, spilled=2.0**20)
    few, many = plan.needs(60), plan.needs(500)
    assert few[memory.LEARNERS] == 60 * (2**20 + 9)
    assert many[memory.LEARNERS] == memory.RESIDENT_BYTES + 500 * 9
    for B in (1, 60, 500, 10_000):
        limit = sum(plan.needs(B).values())
        assert plan.most(limit) == B
        assert plan.most(limit - 1) == B - 1


def test_plans_know_kernels_without_learners(data):
    res = vs.fit("y ~ x1 + x2", data, kernel="ols", B=20, rng=1)
    plan = plan_memory(res.recipe.task, 1)
    n = len(data)
    sums = {memory.RANKS: 0, memory.COUNTS: n * 8, memory.SUMS: n * (1 + 1) * 8 * 2}
    assert (plan.values, plan.fixed) == (2 * 3 * 8, sums)
    two = vs.statistic(lambda d: {"a": d.y.mean(), "b": 1.0}, data, k=9, B=9, rng=1)
    plan = plan_memory(two.recipe.task, 1)
    assert (plan.values, plan.learner, plan.fixed[memory.SUMS]) == (2 * 2 * 8, 0.0, 0)


def test_learners_of_a_mix_count(data):
    fit = {"k": 100, "B": 20, "rng": 1, "n_jobs": 1, "target": "truth"}
    res = vs.fit("y ~ .", data, **fit)
    task, mix = res.recipe.task, res.recipe.centre.stack
    alone, plan = plan_memory(task, 1), plan_memory(task, 1, mix)
    others = sum(share * learner_bytes(one, task.design, 600) for one, share in mix)
    assert plan.learner == pytest.approx(alone.learner + others)
    beside = (plan.learner - plan.spilled) / (alone.learner - alone.spilled)
    assert beside == pytest.approx(2)  # all but the nodes, of twice as many learners
    assert plan.needs(20)[memory.VALUES] == 2 * alone.needs(20)[memory.VALUES]
    limit = sum(alone.needs(20).values()) + task.kernel.X.nbytes
    with pytest.raises(vs.MemoryLimitError, match="for the learners"):
        vs.fit("y ~ .", data, memory_limit=limit, **fit)


def test_small_subsamples_of_many_rows_are_not_ranked(data):
    kernel = vs.fit("y ~ x1", data, B=4, k=9, rng=1).predictor.kernel
    sizes = [(299_999, 10_000), (299_999, 9999), (300_000, 33_334), (300_000, 33_333)]
    for (n, k), ranked in zip(sizes, (True, False, True, False), strict=True):
        design = make_design("iid", n, k, replace=True, seed=1)
        plan = plan_memory(Task(kernel, design, None, None, False), 1)
        assert plan.fixed[memory.RANKS] == (24 * n if ranked else 0)


# Limits


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (None, None),
        (5, 5),
        (np.int64(7), 7),
        ("12", 12),
        ("12 b", 12),
        ("2GB", 2_000_000_000),
        (" 1.5 kB ", 1500),
        ("500 MB", 500_000_000),
        ("3g", 3_000_000_000),
        ("1TB", 10**12),
        ("2 GiB", 2**31),
        ("1Ki", 1024),
    ],
)
def test_limits_are_read(text, size):
    assert memory_bytes(text) == size


@pytest.mark.parametrize("limit", ["", "GB", "2 PB", "-1", "1e9", 0, -5, 2.5, True, []])
def test_what_is_no_limit(data, limit):
    with pytest.raises(ValueError, match="`memory_limit` must be a positive number"):
        vs.fit("y ~ x1", data, B=10, rng=1, memory_limit=limit)


def test_a_fit_that_does_not_fit_is_refused_before_it_begins(data, monkeypatch):
    monkeypatch.setattr("vstatkit.fit_steps.grow", None)
    with pytest.raises(vs.MemoryLimitError) as seen:
        vs.fit("y ~ .", data, B=3 * 10**6, rng=1, memory_limit="1 GB")
    text = str(seen.value)
    assert isinstance(seen.value, MemoryError | vs.VstatkitError)
    assert "and 1 GB are allowed (`memory_limit`): " in text
    assert "GB for the learners, " in text
    assert "Use `keep_learners=False`, a smaller `B`" in text
    at = {f"x{j}": np.linspace(0, 1, 10**5) for j in range(1, 6)}
    with pytest.raises(vs.MemoryLimitError, match="Give fewer query points"):
        vs.fit("y ~ .", data, B=1000, at=at, rng=1, memory_limit="500 MB")
    with pytest.raises(vs.MemoryLimitError, match=r"design matrix.*Use fewer rows"):
        vs.fit("y ~ .", data, kernel="ols", B=2, k=9, rng=1, memory_limit=10**4)


def test_a_limit_that_is_kept_changes_nothing(data):
    limited = vs.fit("y ~ .", data, B=50, rng=1, memory_limit="1 GB")
    assert_array_equal(limited.bse, vs.fit("y ~ .", data, B=50, rng=1).bse)


def test_what_the_machine_has_is_the_default(data, monkeypatch):
    starved(monkeypatch, 10**5)
    with pytest.raises(vs.MemoryLimitError, match=r"100 kB are available: "):
        vs.fit("y ~ .", data, B=50, rng=1)
    with pytest.raises(vs.MemoryLimitError, match="are available"):
        vs.statistic("gini", data["y"], k=2, B=10**5, rng=1)
    with pytest.raises(vs.MemoryLimitError, match="are available"):
        vs.statistic("gini", data["y"][:300], k=2, B="complete", replace=False)
    starved(monkeypatch, None)
    vs.fit("y ~ x1", data, B=10, rng=1)


def test_ordinary_sizes_ask_no_machine(data, monkeypatch):
    asked = []
    monkeypatch.setattr(memory, "available_memory", lambda: asked.append(1) or 0)
    res = vs.fit("y ~ .", data, k=100, rng=1, B=100)
    res.get_prediction(data).cov()
    assert not asked


def test_auto_stops_where_the_memory_ends(data):
    options = {"k": 300, "tol": 0.001, "max_B": 2000, "rng": 1}
    enough = "12 MB"
    with pytest.warns(vs.VstatkitWarning) as seen:
        res = vs.fit("y ~ .", data, memory_limit=enough, **options)
    limit, held = memory_bytes(enough), res.predictor.kernel.X.nbytes
    assert 256 < res.B < 2000
    assert plan_memory(res.recipe.task, 1).most(limit - held) == res.B
    assert any("`memory_limit` leaves room for no more" in str(w.message) for w in seen)
    assert {w.filename for w in seen} == {__file__}
    with pytest.raises(vs.MemoryLimitError, match=r"the counts of.*fewer workers"):
        vs.fit("y ~ .", data, memory_limit="6 MB", **options)


def test_predictions_are_checked(data, monkeypatch):
    res = vs.fit("y ~ .", data, B=50, k=50, rng=1)
    predicted = res.get_prediction(data)
    starved(monkeypatch, 10**5)
    with pytest.raises(vs.MemoryLimitError, match=r"coded query points.*several parts"):
        res.get_prediction(data)
    with pytest.raises(vs.MemoryLimitError, match="every learner's predictions"):
        _ = predicted.values
    with pytest.raises(vs.MemoryLimitError, match="every learner's predictions"):
        res.predictor.values(predicted.X)
    starved(monkeypatch, 10**6)
    with pytest.raises(vs.MemoryLimitError, match=r"17\.3 MB for the covariances"):
        predicted.cov()
    with pytest.raises(vs.MemoryLimitError, match="influences"):
        predicted.influence()


def test_the_command_has_a_limit(data, tmp_path, capsys):
    data.to_csv(tmp_path / "d.csv", index=False)
    command = ["fit", "y ~ x1", str(tmp_path / "d.csv"), "--B", "50", "--seed", "1"]
    assert main([*command, "--memory-limit", "1GB"]) == 0
    assert main([*command, "--memory-limit", "100 kB"]) == 2
    assert "memory would be needed, and 100 kB are allowed" in capsys.readouterr().err


# What is available


def lay(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


MEMINFO = "MemTotal: 900 kB\nMemAvailable:    500 kB\nSwapFree: 20 kB\n"
FIRST, SECOND = "sys/fs/cgroup/memory", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ({"proc/meminfo": MEMINFO}, 520 * 1024),
        ({"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n"}, 520 * 1024),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/user/job\n",
                f"{SECOND}/user/memory.max": "max\n",
                f"{SECOND}/user/memory.current": "9\n",
                f"{SECOND}/user/job/memory.max": "70000\n",
                f"{SECOND}/user/job/memory.current": "20000\n",
                f"{SECOND}/user/job/memory.stat": "anon 1\ninactive_file 300\n",
            },
            50300,
        ),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "4:cpu:/\n9:memory:/docker/x\n",
                f"{FIRST}/memory.limit_in_bytes": "90000\n",
                f"{FIRST}/memory.usage_in_bytes": "30000\n",
                f"{FIRST}/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
            },
            60500,
        ),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "9:memory:/\n",
                f"{FIRST}/memory.limit_in_bytes": f"{2**63 - 4096}\n",
                f"{FIRST}/memory.usage_in_bytes": "30000\n",
            },
            520 * 1024,
        ),
        (
            {
                "proc/self/cgroup": "0::/\n",
                f"{SECOND}/memory.max": "10\n",
                f"{SECOND}/memory.current": "20\n",
            },
            0,
        ),
    ],
    ids=["machine", "no group", "v2", "v1", "no limit", "beyond"],
)
def test_the_system_is_read(tmp_path, monkeypatch, files, size):
    monkeypatch.setattr("vstatkit.available_memory._addresses", lambda root: None)
    lay(tmp_path, files)
    assert available_memory(tmp_path) == size


def test_unknown_systems_tell_their_size_or_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("vstatkit.available_memory._addresses", lambda root: None)
    pages = {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert available_memory(tmp_path) == 40960

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown, raising=False)
    assert available_memory(tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_limits_on_addresses_count(tmp_path, monkeypatch):
    import resource  # noqa: PLC0415 not everywhere

    lay(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/status": "VmSize: 100 kB\n"})
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (300 * 1024, -1))
    assert available_memory(tmp_path) == 200 * 1024


def test_this_machine_has_memory():
    found = available_memory()
    assert found is None or found > 2**20
