"""Formulas of strangers: bounded, never run, one kind of error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from tests.support.hostile_formulas import FORMULAS, data
from vstatkit.formula import untrusted_formulas
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Read all of them in a process of its own; the bound is on the whole."""
    place = tmp_path_factory.mktemp("hostile")
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_formulas"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
    )
    assert os.listdir(place) == []
    return json.loads(found.stdout)


def test_there_are_enough_of_them():
    assert len(FORMULAS) >= 120
    assert len(set(FORMULAS)) == len(FORMULAS)


def test_every_one_is_refused_with_one_kind_of_error(outcomes):
    assert len(outcomes["rows"]) == len(FORMULAS)
    assert [row[:2] for row in outcomes["rows"] if row[1] != "refused"] == []


def test_none_takes_two_seconds(outcomes):
    assert [row for row in outcomes["rows"] if row[2] > 2] == []


def test_none_is_executed(outcomes):
    assert [row for row in outcomes["rows"] if row[3]] == []
    assert outcomes["same"]


@pytest.mark.parametrize(
    "right",
    [
        "x + z",
        ".",
        ". - w",
        "log(x) + np.sqrt(z) + I(x**2 > 2)",
        "I(x**1000000 > 0)",
        "I(x * 10**6) + I(x / 2**0.5) + I(x > -1.5e3)",
        "I((x + z) / 2) + I(x - 10**18 // 3)",
        "C(g) + C(g, Treatment('b')) + C(g, Sum) + C(g, Treatment(reference='c'))",
        "C(g, levels=['f', 'e', 'd', 'c', 'b', 'a'])",
        "C(g, Poly) + C(x > 1.5)",
        "C(g, ContrastMatrix([[1], [0], [0], [0], [0], [0]], ['one']))",
        "bs(x, df=6) + bs(z, knots=[1.2, 1.5], degree=2, include_intercept=False)",
        "bs(x, df=6, lower_bound=0, upper_bound=3)",
        "cr(x, df=5) + cc(z, df=4) + te(cr(x, df=4), cr(z, df=4))",
        "cr(x, df=5, constraints='center')",
        "poly(x, 3) + poly(z, degree=2, raw=True)",
        "center(x) + standardize(z) + scale(w, ddof=1)",
        "x:g + x*z + (x + z + w)**2 + x/g",
        "where(x > 1.5, x, 0) + clip(x, 1.2, 1.8) + round(x, 1) + round(z)",
        "where(x > 1.5, 'high', 'low')",
        "I(g == 'a') + I((x > 1.2) & ~(z > 1.5))",
        "Q('x') + Q(\"g\") + log(Q('z'))",
        "minimum(x, z) + np.arctan2(x, z)",
        "I(-x) + 0",
        "poly(x, 50):g",
        "g",
    ],
)
def test_ordinary_formulas_are_read_as_ever(right):
    """What strangers may write gives the columns that a trusted formula gives."""
    frame = data().drop(columns="many")
    theirs = parse(f"y ~ {right}", frame, environment=None, intercept=True)
    trusted = caller_environment(0)
    ours = parse(f"y ~ {right}", frame, environment=trusted, intercept=True)
    assert theirs.names == ours.names
    np.testing.assert_array_equal(theirs.X, ours.X)


@pytest.mark.parametrize(
    ("name", "within", "beyond"),
    [
        ("MAX_DEGREE", "poly(x, 5, raw=True)", "poly(x, 6, raw=True)"),
        ("MAX_DEGREE", "bs(x, df=5)", "bs(x, df=6)"),
        ("MAX_DEGREE", "round(x, 5)", "round(x, -6)"),
        (
            "MAX_DEGREE",
            "cr(x, knots=[1.2, 1.3])",
            "cr(x, knots=[1.1, 1.2, 1.3, 1.4, 1.5, 1.6])",
        ),
        ("MAX_COLUMNS", "poly(x, 4)", "poly(x, 4) + C(g)"),
        ("MAX_COLUMNS", "x + I(x + 1):z", "g:I(x + 1)"),
        ("MAX_ENTRIES", "log(x)", "poly(x, 5)"),
        ("MAX_LEVELS", "C(x > 1.5)", "g"),
        ("MAX_LEVELS", "I(g == 'a')", "C(g)"),
        ("MAX_NESTING", "sqrt(sqrt(x))", "sqrt(sqrt(sqrt(sqrt(x))))"),
        ("MAX_NESTING", "I(x + x)", "I(x + x + x + x)"),
        ("MAX_SIGNS", "x + z", "x + z + w + x + z + w"),
        ("MAX_LENGTH", "log(x)", "log(x)" + " " * 30),
        ("MAX_CODE", "log(x)", "log(x + x)"),
        ("MAX_NODES", "log(x)", "log(x) + log(z)"),
        ("MAX_WHOLE", "I(x + 100)", "I(x + 2**8)"),
        ("MAX_WHOLE", "I(x + 100)", "I(x + 1000)"),
    ],
)
def test_every_bound_is_kept(name, within, beyond, monkeypatch):
    bounds = {"MAX_COLUMNS": 6, "MAX_ENTRIES": 300, "MAX_NESTING": 3, "MAX_SIGNS": 5}
    bounds |= {"MAX_LENGTH": 30, "MAX_CODE": 7, "MAX_NODES": 9, "MAX_WHOLE": 255}
    frame = data().drop(columns="many")

    def read(right):
        return parse(f"y ~ {right}", frame, environment=None, intercept=False)

    read(beyond)
    monkeypatch.setattr(untrusted_formulas, name, bounds.get(name, 5))
    read(within)
    with pytest.raises(vs.FormulaError):
        read(beyond)


def test_long_products_are_bounded_before_they_are_written_out():
    frame = data()
    read = " + ".join(f"I(x**{j})" for j in range(1, 101))
    with pytest.raises(vs.FormulaError, match="products of"):
        parse(f"y ~ ({read})**2", frame, environment=None, intercept=False)


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_exhaustion_in_a_trusted_formula_is_one_line(error):
    def greedy(x):
        raise error("no more")

    with pytest.raises(vs.FormulaError) as caught:
        parse(
            "y ~ greedy(x)", data(), environment=caller_environment(0), intercept=True
        )
    assert "no more" in str(caught.value)


def test_deep_code_in_a_trusted_formula_is_one_line():
    deep = "I(" + "-" * 4000 + "x)"
    with pytest.raises(vs.FormulaError, match="is not an expression") as caught:
        parse(f"y ~ {deep}", data(), environment=caller_environment(0), intercept=True)
    assert len(str(caught.value)) < 600


def test_columns_of_the_data_are_never_bounded():
    wide = pd.DataFrame(np.ones((3, 200)), columns=[f"x{j}" for j in range(200)])
    wide = wide.assign(y=[1.0, 2.0, 3.0])
    before = untrusted_formulas.MAX_COLUMNS
    untrusted_formulas.MAX_COLUMNS = 10
    try:
        made = parse("y ~ .", wide, environment=None, intercept=False)
    finally:
        untrusted_formulas.MAX_COLUMNS = before
    assert made.X.shape == (3, 200)
