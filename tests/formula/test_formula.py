from decimal import Decimal

import numpy as np
import pandas as pd
import patsy
import polars as pl
import pyarrow as pa
import pytest

import vstatkit as vs
from vstatkit.formula.data_frames import as_frame
from vstatkit.formula.formula_text import PATSY_BUILTINS, expand_dot, plain_name, quote
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import caller_environment


@pytest.fixture
def data():
    return pd.DataFrame(
        {
            "y": [1.0, 2.0, 4.0, 3.0, 6.0, 5.0],
            "x": [1, 2, 3, 4, 5, 6],
            "g": ["a", "b", "c", "a", "b", "c"],
            "my x": [0.1, 0.5, 0.2, 0.9, 0.3, 0.4],
        },
        index=[9, 9, 3, 1, 0, 7],
    )


def read(formula, data, **options):
    settings = {"intercept": False, "environment": caller_environment(1), **options}
    return parse(formula, data, **settings)


def test_builtin_names_are_patsys():
    assert frozenset(patsy.builtins.__all__) == PATSY_BUILTINS


def test_patsy_codes_the_design(data):
    design = read("y ~ g + np.log(x)", data)
    assert design.names == ("g[T.b]", "g[T.c]", "np.log(x)")
    np.testing.assert_array_equal(design.X[:, 0], [0, 1, 0, 0, 1, 0])
    np.testing.assert_allclose(design.X[:, 2], np.log(data["x"]))
    np.testing.assert_array_equal(design.y, data["y"])


def test_intercept_is_kept_on_request_and_codes_factors_alike(data):
    with_one = read("y ~ g", data, intercept=True)
    without = read("y ~ g", data)
    assert with_one.names == ("Intercept", "g[T.b]", "g[T.c]")
    assert without.names == ("g[T.b]", "g[T.c]")


def test_names_come_from_the_callers_environment(data):
    def twice(x):
        return 2 * x

    design = read("y ~ twice(x)", data)
    np.testing.assert_array_equal(design.X[:, 0], 2 * data["x"])


def test_fit_sees_the_callers_names(data):
    def cube(x):
        return x**3

    res = vs.fit("y ~ cube(x)", data, kernel="ols", k=6, B=20, rng=1)
    assert list(res.params.index) == ["Intercept", "cube(x)"]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("y ~ .", 'y ~ (x + g + Q("my x"))'),
        ("y ~ . - x", 'y ~ (x + g + Q("my x")) - x'),
        ("np.log(y) ~ . + np.log(x)", 'np.log(y) ~ (x + g + Q("my x")) + np.log(x)'),
        ("y ~ x + 0.5", "y ~ x + 0.5"),
        ("y ~ np.exp(x)", "y ~ np.exp(x)"),
        ("y ~ x:.", 'y ~ x:(x + g + Q("my x"))'),
    ],
)
def test_dot_stands_for_all_other_columns(formula, expected):
    assert expand_dot(formula, ["y", "x", "g", "my x"]) == expected


def test_dot_minus_a_column(data):
    assert read("y ~ . - x", data).names == ("g[T.b]", "g[T.c]", "my x")


@pytest.mark.parametrize("name", ["my x", 'a"b', "C", "lambda", "1st", "x"])
def test_any_column_name_can_be_quoted(name):
    frame = pd.DataFrame({"y": [1.0, 2.0, 3.0], name: [1.0, 5.0, 2.0]})
    design = read(f"y ~ {quote(name)}", frame)
    np.testing.assert_array_equal(design.X[:, 0], frame[name])


def test_quotes_are_not_displayed():
    assert plain_name('Q("my x"):g[T.b]') == "my x:g[T.b]"


@pytest.mark.parametrize(
    ("response", "classes"),
    [
        ([True, False, True, True], (False, True)),
        (["no", "yes", "no", "no"], ("no", "yes")),
        (pd.Categorical([3, 1, 2, 1], [1, 2, 3]), (1, 2, 3)),
        (pd.array(["u", "v", "u", "v"], dtype="string"), ("u", "v")),
    ],
)
def test_categorical_responses_become_class_codes(response, classes):
    frame = pd.DataFrame({"y": response, "x": [1.0, 2.0, 3.0, 4.0]})
    design = read("y ~ x", frame)
    assert design.classes == classes
    decoded = [classes[int(code)] for code in design.y]
    assert decoded == list(frame["y"])


