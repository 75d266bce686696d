"""What is installed, and what is said where it is not."""

import subprocess
import sys

import pytest

import r_bridge
import vstatkit as vs
from r_bridge import availability
from r_bridge.__main__ import main


@pytest.fixture
def forgetful():
    """Leave nothing remembered of a test's pretended installation."""
    availability._remembered.cache_clear()
    yield
    availability._remembered.cache_clear()


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_importing_the_bridge_does_not_start_r():
    code = "import r_bridge, sys; print('rpy2' in sys.modules)"
    assert run(code).strip() == "False"


def test_vstatkit_does_not_import_the_bridge():
    code = "import vstatkit, sys; print('r_bridge' in sys.modules)"
    assert run(code).strip() == "False"


def test_without_r_everything_is_missing_and_the_printout_says_how(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = r_bridge.available()
    assert found["R"] is None
    assert found["ranger"] is None
    assert set(found.missing) >= {"R", "ranger", "grf", "randomForest", "MASS"}
    assert "missing; apt-get install r-base-core" in str(found)
    assert "apt-get install r-cran-ranger" in str(found)


def test_without_r_comparing_says_how_to_install_it(monkeypatch, forgetful):
    monkeypatch.setenv("PATH", "")
    data = vs.datasets.mars(20, rng=1)
    with pytest.raises(r_bridge.RUnavailableError, match="apt-get install r-base-core"):
        r_bridge.compare_ranger("y ~ x1", data)


def test_without_r_the_command_ends_with_two(monkeypatch, forgetful, capsys):
    monkeypatch.setenv("PATH", "")
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "R is needed and not installed" in said
    assert "apt-get install r-cran-ranger" in said


def test_without_rpy2_the_pinned_version_is_named(monkeypatch, forgetful):
    monkeypatch.setattr(availability.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(availability, "_installed_in_r", lambda: {"R": "4.2.2"})
    assert r_bridge.available()["rpy2"] is None
    with pytest.raises(r_bridge.RUnavailableError, match=r"rpy2-rinterface<3\.6\.6"):
        r_bridge.check()


def test_without_ranger_the_package_is_named(monkeypatch, forgetful):
    monkeypatch.setattr(availability, "_distribution", lambda name: "3.6.5")
    monkeypatch.setattr(availability, "_installed_in_r", lambda: {"R": "4.2.2"})
    with pytest.raises(r_bridge.RUnavailableError, match=r"ranger is needed.*r-cran"):
        r_bridge.from_ranger("rf", {"x": [1.0]}, {"x": [1.0]})


def test_without_grf_the_package_is_named(monkeypatch, forgetful):
    monkeypatch.setattr(availability, "_distribution", lambda name: "3.6.5")
    monkeypatch.setattr(availability, "_installed_in_r", lambda: {"R": "4.2.2"})
    data = vs.datasets.mars(20, rng=1)
    with pytest.raises(r_bridge.RUnavailableError, match="grf is needed"):
        r_bridge.compare_grf("y ~ x1", data)


@pytest.mark.parametrize(
    ("r", "rinterface", "fits"),
    [
        ("4.2.2", "3.6.5", True),
        ("4.2.2", "3.6.6", False),
        ("4.4.3", "3.7", False),
        ("4.5.0", "3.6.6", True),
        (None, "3.6.6", True),
    ],
)
def test_an_rpy2_too_new_for_r_is_said(monkeypatch, forgetful, r, rinterface, fits):
    parts = {} if r is None else {"R": r, "ranger": "0.14.1"}
    monkeypatch.setattr(availability, "_distribution", lambda name: rinterface)
    monkeypatch.setattr(availability, "_installed_in_r", lambda: parts)
    found = r_bridge.available()
    assert (found.conflict is None) == fits
    if not fits:
        with pytest.raises(r_bridge.RUnavailableError, match=r"needs R 4\.5 or newer"):
            availability.require("R", "rpy2", "ranger")
        assert "rpy2-rinterface<3.6.6" in str(found)


def test_what_was_missing_is_looked_for_again(monkeypatch, forgetful):
    monkeypatch.setattr(availability, "_distribution", lambda name: "3.6.5")
    monkeypatch.setattr(availability, "_installed_in_r", lambda: {"R": "4.2.2"})
    with pytest.raises(r_bridge.RUnavailableError, match="ranger"):
        availability.require("ranger")
    monkeypatch.setattr(availability, "_installed_in_r", lambda: {"ranger": "1"})
    assert availability.require("ranger")["ranger"] == "1"
