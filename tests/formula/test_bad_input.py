"""Every kind of bad input named in the project's brief, with its message."""

import inspect

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.validation import ARGUMENTS


@pytest.fixture
def data():
    return vs.datasets.mars(40, rng=1)


def fit(formula, data, **options):
    return vs.fit(formula, data, **{"B": 20, "rng": 1, **options})


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x11", "'x11' is not a column of the data; did you mean 'x1'"),
        ("yy ~ x1", "'yy' is not a column.*did you mean 'y'"),
        ("y ~~ x1", "`~` may stand in a formula only once"),
        ("y ~ x1 ~ x2", "`~` may stand in a formula only once"),
        ("y ~ Q('x 1')", "'x 1' is not a column"),
        ("y ~", "must have a response, a `~` and a right-hand side"),
        ("~ x1", "must have a response"),
        ("y", "must have a response"),
        ("y ~ 1", "has no predictors on its right-hand side"),
        ("y ~ x1 +", "expected a noun"),
        ("y + x1 ~ x2", "could mean several responses, or their sum"),
        ("y ~ np.log(x1 - 1)", "must be finite|all 40 rows have missing"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_bad_formulas(data, formula, message):
    with pytest.raises(vs.FormulaError, match=message):
        fit(formula, data)


def test_formula_must_be_a_string(data):
    with pytest.raises(TypeError, match="`formula` must be a string"):
        fit(3, data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 41, "replace": False}, "`k` must be at most n = 40.*replace=True"),
        ({"k": 0}, "`k` must be at least 1; got 0"),
        ({"k": 0.0}, r"`k` as a fraction of n must lie in \(0, 1\]; got 0.0"),
        ({"k": 1.5}, r"must lie in \(0, 1\]; got 1.5"),
        ({"B": 1}, "`B` must be at least 2"),
        ({"k": 40, "replace": False}, "needs k < n without replacement"),
        (
            {"variance": "corrected_v", "replace": False},
            "'corrected_v'.*assumes sampling with replacement.*Use 'corrected_u'",
        ),
        (
            {"variance": "corrected_u"},
            "'corrected_u'.*assumes sampling without replacement.*Use 'corrected_v'",
        ),
        ({"variance": "im"}, "'im'.*needs `design='two-level'`"),
        ({"variance": "little_bags"}, "needs `design='little-bags'`"),
        ({"variance": "magic"}, "`variance` must be one of 'auto', 'corrected', 'im'"),
        ({"design": "magic"}, "`design` must be one of 'iid'"),
        ({"design": "balancd"}, "got 'balancd'; did you mean 'balanced'"),
        ({"kernel": "magic"}, "`kernel` must be 'forest', 'tree'"),
        ({"missing": "magic"}, "`missing` must be 'drop', 'raise' or 'pass'"),
        ({"weights": "w"}, "`weights` names no column"),
        ({"weights": [1.0, 2.0]}, "one value for each of the 40 rows"),
        ({"weights": np.ones((40, 1))}, "`weights` must be the name .* got 2 dimen"),
        ({"groups": 3}, "`groups` must be the name .* got 0 dimensions"),
        ({"weights": np.full(40, -1.0)}, "`weights` must be finite and not negative"),
        ({"weights": ["a"] * 40}, "`weights` must be numbers; got values such as 'a'"),
        (
            {"weights": [1.0] * 39 + [np.nan]},
            r"`weights` must not have missing .*; 1 value\(s\) .* first in row 39",
        ),
        ({"n_jobs": 0}, "`n_jobs` must be None or a whole number other than 0"),
        ({"groups": "x11"}, "`groups` names no column.*did you mean 'x1'"),
        ({"B": "auto", "tol": 0.0}, "`tol` must lie strictly between 0 and 1"),
        ({"B": "auto", "max_B": 1}, "`max_B` must be at least 2"),
        ({"kernel": "logit"}, "zeros and ones or of two classes"),
        ({"at": pd.DataFrame({"x1": [0.5]})}, "lack column 'x2'"),
        ({"B": "complete", "design": "balanced"}, "does not apply"),
        ({"design": "two-level", "n_out": 3, "n_in": 5}, "n_out . n_in = 15; got 20"),
        ({"kernel": "ols", "at": {"x1": 0.5, "x2": 0.5}}, "`at` is for kernels that"),
    ],
)
def test_bad_options(data, options, message):
    with pytest.raises(ValueError, match=message):
        fit("y ~ x1 + x2", data, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": "half"}, "`k` must be a number"),
        ({"k": True}, "`k` must be a number"),
        ({"B": 20.5}, "`B` must be a number of learners"),
        ({"max_feature": 2}, "no option 'max_feature'; did you mean 'max_features'"),
        ({"kernel": "ols", "max_depth": 2}, "no option 'max_depth'"),
        ({"foo": 1}, r"no option 'foo'\. Its options"),
        ({"missin": "raise"}, "no option 'missin'; did you mean 'missing'"),
        ({"block": 50}, "design 'iid' has no option 'block'"),
        ({"rng": "seven"}, "`rng` must be"),
        ({"kernel": 3}, "`kernel` must be a name"),
    ],
)
def test_options_of_the_wrong_type(data, options, message):
    with pytest.raises(TypeError, match=message):
        fit("y ~ x1 + x2", data, **options)


