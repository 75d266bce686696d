"""The formula engine stands behind one door."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.formula import patsy_engine
from vstatkit.formula.terms import build_model

ROOT = Path(vs.__file__).parent.parent


def imported(path):
    """Top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_only_the_engine_imports_patsy():
    files = [
        path
        for room in ("vstatkit", "r_bridge")
        for path in (ROOT / room).rglob("*.py")
    ]
    assert len(files) > 50
    importers = [path.relative_to(ROOT) for path in files if "patsy" in imported(path)]
    assert importers == [Path("vstatkit", "formula", "patsy_engine.py")]


@pytest.fixture
def frame():
    return pd.DataFrame(
        {"y": [1.0, 2, 4, np.nan], "x": [3.0, 1, np.nan, 2], "g": list("abba")}
    )


def learnt(formula, frame, missing):
    model = build_model(patsy_engine.read_tree(formula), frame.columns, 100)
    return [coded(model, side, frame, missing) for side in (model.left, model.right)]


def coded(model, terms, frame, missing):
    info = patsy_engine.learn_batches(
        model,
        terms,
        lambda: iter([frame]),
        patsy_engine.environment_of({}),
        missing=missing,
    )
    return patsy_engine.code_rows(info, frame, missing)


def test_the_engine_learns_both_sides(frame):
    left, right = learnt("y ~ x + g:x", frame, "drop")
    assert_array_equal(left.values, [[1], [2], [4]])
    assert_array_equal(right.values, [[1, 3, 0], [1, 1, 1], [1, 2, 0]])
    assert_array_equal(left.rows, [0, 1, 2])
    assert_array_equal(right.rows, [0, 1, 3])
    assert list(right.info.column_names) == ["Intercept", "x", "g[T.b]:x"]
    assert right.info.levels == {"x": None, "g": ("a", "b")}
    assert right.info.slices == {
        (): slice(0, 1),
        ("x",): slice(1, 2),
        ("g", "x"): slice(2, 3),
    }
    new = pd.DataFrame({"x": [5.0, np.nan], "g": ["b", "a"]})
    assert_array_equal(right.info.matrix(new), [[1, 5, 5], [1, np.nan, np.nan]])


def test_the_engine_keeps_or_refuses_missing_values(frame):
    _, right = learnt("y ~ x", frame, "keep")
    assert_array_equal(right.values[:, 1], frame["x"])
    with pytest.raises(vs.FormulaError, match="missing values"):
        learnt("y ~ x", frame, "raise")
    model = build_model(patsy_engine.read_tree("y ~ x"), frame.columns, 100)
    left = coded(model, model.left, frame, "drop")
    assert_array_equal(left.rows, [0, 1, 2])
    assert_array_equal(left.select_rows(np.array([0, 2])).values, [[1], [4]])


def test_the_engine_reads_restrictions():
    coefs, constants = patsy_engine.read_constraint("a = 2*b, c = 3", ["a", "b", "c"])
    assert_array_equal(coefs, [[1, -2, 0], [0, 0, 1]])
    assert_array_equal(constants, [0, 3])


def test_names_of_the_environment_come_before_functions():
    outer = patsy_engine.add_functions(
        patsy_engine.environment_of({"f": 1}), {"f": 2, "g": 3}
    )
    names = patsy_engine.visible_names(outer)
    assert (names["f"], names["g"]) == (1, 3)
    assert "test_names_of_the_environment_come_before_functions" in (
        patsy_engine.visible_names(patsy_engine.caller_environment(0))
    )
