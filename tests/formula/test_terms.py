"""Terms of formulas are patsy's, and sums of any length are read."""

import itertools

import numpy as np
import pandas as pd
import patsy
import pytest
from numpy.testing import assert_array_equal
from patsy.parse_formula import parse_formula

import vstatkit as vs
from vstatkit.ensemble import typical_row_effects
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment
from vstatkit.formula.terms import sides

FORMULAS = [
    *("y ~ a", "y ~ a + b", "y ~ a + a", "y ~ 0 + a", "y ~ a - 1", "y ~ a + 0 + 1"),
    *("y ~ -1 + a", "y ~ -0 + a", "y ~ +a", "y ~ 1", "y ~ 0", "y ~ a - 0", "y ~ 0 - 0"),
    *("y ~ 1 + (a + 0)", "y ~ 0 + (a + 1)", "y ~ 1 - (a + 1)", "y ~ 0 + (a + 0) + b"),
    *("y ~ a:b", "y ~ b:a + a:b", "y ~ a:b:a", "y ~ a:(b + c)", "y ~ (a + b):(b + c)"),
    *("y ~ a*b", "y ~ a*b*c", "y ~ a*b - a", "y ~ a*b - b:a", "y ~ (a + b)*(c + d)"),
    *("y ~ a/b", "y ~ (a + b)/c", "y ~ a/(b + c)", "y ~ a/b/c", "y ~ (a + a:b)/c"),
    *("y ~ (a + b + c)**2", "y ~ (a + b + c + d)**3", "y ~ a**5", "y ~ (a + b)**99"),
    *(
        "y ~ (a*b)**2",
        "y ~ (a + b + c)**2 - a:b",
        "y ~ a + b - (a + b)",
        "y ~ c + b + a",
    ),
    *("1 + y ~ a", "0 + y ~ a", "y + z ~ a", "y*z ~ a", "y ~ log(a) + I(b + c):d"),
    *("y ~ a + b + (c - a)", "y ~ (a + b - a)*c", "y ~ ((a)) + (b:(c))", "y ~ a*b:c/d"),
    *("y ~ a + (-1)", "y ~ a + (0)", "y ~ a - (1)", "y ~ a - (0)", "y ~ a + (b - 1)"),
    *("y ~ a - (b - 1)", "y ~ (a - 1) + b", "y ~ (1 + a) + b - 1", "y ~ (a + 0) + 1"),
]
BAD = ["y ~ a + 2", "y ~ 3", "y ~ a:1", "y ~ (a + 1)*b", "y ~ (1 + a)**2", "y ~ a**b"]
BAD += ["y ~ -a", "y ~ a**0", "y ~ a**1.5", "y ~ a**(1 + 1)", "y ~ (1 + a)/b", "2 ~ a"]
BAD += [
    "y ~ (a ~ b)",
    "y ~ a ~ b",
    "y ~ 2:a",
    "y ~ a/2",
    "y ~ a - 2",
    "~ a",
    "y ~ a*(1+b)",
]


def listed(formula):
    left, right = sides(parse_formula(formula), 10_000)
    intercepts = (left.intercept, not right.removed)
    return [
        [()] * intercept + list(side.terms.values())
        for side, intercept in zip((left, right), intercepts, strict=True)
    ]


def patsys(formula):
    found = patsy.ModelDesc.from_formula(formula)
    return [
        [tuple(factor.code for factor in term.factors) for term in terms]
        for terms in (found.lhs_termlist, found.rhs_termlist)
    ]


@pytest.mark.parametrize("formula", FORMULAS)
def test_terms_are_patsys(formula):
    assert listed(formula) == patsys(formula)


def test_random_formulas_have_patsys_terms(rng):
    def draw(depth):
        if depth == 0 or rng.random() < 0.2:
            return str(rng.choice(["a", "b", "c", "I(d)"]))
        sign = str(rng.choice(["+", "-", "*", "/", ":", "+", "+"]))
        return f"({draw(depth - 1)} {sign} {draw(depth - 1)})"

    for _ in range(300):
        formula = f"y ~ {draw(4)} + {draw(2)}"
        assert listed(formula) == patsys(formula), formula


@pytest.mark.parametrize("formula", BAD)
def test_what_patsy_refuses_is_refused(formula):
    with pytest.raises(vs.FormulaError):
        listed(formula)
    if formula != "~ a":
        with pytest.raises(patsy.PatsyError):
            patsys(formula)