def test_data_without_rows(data):
    with pytest.raises(vs.FormulaError, match="`data` has no rows"):
        fit("y ~ x1", data.head(0))


def test_data_of_one_row(data):
    with pytest.raises(ValueError, match="at least 2 observations; the data have 1"):
        fit("y ~ x1", data.head(1))


def test_data_whose_rows_are_all_dropped(data):
    half = np.arange(40) < 20
    empty = data.assign(x1=data["x1"].where(half), x2=data["x2"].where(~half))
    with pytest.raises(vs.FormulaError, match="all 40 rows have missing values"):
        fit("y ~ x1 + x2", empty)


@pytest.mark.parametrize("column", ["y", "x1"])
def test_infinite_values(data, column):
    data.loc[5, column] = np.inf
    with pytest.raises(vs.FormulaError, match=f"column '{column}' must be finite"):
        fit("y ~ x1", data)


def test_column_names_that_are_not_strings(data):
    odd = data.rename(columns={"x3": 3})
    with pytest.raises(vs.FormulaError, match=r"must be strings; got 3 \(int\)"):
        fit("y ~ x1", odd)


def test_duplicated_column_names(data):
    twice = pd.concat([data, data[["x1"]]], axis=1)
    with pytest.raises(vs.FormulaError, match="'x1' occurs twice"):
        fit("y ~ x1", twice)


def test_data_of_the_wrong_kind():
    with pytest.raises(TypeError, match="`data` must be a DataFrame"):
        fit("y ~ x", [1, 2, 3])


def test_constant_response_warns_and_has_no_tests(data):
    with pytest.warns(vs.ConstantResponseWarning, match="'y' is constant"):
        res = fit("y ~ x1 + x2", data.assign(y=3.0))
    assert res.params.item() == 3.0
    assert res.bse.item() == 0
    frame = res.effects.drop(columns=["from", "to"])
    assert (frame["estimate"] == 0).all()
    untested = frame.columns[frame.isna().all()]
    assert untested.tolist() == ["t", "p_value"]
    assert not frame.drop(columns=untested).isna().any(axis=None)
    assert "No test of x1, x2 (nan)" in str(res.summary())


@pytest.mark.parametrize("term", ["g", "C(g)", "C(g, Sum)", "C(g):x1"])
@pytest.mark.parametrize("levels", [("a", "b"), (1, 2)])
def test_unseen_level_in_new_data(data, term, levels):
    data["g"] = pd.Categorical(np.where(data["x1"] > 0.5, *levels))
    data["g"] = data["g"] if term == "g" else data["g"].astype(type(levels[0]))
    res = fit(f"y ~ x2 + {term}", data)
    given, seen = ("z", "z") if levels[0] == "a" else (7.0, "7")
    strange = pd.DataFrame({"g": [given], "x1": 0.5, "x2": 0})
    known = ", ".join(map(str, levels))
    with pytest.raises(
        vs.FormulaError, match=f"have '{seen}' in 'g'; the training data have {known}"
    ):
        res.predict(strange)


def test_a_column_is_named_that_lacks_a_value(data):
    data.loc[[3, 7], "x2"] = np.nan
    with pytest.raises(
        vs.FormulaError, match=r"'x2' must have .* 2 of 40 are missing.*missing='drop'"
    ):
        fit("y ~ x1 + log(x2 + 1)", data, missing="raise")
    assert fit("y ~ x1", data, missing="raise").nobs == 40


def test_rows_are_counted_in_the_data_as_given(data):
    data.loc[0, "x1"] = np.nan
    weights = np.where(np.arange(40) == 5, np.nan, 1.0)
    with pytest.raises(ValueError, match="the first in row 5"):
        fit("y ~ x1", data, weights=weights)


@pytest.mark.parametrize("name", ["inf", "nan", "NaN", "Infinity"])
def test_columns_may_be_called_like_numbers(data, name):
    called = data[["y", "x1", "x2"]].rename(columns={"x1": name})
    expected = fit("y ~ x1 + x2", data).params
    for formula in ("y ~ .", f"y ~ {name} + x2"):
        assert fit(formula, called).params.item() == expected.item()


def test_values_that_are_no_numbers_are_shown(data):
    res = fit("y ~ x1", data)
    with pytest.raises(vs.FormulaError, match=r"must be numeric.*values such as '0,5'"):
        res.predict(pd.DataFrame({"x1": [None, "0,5"]}))


