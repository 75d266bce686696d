"""Our numbers against ranger's, recorded: these tests run without R."""

from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from r_bridge.battery import SETTINGS
from r_bridge.check_ranger import compared
from r_bridge.record import main
from r_bridge.recorders import record_ranger
from r_bridge.recording import read_ranger, write_json

PATH = Path(__file__).parent / "recorded" / "ranger.json.gz"
RECORDED = read_ranger(PATH)


@pytest.mark.parametrize("forest", RECORDED, ids=lambda one: one.title)
def test_every_quantity_of_a_recorded_forest_agrees(forest):
    quantities = compared(
        forest, forest.counts(), replace=forest.replace, regression=forest.regression
    )
    assert len(quantities) == 5 + forest.regression + forest.replace
    for quantity in quantities:
        # With 100 trees ranger's jackknife after bootstrap may be zero everywhere.
        zero = quantity.name.startswith("J-U") and quantity.n_zero == quantity.points
        assert quantity.verdict == ("not compared" if zero else "equal"), quantity


def test_the_recording_covers_the_battery():
    assert [one.title for one in RECORDED] == [one.title for one in SETTINGS]


@pytest.mark.r
def test_the_recording_has_not_drifted(session, tmp_path):
    write_json(record_ranger(), tmp_path / "ranger.json.gz")
    again = read_ranger(tmp_path / "ranger.json.gz")
    for new, old in zip(again, RECORDED, strict=True):
        for name, numbers in old.arrays.items():
            assert_allclose(new.arrays[name], numbers, rtol=1e-10, err_msg=name)


@pytest.mark.r
def test_the_command_writes_what_is_installed(session, tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 0
    assert (tmp_path / "ranger.json.gz").stat().st_size < 100_000
    assert "ranger: " in capsys.readouterr().out


def test_without_r_nothing_is_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert main(["--out", str(tmp_path)]) == 2
    assert "ranger: not recorded; R" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