def test_integers_are_classes_when_marked_as_categories():
    frame = pd.DataFrame({"y": [0, 2, 1, 2], "x": [1.0, 2.0, 3.0, 4.0]})
    assert read("y ~ x", frame).classes is None
    assert read("C(y) ~ x", frame).classes == (0, 1, 2)


def test_new_data_are_coded_as_the_training_data(data):
    design = read("y ~ g + center(x) + bs(Q('my x'), df=4)", data)
    again = design.coding.matrix(data)
    np.testing.assert_allclose(again, design.X, rtol=1e-12)
    one = design.coding.matrix(data.iloc[[4]])
    np.testing.assert_allclose(one, design.X[[4]], rtol=1e-12)


def test_missing_rows_are_dropped_and_counted(data):
    data.loc[3, "x"] = np.nan
    design = read("y ~ x + g", data)
    assert design.n_dropped == 1
    assert list(design.frame.index) == [9, 9, 1, 0, 7]
    np.testing.assert_array_equal(design.rows, [0, 1, 3, 4, 5])
    np.testing.assert_array_equal(design.y, [1, 2, 3, 6, 5])


def test_stateful_transforms_learn_from_complete_rows_only(data):
    data.loc[3, "x"] = np.nan
    design = read("y ~ center(x)", data)
    kept = data["x"].dropna()
    np.testing.assert_allclose(design.X[:, 0], kept - kept.mean())


def test_missing_can_raise_or_pass(data):
    data.loc[3, "x"] = np.nan
    with pytest.raises(vs.FormulaError, match="missing='drop'"):
        read("y ~ x", data, missing="raise")
    design = read("y ~ x", data, missing="pass")
    assert design.n_dropped == 0
    assert np.isnan(design.X[2, 0])
    data.loc[7, "y"] = np.nan
    assert read("y ~ x", data, missing="pass").n_dropped == 1


def test_missing_categories_do_not_pass(data):
    data.loc[3, "g"] = None
    with pytest.raises(vs.FormulaError, match="keeps missing numbers only; 'g'"):
        read("y ~ g", data, missing="pass")


@pytest.mark.parametrize("kind", ["dict", "polars", "arrow", "nullable"])
def test_other_kinds_of_data_read_alike(data, kind):
    plain = data.reset_index(drop=True)
    other = {
        "dict": lambda: {name: list(plain[name]) for name in plain},
        "polars": lambda: pl.DataFrame({name: list(plain[name]) for name in plain}),
        "arrow": lambda: pa.table({name: list(plain[name]) for name in plain}),
        "nullable": plain.convert_dtypes,
    }[kind]()
    ours, theirs = read("y ~ .", plain), read("y ~ .", other)
    assert ours.names == theirs.names
    np.testing.assert_array_equal(ours.X, theirs.X)


def test_nullable_columns_keep_their_missing_values():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
    plain = as_frame(frame)
    assert plain["a"].dtype == np.float64
    assert plain["a"].isna().tolist() == [False, True, False]


def test_typical_row_has_medians_and_modes(data):
    data["c"] = [7, 7, 7, 1, 2, 3]
    design = read("y ~ x + g + C(c)", data)
    typical = design.coding.typical_row(design.frame)
    assert typical["x"].item() == 3.5
    assert typical["g"].item() == "a"
    assert typical["c"].item() == 7


def test_formulas_of_strangers_may_use_columns_and_elementwise_functions(data):
    formula = "y ~ log(x) + np.sqrt(x) + C(g, Treatment('b')) + x:g + I(x**2 > 4)"
    design = parse(formula, data, environment=None, intercept=False)
    np.testing.assert_allclose(
        design.X[:, design.names.index("log(x)")], np.log(data["x"])
    )


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('true')",
        "np.load(x)",
        "np.lib.format.open_memmap(x)",
        "x.__class__",
        "open('f')",
        "I((lambda z: z)(x))",
        "[z for z in x]",
        "eval('x')",
        "getattr(x, 'sum')()",
        "x[0]",
    ],
)
def test_formulas_of_strangers_may_not_run_code(data, code):
    with pytest.raises(vs.FormulaError, match=r"not allowed|is not a column"):
        parse(f"y ~ {code}", data, environment=None, intercept=False)


