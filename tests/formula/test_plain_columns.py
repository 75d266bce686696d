"""Plain columns are coded without the engine, and exactly as by the engine."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import vstatkit as vs
from vstatkit.ensemble.typical_row_effects import QUANTILES
from vstatkit.formula import design_matrix
from vstatkit.formula.column_summaries import FrameVariables
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment

FLOATS = st.floats(allow_infinity=False, width=32)
TEXTS = st.sampled_from(["b", "a", "B", "", "ä", "1", "None", "x y"])
CELLS = {
    "float": st.one_of(FLOATS, st.just(-0.0)),
    "single": FLOATS,
    "int": st.integers(-(2**60), 2**60),
    "small": st.integers(0, 3),
    "bool": st.booleans(),
    "text": TEXTS,
    "gappy": st.one_of(TEXTS, st.none(), st.just(np.nan)),
    "flags": st.one_of(st.booleans(), st.none()),
    "mixed": st.one_of(TEXTS, st.integers(0, 2), st.none()),
    "odd": st.sampled_from(["a", "b", pd.NA]),
    "unread": st.sampled_from(["a", "nan", " NaN"]),
    "category": st.sampled_from(["u", "v", "w", None]),
    "numbered": st.sampled_from([3, 1, 2]),
    "ordered": st.sampled_from(["lo", "hi"]),
    "nullable": st.one_of(st.integers(0, 4), st.none()),
}
NAMES = ["a", "b", "c", "my x", "scale", "Intercept"]


def column(kind, cells):
    if kind == "single":
        return np.array(cells, dtype=np.float32)
    if kind in ("text", "gappy", "flags", "mixed", "odd", "unread"):
        return pd.Series(cells, dtype=object)
    if kind == "category":
        return pd.Categorical(cells, ["v", "u", "none", "w"])
    if kind == "numbered":
        return pd.Categorical(cells, [3, 1, 2])
    if kind == "ordered":
        return pd.Categorical(cells, ["lo", "hi"], ordered=True)
    return pd.array(cells, dtype="Int64") if kind == "nullable" else np.array(cells)


@st.composite
def frames(draw):
    rows = draw(st.integers(1, 7))
    kinds = {name: draw(st.sampled_from(sorted(CELLS))) for name in ["y", *NAMES]}
    cells = {
        name: draw(st.lists(CELLS[kind], min_size=rows, max_size=rows))
        for name, kind in kinds.items()
    }
    return pd.DataFrame({name: column(kinds[name], cells[name]) for name in cells})


@st.composite
def formulas(draw):
    left = draw(st.sampled_from(["y", "y", "Q('y')", "C(y)", "np.abs(y)", "y + a"]))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    right = [f"Q('{name}')" if " " in name else name for name in names]
    extra = draw(st.sampled_from(["", "", "1 + ", "0 + ", "-1 + "]))
    return f"{left} ~ {extra}{' + '.join(right)}"


def outcome(function):
    """What a call gives or, word for word, says."""
    try:
        with np.errstate(all="ignore"):
            return function()
    except vs.FormulaError as error:
        return str(error)


def check_same(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs
        return
    assert ours.names == theirs.names
    for name in ("X", "y", "rows"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.dtype == other.dtype
        assert one.strides == other.strides
        assert one.tobytes() == other.tobytes()
    assert repr(ours.classes) == repr(theirs.classes)
    assert ours.unused_levels == theirs.unused_levels
    assert ours.n_dropped == theirs.n_dropped
    pd.testing.assert_frame_equal(ours.frame, theirs.frame)
    mine, its = ours.coding, theirs.coding
    assert list(mine.info.column_names) == list(its.info.column_names)
    assert dict(mine.info.levels) == dict(its.info.levels)
    assert list(mine.info.slices.items()) == list(its.info.slices.items())
    assert_array_equal(mine.columns, its.columns)
    assert (mine.variables, mine.categorical) == (its.variables, its.categorical)
    assert mine.recipe.formula == its.recipe.formula
    pd.testing.assert_frame_equal(mine.recipe.frame, its.recipe.frame)


def both(monkeypatch, call):
    """Call without and with the engine for everything."""
    ours = outcome(call)
    with monkeypatch.context() as patched:
        patched.setattr(design_matrix, "plain_info", lambda *_: None)
        return ours, outcome(call)


@settings(max_examples=200)
@given(
    frame=frames(),
    new=frames(),
    formula=formulas(),
    missing=st.sampled_from(["drop", "raise", "pass"]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_plain_columns_are_coded_as_by_the_engine(frame, new, formula, missing, flags):
    settings = {"intercept": flags[0], "missing": missing}
    settings["environment"] = caller_environment(0) if flags[1] else None

    def read():
        return parse(formula, frame, **settings)

    with pytest.MonkeyPatch.context() as monkeypatch:
        ours, theirs = both(monkeypatch, read)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert ours == theirs
        return
    check_same(ours, theirs)
    for rows in (frame, new, frame.iloc[[0, 0]]):
        mine, its = (
            outcome(lambda one=one, rows=rows: one.coding.raw_matrix(rows))
            for one in (ours, theirs)
        )
        if isinstance(mine, str) or isinstance(its, str):
            assert mine == its
        else:
            assert mine.strides == its.strides
            assert_array_equal(mine, its)


@pytest.mark.parametrize(
    "cells",
    [
        ["b", "a", "B", "a"],
        ["b", None, "a", np.nan],
        ["b", pd.NA, "a", "a"],
        ["b", pd.NaT, "a", "a"],
        ["b", "nan", "a", "a"],
        [True, None, False, True],
        ["b", 1, "a", 2],
    ],
    ids=str,
)
@pytest.mark.parametrize("start", ["", "0 + "])
def test_columns_of_objects_are_coded_as_by_the_engine(monkeypatch, cells, start):
    frame = pd.DataFrame({"y": [1.0, 2, 3, 4], "g": pd.Series(cells, dtype=object)})
    ours, theirs = both(
        monkeypatch,
        lambda: parse(f"y ~ {start}g", frame, environment=None, intercept=True),
    )
    check_same(ours, theirs)


def test_plain_columns_need_no_engine(monkeypatch):
    def refuse(model, terms, *rest, **options):
        assert terms == model.left, "the engine was asked"
        return learn_batches(model, terms, *rest, **options)

    learn_batches = design_matrix.learn_batches
    monkeypatch.setattr(design_matrix, "learn_batches", refuse)
    data = vs.datasets.mars(60, rng=1).assign(g=list("abc") * 20, b=[True, False] * 30)
    data.loc[3, ["g", "x1"]] = None
    made = parse("y ~ .", data, environment=None, intercept=True)
    assert made.names[:4] == ("Intercept", "g[T.b]", "g[T.c]", "b[T.True]")
    assert made.n_dropped == 1
    parse("np.log(y**2) ~ . - g", data, environment=None, intercept=True)
    with pytest.raises(AssertionError, match="was asked"):
        parse("y ~ x1*x2", data, environment=None, intercept=True)


def test_quantiles_of_all_columns_are_those_of_each(rng):
    kinds = [np.float64, np.float32, np.int64, np.int8, np.uint64]
    frame = pd.DataFrame(
        {f"x{j}": rng.normal(60, 30, 41).astype(kinds[j % 5]) for j in range(15)}
    )
    frame.loc[4, ["x0", "x1", "x5"]] = np.nan
    found = FrameVariables(frame).quantiles(list(frame.columns), QUANTILES)
    for name in frame.columns:
        assert found[name] == list(frame[name].quantile(list(QUANTILES)))
        assert all(type(value) is float for value in found[name])
