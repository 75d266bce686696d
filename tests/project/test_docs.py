"""The guide's examples run, and the names on the pages are those of the code."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import r_bridge
import vstatkit as vs
from vstatkit.sampling.registry import DESIGNS
from vstatkit.variance.registry import ESTIMATORS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide.md"
DOCS = ROOT / "docs"
MADE = {"_build", "checkpoints", "paper"}
"""Folders of what is built or measured."""

PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not MADE & set(path.relative_to(DOCS).parts)
    ),
]
ROOMS = [module.name for module in pkgutil.iter_modules(vs.__path__)]


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert "Forest Results" in capsys.readouterr().out
    assert str(names["again"].summary()) == str(names["res"].summary())
    assert isinstance(names["few"], vs.EnsembleResults)


def found(pattern):
    """Find what a pattern's group matches on any page, with the page's name."""
    return sorted(
        {
            (page.name, match)
            for page in PAGES
            for match in re.findall(pattern, page.read_text(encoding="utf-8"))
        }
    )


def sources(room):
    """Read the code of a folder, or of a single module."""
    folder = ROOT / "vstatkit" / room
    files = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def defines(room, name):
    # Names that a folder offers need not be defined in it: `studies.coverage`.
    offered = getattr(importlib.import_module(f"vstatkit.{room}"), name, None)
    return bool(
        offered or re.search(rf"^(?:def|class) {name}\b", sources(room), re.MULTILINE)
    )


def test_functions_on_the_pages_are_in_the_rooms_named():
    named = found(rf"`((?:{'|'.join(ROOMS)})\.[A-Za-z]\w*)[`(]")
    assert len(named) > 15
    for page, name in named:
        room, function = name.split(".")
        assert defines(room, function), f"{page} names {name}"


def test_public_names_on_the_pages_exist():
    for module, alias in ((vs, "vs"), (r_bridge, "r_bridge")):
        named = found(rf"`{alias}\.([A-Za-z]\w*)(?=[`(])")
        assert named
        for page, name in named:
            assert hasattr(module, name), f"{page} names {alias}.{name}"


def test_the_reference_documents_what_exists():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = re.findall(r"\.\. auto\w+:: (\S+)\n(?: +:members:(.*)\n)?", text)
    assert len(named) > 20
    for name, members in named:
        thing = resolve(name)
        for member in filter(None, re.split(r"[,\s]+", members)):
            assert hasattr(thing, member), f"reference.md names {name}.{member}"


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = re.findall(r"\.\. auto\w+:: (\S+)", text)
    raised = vars(importlib.import_module("vstatkit.exceptions"))
    for name in set(vs.__all__) - {"__version__"}:
        full = "vstatkit.exceptions" if name in raised else f"vstatkit.{name}"
        assert any(f"{one}.".startswith(f"{full}.") for one in named), name


def resolve(name):
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        if not hasattr(thing, part):
            importlib.import_module(".".join(parts[:depth]))
        thing = getattr(thing, part)
    return thing


def test_tests_on_the_pages_exist():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    named = found(r"`(test_\w+)`")
    assert len(named) > 10
    for page, name in named:
        assert re.search(rf"def {name}\b", tests), f"{page} names {name}"


def test_files_on_the_pages_exist():
    named = found(r"`((?:vstatkit|r_bridge|tests|docs)/[\w./]+)`")
    assert len(named) > 5
    for page, name in named:
        assert (ROOT / name).exists(), f"{page} names {name}"


def test_all_estimators_and_designs_have_a_line():
    text = (DOCS / "estimators.md").read_text(encoding="utf-8")
    lines = " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))
    for name in [*ESTIMATORS, *DESIGNS]:
        assert f'`"{name}"`' in lines, name


def test_every_page_is_in_the_contents():
    """Each page is listed once, by the index or by the index of its folder."""
    listed = [
        (page.parent / name).relative_to(DOCS).as_posix()
        for page in PAGES
        for block in re.findall(
            r"{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        )
        for name in re.findall(r"^[\w/-]+$", block, re.MULTILINE)
    ]
    included = {name for _, name in found(r"{include} ([\w/]+)\.md")}
    names = [path.relative_to(ROOT) for path in PAGES]
    pages = {path.relative_to("docs").with_suffix("").as_posix() for path in names[1:]}
    assert sorted(listed) == sorted(pages - included - {"index"})
