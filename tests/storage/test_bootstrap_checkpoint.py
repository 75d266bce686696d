"""A bootstrap that is stopped: repetitions in a directory, the same numbers from it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.ensemble import bootstrap_repetitions
from vstatkit.exceptions import CheckpointError
from vstatkit.storage.checkpoint import lock_directory

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(40, rng=4)


@pytest.fixture(autouse=True)
def every_repetition_is_written(monkeypatch):
    monkeypatch.setattr(bootstrap_repetitions, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def made(monkeypatch):
    """Numbers of the repetitions that are made."""
    numbers = []
    original = bootstrap_repetitions._repeat

    def watched(repeating, number):
        numbers.append(number)
        return original(repeating, number)

    monkeypatch.setattr(bootstrap_repetitions, "_repeat", watched)
    return numbers


def forest(data, **options):
    return vs.fit("y ~ x1 + x2", data, **{"B": 20, "rng": 5, "n_jobs": 1, **options})


def files(directory):
    return sorted(path.name for path in directory.glob("repetitions-*"))


def test_a_bootstrap_goes_on_to_the_same_numbers(data, tmp_path, monkeypatch, made):
    res = forest(data)
    whole = res.bootstrap(12).estimates
    watched = bootstrap_repetitions._repeat

    def stopped(repeating, number):
        if number == 7:
            raise KeyboardInterrupt
        return watched(repeating, number)

    monkeypatch.setattr(bootstrap_repetitions, "_repeat", stopped)
    with pytest.raises(KeyboardInterrupt):
        res.bootstrap(12, checkpoint=tmp_path)
    monkeypatch.setattr(bootstrap_repetitions, "_repeat", watched)
    assert files(tmp_path)[-1] == "repetitions-00000006-7.npz"
    made.clear()
    again = forest(data).bootstrap(12, checkpoint=tmp_path)
    assert_array_equal(again.estimates, whole)
    assert made == [0, 7, 8, 9, 10, 11]  # the first is compared


def test_repetitions_between_two_files_are_kept_too(data, tmp_path, monkeypatch, made):
    """Where the last ones were made in less than the seconds between two files."""
    monkeypatch.setattr(bootstrap_repetitions, "SAVE_SECONDS", 1e9)
    res = forest(data)
    whole = res.bootstrap(9, checkpoint=tmp_path).estimates
    assert files(tmp_path) == ["repetitions-00000000-9.npz"]
    made.clear()
    more = res.bootstrap(11, checkpoint=tmp_path).estimates
    assert made == [0, 9, 10]
    assert_array_equal(more[:9], whole)
    assert_array_equal(more, res.bootstrap(11).estimates)
    made.clear()
    fewer = res.bootstrap(8, checkpoint=tmp_path)
    assert fewer.R == 8
    assert made == [0]
    assert_array_equal(fewer.estimates, whole[:8])


def test_a_killed_bootstrap_goes_on(data, tmp_path):
    code = f"""
import os, signal
import vstatkit as vs
from vstatkit.ensemble import bootstrap_repetitions
bootstrap_repetitions.SAVE_SECONDS = -1.0
made = bootstrap_repetitions._repeat
def killed(repeating, number):
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return made(repeating, number)
bootstrap_repetitions._repeat = killed
data = vs.datasets.mars(40, rng=4)
res = vs.fit("y ~ x1 + x2", data, B=20, rng=5, n_jobs=1)
res.bootstrap(10, checkpoint={str(tmp_path)!r})
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, check=False, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert len(files(tmp_path)) == 5
    res = forest(data)
    again = res.bootstrap(10, checkpoint=tmp_path)
    assert_array_equal(again.estimates, res.bootstrap(10).estimates)


@pytest.mark.parametrize(
    ("other", "options", "words"),
    [
        ({"rng": 6}, {}, "seed"),
        ({"min_samples_leaf": 7}, {}, "the learners of the fit are not the same"),
        ({"k": 15}, {}, "k"),
        ({"at": {"x1": [0.1], "x2": [0.2]}}, {}, "the query points are not the same"),
        ({}, {"B": 10}, r"B \(was 20, now 10\)"),
        ({}, {"rng": 3}, "seed"),
    ],
)
def test_another_bootstrap_is_refused(data, tmp_path, other, options, words):
    forest(data).bootstrap(8, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=words):
        forest(data, **other).bootstrap(8, checkpoint=tmp_path, **options)


@pytest.mark.parametrize("column", ["y", "x2"])
def test_other_data_are_refused(data, tmp_path, column):
    forest(data).bootstrap(8, checkpoint=tmp_path)
    changed = data.assign(**{column: data[column] + 1e-9 * (data.index == 3)})
    with pytest.raises(CheckpointError, match="the training data are not the same"):
        forest(changed).bootstrap(8, checkpoint=tmp_path)


def test_other_groups_are_refused(data, tmp_path):
    groups = np.arange(40) % 20
    forest(data, groups=groups).bootstrap(8, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="the groups are not the same"):
        forest(data, groups=np.arange(40) // 2).bootstrap(8, checkpoint=tmp_path)


def test_statistics_are_kept_too(tmp_path, made):
    x = np.random.default_rng(1).normal(size=30)
    kept = {"checkpoint": tmp_path, "n_jobs": 1}
    first = vs.statistic("mean", x, k=5, B=50, rng=1).bootstrap(10, **kept)
    made.clear()
    again = vs.statistic("mean", x, k=5, B=50, rng=1).bootstrap(10, **kept)
    assert made == [0]
    assert_array_equal(first.estimates, again.estimates)
    x[0] += 1
    with pytest.raises(CheckpointError, match="the training data are not the same"):
        vs.statistic("mean", x, k=5, B=50, rng=1).bootstrap(10, **kept)


def test_code_that_has_changed_is_noticed(tmp_path, monkeypatch):
    """A function that gives other values on the resampled data only."""
    x, now = np.random.default_rng(1).normal(size=30), {"offset": 0.0}

    def mean(rows):
        return rows.mean() + now["offset"]

    res = vs.statistic(mean, x, k=5, B=20, rng=1)
    res.bootstrap(8, checkpoint=tmp_path, n_jobs=1)
    now["offset"] = 1e-3
    with pytest.raises(CheckpointError, match="the first repetition now has other"):
        res.bootstrap(8, checkpoint=tmp_path, n_jobs=1)


def test_files_that_cannot_be_read_are_named(data, tmp_path):
    res = forest(data)
    whole = res.bootstrap(10, checkpoint=tmp_path).estimates
    broken = tmp_path / files(tmp_path)[4]
    broken.write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="repetitions from number 4 on are then"):
        res.bootstrap(10, checkpoint=tmp_path)
    broken.unlink()  # what follows the gap is made again
    assert_array_equal(res.bootstrap(10, checkpoint=tmp_path).estimates, whole)
    (tmp_path / files(tmp_path)[1]).rename(tmp_path / "repetitions-00000001-3.npz")
    with pytest.raises(CheckpointError, match="it was renamed"):
        res.bootstrap(10, checkpoint=tmp_path)


def test_one_bootstrap_at_a_time(data, tmp_path):
    res = forest(data)
    with (
        lock_directory(tmp_path),
        pytest.raises(CheckpointError, match="in use by this"),
    ):
        res.bootstrap(8, checkpoint=tmp_path)
