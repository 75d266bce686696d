"""The site is built without a warning, and can be read on a telephone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browser import PROGRAM, Browser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FRONT = "---\nrun: true\n---\n"

RUN = [
    path.relative_to(DOCS)
    for path in sorted(DOCS.rglob("*.md"))
    if path.read_text(encoding="utf-8").startswith(FRONT)
]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build the site as its readers would, with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    out, trees = folder / "html", folder / "doctrees"
    command = ["-W", "--keep-going", "-q", "-d", trees, DOCS, out]
    ran = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return out


def page_of(build, path):
    return (build / path).with_suffix(".html")


def test_there_are_pages_that_run():
    assert len(RUN) > 15


def test_pages_show_what_they_print_and_draw(build):
    for path in RUN:
        text = page_of(build, path).read_text(encoding="utf-8")
        assert 'class="output' in text or 'class="drawn' in text, path
        source = (DOCS / path).read_text(encoding="utf-8")
        drawn = re.findall(r'<img[^>]*class="drawn', text)
        assert len(drawn) == source.count("\n% alt: "), path
        assert 'alt=""' not in text


def test_pages_load_nothing_from_elsewhere(build):
    for path in build.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(\w+:)', text
        )
        assert set(loaded) <= {"data:"}, path


EXTENSION = """
import sys
sys.path.insert(0, {folder!r})
extensions = ["myst_parser", "running"]
"""


FAILING = {
    "error": ("1 / 0", "ZeroDivisionError"),
    "warning": ("import warnings\nwarnings.warn('careful')", "UserWarning: careful"),
    "picture": ("import matplotlib.pyplot as plt\nplt.plot([1])", "needs a comment"),
}


def test_a_page_that_fails_fails_the_build(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text(EXTENSION.format(folder=str(DOCS / "_ext")))
    names = "\n".join(FAILING)
    (source / "index.md").write_text(f"# Pages\n\n```{{toctree}}\n{names}\n```\n")
    for name, (block, _) in FAILING.items():
        (source / f"{name}.md").write_text(f"{FRONT}# P\n\n```python\n{block}\n```\n")
    command = ["-W", "--keep-going", "-q", source, tmp_path / "out"]
    ran = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    for name, (_, message) in FAILING.items():
        assert f"{name}.md:" in ran.stderr
        assert message in ran.stderr


@pytest.mark.skipif(PROGRAM is None, reason="not installed: chromium")
def test_pages_are_readable_in_a_browser(build, tmp_path):
    """At the widths of a telephone and of a desk: nothing sticks out or complains."""
    made = {"genindex.html", "search.html", "py-modindex.html"}
    pages = [path for path in sorted(build.rglob("*.html")) if path.name not in made]
    assert len(pages) > 30
    problems = []
    with Browser(tmp_path) as browser:
        for path in pages:
            for width in (390, 1280):
                browser.open(path, width)
                found = browser.look()
                ok = {
                    "wide": found["wide"] <= 0,
                    "faint": not found["faint"],
                    "complaints": not found["complaints"],
                    "unnamed": found["unnamed"] == 0,
                    "broken": not found["broken"],
                    "headings": found["headings"].count(1) == 1,
                }
                name = path.relative_to(build)
                problems += [
                    f"{name}, {width} px: {what}: {found[what]}"
                    for what, good in ok.items()
                    if not good
                ]
    assert problems == []
