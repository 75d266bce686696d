"""Reports in a real browser; skipped by name where there is no Chromium."""

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from tests.support.browser import PROGRAM, Browser

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


WRONG = """<!DOCTYPE html><html lang="en"><title>Wrong</title><body>
<h2>Two first</h2><h1>One</h1><h1>Two</h1>
<div style="width: 1400px">wide</div>
<p style="color: #999">faint</p>
<p style="color: #666; background: #000">dark</p>
<p style="opacity: 1; color: #333">strong</p>
<img src="data:image/png;base64,AAAA">
<img src="http://localhost:9/picture.png" alt="from the network">
<script>console.error("a complaint"); missing();</script>
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_the_browser_sees_what_is_wrong(browser, tmp_path, width):
    (tmp_path / "wrong.html").write_text(WRONG, encoding="utf-8")
    browser.open(tmp_path / "wrong.html", width)
    found = browser.look()
    assert found["wide"] > 100
    assert [text.split(": ")[1] for text in found["faint"]] == ["faint", "dark"]
    assert found["headings"] == [2, 1, 1]
    assert found["unnamed"] == 1
    assert len(found["broken"]) == 2
    said = " ".join(found["complaints"])
    assert "a complaint" in said
    assert "missing is not defined" in said
    assert "asks for http://localhost:9/picture.png" in said
