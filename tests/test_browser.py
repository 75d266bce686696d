"""Reports in a real browser; skipped by name where there is no Chromium."""

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from tests.browser import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="not installed: chromium")

WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Write a report with long names, levels and numbers."""
    data = vs.datasets.mars(80, rng=1)
    name = "<script>alert(1)</script>" + "unbroken" * 20
    level = np.where(data["x2"] > 0.5, "<img src=x onerror=alert(1)>", "low" * 40)
    frame = pd.DataFrame({name: data["x1"], "level": level, "y": 1e7 * data["y"]})
    path = tmp_path_factory.mktemp("report") / "fit.html"
    vs.fit("y ~ .", frame, B=200, rng=1).report(path)
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_is_readable(browser, report, width):
    browser.open(report, width)
    found = browser.look()
    assert found["complaints"] == [], "errors in the console, or calls to the network"
    assert found["wide"] <= 0, "the page is wider than the window"
    assert found["faint"] == [], "too little contrast"
    assert found["unnamed"] == 0, "pictures without alternative text"
    assert found["broken"] == []
    assert found["images"] >= 4
    assert found["headings"][0] == 1
    assert found["headings"].count(1) == 1


def test_a_report_prints(browser, report):
    browser.open(report, 1280)
    assert browser.pdf().startswith(b"%PDF")