@pytest.mark.parametrize(("limit", "good"), [(9, True), (8, False)])
def test_products_are_counted_before_they_are_made(limit, good):
    tree = parse_formula("y ~ (a + b + c):(d + e + f)")
    if good:
        assert len(sides(tree, limit)[1].terms) == 9
    else:
        with pytest.raises(vs.FormulaError, match="products of 9 terms"):
            sides(tree, limit)


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "y": rng.normal(size=40),
            "n": rng.normal(size=40),
            "whole": rng.integers(0, 9, 40),
            "single": rng.normal(size=40).astype(np.float32),
            "flag": rng.random(40) > 0.5,
            "text": rng.choice(list("pqr"), 40),
            "my x": rng.normal(size=40),
        }
    )
    levels = rng.choice(["lo", "mid", "hi"], 40)
    frame["cat"] = pd.Categorical(levels, ["lo", "mid", "hi", "none"])
    return frame


RIGHTS = [
    "n + whole + single + flag + text + cat + Q('my x')",
    "text + n + cat + flag",
    "0 + text + cat + n",
    "n:text + n + text:cat",
    "n*cat + Q('my x'):flag + log(whole + 1)",
    "C(whole) + text/n",
    "bs(n, df=4) + center(whole):text",
]


@pytest.mark.parametrize("right", RIGHTS)
@pytest.mark.parametrize("gaps", [False, True])
def test_matrices_are_patsys_to_the_bit(mixed, right, gaps):
    frame = mixed.copy()
    if gaps:
        frame.loc[[3, 9], "n"] = np.nan
        frame.loc[[5], ["text", "cat"]] = None
        frame = frame if "bs(" not in right else frame.dropna()
    formula = f"y ~ {right}".replace("log", "np.log")
    ours = parse(formula, frame, environment=caller_environment(0), intercept=True)
    left, theirs = patsy.dmatrices(formula, frame, return_type="dataframe")
    names = [name.replace("Q('my x')", "my x") for name in theirs.columns]
    assert list(ours.names) == names
    assert_array_equal(ours.X, theirs.to_numpy())
    assert_array_equal(ours.y, left.to_numpy()[:, 0])
    new = frame.dropna().iloc[[4, 2, 4]]
    (again,) = patsy.build_design_matrices([theirs.design_info], new)
    assert_array_equal(ours.coding.matrix(new), np.asarray(again))


def test_unseen_levels_are_named(mixed):
    made = parse("y ~ text + n", mixed, environment=None, intercept=False)
    with pytest.raises(vs.FormulaError, match="have 'zz' in 'text'"):
        made.coding.matrix({"text": ["zz"], "n": [1.0]})


def test_missing_values_raise_on_request(mixed):
    frame = mixed.copy()
    frame.loc[3, "n"] = np.nan
    with pytest.raises(vs.FormulaError, match="'n' must have a value"):
        parse("y ~ n", frame, environment=None, intercept=False, missing="raise")
    passed = parse("y ~ n", frame, environment=None, intercept=False, missing="pass")
    assert_array_equal(passed.X[:, 0], frame["n"])


def wide(p, rows=12):
    rng = np.random.default_rng(5)
    names = [f"x{j}" if j % 3 else f"x {j}" for j in range(p)]
    frame = pd.DataFrame(rng.normal(size=(rows, p)), columns=names)
    frame[names[5]] = rng.choice(list("ab"), rows)
    frame.insert(0, "y", rng.normal(size=rows))
    return frame


def expected(frame, first="y"):
    """Columns as patsy orders them: categories first."""
    text = [n for n in frame.columns if not pd.api.types.is_numeric_dtype(frame[n])]
    rest = [n for n in frame.columns if n not in [*text, first]]
    coded = [(frame[name] == "b").astype(float) for name in text]
    return [f"{n}[T.b]" for n in text] + rest, np.column_stack([*coded, frame[rest]])


