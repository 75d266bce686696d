"""R's words in formulas of `fit`, against numbers that R 4.2.2 gave.

`tests/against_r/test_formula.py` holds many more formulas against a live R.
"""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.formula.parse import parse
from vstatkit.formula.r_syntax import translate_r
from vstatkit.formula.transforms import cut, interval_labels

X = np.array([0.5, 1, 1.7, 2.2, 3, 4.5, 5, 7])
B = np.array([0, 1] * 4)
"""Where `g` is b."""

# R: ns(x, df = 3), log(x, 3)
NS = np.array(
    [
        *([0, -0.0820051052582, -0.124203026149, -0.0547719661483]),
        *([0.189366963478, 0.508937733553, 0.468855303395, -0.151720816184]),
        *([0, 0.23322462147, 0.487405234513, 0.569057071816]),
        *([0.541061081944, 0.358821869311, 0.339048787629, 0.411331990542]),
        *([0, -0.147199146337, -0.307624615225, -0.358743147626]),
        *([-0.32514582764, -0.0238535089571, 0.112175829055, 0.740388825641]),
    ]
).reshape(3, 8)
NS_BEYOND = np.array(  # predict(ns(x, df = 3), c(-1, 9))
    [
        *(0.265082864743, -0.935940099834, -0.718669099969),
        *(0.537437603993, 0.453586235227, 1.39850249584),
    ]
).reshape(3, 2)
LOG_3 = np.array(
    [
        *(-0.630929753571, 0, 0.482998648873, 0.717684817926),
        *(1, 1.36907024643, 1.46497352072, 1.77124374916),
    ]
)


def data():
    return pd.DataFrame(
        {
            "y": np.arange(8.0),
            "x": X,
            "w": np.arange(1, 9),
            "g": list("abababab"),
            "my x": X**2,
        }
    )


def columns(formula, frame=None, **options):
    frame = data() if frame is None else frame
    return parse(formula, frame, environment=None, intercept=False, **options).X.T


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("y ~ I(w^2)", [np.arange(1, 9) ** 2]),
        ("y ~ I(w^-1) + I(2^-w)", [1 / np.arange(1.0, 9), 0.5 ** np.arange(1, 9)]),
        ("y ~ factor(g)", [[0, 1] * 4]),
        ("y ~ as.factor(g)", [[0, 1] * 4]),
        ("y ~ `my x`", [X**2]),
        ("y ~ sqrt(`my x`)", [X]),
        ("y ~ ns(x, df = 3)", NS),
        ("y ~ splines::ns(x, 3)", NS),
        ("y ~ cut(x, 3)", [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]]),
        ("y ~ cut(x, c(0, 2.2, Inf))", [[0, 0, 0, 0, 1, 1, 1, 1]]),
        ("y ~ cut(x, c(0, 2.2, Inf), right = FALSE)", [[0, 0, 0, 1, 1, 1, 1, 1]]),
        ("y ~ log(x, 3)", [LOG_3]),
        ("y ~ log(x, base = 2)", [np.log2(X)]),
        ("y ~ log(x)", [np.log(X)]),
        ("y ~ g + x %in% g", [B, X * (1 - B), X * B]),
        ("y ~ (x + w)^2", [X, np.arange(1, 9), X * np.arange(1, 9)]),
        ("y ~ x^2", [X]),
        ("y ~ I(w %% 3) + I(w %/% 3)", [np.arange(1, 9) % 3, np.arange(1, 9) // 3]),
        ("y ~ I(pi * x)", [np.pi * X]),
        ("y ~ ifelse(x > 2, 1, 0)", [X > 2]),
        ("y ~ poly(x, 2, raw = T)", [X, X**2]),
        ("y ~ cut(x, c(0.5, 2, 7), include.lowest = T, right = F)", [X >= 2]),
        ("y ~ x - 1", [X]),
        ("log(`my x`, 2) ~ x", [X]),
    ],
)
def test_rs_words_are_understood(formula, expected):
    assert_allclose(columns(formula), np.array(expected, dtype=float), atol=1e-10)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ I(x**2) + C(g)",
        'y ~ Q("a^b `c` %in% d")',
        "y ~ np.log(x) + bs(x, df=3)",
        "y ~ I(x % 2) + I(z%w)",
        "y ~ c + T + pi + Inf",
        "y ~ I(x == 'a^b')",
    ],
)
def test_what_is_no_habit_stays(formula):
    assert translate_r(formula, lambda name: False) == formula


def test_names_of_the_callers_stay_the_callers():
    def factor(values):
        return 10 * values

    res = vs.fit("y ~ factor(x)", data(), kernel="ols", k=1.0, B=20, rng=1)
    assert list(res.params.index) == ["Intercept", "factor(x)"]
    assert factor(1) == 10
    frame = data().assign(pi=2.0 * X)
    assert_allclose(columns("y ~ I(pi * 2)", frame), [4 * X])
    assert_allclose(columns("y ~ c + I(c^2)", frame.assign(c=X)), [X, X**2])