def test_a_column_is_never_called(data):
    hostile = data.rename(columns={"x": "log"})
    parsed = parse("y ~ log(log)", hostile, environment=None, intercept=False)
    assert np.array_equal(parsed.X[:, 0], np.log(hostile["log"]))
    odd = data.rename(columns={"x": "getattr"})
    with pytest.raises(vs.FormulaError, match="not allowed"):
        parse("y ~ getattr(getattr)", odd, environment=None, intercept=False)
    with pytest.raises(vs.FormulaError, match=r"'x' is a column, and 'x.g.' calls it"):
        parse("y ~ x(g)", data, environment=None, intercept=False)


def test_a_number_inside_a_condition_stays_a_number():
    data = vs.datasets.mars(60, rng=1)
    res = vs.fit("y ~ I(x1 > 0.5) + x2", data, B=20, rng=1)
    assert list(res.effects.index) == ["x1", "x2"]
    assert res.typical["x1"].item() == data["x1"].median()


def test_a_response_takes_no_contrast(data):
    with pytest.raises(vs.FormulaError, match="takes no contrast"):
        read("C(g, Sum) ~ x", data)


def test_levels_of_the_response_that_no_row_has_are_left_out(data):
    frame = data.assign(g=data["g"].astype("category"))
    design = read("g ~ x", frame[frame["g"] != "b"])
    assert design.classes == ("a", "c")
    assert design.unused_levels == ("b",)
    np.testing.assert_array_equal(design.y, [0, 1, 0, 1])


def test_unused_levels_are_noted():
    data = vs.datasets.iris()
    two = data[data["species"] != "setosa"]
    res = vs.fit("species ~ petal_width", two, B=20, rng=1)
    text = str(res.summary())
    assert "that no row has: setosa" in text
    assert "P(species = virginica)" in text


@pytest.mark.parametrize("formula", ["class ~ x", "y ~ class", 'y ~ Q("class")'])
def test_a_keyword_is_a_name_where_it_is_a_column(data, formula):
    frame = data.assign(**{"class": data["my x"]})
    wanted = read(
        formula.replace("class", "my_x"), data.rename(columns={"my x": "my_x"})
    )
    found = read(formula, frame)
    assert found.names == tuple(one.replace("my_x", "class") for one in wanted.names)
    assert np.array_equal(found.X, wanted.X)
    assert np.array_equal(found.y, wanted.y)


def test_a_word_of_expressions_is_explained(data):
    frame = data.rename(columns={"x": "if"})
    with pytest.raises(vs.FormulaError, match=r'column .if. is written Q\("if"\)'):
        read("y ~ if", frame)
    assert read('y ~ Q("if")', frame).names == ("if",)


def test_arrays_of_the_caller_run_along_the_data(data):
    outside = np.linspace(0, 1, 6)
    design = parse(
        "y ~ x + outside",
        data,
        environment=caller_environment(0),
        intercept=False,
    )
    np.testing.assert_array_equal(design.X[:, 1], outside)
    assert "outside" in design.coding.variables


def test_a_formula_that_fails_away_from_the_data_loses_that_effect_only():
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 9, size=80)
    data = pd.DataFrame({"low": low, "high": low + rng.uniform(0.1, 1, size=80)})
    data = data.assign(y=rng.normal(size=80), z=rng.normal(size=80))
    with np.errstate(invalid="ignore"):
        res = vs.fit("y ~ np.log(high - low) + z", data, B=20, rng=1)
    assert list(res.effects.index) == ["z"]
    assert "No effect of high, low" in str(res.summary())


def test_a_formula_that_fails_at_the_typical_row_asks_for_points():
    data = pd.DataFrame({"x": [-1.0, 1.0] * 20, "y": np.arange(40.0)})
    with np.errstate(divide="ignore"), pytest.raises(vs.FormulaError, match="`at`"):
        vs.fit("y ~ np.log(np.abs(x))", data, B=10, rng=1)