@pytest.mark.parametrize("right", [0.5, "0.5", " -1e3 "])
def test_the_value_that_is_no_number_is_shown_and_not_the_first(data, right):
    res = fit("y ~ x1", data)
    mixed = pd.Series([right, None, right, "oops", "later"], dtype=object)
    with pytest.raises(vs.FormulaError, match="values such as 'oops'"):
        res.predict(pd.DataFrame({"x1": mixed}))
    weights = np.resize(mixed.dropna().to_numpy(), len(data))
    with pytest.raises((ValueError, TypeError), match="values such as 'oops'"):
        fit("y ~ x1", data, weights=weights)
    for column in (pd.Categorical([1, 2]), [True, False]):
        with pytest.raises(vs.FormulaError, match=f"values such as '{column[0]}'"):
            res.predict(pd.DataFrame({"x1": column}))


def test_missing_column_in_new_data(data):
    res = fit("y ~ x1 + x2", data)
    with pytest.raises(vs.FormulaError, match="lack column 'x2'"):
        res.predict(data[["x1"]])


def test_missing_value_in_new_data(data):
    res = fit("y ~ x1", data)
    with pytest.raises(vs.FormulaError, match="'x1' is missing in row 1"):
        res.predict(pd.DataFrame({"x1": [0.5, np.nan]}))


def test_missing_values_in_new_data_are_told_by_label(data, tmp_path):
    data = data.assign(g=np.resize(list("ab"), len(data)))
    res = fit("y ~ np.log(x1 + 1) + g", data)
    new = data.head(5).set_axis(list("pqrst"))
    new.loc[["r", "t"], "x1"] = np.nan
    said = r"column 'x1' is missing in row 'r' \(2 such row\(s\)\)\. Leave them out"
    for ask in (res.predict, res.get_prediction, lambda at: res.avg_effects(data=at)):
        with pytest.raises(vs.FormulaError, match=said):
            ask(new)
    with pytest.raises(vs.FormulaError, match="column 'g' is missing in row 'q'"):
        res.predict(data.head(5).set_axis(list("pqrst")).assign(g=[*"a", None, *"aba"]))
    said = "must be finite in every row; row 'q' has"
    with pytest.raises(vs.FormulaError, match=said):
        res.predict(pd.DataFrame({"x1": [1.0, np.inf], "g": "a"}, ["p", "q"]))
    new.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(vs.FormulaError, match="'x1' is missing in row 2"):
        res.predict(tmp_path / "new.csv", out=tmp_path / "out.csv")


def test_a_formula_may_fill_in_missing_values(data):
    filled = fit("y ~ np.nan_to_num(x1)", data)
    assert np.isfinite(filled.predict(data.head(5).assign(x1=np.nan))).all()
    both = fit("y ~ np.nan_to_num(x1) + x2", data)
    new = data.head(5).assign(x1=[np.nan, 1, 1, 1, 1], x2=[1, 1, np.inf, 1, 1])
    with pytest.raises(
        vs.FormulaError, match="'x2' must be finite in every row; row 2"
    ):
        both.predict(new)


def test_new_data_without_rows(data):
    res = fit("y ~ x1", data)
    with pytest.raises(vs.FormulaError, match="no rows"):
        res.get_prediction(data.head(0))


def test_odd_indexes_are_kept_and_never_misaligned(data):
    shuffled = data.sample(frac=1, random_state=3)
    doubled = shuffled.set_axis(np.repeat(np.arange(20), 2))
    plain = fit("y ~ x1 + x2", shuffled.reset_index(drop=True))
    odd = fit("y ~ x1 + x2", doubled)
    np.testing.assert_array_equal(plain.values, odd.values)
    assert list(odd.influence().index) == list(doubled.index)
    frame = odd.get_prediction(doubled.iloc[5:8]).summary_frame()
    assert list(frame.index) == list(doubled.index[5:8])


def test_callable_that_changes_its_length(data):
    def moody(x):
        return np.arange(2 if x[0] < x.mean() else 3)

    with pytest.raises(vs.KernelError, match=r"learner \d+ .*numbers, but \d on the"):
        vs.statistic(moody, data["y"].to_numpy(), k=5, B=50, rng=1)


def test_callable_that_raises(data):
    def broken(x):
        raise RuntimeError("out of cheese")

    with pytest.raises(
        vs.KernelError, match=r"failed on learner 0 .*RuntimeError: out of cheese"
    ):
        vs.statistic(broken, data["y"], k=5, B=50, rng=1)


def test_callable_that_is_not_finite(data):
    y = data["y"].to_numpy()

    def undefined(x):
        return np.nan if x.min() == y.min() else 1.0

    with pytest.raises(vs.KernelError, match=r"value for learner \d+ is not finite"):
        vs.statistic(undefined, y, k=10, B=50, rng=1)