@pytest.mark.parametrize("p", [600, 2000, 10_000])
def test_the_dot_stands_for_any_number_of_columns(p):
    frame = wide(p)
    made = parse("y ~ .", frame, environment=None, intercept=False)
    names, X = expected(frame)
    assert list(made.names) == names
    assert_array_equal(made.X, X)
    assert_array_equal(made.coding.matrix(frame.iloc[[3, 1]]), X[[3, 1]])


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "of a stranger"])
def test_long_formulas_may_do_more_than_the_dot(trusted):
    frame = wide(700)
    environment = caller_environment(0) if trusted else None

    def read(right):
        made = parse(f"y ~ {right}", frame, environment=environment, intercept=False)
        return list(made.names), made.X

    names, X = expected(frame)
    fewer = [j for j, name in enumerate(names) if name not in ("x1", "x 9")]
    for right in (". - x1 - Q('x 9')", ". - (Q('x 9') + x1)"):
        found = read(right)
        assert found[0] == [names[j] for j in fewer]
        assert_array_equal(found[1], X[:, fewer])
    more, columns = read(". + I(x1**2) + x1:x2")
    assert more == [*names, "I(x1 ** 2)", "x1:x2"]
    assert_array_equal(columns[:, -2], frame["x1"] ** 2)
    assert_array_equal(columns[:, -1], frame["x1"] * frame["x2"])
    written = " + ".join(f"Q('{n}')" if " " in n else n for n in frame.columns[1:])
    assert read(written)[0] == names


def test_fits_of_many_columns_are_saved_and_predict(tmp_path):
    frame = wide(1200, rows=30)
    res = vs.fit("y ~ . - x1", frame, B=10, rng=1)
    path = tmp_path / "wide.npz"
    res.save(path)
    loaded = vs.load(path)
    assert_array_equal(loaded.predict(frame), res.predict(frame))
    assert str(loaded.summary()) == str(res.summary())
    assert len(res.effects) == 1199


def test_effects_stop_where_the_memory_would(monkeypatch):
    data = vs.datasets.mars(60, rng=1)
    whole = vs.fit("y ~ .", data, B=20, rng=1)
    monkeypatch.setattr(typical_row_effects, "MAX_ENTRIES", 3 * 5)
    part = vs.fit("y ~ .", data, B=20, rng=1)
    assert list(whole.effects.index) == ["x1", "x2", "x3", "x4", "x5"]
    pd.testing.assert_frame_equal(part.effects, whole.effects.iloc[:3])
    assert "The last 2 predictors have no effects" in str(part.summary())
    assert "not moved" not in str(whole.summary())


def test_effects_move_one_predictor_and_keep_the_others(mixed):
    made = parse("y ~ n + text + flag", mixed, environment=None, intercept=False)
    settings = typical_row_effects.effect_settings(
        made.coding, made.frame, made.typical_row
    )
    typical = made.coding.typical_row(made.frame)
    low, high = mixed["n"].quantile([0.1, 0.9])
    moves = {"n": [(low, high)], "text": [("p", "q"), ("p", "r")]}
    moves["flag"] = [(False, True)]
    listed = [(name, *pair) for name in made.coding.variables for pair in moves[name]]
    assert list(settings.frame.index) == [name for name, _, _ in listed]
    for at, (name, start, end) in enumerate(listed):
        for coded, value in ((settings.start, start), (settings.end, end)):
            row = made.coding.matrix(typical.assign(**{name: [value]}))
            assert_array_equal(coded[[at]], row)


def test_a_typical_row_is_made_of_medians_and_modes_of_any_kind(mixed):
    made = parse("y ~ .", mixed, environment=None, intercept=False)
    typical = made.coding.typical_row(made.frame)
    for name in ("n", "whole", "single", "my x"):
        assert typical[name].item() == mixed[name].median()
    for name in ("flag", "text", "cat"):
        assert typical[name].item() == mixed[name].mode()[0]
    assert typical["single"].dtype == np.float32
    low = {name: ends[0] for name, ends in made.coding.ranges(made.frame).items()}
    assert low == {n: mixed[n].min() for n in ("n", "whole", "single", "my x")}


def test_the_recipe_lists_the_terms_one_by_one(mixed):
    for right, text in [
        (". - n - Q('my x') - cat", "1 + whole + single + flag + text"),
        ("0 + n*text", "0 + n + text + n:text"),
        ("(n + whole + flag)**2 - n:flag", None),
    ]:
        made = parse(f"y ~ {right}", mixed, environment=None, intercept=True)
        again = made.coding.recipe.rebuild()
        if text is not None:
            assert made.coding.recipe.formula == f"y ~ {text}"
        assert again.info.column_names == made.coding.info.column_names
        assert_array_equal(again.matrix(mixed), made.coding.matrix(mixed))


def test_sums_of_calls_need_no_recursion():
    frame = pd.DataFrame({"y": np.arange(9.0), "x": np.arange(1.0, 10)})
    right = " + ".join(f"I(x + {j})" for j in itertools.islice(itertools.count(), 700))
    made = parse(f"y ~ {right}", frame, environment=None, intercept=False)
    assert made.X.shape == (9, 700)
    assert_array_equal(made.X[0], 1 + np.arange(700.0))
