"""Fits that are stopped: learners in a directory, and the same numbers from there."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from tests.support.kill_while_growing import differing, numbers
from vstatkit.cli import main
from vstatkit.ensemble import evaluation
from vstatkit.ensemble.prediction_intervals import LEAF
from vstatkit.storage import checkpoint
from vstatkit.storage.checkpoint import range_files, sums_files
from vstatkit.studies.experiment import run_experiment

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(80, rng=4)
    return frame.assign(clinic=np.arange(80) % 20, weight=1.0 + np.arange(80) % 3)


@pytest.fixture
def many_files(monkeypatch):
    """Batches of few learners, each in a file of its own."""
    monkeypatch.setattr(evaluation, "BATCH_SIZE", 10)
    monkeypatch.setattr(evaluation, "BATCH_ENTRIES", 10 * 80)
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def grown(monkeypatch):
    """Ranges of learners that are evaluated, those of one learner apart.

    Trees that learn the size of residuals are not the ensemble's, and do not count.
    """
    ranges = []
    original = evaluation._evaluate_batch

    def watched(task, start, stop):
        if getattr(task.kernel, "options", {}).get("min_samples_leaf") != LEAF:
            ranges.append((start, stop))
        return original(task, start, stop)

    monkeypatch.setattr(evaluation, "_evaluate_batch", watched)
    return ranges


def forest(data, **options):
    settings = {"k": 40, "B": 60, "rng": 5, **options}
    return vs.fit("y ~ x1 + x4", data, **settings)


def same(one, other, data):
    return differing(numbers(one, data), numbers(other, data)) == []


# Killed, and continued


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_killed_at_any_time_the_numbers_are_the_same():
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.kill_while_growing"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    for name, found in json.loads(run.stdout).items():
        assert found["unlike"] == [], name
        # Nothing was lost from one kill to the next, and some were in the middle.
        assert found["left"] == sorted(found["left"]), name
        assert any(0 < left < found["B"] for left in found["left"]), name


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("written", ["write_learners", "write_sums"])
def test_a_kill_between_two_files_costs_the_last_of_them(
    data, tmp_path, monkeypatch, written
):
    """Learners whose sums are not written yet do not count."""
    original = getattr(checkpoint, written)
    calls = []

    def dying(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise KeyboardInterrupt
        original(*arguments)

    monkeypatch.setattr(checkpoint, written, dying)
    with pytest.raises(KeyboardInterrupt):
        forest(data, checkpoint=tmp_path)
    monkeypatch.setattr(checkpoint, written, original)
    assert len(calls) == 5  # once more when everything is called off
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 1000.0)  # files that end elsewhere
    assert same(forest(data, checkpoint=tmp_path), forest(data), data)
    edges = list(range_files(tmp_path, "learners"))
    assert [start for start, _ in edges] == [0, *(stop for _, stop in edges[:-1])]


@pytest.mark.usefixtures("many_files")
def test_nothing_is_grown_twice(data, tmp_path, grown):
    first = forest(data, checkpoint=tmp_path)
    assert len(grown) == 6
    grown.clear()
    again = forest(data, checkpoint=tmp_path)
    assert grown == [(0, 1)]  # to see whether the kernel is the same
    assert same(first, again, data)


def test_an_error_keeps_what_was_finished(data, tmp_path):
    calls = []

    def failing(frame):
        calls.append(len(frame))
        if len(calls) == 100:
            raise ValueError("not today")
        return frame["y"].mean()

    options = {"k": 40, "B": 150, "rng": 5, "checkpoint": tmp_path}
    with pytest.raises(vs.KernelError, match="not today"):
        vs.statistic(failing, data, **options)
    assert list(range_files(tmp_path, "learners")) == [(0, 64)]
    res = vs.statistic(failing, data, **options)
    assert len(calls) == 100 + 2 + 86  # the probe, the first once more, the missing
    whole = vs.statistic(failing, data, k=40, B=150, rng=5)
    assert_array_equal(res.values, whole.values)


def test_without_a_seed_the_first_one_drawn_is_kept(data, tmp_path):
    first = forest(data, rng=None, checkpoint=tmp_path)
    again = forest(data, rng=None, checkpoint=tmp_path)
    assert again.seed == first.seed
    assert same(again, forest(data, rng=first.seed), data)
    with pytest.raises(vs.CheckpointError, match="seed"):
        forest(data, rng=first.seed + 1, checkpoint=tmp_path)
    with pytest.raises(vs.CheckpointError, match="seed"):
        forest(data, rng=np.random.default_rng(1), checkpoint=tmp_path)


# More learners


@pytest.mark.usefixtures("many_files")
def test_a_larger_ensemble_goes_on(data, tmp_path, grown):
    forest(data, checkpoint=tmp_path)
    grown.clear()
    more = forest(data, B=100, checkpoint=tmp_path)
    assert grown == [(0, 1), *((b, b + 10) for b in range(60, 100, 10))]
    whole = forest(data, B=100)
    assert_array_equal(more.values, whole.values)
    assert_array_equal(more.predict(data), whole.predict(data))
    # Batches may end at other learners, so sums round otherwise.
    assert_allclose(more.recipe.oob.total, whole.recipe.oob.total, rtol=1e-12)
    assert_array_equal(more.recipe.oob.times, whole.recipe.oob.times)


@pytest.mark.usefixtures("many_files")
def test_an_ensemble_grown_in_steps_goes_on(data, tmp_path, grown):
    auto = forest(data, B="auto", tol=0.2, checkpoint=tmp_path)
    assert len(sums_files(tmp_path)) > 1
    assert same(auto, forest(data, B="auto", tol=0.2), data)
    grown.clear()
    twice = [forest(data, B=auto.B + 50, checkpoint=tmp_path) for _ in range(2)]
    assert sum(stop - start for start, stop in grown) == 50 + 2
    assert same(*twice, data)
    whole = forest(data, B=auto.B + 50)
    assert_array_equal(twice[0].values, whole.values)
    assert_allclose(twice[0].recipe.oob.total, whole.recipe.oob.total, rtol=1e-12)


def test_fewer_learners_are_refused(data, tmp_path):
    forest(data, checkpoint=tmp_path)
    for B in (59, "auto"):
        options = {"max_B": 50} if B == "auto" else {}
        with pytest.raises(vs.CheckpointError, match="Ask for 60 or more"):
            forest(data, B=B, checkpoint=tmp_path, **options)


def test_balanced_ensembles_go_on_after_whole_blocks(data, tmp_path):
    options = {"design": "balanced", "block": 30}
    forest(data, checkpoint=tmp_path / "whole", **options)
    more = forest(data, B=75, checkpoint=tmp_path / "whole", **options)
    assert_array_equal(more.values, forest(data, B=75, **options).values)
    with pytest.raises(vs.CheckpointError, match=r"whole blocks of 30 learners; .* 75"):
        forest(data, B=90, checkpoint=tmp_path / "whole", **options)


def test_another_variance_is_free(data, tmp_path):
    forest(data, checkpoint=tmp_path)
    res = forest(data, variance="ij", checkpoint=tmp_path, n_jobs=2, progress=False)
    assert_array_equal(res.bse, forest(data, variance="ij").bse)


# Other settings


def one_bit(name):
    """Change the last bit of one number."""

    def changed(data):
        column = data[name].to_numpy().copy()
        column[17] = np.nextafter(column[17], 0)
        return data.assign(**{name: column})

    return changed


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rng": 6}, r"seed \(was 5, now 6\)"),
        ({"formula": "y ~ x1"}, "formula (was 'y ~ x1 + x4', now 'y ~ x1')"),
        ({"kernel": "tree"}, r"kernel \(was 'forest', now 'tree'\)"),
        ({"honest": True}, r"options \(was {}, now {'honest': True}\)"),
        ({"k": 30}, r"k \(was 40, now 30\)"),
        ({"replace": False}, r"replace \(was True, now False\)"),
        ({"design": "little-bags"}, r"design \(was 'iid', now 'little-bags'\)"),
        ({"data": lambda d: d.head(79)}, r"n \(was 80, now 79\)"),
        ({"data": one_bit("x1")}, "the values of the predictors are not the same"),
        ({"data": one_bit("y")}, "the values of the response are not the same"),
        ({"weights": "weight"}, "the weights are not the same"),
        ({"groups": np.arange(80)[::-1]}, "the groups are not the same"),
        ({"at": {"x1": [0.5], "x4": [0.5]}}, "the query points are not the same"),
    ],
)
def test_other_settings_and_data_are_refused(data, tmp_path, change, named):
    forest(data, checkpoint=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    options = {"k": 40, "B": 60, "rng": 5, **change}
    formula = options.pop("formula", "y ~ x1 + x4")
    other = options.pop("data", lambda d: d)(data)
    pattern = re.escape(named) if named.startswith("formula") else named
    with pytest.raises(vs.CheckpointError, match=f"other settings: .*{pattern}"):
        vs.fit(formula, other, checkpoint=tmp_path, **options)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_the_version_is_a_setting(data, tmp_path):
    forest(data, checkpoint=tmp_path)
    path = tmp_path / "settings.json"
    path.write_text(path.read_text().replace(vs.__version__, "0.0.1"))
    with pytest.raises(vs.CheckpointError, match=r"vstatkit \(was '0\.0\.1', now"):
        forest(data, checkpoint=tmp_path)


def test_a_function_of_the_same_name_is_seen(data, tmp_path):
    def make(power):
        def h(frame):
            return (frame["y"] ** power).mean()

        return h

    options = {"k": 40, "B": 20, "rng": 1, "checkpoint": tmp_path}
    vs.statistic(make(1), data, **options)
    vs.statistic(make(1), data, **options)
    with pytest.raises(vs.CheckpointError, match="first learner now has other values"):
        vs.statistic(make(2), data, **options)
    with pytest.raises(vs.CheckpointError, match="the data are not the same"):
        vs.statistic(make(1), data.assign(x5=0.0), **options)


# Learners that only a pickle could hold


class Counted(KNeighborsRegressor):
    fits = 0

    def fit(self, X, y):
        Counted.fits += 1
        return super().fit(X, y)


def test_estimators_are_fitted_again_when_they_predict(data, tmp_path):
    def fitted(**options):
        Counted.fits = 0
        return forest(data, kernel=Counted(3), variance="ij", **options)

    whole = fitted(checkpoint=tmp_path)
    assert Counted.fits == 60
    again = fitted(checkpoint=tmp_path)
    assert_array_equal(again.bse, whole.bse)
    assert again.scores.table == whole.scores.table
    assert Counted.fits == 61  # intervals need predictions at the reference rows
    assert_array_equal(again.predict(data), whole.predict(data))
    assert_array_equal(again.conf_int(), whole.conf_int())
    assert Counted.fits == 61
    fresh = fitted(checkpoint=tmp_path, n_jobs=2)
    loaded = pickle.loads(pickle.dumps(fresh))
    assert isinstance(loaded.predictor.learners[0], Counted)
    assert_array_equal(loaded.predict(data), whole.predict(data))
    more = fitted(checkpoint=tmp_path).more(80)
    assert_array_equal(more.predict(data), fitted(B=80).predict(data))


def test_files_hold_no_pickles(data, tmp_path):
    forest(data, kernel=KNeighborsRegressor(3), checkpoint=tmp_path)
    for path in tmp_path.glob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name].dtype != object for name in file.files)


# Damage


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def exchange(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("settings.txt", "nothing")


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("damage", [cut, flip, empty, exchange])
@pytest.mark.parametrize("name", ["learners-00000020-30.npz", "sums-00000000.npz"])
def test_damaged_files_are_named_and_can_be_removed(data, tmp_path, damage, name):
    forest(data, checkpoint=tmp_path)
    damage(tmp_path / name)
    with pytest.raises(vs.CheckpointError, match=f"{name} cannot be read.*Remove this"):
        forest(data, checkpoint=tmp_path)
    (tmp_path / name).unlink()
    assert same(forest(data, checkpoint=tmp_path), forest(data), data)
    assert (tmp_path / name).exists()


@pytest.mark.usefixtures("many_files")
def test_a_removed_file_costs_its_own_learners(data, tmp_path, grown):
    forest(data, checkpoint=tmp_path)
    names = ["learners-00000020-30.npz", "learners-00000030-40.npz"]
    for name in [*names, "learners-00000050-60.npz"]:
        (tmp_path / name).unlink()
    grown.clear()
    assert same(forest(data, checkpoint=tmp_path), forest(data), data)
    assert grown[:4] == [(0, 1), (20, 30), (30, 40), (50, 60)]


@pytest.mark.usefixtures("many_files")
def test_renamed_files_are_refused(data, tmp_path):
    forest(data, checkpoint=tmp_path)
    os.replace(
        tmp_path / "learners-00000010-20.npz", tmp_path / "learners-00000020-30.npz"
    )
    with pytest.raises(vs.CheckpointError, match="it was renamed"):
        forest(data, checkpoint=tmp_path)


def test_unreadable_settings_are_refused(data, tmp_path):
    forest(data, checkpoint=tmp_path)
    (tmp_path / "settings.json").write_text("[")
    with pytest.raises(vs.CheckpointError, match=r"settings\.json, cannot be read"):
        forest(data, checkpoint=tmp_path)


def test_a_file_is_no_directory(data, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(vs.CheckpointError, match="must be a directory"):
        forest(data, checkpoint=tmp_path / "file")


# Two at a time

HOLDER = """
import sys, time
import vstatkit as vs

