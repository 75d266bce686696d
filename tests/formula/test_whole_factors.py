"""Unordered factors in one column of codes."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.ensemble.typical_row_effects import effect_settings
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(8)
    n = 150
    frame = pd.DataFrame({"y": rng.normal(size=n), "x": rng.normal(size=n)})
    return frame.assign(
        text=rng.permutation(np.resize(list("dbca"), n)),
        flag=rng.random(n) > 0.5,
        cat=pd.Categorical(rng.choice(["lo", "hi"], n), ["lo", "none", "hi"]),
        size=pd.Categorical(
            rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True
        ),
        whole=rng.choice([7, 3, 5], n),
        just=[f"v{j % 64:02d}" for j in range(n)],
        many=[f"v{j % 65:02d}" for j in range(n)],
        **{"my g": rng.choice(list("uv"), n)},
    )


def read(right, data, **options):
    settings = {"environment": None, "intercept": False, "factors": "whole"}
    return parse(f"y ~ {right}", data, **{**settings, **options})


CODES = {
    "text": list("abcd"),
    "flag": [False, True],
    "cat": ["lo", "none", "hi"],
    "whole": [3, 5, 7],
    "my g": list("uv"),
    "just": [f"v{j:02d}" for j in range(64)],
}


@pytest.mark.parametrize("start", ["", "0 + "])
@pytest.mark.parametrize("bend", ["", " + np.exp(x)"], ids=["plain", "engine"])
def test_a_factor_has_one_column_of_codes(data, start, bend):
    right = f"{start}x + text + C(whole) + flag + cat + Q('my g') + just{bend}"
    made = read(right, data, environment=caller_environment(0))
    assert made.names[:6] == ("text", "C(whole)", "flag", "cat", "my g", "just")
    assert made.levels.tolist()[:6] == [4, 3, 2, 3, 2, 64]
    assert not made.levels[6:].any()
    assert made.X.shape[1] == len(made.levels) == 7 + bool(bend)
    for name, column in zip(made.names[:6], made.X.T, strict=False):
        variable = name.removeprefix("C(").removesuffix(")")
        codes = [CODES[variable].index(value) for value in data[variable]]
        assert_array_equal(column, codes)
    assert_array_equal(made.X[:, 6], data["x"])
    assert_array_equal(made.coding.matrix(data.iloc[[9, 3]]), made.X[[9, 3]])


def test_by_default_nothing_changes(data):
    made = read("text + x", data, factors="treatment")
    assert made.names == ("text[T.b]", "text[T.c]", "text[T.d]", "x")
    assert made.levels.tolist() == [0, 0, 0, 0]
    assert read("x", data).levels.tolist() == [0]


@pytest.mark.parametrize(
    "right",
    [
        "many",
        "size",
        "C(size)",
        "text:x",
        "text*x",
        "text + text:flag",
        "C(text, Sum)",
        "C(text, levels=['d', 'c', 'b', 'a'])",
        "I(x > 0)",
    ],
)
def test_other_factors_have_indicators(data, right):
    made, usual = read(right, data), read(right, data, factors="treatment")
    assert made.names == usual.names
    assert not made.levels.any()
    assert_array_equal(made.X, usual.X)


def test_a_factor_in_a_product_leaves_the_others_whole(data):
    made = read("text*x + flag", data, intercept=True)
    assert made.names[:5] == (
        "Intercept",
        "text[T.b]",
        "text[T.c]",
        "text[T.d]",
        "flag",
    )
    assert made.levels[:5].tolist() == [0, 0, 0, 0, 2]


def test_unknown_levels_are_refused(data):
    for right in ("text + x", "text + np.exp(x)"):
        made = read(right, data)
        with pytest.raises(vs.FormulaError, match="have 'zz' in 'text'; the"):
            made.coding.matrix({"text": ["zz"], "x": [1.0]})


def test_missing_values_are_dropped_or_kept(data):
    gappy = data.assign(x=data["x"].where(data["x"] > 0), text=data["text"])
    gappy.loc[4, "text"] = None
    made = read("text + x", gappy)
    assert made.n_dropped == (gappy[["x", "text"]].isna().any(axis=1)).sum()
    assert_array_equal(made.X[:, 1], gappy["x"].dropna().drop(4, errors="ignore"))
    passed = read("flag + x", gappy, missing="pass")
    assert_array_equal(passed.X, gappy[["flag", "x"]].astype(float))


def test_typical_row_and_effects_move_codes(data):
    made = read("text + x", data)
    typical = made.coding.typical_row(made.frame)
    row = made.coding.matrix(typical)
    most = data["text"].mode()
    first = data["text"][data["text"].isin(most)].iloc[0]
    assert len(most) == 2  # the one that comes first in the data, not in the alphabet
    assert first != most[0]
    assert row[0, 0] == CODES["text"].index(first)
    settings = effect_settings(made.coding, made.frame, made.typical_row)
    assert list(settings.frame.index) == ["text", "text", "text", "x"]
    assert settings.start[:3, 0].tolist() == [0, 0, 0]
    assert settings.end[:3, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("right", ["text + C(whole) + x", "text + bs(x, 4)"])
def test_the_recipe_keeps_factors_whole(data, right):
    made = read(right, data)
    rebuilt = made.coding.recipe.rebuild()
    travelled = pickle.loads(pickle.dumps(made))
    copied = copy.deepcopy(made.coding)
    for again in (rebuilt, travelled.coding, copied):
        assert list(again.info.column_names) == list(made.coding.info.column_names)
        assert_array_equal(again.matrix(data), made.coding.matrix(data))
    assert_array_equal(travelled.levels, made.levels)
