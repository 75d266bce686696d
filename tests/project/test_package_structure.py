"""The package structure: imports point one way only."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOMS = [
    "_typing exceptions",
    "available_memory classical datasets exact json_values pandas_pickling "
    "reticulate_hook text",
    "scratch",
    "native",
    "workers",
    "sources",
    "formula",
    "validation",
    "sampling",
    "kernels",
    "variance",
    "inference",
    "ensemble",
    "results",
    "storage",
    "fit_steps plots",
    "forest report",
    "interop",
    "api",
    "studies",
    "shell",
    "cli",
    "__main__",
]
"""Rooms of the package, from the ground up: each imports from those before it.

Rooms of one line do not import from each other.
"""

DOORS = {
    ("vstatkit.results.bootstrap", "vstatkit.plots.estimates"),
    ("vstatkit.results.bootstrap", "vstatkit.storage.checkpoint"),
    ("vstatkit.results.delta_method", "vstatkit.plots.marginal"),
    ("vstatkit.results.dependence_curves", "vstatkit.plots.marginal"),
    ("vstatkit.results.ensemble_results", "vstatkit.plots.registry"),
    ("vstatkit.results.ensemble_results", "vstatkit.report.contents"),
    ("vstatkit.results.estimate_table", "vstatkit.plots.estimates"),
    ("vstatkit.results.estimate_table", "vstatkit.storage.results_file"),
    ("vstatkit.results.importance", "vstatkit.plots.estimates"),
    ("vstatkit.results.marginal_effects", "vstatkit.plots.marginal"),
    ("vstatkit.results.prediction_results", "vstatkit.plots.estimates"),
    ("vstatkit.results.predictor_tests", "vstatkit.plots.estimates"),
    ("vstatkit.results.reliability_checks", "vstatkit.plots.estimates"),
}
"""Methods of results that hand the results on, to be drawn, reported or saved."""


def name_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((ROOT / "vstatkit").rglob("*.py"))}


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(tree, *, nested=True):
    """Modules of the package that are imported, within functions too if `nested`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not is_for_types(node) and (
            nested or not isinstance(node, ast.FunctionDef)
        ):
            yield from imports(node, nested=nested)


def imported(name, **options):
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found = set(imports(tree, **options)) - {name}
    return {one for one in found if one.split(".")[0] == "vstatkit"}


def level(name):
    room = name.split(".")[1]
    (found,) = [j for j, rooms in enumerate(ROOMS) if room in rooms.split()]
    return found, room


INSIDE = [name for name in MODULES if name != "vstatkit"]


@pytest.mark.parametrize("name", INSIDE)
def test_imports_point_to_the_ground(name):
    here, room = level(name)
    for other in imported(name):
        if other == "vstatkit":
            assert name == "vstatkit.cli", "only the command may import the whole"
            continue
        there, other_room = level(other)
        allowed = room == other_room or there < here or (name, other) in DOORS
        assert allowed, f"{name} imports {other}, which stands above or beside it"


def test_the_doors_are_used():
    for name, other in DOORS:
        assert other in imported(name)
        assert other not in imported(name, nested=False)


def test_no_import_goes_round_in_circles():
    waiting = {name: imported(name, nested=False) - {"vstatkit"} for name in INSIDE}
    while waiting:
        ready = {name for name, needed in waiting.items() if not needed & set(waiting)}
        assert ready, f"these import each other: {sorted(waiting)}"
        waiting = {name: one for name, one in waiting.items() if name not in ready}


def test_the_package_never_imports_the_bridge():
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not any(one.split(".")[0] == "r_bridge" for one in imports(tree)), name


def test_every_module_has_its_line_in_the_map():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = page.split("### Modules")[1].split("### The walk")[0]
    packages = re.split(r"^\*\*`vstatkit/(.*?)/?`\*\*$", listed, flags=re.M)[1:]
    found = {
        ".".join(filter(None, ["vstatkit", package, name.replace("/", ".")])): line
        for package, text in zip(packages[::2], packages[1::2], strict=True)
        for name, line in re.findall(r"^- `([\w/]+)`: (.+)$", text, re.M)
    }
    expected = {
        name: ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()[0]
        for name, path in MODULES.items()
        if path.name not in ("__init__.py", "__main__.py")
    }
    assert found == expected