calls = []

def h(x):
    calls.append(x)
    if len(calls) > 1:  # the first call is the probe
        print("growing", flush=True)
        time.sleep(600)
    return x.mean()

vs.statistic(h, list(range(10)), k=3, B=100, rng=1, checkpoint=sys.argv[1])
"""


def test_of_two_processes_one_is_refused(data, tmp_path):
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        text=True,
    )
    try:
        assert other.stdout.readline() == "growing\n"
        with pytest.raises(vs.CheckpointError, match=f"in use by process {other.pid} "):
            forest(data, checkpoint=tmp_path)
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
        other.stdout.close()
    # The lock has died with its holder: now it is the settings that differ.
    assert (tmp_path / checkpoint.LOCK).exists()
    with pytest.raises(vs.CheckpointError, match="other settings"):
        forest(data, checkpoint=tmp_path)


def test_two_calls_in_one_process_are_two(data, tmp_path):
    with checkpoint.lock_directory(tmp_path):
        with pytest.raises(vs.CheckpointError, match="in use by this process"):
            forest(data, checkpoint=tmp_path)
        with pytest.raises(vs.CheckpointError, match="in use by this process"):
            run_experiment(Nothing(), 2, seed=1, directory=tmp_path)
    assert run_experiment(Nothing(), 2, seed=1, directory=tmp_path)["x"].shape == (2,)


class Nothing:
    name = "nothing"

    def settings(self):
        return {}

    def run(self, seed, iteration):
        return {"x": np.array(float(iteration))}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only forks inherit locks")
def test_a_forked_process_does_not_hold_the_lock(tmp_path, monkeypatch):
    """A worker that outlives a killed process keeps nobody out."""
    monkeypatch.setattr(checkpoint, "unlock", lambda handle: None)
    started, waiting = os.pipe(), os.pipe()
    with checkpoint.lock_directory(tmp_path):
        child = os.fork()
        if child == 0:
            os.write(started[1], b"1")
            os.close(waiting[1])
            os.read(waiting[0], 1)  # until the parent closes its end
            os._exit(0)
        assert os.read(started[0], 1) == b"1"
    with checkpoint.lock_directory(tmp_path):
        pass
    for end in (*started, *waiting):
        os.close(end)
    os.waitpid(child, 0)


def test_a_lock_file_of_a_dead_process_keeps_nobody_out(data, tmp_path):
    (tmp_path / checkpoint.LOCK).write_text("1 elsewhere\n")
    forest(data, checkpoint=tmp_path)


# What is left behind


def test_unfinished_files_are_removed(data, tmp_path):
    dead = 2**22 + 1  # beyond the numbers that processes get
    ours = [f"{one}.{dead}.tmp" for one in ("learners-00000000-9.npz", "settings.json")]
    ours.append(f"sums-00000000.npz.{dead}.tmp")
    for name in [*ours, "notes.tmp"]:
        (tmp_path / name).touch()
    forest(data, checkpoint=tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    files = {"learners-00000000-60.npz", "sums-00000000.npz", "settings.json"}
    assert left == {*files, checkpoint.LOCK, "notes.tmp"}


def test_the_command_goes_on(tmp_path, capsys):
    vs.datasets.mars(60, rng=1).to_csv(tmp_path / "d.csv", index=False)
    command = ["fit", "y ~ x1 + x2", str(tmp_path / "d.csv"), "--B", "50"]
    kept_there = ["--checkpoint", str(tmp_path / "kept")]
    assert main([*command, *kept_there]) == 0
    first = capsys.readouterr().out
    assert main([*command, *kept_there]) == 0
    assert capsys.readouterr().out == first
    assert len(pd.read_json(tmp_path / "kept" / "settings.json", typ="series")) > 10
    assert main([*command, *kept_there, "--seed", "1"]) == 2
    assert "other settings: seed" in capsys.readouterr().err