@pytest.mark.parametrize(
    ("h", "data", "options", "message"),
    [
        ("median", np.arange(9.0), {"k": 3}, "one of 'mean', 'variance'"),
        ("variance", np.arange(9.0), {"k": 1}, "`k` must be at least 2; got 1"),
        ("kendall", np.arange(9.0), {"k": 2}, "needs data with 2 column"),
        ("mean", np.array([1.0, np.nan, 2.0]), {"k": 2}, "must be finite; row 1"),
        ("mean", np.arange(90.0), {"k": 30, "B": "complete"}, "evaluations"),
    ],
)
def test_bad_statistics(h, data, options, message):
    with pytest.raises(ValueError, match=message):
        vs.statistic(h, data, **options)


def test_statistic_of_something_that_is_no_function():
    with pytest.raises(TypeError, match="`h` must be a function"):
        vs.statistic(3, np.arange(9.0), k=2)


@pytest.mark.parametrize(
    ("counts", "values", "options", "message"),
    [
        (np.ones((3, 4)), np.ones(2), {}, r"shape \(B, n\)"),
        (np.eye(3)[:1], np.ones(1), {}, "at least 2 learners"),
        ([[1, 1], [2, 1]], np.ones(2), {}, "same size k"),
        ([[1, -1], [0, 0]], np.ones(2), {}, "whole numbers"),
        ([[1, 1], [2, 0]], [1.0, np.inf], {}, "must be finite; learner 1"),
        ([[1, 1], [2, 0]], np.ones(2), {"replace": False}, "with replacement"),
        ([[1, 1], [2, 0]], np.ones(2), {"method": "im"}, "as `groups`"),
        (
            [[1, 1], [2, 0]],
            np.ones(2),
            {"method": "im", "groups": [1, 2, 3]},
            "each of the 2 learners",
        ),
        (
            [[1, 2], [2, 1]],
            np.ones(2),
            {"groups": [0, 0]},
            "rows of a cluster must have equal counts",
        ),
        ([[1, 0], [0, 1]], np.ones(2), {}, r"B \* k must exceed"),
    ],
)
def test_bad_arrays(counts, values, options, message):
    with pytest.raises(ValueError, match=message):
        vs.variance_components(np.asarray(counts), values, **options)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 5])
def test_bad_levels(data, alpha):
    res = fit("y ~ x1", data)
    with pytest.raises(ValueError, match="`alpha` must lie strictly between 0 and 1"):
        res.conf_int(alpha)


@pytest.mark.parametrize(
    "options",
    [{"design": "two-level", "n_in": 2.5}, {"design": "balanced", "block": 20.0}],
)
def test_options_of_designs_are_whole_numbers(data, options):
    with pytest.raises(TypeError, match="must be a whole number"):
        fit("y ~ x1", data, **options)


def test_data_of_a_statistic_have_rows():
    with pytest.raises(ValueError, match="one or two dimensions; got 3"):
        vs.statistic("mean", np.zeros((4, 2, 2)), k=2)
    res = vs.statistic(lambda d: d["a"].mean(), {"a": [1.0, 2.0, 4.0]}, k=2, B=10)
    assert 1 <= res.params.item() <= 4


def test_a_predictor_that_is_all_missing_has_no_effect(data):
    res = fit("y ~ x1 + x2", data.assign(x2=np.nan), missing="pass")
    assert list(res.effects.index) == ["x1"]


def test_all_arguments_of_fit_are_known_where_one_is_misspelled():
    names = inspect.signature(vs.fit).parameters
    assert {*ARGUMENTS, "formula", "data", "kernel_options"} == set(names)


@pytest.mark.parametrize("replace", ["no", "FALSE", None, 1, [True, False]])
def test_replace_is_true_or_false(replace):
    data = vs.datasets.mars(30, rng=1)
    with pytest.raises(TypeError, match="`replace` must be True"):
        vs.fit("y ~ x1", data, B=10, replace=replace)
    assert not vs.fit("y ~ x1", data, B=10, replace=np.bool_(False)).replace


@pytest.mark.parametrize(
    "formula", ["y ~ x1 + y", "y ~ x1 * y", "np.log(y) ~ x1 + np.log(y)"]
)
def test_a_response_does_not_predict_itself(formula):
    data = vs.datasets.mars(30, rng=1)
    with pytest.raises(vs.FormulaError, match="stands on both sides"):
        vs.fit(formula, data, B=10)


def test_a_response_may_be_taken_out_of_the_dot():
    data = vs.datasets.mars(30, rng=1)
    found = vs.fit("y ~ . - y", data, B=10, rng=1)
    np.testing.assert_allclose(found.params, vs.fit("y ~ .", data, B=10, rng=1).params)
