"""Errors that know what was meant, and names that are meant as they are."""

import datetime as dt
import re
import unicodedata
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.formula.column_spellings import settle_names
from vstatkit.formula.names_in_code import columns_in, names_in
from vstatkit.text import short_repr
from vstatkit.validation import ELSEWHERE

N = 300


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    price = rng.normal(100, 10, N)
    return pd.DataFrame(
        {
            "price": price,
            "x": rng.normal(size=N),
            "x.y": rng.uniform(1, 2, N),
            "group": rng.choice(["a", "b"], N),
        }
    )


def fit(formula, data, **options):
    return vs.fit(formula, data, **{"B": 20, "rng": 1, **options})


def same(found, wanted):
    assert np.array_equal(found.params, wanted.params)
    assert np.array_equal(found.bse, wanted.bse)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("n_estimators", "`B`"),
        ("num_trees", "`B`"),
        ("ntree", "`B`"),
        ("mtry", "`max_features`"),
        ("seed", "`rng`"),
        ("random_state", "`rng`"),
        ("sample_fraction", "`k`"),
        ("max_samples", "`k`"),
        ("probability", "response of classes gives their probabilities"),
        ("importance", "`res.importance()`"),
        ("bootstrap", "`replace`"),
        ("sample_weight", "`weights`"),
        ("num.threads", "`n_jobs`"),
        ("min.node.size", "`min_samples_leaf`"),
        ("clusters", "`groups`"),
        ("alpha", "res.summary(alpha)"),
        ("offset", "not offered"),
    ],
)
def test_arguments_of_other_packages_name_ours(data, name, ours):
    message = re.escape(f"has no option {name!r}; here it is ") + ".*" + re.escape(ours)
    with pytest.raises(TypeError, match=message):
        fit("price ~ x", data, **{name: 1})


def test_what_is_ours_exists():
    """Every argument that is named can be given."""
    known = set(vs.fit.__kwdefaults__) | {"min_samples_leaf", "min_samples_split"}
    known |= {"max_features", "honest", "categorical_splits", "splitter='random'"}
    known |= {"criterion='poisson'", "kernel='logit'"}
    named = {
        one
        for text in ELSEWHERE.values()
        for one in re.findall(r"`([^`]*)`", text)
        if not one.startswith(("res.", "fit("))
    }
    assert named <= known | {"alpha"}


def test_a_statistic_knows_too(data):
    with pytest.raises(TypeError, match="'seed'; here it is `rng`"):
        vs.statistic("mean", data["x"], k=5, B=20, seed=1)


def test_options_of_a_kernel_come_first(data):
    """`max_features` is scikit-learn's name, and ours."""
    same(fit("price ~ x", data), fit("price ~ x", data, max_features=1))


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        ("price ~ x.y", "x.y"),
        ("x.y ~ x", "x.y"),
        ("price ~ x + log(x.y)", "x.y"),
        ("price ~ z.w", "z.w"),
        ("price ~ living area", "living area"),
        ("price ~ x + fat%", "fat%"),
        ("price ~ a-b", "a-b"),
        ("price ~ 2nd", "2nd"),
        ("price ~ x + if", "if"),
    ],
)
def test_a_column_that_needs_quotes_is_suggested(data, formula, name):
    frame = data.assign(**{name: data["x.y"]})
    message = re.escape(f'The column {name!r} is written Q("{name}") in a formula.')
    with pytest.raises(vs.FormulaError, match=message):
        fit(formula, frame)
    quoted = re.sub(rf"{re.escape(name)}(?!\w)", f'Q("{name}")', formula)
    assert fit(quoted, frame).nobs == N


def test_a_slip_is_not_answered_by_columns_that_are_not_there(data):
    with pytest.raises(
        vs.FormulaError, match=r"did you mean 'group'\? The columns are"
    ):
        fit("price ~ grop", data)


