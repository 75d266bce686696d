"""Files that are damaged or made to do harm: one kind of error, and nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vstatkit as vs
from tests.support.hostile_files import HOSTILE, TREES, flipped, make, packed, parts_of

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    place = tmp_path_factory.mktemp("good")
    make(place)
    return place


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Load all of them in a process of its own: a crash would end it."""
    here, files = (tmp_path_factory.mktemp(name) for name in ("here", "files"))
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_files", str(files)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
    )
    assert os.listdir(here) == []
    return json.loads(found.stdout)


def test_there_are_enough_of_them():
    assert len(HOSTILE) >= 60


def test_good_files_load(outcomes):
    assert {row[1] for row in outcomes["good"]} == {"accepted"}


def test_every_hostile_file_is_refused_with_one_kind_of_error(outcomes):
    assert len(outcomes["hostile"]) == len(HOSTILE)
    assert [row for row in outcomes["hostile"] if row[1] != "refused"] == []


def test_none_takes_two_seconds(outcomes):
    assert [row for row in outcomes["hostile"] if row[2] > 2] == []


def test_a_flipped_bit_is_seen_or_changes_nothing(good, tmp_path):
    whole, path = (good / TREES).read_bytes(), tmp_path / "flipped.npz"
    saved = vs.load(good / TREES)
    seen = 0
    for share in np.linspace(0, 1, 120):
        path.write_bytes(flipped(share)(whole))
        try:
            found = vs.load(path)
        except vs.FileError:
            seen += 1
        else:
            np.testing.assert_array_equal(found.values, saved.values)
            assert str(found.summary()) == str(saved.summary())
    assert seen > 90


def test_a_file_cut_anywhere_is_refused(good, tmp_path):
    whole, path = (good / TREES).read_bytes(), tmp_path / "cut.npz"
    for length in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(vs.FileError, match=r"cut\.npz cannot be loaded"):
            vs.load(path)


def test_the_edits_themselves_do_no_harm(good, tmp_path):
    """A file written anew with its right checksum loads: the edits are what is seen."""
    whole, path = (good / TREES).read_bytes(), tmp_path / "again.npz"
    path.write_bytes(packed(parts_of(whole)))
    assert str(vs.load(path).summary()) == str(vs.load(good / TREES).summary())


def test_a_file_of_an_earlier_version_says_so(tmp_path):
    path = tmp_path / "old.npz"
    with path.open("wb") as file:
        np.savez_compressed(file, values=np.ones((2, 1)), document=np.array("{}"))
    with pytest.raises(vs.FileError, match="saved by an earlier version"):
        vs.load(path)


def test_a_directory_and_a_missing_file_are_said_to_be_that(tmp_path):
    with pytest.raises(FileNotFoundError):
        vs.load(tmp_path / "none.npz")
    with pytest.raises(IsADirectoryError):
        vs.load(tmp_path)


def test_what_compresses_too_well_is_stored_so_that_it_loads(tmp_path):
    path = tmp_path / "zeros.npz"
    counts = np.tile(np.eye(10), (2000, 1))
    values = np.zeros((20_000, 150))
    values[0] = 1
    vs.from_arrays(counts, values, replace=True).save(path)
    np.testing.assert_array_equal(vs.load(path).values, values)