def test_whole_numbers_are_not_combined_bit_by_bit():
    """Python reads 3 ^ 2 as 1."""
    assert_allclose(columns("y ~ I(w^2)")[0, 2], 9)


@pytest.mark.parametrize("environment", [0, "restricted"])
@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x + offset(w)", r"`offset\(\.\.\.\)` is not available.*I\(y - w\) ~ x"),
        ("y ~ I(g %in% c('a'))", r"between terms it nests.*isin\(\['a', 'b'\]\)"),
        ("y ~ x %o% w", "`%o%` between terms has no counterpart"),
        ("y ~ ns(x, df = 0)", "whole number of at least 1 as df; got 0"),
        ("y ~ ns(x, df = 1, intercept = TRUE)", "at least 2 as df; got 1"),
        ("y ~ ns(g, 2)", "ns|numbers"),
        ("y ~ cut(x, 1)", "2 or more, or a list of different breaks; got 1"),
        ("y ~ cut(x, c(1, 1, 2))", "different breaks"),
        ("y ~ cut(x, 2, labels = c('a'))", "each of 2 intervals; got 1"),
        ("y ~ cut(x, 2, labels = FALSE)", "^the labels of `cut` must.* got labels="),
    ],
)
def test_errors_say_what_to_write(formula, message, environment):
    with pytest.raises(vs.FormulaError, match=message):
        vs.fit(formula, data(), kernel="ols", B=20, eval_env=environment)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ cut(x, 100000)",
        "y ~ ns(x, 100000)",
        "y ~ cut(x, 9^99^99)",
        "y ~ cut(x, c(0, 1) * 99999999)",
        "y ~ I(cut(x, 2) * 2)",
        "y ~ log(x, out = x)",
        "y ~ log(x, 2, x)",
    ],
)
def test_strangers_are_bounded(formula):
    with pytest.raises(vs.FormulaError, match="given as text"):
        vs.fit(formula, data(), B=20, eval_env="restricted")


def test_new_data_are_coded_by_the_training_data():
    new = pd.DataFrame({"x": [-1.0, 9.0]})
    spline = parse("y ~ ns(x, df=3)", data(), environment=None, intercept=False)
    assert_allclose(spline.coding.matrix(new).T, NS_BEYOND, rtol=1e-10)
    made = parse("y ~ cut(x, 3)", data(), environment=None, intercept=False)
    again = made.coding.matrix(pd.DataFrame({"x": [2.6, 2.7, 6.9]}))
    assert again.tolist() == [[0, 0], [1, 0], [0, 1]]
    with pytest.raises(vs.FormulaError, match="new data"):
        made.coding.matrix(new)


def test_gaps_are_left_out_before_anything_is_learnt():
    holed = data()
    holed.loc[3, "x"] = np.nan
    for formula in ("y ~ ns(x, df=3)", "y ~ cut(x, 3)"):
        expected = columns(formula, data().drop(index=3))
        assert_allclose(columns(formula, holed), expected)


def test_batches_give_the_same_columns(tmp_path):
    frame = vs.datasets.mars(500, rng=1)
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    formula = "y ~ ns(x1, df = 4) + cut(x2, 3) + I(x4^2)"
    held, read = (
        vs.fit(formula, one, kernel="ols", k=200, B=20, rng=1) for one in (frame, path)
    )
    assert_allclose(read.params, held.params, rtol=1e-10)


def test_saved_results_predict_with_rs_words(tmp_path):
    frame = vs.datasets.mars(80, rng=1)
    res = vs.fit("y ~ ns(x1, df = 3) + cut(x2, c(0, 0.5, Inf))", frame, B=50, rng=1)
    res.save(tmp_path / "fit.npz")
    again = vs.load(tmp_path / "fit.npz")
    assert_allclose(again.predict(frame.head(3)), res.predict(frame.head(3)))


def test_intervals_are_labelled_as_in_r():
    assert list(cut(X, 3).categories) == ["(0.493,2.67]", "(2.67,4.83]", "(4.83,7.01]"]
    lowest = interval_labels(np.array([0.0, 1, 2]), True, True)
    assert lowest == ["[0,1]", "(1,2]"]
    assert interval_labels(np.array([0.0, 1, 2]), False, True) == ["[0,1)", "[1,2]"]
    near = interval_labels(np.array([1.0001, 1.0002, 1.0003]), True, False)
    assert near == ["(1.0001,1.0002]", "(1.0002,1.0003]"]


def test_numbers_in_no_interval_are_missing():
    found = cut([0.0, 0.1, 5.0, 5.1, np.nan], [0, 2, 5])
    assert found.codes.tolist() == [-1, 0, 1, -1, -1]
    found = cut([0.0, 5.0], [0, 2, 5], right=False)
    assert found.codes.tolist() == [0, -1]