def refusal(formula, frame):
    with pytest.raises(vs.FormulaError) as caught:
        fit(formula, frame)
    return str(caught.value)


TEXTS = {
    "euro": lambda v: f"€{v:.2f}",
    "thousands": lambda v: f"{v * 1000:,.2f} $",
    "comma": lambda v: f"{v:.4f}".replace(".", ","),
    "german": lambda v: f"{v * 1000:,.2f} €".translate(str.maketrans(",.", ".,")),
    "percent": lambda v: f"{v:.3f}%",
    "unit": lambda v: f"{v:.2f} kg",
    "plain": lambda v: f"{v:.4f}",
    "exponent": lambda v: f"{v:.5e}",
    "negative": lambda v: f"-{v:.4f}",
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("formula", ["price ~ x", "x ~ price"])
def test_numbers_as_text_are_refused_with_the_line_that_converts_them(
    data, case, formula
):
    values = data["price"].to_numpy()
    written = pd.Series([TEXTS[case](v) for v in values])
    said = refusal(formula, data.assign(price=written))
    n_different = written.nunique()
    assert f"text that looks like numbers, such as {written[0]!r}" in said
    assert f"its {n_different} different values in {N} rows" in said
    line = said.split("Convert it: ")[1].split("; or write C(price)")[0]
    space = {"data": pd.DataFrame({"price": written}), "pd": pd}
    exec(line, space)
    scale = {"thousands": 1000, "german": 1000, "negative": -1}.get(case, 1)
    assert np.allclose(space["data"]["price"], values * scale, atol=0.006)


def test_a_comma_that_may_be_either_is_left_to_the_reader(data):
    said = refusal(
        "x ~ price",
        data.assign(price=data["price"].map("{:.3f}".format).str.replace(".", ",")),
    )
    assert ".str.replace(',', '.')) if the comma stands before decimals" in said
    assert ".str.replace(',', '')) if it stands between thousands" in said


def test_the_response_of_the_issue_is_refused(data):
    euro = data.assign(price=[f"€{100 + i / 100:.2f}" for i in range(298)] + ["€1"] * 2)
    said = refusal("price ~ x", euro)
    assert "'€100.00'" in said
    assert "299 different values in 300 rows" in said


def test_some_texts_among_numbers_are_named(data):
    texts = data["price"].map("{:.3f}".format)
    texts[[3, 7]] = ["unknown", "-"]
    said = refusal("x ~ price", data.assign(price=texts))
    assert "and others such as unknown, -" in said
    assert "pd.to_numeric(data['price'], errors='coerce')" in said


@pytest.mark.parametrize(
    ("frame", "formula", "warning"),
    [
        (
            lambda d: d.assign(zip=(10_000 + np.arange(N) % 100).astype(str)),
            "x ~ zip",
            None,
        ),
        (
            lambda d: d.assign(code=(np.arange(N) % 5).astype(str)),
            "code ~ x",
            None,
        ),
        (
            lambda d: d.assign(t=d["price"].astype(str)).head(15),
            "x ~ t",
            vs.TextNumbersWarning,
        ),
        (lambda d: d.assign(t=d["price"].astype(str)).head(40), "x ~ C(t)", None),
        (
            lambda d: d.assign(t=d["x"].astype(str).astype("category")).head(40),
            "x ~ t",
            vs.IdentifierWarning,
        ),
    ],
)
def test_categories_that_are_written_as_numbers_stay(data, frame, formula, warning):
    """Postcodes, coded classes, what C() asks for, and what pandas calls a category."""
    expected = nullcontext() if warning is None else pytest.warns(warning)
    with expected:
        assert fit(formula, frame(data)).nobs > 0


NUMBERED = {
    "text": lambda i: f"text {i}",
    "item": lambda i: f"item {i}",
    "room": lambda i: f"room {i}b",
    "letter": lambda i: f"p{i}",
    "number sign": lambda i: f"#{i}",
    "house": lambda i: f"{i}{'abcdefgh'[i % 8]}",
    "version": lambda i: f"{i}.{i % 7}.{i % 5}",
    "phone": lambda i: f"030 {10_000 + i}",
}


@pytest.mark.parametrize("case", NUMBERED)
def test_names_that_have_a_number_are_no_numbers(data, case):
    """As a predictor they are categories, and too many as a response."""
    frame = data.assign(name=[NUMBERED[case](i) for i in range(N)])
    with pytest.warns(vs.IdentifierWarning, match="'name' has 30 different values"):
        assert fit("x ~ name", frame.head(30)).nobs == 30
    said = refusal("name ~ x", frame)
    assert f"300 different values in 300 rows, such as {frame['name'][0]!r}" in said
    assert "too many to be classes" in said


@pytest.mark.parametrize(
    "written",
    [
        "1.234,{:02}",
        "EUR {}",
        "US${}",
        "Rs. {}",
        "<{}",
        "{} km/h",
        "1,23,4{:02}",
        "{}.",
    ],
)
def test_numbers_are_known_by_their_money_units_and_thousands(data, written):
    texts = [written.format(i) for i in range(10, 99)]
    said = refusal("name ~ x", data.head(len(texts)).assign(name=texts))
    assert f"text that looks like numbers, such as {texts[0]!r}" in said


def test_texts_as_a_response_must_repeat(data):
    names = [f"person {chr(97 + i % 26)}{i}x" for i in range(N)]
    said = refusal("price ~ x", data.assign(price=names))
    assert "300 different values in 300 rows, such as 'person a0x': too many" in said
    with pytest.warns(vs.IdentifierWarning):
        assert fit("x ~ name", data.assign(name=names).head(30)).nobs == 30


def test_saved_results_with_such_texts_are_still_read(data, tmp_path):
    """What was accepted before is accepted again."""
    frame = data.assign(t=(np.arange(N) % 140).astype(str)).head(300)
    with pytest.warns(vs.TextNumbersWarning):
        res = fit("price ~ t", frame)
    path = tmp_path / "fit.vs"
    res.save(path)
    assert vs.load(path).get_prediction(frame.head(2)).se_mean.notna().all()


DATES = {
    "objects": lambda days: [d.date() for d in days],
    "times": lambda days: [d.time() for d in days],
    "datetimes": lambda days: pd.Series(
        [d.to_pydatetime() for d in days], dtype=object
    ),
    "pandas": lambda days: days,
    "with gaps": lambda days: [None, *(d.date() for d in days[1:])],
    "periods": lambda days: days.to_period("D"),
    "text": lambda days: days.strftime("%Y-%m-%d"),
    "text of a day": lambda days: days.strftime("%d.%m.%Y"),
    "text of a time": lambda days: days.strftime("%Y-%m-%d %H:%M"),
}


@pytest.mark.parametrize("case", DATES)
@pytest.mark.parametrize("formula", ["price ~ day", "day ~ x"])
def test_dates_are_refused_with_the_line_that_converts_them(data, case, formula):
    days = pd.date_range("2020-01-01", periods=N, freq="25h")
    frame = data.assign(day=DATES[case](days))
    said = refusal(formula, frame)
    assert "column 'day'" in said
    assert "or write C(day) for categories" in said
    if case in ("objects", "pandas", "datetimes", "text", "text of a time"):
        line = said.split("such as days: ")[1].split("; or write")[0]
        space = {"data": frame.copy(), "pd": pd}
        exec(line, space)
        assert space["data"]["day"].iloc[0] == 7305


def test_a_date_is_shown_where_other_texts_come_first(data):
    days = pd.date_range("2020-01-01", periods=N).strftime("%Y-%m-%d").to_numpy()
    said = refusal("price ~ day", data.assign(day=["unknown", *days[1:]]))
    assert "looks like dates, such as '2020-01-02'" in said


def test_date_objects_are_categories_where_that_is_asked_for(data):
    day = dt.date(2020, 1, 1)
    frame = data.assign(day=[day + dt.timedelta(days=i % 3) for i in range(N)])
    assert list(fit("price ~ C(day)", frame).effects.index) == ["day", "day"]


@pytest.mark.parametrize("empty", [np.nan, None])
@pytest.mark.parametrize("missing", ["drop", "raise"])
def test_an_empty_column_is_named_alone(data, empty, missing, tmp_path):
    frame = data.assign(empty=empty)
    frame["empty"] = frame["empty"].astype(object if empty is None else float)
    wanted = "column 'empty' has no value: all 300 rows are missing"
    for formula in ("price ~ x + empty + group", "empty ~ x"):
        with pytest.raises(vs.FormulaError, match=wanted) as caught:
            fit(formula, frame, missing=missing)
        assert "group" not in str(caught.value)
    frame.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(vs.FormulaError, match=wanted):
        fit("price ~ x + empty", tmp_path / "data.csv", missing=missing)
    two = frame.assign(none=np.nan)
    with pytest.raises(vs.FormulaError, match="the columns empty, none have no value"):
        fit("price ~ x + empty + none", two, missing=missing)


def test_columns_with_some_values_are_not_empty(data):
    gaps = data.assign(x=data["x"].where(data["x"] > 0))
    assert fit("price ~ x + group", gaps).nobs == (data["x"] > 0).sum()


def test_numbers_as_text_in_files_are_refused_too(data, tmp_path):
    path = tmp_path / "data.csv"
    data.assign(t=[f"€{v:.4f}" for v in data["price"]]).to_csv(path, index=False)
    with pytest.raises(vs.FormulaError, match="text that looks like numbers"):
        fit("x ~ t", path)
    with pytest.raises(vs.FormulaError, match="text that looks like numbers"):
        fit("t ~ x", path)


@pytest.mark.parametrize("number", [str, int])
def test_a_word_among_a_few_numbers_makes_no_classes(data, tmp_path, number):
    marks = data.assign(mark=[number(3 + i % 3) for i in range(N)])
    stray = marks.astype({"mark": object}).set_axis([f"p{i}" for i in range(N)])
    stray.loc["p7", "mark"] = "oops"
    said = refusal("mark ~ x", stray)
    assert "has numbers and 'oops' (row 'p7')" in said
    assert "all 4 different values" in said
    line = said.split("make them missing: ")[1].split("; write C(mark)")[0]
    space = {"data": stray.copy(), "pd": pd}
    exec(line, space)
    assert fit("mark ~ x", space["data"]).info.n_dropped == 1
    assert fit("C(mark) ~ x", stray.astype({"mark": str})).nobs == N
    assert fit("mark ~ x", stray.astype({"mark": "category"})).nobs == N
    path = tmp_path / "marks.csv"
    stray.to_csv(path, index=False)
    with pytest.raises(vs.FormulaError, match=r"'oops' \(row 7\)"):
        fit("mark ~ x", path)


@pytest.mark.parametrize("levels", ["0 1", "1 2a 2b", "T1 T2 T3 none", "1 no"])
def test_classes_may_look_like_numbers(data, levels):
    classes = np.resize(levels.split(), N)
    assert fit("group ~ x", data.assign(group=classes)).nobs == N


KEYWORDS = {
    "predict": ({"exog": 1}, "here it is `data`"),
    "get_prediction": ({"exog": 1}, "here it is `data`"),
    "conf_int": ({"cols": [0]}, r"`conf_int\(\).iloc\[cols\]`"),
    "summary": ({"yname": "a"}, "the name of the column"),
}


@pytest.mark.parametrize("method", KEYWORDS)
def test_keywords_of_other_packages_are_told_ours(data, method):
    res = fit("price ~ x", data)
    keywords, said = KEYWORDS[method]
    with pytest.raises(TypeError, match=f"{method} has no argument .*; here it is"):
        getattr(res, method)(**keywords)
    with pytest.raises(TypeError, match=said):
        getattr(res, method)(**keywords)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        getattr(res, method)(nonsense=1)
    with pytest.raises(TypeError, match="here it is a selection of rows"):
        res.avg_effects().conf_int(cols=[0])


@pytest.mark.parametrize("keyword", ["return_std", "return_interval"])
def test_errors_of_classes_are_asked_of_their_probabilities(data, keyword):
    forest = vs.ForestClassifier(20, random_state=1).fit(data[["x"]], data["group"])
    with pytest.raises(TypeError, match=f"'{keyword}'; here it is .* `predict_proba`"):
        forest.predict(data[["x"]], **{keyword: True})


@pytest.mark.parametrize("keyword", ["return_std", "return_interval"])
def test_errors_of_predictions_are_in_their_frame(data, keyword):
    res = fit("price ~ x", data)
    said = r"here it is `get_prediction\(data\).summary_frame\(\)` of results"
    with pytest.raises(TypeError, match=said):
        res.predict(data, **{keyword: True})


def test_the_formula_comes_first(data):
    with pytest.raises(TypeError, match=r"fit\('price ~ x', data\); got a DataFrame"):
        vs.fit(data, "price ~ x")


@pytest.mark.parametrize("size", [1e2, np.float64(100)])
def test_whole_floats_are_numbers_of_learners_and_rows(data, size):
    res = fit("price ~ x", data, B=size, k=50.0)
    assert (res.B, res.k) == (100, 50)
    assert fit("price ~ x", data, k=1.0).k == N
    assert fit("price ~ x", data, B=20).more(size).B == 100
    with pytest.raises(TypeError, match=r"got 100\.5"):
        fit("price ~ x", data, B=100.5)
    with pytest.raises(ValueError, match=r"got 50\.5"):
        fit("price ~ x", data, k=50.5)


def test_tables_take_models_one_by_one_and_by_heading(data):
    few, many = fit("price ~ x", data), fit("price ~ x", data, B=40)
    listed = str(vs.table([few, many]))
    assert str(vs.table(few, many)) == listed
    named = str(vs.table([few, many], names=["few", "many"]))
    assert str(vs.table({"few": few, "many": many})) == named
    given = vs.table({"few": few, "many": many}, names=["a", "b"])
    assert str(given) == str(vs.table([few, many], names=["a", "b"]))


MICRO, MU = "\u00b5", "\u03bc"
NAMES = {
    "micro": (MICRO, [MICRO, MU]),
    "mu": (MU, [MICRO, MU]),
    "ligature": ("\ufb01t", ["\ufb01t", "fit"]),
    "decomposed": ("cafe\u0301", ["cafe\u0301", "caf\u00e9"]),
    "composed": ("caf\u00e9", ["cafe\u0301", "caf\u00e9"]),
    "no composed form": ("x\u0304", ["x\u0304"]),
    "superscript": ("x\u00b2", ["x\u00b2"]),
    "angstrom": ("\u212bngstr\u00f6m", ["\u212bngstr\u00f6m", "\u00c5ngstr\u00f6m"]),
    "fullwidth": ("\uff21", ["\uff21"]),
    "keyword": ("class", ["class"]),
    "Q": ("Q", ["Q"]),
    "C": ("C", ["C"]),
    "I": ("I", ["I"]),
    "log": ("log", ["log"]),
    "bs": ("bs", ["bs"]),
}
FORMULAS = [
    "price ~ x + {}",
    "{} ~ x",
    "price ~ x + np.abs({})",
    "price ~ log({}) + x",
    "price ~ I({} * 2) + C(group)",
    'price ~ Q("{}") + Q("x.y")',
    "price ~ x:{} + bs({}, df=4)",
    "price ~ .",
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("case", NAMES)
def test_every_name_works(data, case, formula):
    name, spellings = NAMES[case]
    data = data.head(50)
    restricted = (len(case) + len(formula)) % 2 == 0
    options = {"B": 6, "eval_env": "restricted" if restricted else 0}
    values = data["x.y"] + 0.5
    plain = data.assign(w=values)
    wanted = fit(formula.format("w", "w"), plain, **options)
    other = wanted.get_prediction(plain.head(3)).predicted_mean
    effects = [one.replace("w", name) for one in wanted.effects.index]
    assert name in effects or formula.startswith("{}")
    for spelling in spellings:
        frame = data.assign(**{name: values})
        found = fit(formula.format(spelling, spelling), frame, **options)
        same(found, wanted)
        assert list(found.effects.index) == effects
        new = data.head(3).assign(**{spelling: values})
        assert np.array_equal(found.get_prediction(new).predicted_mean, other)


def test_two_spellings_are_two_columns_where_both_are_there(data):
    frame = data.assign(**{MICRO: data["x"], MU: data["x.y"]})
    same(fit(f"price ~ {MICRO}", frame), fit("price ~ x", data))
    same(fit(f"price ~ {MU}", frame), fit('price ~ Q("x.y")', data))
    same(fit(f"price ~ np.abs({MICRO})", frame), fit("price ~ np.abs(x)", data))
    same(fit(f"price ~ np.abs({MU})", frame), fit('price ~ np.abs(Q("x.y"))', data))


def test_of_two_spellings_none_is_guessed(data):
    frame = data.assign(**{"\uff21": data["x"], "\U0001d400": data["x.y"]})
    with pytest.raises(vs.FormulaError, match="'A' is not a column"):
        fit("price ~ A", frame)


def test_formulas_of_strangers_tell_functions_from_columns_too(data):
    frame = data.assign(I=data["x.y"])
    found = fit("price ~ I(I * 2)", frame, eval_env="restricted")
    same(found, fit("price ~ I(w * 2)", data.assign(w=data["x.y"])))


def test_names_that_are_plain_stay_as_they_are():
    for text in ("y ~ x + log(z)", "größe ~ Q('a b') + 名", 'y ~ C(x, levels=["µ"])'):
        assert settle_names(text, ["y", "x", "größe", "a b", "名"]) == text
    decomposed = unicodedata.normalize("NFD", "é")
    assert settle_names(f"y ~ '{decomposed}' + é", ["é"]) == f"y ~ '{decomposed}' + é"


def test_functions_hide_behind_columns_of_the_caller_s_too(data):
    def double(x):
        return 2 * x

    frame = data.assign(double=data["x.y"])
    found = vs.fit("price ~ double(x) + double", frame, B=20, rng=1)
    same(found, fit('price ~ I(2 * x) + Q("x.y")', data))
    assert list(found.effects.index) == ["x", "double"]


def test_names_that_are_called_are_no_columns():
    assert names_in('C(C) + f(Q("a b"), Q)') == ["C", "C", "f", "a b", "Q"]
    assert columns_in('C(C) + f(Q("a b"), Q)') == ["C", "a b", "Q"]


def test_plots_are_there_without_being_imported():
    import subprocess  # noqa: PLC0415 a fresh interpreter, for this alone
    import sys  # noqa: PLC0415

    code = (
        "import sys, vstatkit as vs; assert 'matplotlib' not in sys.modules; "
        "assert 'plots' in dir(vs); print(vs.plots.plot_effects.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "plot_effects\n"
    with pytest.raises(AttributeError, match="no attribute 'plot'"):
        _ = vs.plot


def test_reprs_are_short_and_show_the_answer(data):
    frame = data.rename(columns={"x.y": "z"})
    res = fit("price ~ x + z", frame, kernel="ols")
    test = res.t_test("x = z")
    shown = f"x = z: {test.params.item():.4g} (std err {test.bse.item():.3g}, p "
    assert shown in repr(test)
    assert f"p {test.pvalues.item():.3g})" in repr(test)
    assert repr(res.wald_test("x = 0, z = 0")) == f"<{res.wald_test('x = 0, z = 0')}>"
    forest = fit("price ~ x + z", frame)
    found = forest.get_prediction(frame.head(5))
    first = found.summary_frame().iloc[0]
    assert repr(found).startswith(
        f"<PredictionResults: 0: {first['mean']:.4g} (std err {first['mean_se']:.3g}), "
    )
    assert repr(found).endswith("and 2 more>")
    assert f"typical: {forest.params.item():.4g} (std err" in repr(forest)
    many = fit("price ~ x + z", frame, at=frame.head(250))
    assert repr(many).endswith("; 250 estimates>")


def test_reprs_of_what_results_hold_are_short(data):
    res = fit("price ~ x + group", data)
    names = [name for name in dir(type(res)) if not name.startswith("_")]
    held = [getattr(res, name) for name in names if hasattr(res, name)]
    held += [res.predictor, res.recipe, res.info, res.effect_values]
    ours = [one for one in held if type(one).__module__.startswith("vstatkit")]
    assert len(ours) >= 8
    for one in ours:
        assert len(repr(one)) < 400, type(one)
    regressor = vs.ForestRegressor(n_estimators=5, random_state=1)
    trees = regressor.fit(data[["x", "x.y"]], data["price"]).estimators_
    assert len(repr(trees[0])) < 30
    staged = vs.ForestRegressor(n_estimators=5, random_state=1, trend="linear", boost=1)
    one = staged.fit(data[["x", "x.y"]], data["price"]).estimators_[0]
    assert repr(one).startswith("<StagedTree: a linear trend and ")
    assert len(repr(one)) < 80
    assert short_repr(res.components).startswith("VarianceComponents(method='hoeff")


def test_restrictions_that_contradict_each_other_are_not_tested_together(data):
    res = fit("price ~ x + z", data.assign(z=data["x.y"]))
    with pytest.raises(ValueError, match="contradict each other"):
        res.wald_test("x = 0, x = 1")
    with pytest.raises(ValueError, match="contradict each other"):
        res.wald_test("x = 0, z = 0, x - z = 1e-5")
    twice = res.wald_test("x = 1, x = 1")
    assert twice.df_num == 1
    assert np.isclose(twice.statistic, res.wald_test("x = 1").statistic)
    assert res.wald_test("x = 0, z = 0, x = z").df_num == 2
    assert len(res.t_test("x = 0, x = 1").pvalues) == 2  # one by one


def test_words_for_curves_of_other_packages(data):
    res = fit("price ~ x + z", data.assign(z=data["x.y"]))
    with pytest.raises(TypeError, match="'grid_resolution'; here it is `points`"):
        res.partial_dependence("x", grid_resolution=4)
    with pytest.raises(TypeError, match="'features'; here it is the first argument"):
        res.partial_dependence(features=["x"])


def test_a_mistyped_name_in_a_restriction_is_told(data):
    res = fit("price ~ x + group", data)
    with pytest.raises(vs.FormulaError, match="'grup' is not among them; did you mean"):
        res.wald_test("grup = 0")
    with pytest.raises(vs.FormulaError) as told:
        res.t_test("x =")
    assert "among them" not in str(told.value)


def test_a_row_with_the_name_of_a_predictor_is_not_taken_for_its_effect(data):
    at = data.head(2).set_axis(["x", "other"])
    res = fit("price ~ x + group", data, at=at)
    with pytest.raises(ValueError, match="'x' is the name of an effect and of an"):
        res.t_test("x = 0")
    assert res.t_test("other = 0").values.shape[1] == 1
    assert res.t_test([[1, -1]]).values.shape[1] == 1