@pytest.mark.parametrize(
    ("formula", "column", "message"),
    [
        ("y ~ when", pd.date_range("2020", periods=6), "holds dates or times"),
        ("y ~ when", pd.to_timedelta(range(6), unit="D"), "holds dates or times"),
        ("y ~ bs(x, df=2)", 1.0, "ValueError"),
        ("y ~ np.log(g)", 1.0, "TypeError|UFuncTypeError|Error"),
    ],
)
def test_other_errors_are_formula_errors_too(data, formula, column, message):
    with pytest.raises(vs.FormulaError, match=message):
        read(formula, data.assign(when=column))


def test_new_data_must_be_of_the_same_kind(data):
    design = read("y ~ x", data)
    with pytest.raises(vs.FormulaError, match="'x' must be numeric, as in the"):
        design.coding.matrix({"x": ["one", "two"]})


def test_objects_that_are_numbers_are_numbers(data):
    frame = data.assign(x=[Decimal(v) for v in data["x"]])
    assert read("y ~ x", frame).names == ("x",)


def test_booleans_as_numbers_have_effects():
    data = vs.datasets.mars(60, rng=1).assign(b=lambda d: d["x1"] > 0.5)
    res = vs.fit("y ~ I(b * 1) + x2", data, B=20, rng=1)
    assert list(res.effects.loc["b", ["from", "to"]]) == [False, True]


def test_a_slip_in_a_subtracted_name_is_seen(data):
    with pytest.raises(vs.FormulaError, match="'xx' is not a column"):
        read("y ~ . - xx", data)
    assert read('y ~ . - Q("my x")', data).names == ("g[T.b]", "g[T.c]", "x")


def test_the_dot_leaves_out_groups_and_weights():
    data = vs.datasets.mars(60, rng=1).assign(site=np.arange(60) // 4, w=1.0)
    res = vs.fit("y ~ .", data, groups="site", weights="w", B=20, rng=1)
    assert list(res.effects.index) == ["x1", "x2", "x3", "x4", "x5"]


def test_elementwise_functions_need_no_prefix(data):
    design = read("y ~ log(x)", data)
    np.testing.assert_allclose(design.X[:, 0], np.log(data["x"]))


def test_the_callers_own_function_comes_before_numpys(data):
    def log(x):
        return 0 * x + 7.0

    np.testing.assert_array_equal(read("y ~ log(x)", data).X[:, 0], 7)
    assert log(1) == 7


def test_rows_with_a_missing_date_are_dropped():
    days = pd.to_datetime(["2024-01-01", None, "2024-01-02", "2024-01-01"])
    data = pd.DataFrame({"day": days, "y": [1.0, 2.0, 3.0, 4.0]})
    parsed = parse("y ~ C(day)", data, environment=None, intercept=False)
    assert parsed.rows.tolist() == [0, 2, 3]
    assert parsed.n_dropped == 1


@pytest.mark.parametrize("formula", ["y ~ g", "y ~ C(g)", "y ~ C(g, Sum) + x"])
def test_new_categories_may_have_any_selection_and_order_of_the_levels(data, formula):
    data["g"] = pd.Categorical(data["g"], ["b", "a", "c"])
    coding = read(formula, data).coding
    new = data.iloc[[0, 3, 1]]
    wanted = coding.matrix(new)
    for levels in (["a", "b"], ["a", "b", "c", "d"], ["c", "b", "a"]):
        some = new.assign(g=pd.Categorical(new["g"].astype(str), levels))
        np.testing.assert_array_equal(coding.matrix(some), wanted)
    ordered = new.assign(
        g=pd.Categorical(new["g"].astype(str), ["a", "b"], ordered=True)
    )
    np.testing.assert_array_equal(coding.matrix(ordered), wanted)
    single = new[:1].assign(g=pd.Categorical(["a"]))
    np.testing.assert_array_equal(coding.matrix(single), wanted[:1])
    strange = new.assign(g=pd.Categorical(["a", "d", "b"]))
    with pytest.raises(vs.FormulaError, match="the new data have 'd' in 'g'"):
        coding.matrix(strange)


def test_categories_are_text_where_training_had_text(data):
    coding = read("y ~ g", data).coding
    new = data.assign(g=pd.Categorical(data["g"], ["c", "b", "a"]))
    np.testing.assert_array_equal(coding.matrix(new), coding.matrix(data))
