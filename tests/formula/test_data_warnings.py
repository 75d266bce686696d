"""Warnings about the data: what is found, and that clean data pass."""

import warnings

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.formula import duplicate_rows

FEW = {"B": 60, "rng": 1}


def clean(rng, n=200):
    x, z = rng.normal(size=n), rng.uniform(size=n)
    return pd.DataFrame({"y": x + 2 * z + rng.normal(size=n), "x": x, "z": z})


def warned(formula, data, **options):
    """Fit, and list the warnings about the data with the results."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        res = vs.fit(formula, data, **{**FEW, **options})
    found = [one for one in caught if issubclass(one.category, vs.DataWarning)]
    assert all(one.filename == __file__ for one in found)
    return res, found


def only(found, category):
    """Return the text of the one warning, which must be of this class."""
    assert [one.category for one in found] == [category]
    return str(found[0].message)


# Copies.


@pytest.mark.parametrize("times", [2, 4])
@pytest.mark.parametrize("order", ["together", "apart"])
def test_copies_of_rows(rng, times, order):
    data = clean(rng, 100).iloc[np.repeat(np.arange(100), times)]
    if order == "apart":
        data = data.sample(frac=1.0, random_state=1)
    res, found = warned("y ~ x + z", data)
    text = only(found, vs.DuplicateRowsWarning)
    n = 100 * times
    assert f"{n - 100} of {n} rows are exact copies of other rows, in" in text
    assert "`groups`" in text
    assert "`weights`" in text
    said = " ".join(str(res.summary()).split())
    assert f"{n - 100} of {n} rows are exact copies of others: the std err" in said


def test_some_copies_and_a_continuous_predictor_of_classes(rng):
    data = clean(rng, 200)
    some = pd.concat([data, data.iloc[:60]])
    only(warned("y ~ x + z", some)[1], vs.DuplicateRowsWarning)
    only(warned("C(y > 1) ~ x + z", some)[1], vs.DuplicateRowsWarning)
    assert not warned("y ~ x + z", pd.concat([data, data.iloc[:4]]))[1]


def test_units_do_not_matter_to_copies(rng):
    data = clean(rng, 60).iloc[np.repeat(np.arange(60), 4)]
    for scale in (1e-200, 1e-6, 1e9, 1e200):
        found = warned("y ~ x + z", scale * data)[1]
        only(found, vs.DuplicateRowsWarning)


def test_groups_that_hold_copies_together_need_no_warning(rng):
    rows = np.repeat(np.arange(60), 4)
    data = clean(rng, 60).iloc[rows].assign(g=rows, h=np.tile(np.arange(4), 60))
    assert not warned("y ~ x + z", data, groups="g")[1]
    text = only(warned("y ~ x + z", data, groups="h")[1], vs.DuplicateRowsWarning)
    assert "180 of 240 rows are exact copies of other rows in other groups" in text


def test_rows_that_differ_in_another_column_are_no_copies(rng):
    """As house prices by style: coarse columns agree where houses differ."""
    data = clean(rng, 60).iloc[rng.permutation(np.repeat(np.arange(60), 2))]
    other = data.assign(
        size=rng.integers(1000, 3000, 120), flag=rng.integers(0, 2, 120)
    )
    assert not other.duplicated().any()
    assert not warned("y ~ x + z", other)[1]
    only(warned("y ~ x + z", data)[1], vs.DuplicateRowsWarning)


COPY_LABELS = {
    "nothing": lambda n, times: {},
    "row number": lambda n, times: {"id": np.arange(n * times)},
    "text": lambda n, times: {"id": [f"row {i}" for i in range(n * times)]},
    "number of the copy": lambda n, times: {"draw": np.repeat(np.arange(times), n) + 1},
    "both": lambda n, times: {
        "id": np.arange(n * times),
        "draw": np.repeat(np.arange(times), n),
    },
}


@pytest.mark.parametrize("label", COPY_LABELS)
@pytest.mark.parametrize("order", ["as made", "mixed"])
def test_columns_that_number_rows_or_copies_do_not_hide_them(rng, label, order):
    data = clean(rng, 60).assign(size=rng.integers(1000, 3000, 60), flag=0)
    data.loc[:9, "flag"] = 1
    columns = COPY_LABELS[label](60, 4)
    copied = pd.concat([data] * 4, ignore_index=True).assign(**columns)
    if order == "mixed":
        copied = copied.sample(frac=1.0, random_state=1)
    text = only(warned("y ~ x + z", copied)[1], vs.DuplicateRowsWarning)
    assert "180 of 240 rows are exact copies" in text
    assert ("apart from" in text) == bool(columns)
    assert all(repr(name) in text for name in columns)


def test_copies_in_other_groups_are_told_by_the_clusters_alone(rng):
    """The column of the groups differs between these copies, and is not compared."""
    data = pd.concat([clean(rng, 60)] * 2, ignore_index=True)
    data["g"] = rng.permutation(120) % 40
    text = only(warned("y ~ x + z", data, groups="g")[1], vs.DuplicateRowsWarning)
    assert "in other groups" in text


ROUNDED = {
    "one decimal": lambda rng, n: clean(rng, n).round(1),
    "wages in cents": lambda rng, n: pd.DataFrame(
        {
            "y": np.round(np.exp(rng.normal(1.5, 0.5, n)), 2),
            "x": rng.integers(8, 19, n),
            "z": rng.integers(0, 2, n),
        }
    ),
    "masses and a factor": lambda rng, n: pd.DataFrame(
        {
            "y": 50 * np.round(rng.normal(4200, 800, n) / 50),
            "x": rng.choice([*"abc"], n),
            "z": rng.integers(0, 2, n),
        }
    ),
}


@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("design", ROUNDED)
def test_copies_of_rounded_rows(design, times):
    """Rows tie by chance, but then not all of them the same number of times."""
    data = ROUNDED[design](np.random.default_rng(times), 200)
    assert not warned("y ~ x + z", data, B=20)[1]
    copied = pd.concat([data] * times).sample(frac=1.0, random_state=1)
    for some in (copied, copied.iloc[4:]):
        only(warned("y ~ x + z", some, B=20)[1], vs.DuplicateRowsWarning)


def test_groups_hold_copies_of_rounded_rows_together():
    data = ROUNDED["masses and a factor"](np.random.default_rng(1), 200)
    rows = np.tile(np.arange(200), 4)
    copied = data.iloc[rows].assign(g=rows, h=np.repeat(np.arange(4), 200) + 4 * rows)
    assert not warned("y ~ x + z", copied, groups="g", B=20)[1]
    found = warned("y ~ x + z", copied, groups="h", B=20)[1]
    assert "in other groups" in only(found, vs.DuplicateRowsWarning)


def test_balanced_experiments_with_rare_outcomes_pass():
    """All rows of most settings have the same response."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        settings = rng.permutation(np.tile(np.arange(64), 10))
        data = pd.DataFrame({"x": settings // 8, "z": settings % 8})
        rare = rng.uniform(size=640) < 0.005
        numbers = np.where(rare, rng.integers(1, 50, 640), 0)
        for y in (rare.astype(int), numbers):
            assert not warned("y ~ x + z", data.assign(y=y), B=20)[1]


def skewed(rng, n):
    return np.where(rng.uniform(size=n) < 0.85, 0.0, rng.gamma(0.5, size=n))


CLEAN = {
    "normal": clean,
    "heavy tails": lambda rng, n: clean(rng, n).assign(y=rng.standard_t(2, size=n)),
    "binary predictors": lambda rng, n: pd.DataFrame(
        {
            "y": rng.normal(size=n),
            "x": rng.integers(0, 2, n),
            "z": rng.integers(0, 2, n),
        }
    ),
    "all binary": lambda rng, n: pd.DataFrame(
        rng.integers(0, 2, (n, 3)), columns=[*"yxz"]
    ),
    "classes": lambda rng, n: pd.DataFrame(
        {"y": rng.choice([*"abc"], n), "x": rng.normal(size=n), "z": rng.normal(size=n)}
    ),
    "integers": lambda rng, n: pd.DataFrame(rng.poisson(3.0, (n, 3)), columns=[*"yxz"]),
    "wages in cents": lambda rng, n: pd.DataFrame(
        {
            "y": np.round(np.exp(rng.normal(1.5, 0.5, n)), 2),
            "x": rng.integers(8, 19, n),
            "z": rng.integers(0, 2, n),
        }
    ),
    "prices in thousands": lambda rng, n: pd.DataFrame(
        {
            "y": 500.0 * rng.integers(100, 900, n),
            "x": rng.choice([*"abc"], n),
            "z": rng.integers(0, 2, n),
        }
    ),
    "zeros and a tail": lambda rng, n: pd.DataFrame(
        {"y": skewed(rng, n), "x": rng.integers(0, 2, n), "z": rng.integers(0, 3, n)}
    ),
    "large integers": lambda rng, n: pd.DataFrame(
        {
            "y": rng.integers(0, 1000, n),
            "x": rng.binomial(1, 0.1, n),
            "z": rng.binomial(1, 0.05, n),
        }
    ),
    "round numbers beside others": lambda rng, n: pd.DataFrame(
        {
            "y": np.where(
                rng.uniform(size=n) < 0.4,
                rng.integers(1, 16, n),
                rng.uniform(0, 16, n),
            ),
            "x": rng.integers(0, 2, n),
            "z": rng.integers(0, 2, n),
        }
    ),
    "one decimal": lambda rng, n: clean(rng, n).round(1),
    "factor": lambda rng, n: clean(rng, n).assign(z=rng.choice([*"abcdefgh"], n)),
    "small noise": lambda rng, n: clean(rng, n).assign(
        y=lambda d: d["x"] + 0.03 * rng.normal(size=n)
    ),
    "sorted by a predictor": lambda rng, n: clean(rng, n).sort_values("x"),
    "sorted by the response": lambda rng, n: clean(rng, n).sort_values("y"),
    "zeros last": lambda rng, n: pd.DataFrame(
        {"y": skewed(rng, n), "x": rng.normal(size=n), "z": rng.normal(size=n)}
    ).sort_values("y", key=lambda y: y == 0),
    "sorted by a factor": lambda rng, n: (
        clean(rng, n)
        .assign(f=np.repeat([*"abcd"], n // 4))
        .assign(y=lambda d: d["y"] + 5 * (d["f"] == "b"))
    ),
}


@pytest.mark.parametrize("design", CLEAN)
@pytest.mark.parametrize("n", [60, 400])
def test_clean_data_pass(design, n):
    """Six data sets of every design and size, of independent rows."""
    for seed in range(6):
        data = CLEAN[design](np.random.default_rng(seed), n)
        found = warned("y ~ x + z", data, B=20)[1]
        assert not found, found[0].message


def test_clusters_and_weights_pass(rng):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        data = clean(rng, 240).assign(g=np.repeat(np.arange(60), 4))
        data["y"] += 3 * rng.normal(size=60)[data["g"]]
        data["w"] = rng.integers(1, 4, 240)
        assert not warned("y ~ x + z", data, groups="g", weights="w")[1]


BUILT_IN = {
    "mars": (lambda: vs.datasets.mars(150, rng=1), "y ~ ."),
    "diabetes": (vs.datasets.diabetes, "target ~ ."),
    "iris": (vs.datasets.iris, "species ~ ."),
    "iris, one length": (vs.datasets.iris, "sepal_length ~ sepal_width"),
    "breast cancer": (vs.datasets.breast_cancer, "diagnosis ~ ."),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_data_pass(name):
    make, formula = BUILT_IN[name]
    assert not warned(formula, make())[1]


def test_all_copies_of_the_response_are_to_be_left_out(rng):
    """The advice, followed, gives a formula without the copies."""
    data = clean(rng).assign(a=lambda d: np.exp(d["y"] / 9), c=lambda d: 3 * d["y"])
    data = data.rename(columns={"c": "c c"})
    text = only(warned("y ~ .", data)[1], vs.LeakageWarning)
    advice = text.partition("(`")[2].partition("`)")[0]
    assert advice == '- a - Q("c c")'
    res, found = warned(f"y ~ . {advice}", data)
    assert not found
    assert res.predictor.coding.variables == ("x", "z")


# Serial dependence.


def series(rng, n=200, phi=0.9):
    data = clean(rng, n)
    error = rng.normal(size=n)
    for t in range(1, n):
        error[t] += phi * error[t - 1]
    return data.assign(y=data["x"] + error)


def test_errors_that_are_correlated_in_row_order(rng):
    res, found = warned("y ~ x + z", series(rng))
    text = only(found, vs.SerialDependenceWarning)
    assert "neighbouring rows, in the order of the rows, are correlated: 0." in text
    assert "groups=np.arange(n) // 10" in text
    assert "Residuals of neighbouring rows" in " ".join(str(res.summary()).split())
    residuals = res.resid.to_numpy()
    plain = np.corrcoef(residuals[1:], residuals[:-1])[0, 1]
    reported = float(text.partition("correlated: ")[2][:4])
    assert abs(plain - reported) < 0.1


def test_rows_sorted_by_a_variable_that_is_not_there(rng):
    """As iris without its species: both causes are named, and both remedies work."""
    data = clean(rng, 150)
    kind = pd.Categorical(np.repeat(list("abc"), 50))
    data["y"] = data["x"] + 2.0 * kind.codes + rng.normal(size=150)
    res, found = warned("y ~ x + z", data)
    text = only(found, vs.SerialDependenceWarning)
    note = " ".join(str(res.summary()).split())
    for said in (text, note):
        assert "depend on each other" in said
        assert "sorted by a variable that" in said
        assert "`groups`" in said
    assert "add the variable to the formula" in text
    assert "groups=np.arange(n) // " in text
    known = data.assign(kind=kind)
    assert not warned("y ~ x + z + kind", known)[1]
    assert not warned("y ~ x + z", known)[1]  # the column shows why
    mixed = data.sample(frac=1, random_state=1)
    assert not warned("y ~ x + z", mixed)[1]


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_units_do_not_matter_to_the_order(rng, scale):
    data = series(rng)
    reported = only(warned("y ~ x + z", data)[1], vs.SerialDependenceWarning)
    scaled = data.assign(y=scale * data["y"])
    assert only(warned("y ~ x + z", scaled)[1], vs.SerialDependenceWarning) == reported


def test_the_order_of_dates(rng):
    """Rows in random order, with a date beside: as a column, and as the index."""
    data = series(rng)
    days = pd.date_range("2020-01-01", periods=200)
    mixed = rng.permutation(200)
    assert not warned("y ~ x + z", data.iloc[mixed])[1]
    column = data.assign(day=days).iloc[mixed]
    text = only(warned("y ~ x + z", column)[1], vs.SerialDependenceWarning)
    assert "in the order of 'day'" in text
    for index in (days, days.to_period("D"), days.tz_localize("UTC")):
        found = warned("y ~ x + z", data.set_axis(index).iloc[mixed])[1]
        text = only(found, vs.SerialDependenceWarning)
        assert "in the order of the index" in text


def test_a_counter_beside_a_trend_tells_that_rows_are_in_order(rng):
    """Population grows all the time: rows are sorted by it, but the year counts."""
    data = series(rng).assign(people=np.cumsum(rng.uniform(size=200)))
    assert not warned("y ~ x + z", data)[1]
    dated = data.assign(year=1960 + np.arange(200) // 4)
    only(warned("y ~ x + z", dated)[1], vs.SerialDependenceWarning)


def panel(rng, n_units=60):
    """Return units of four rows each, whose errors are correlated, sorted by unit."""
    unit = np.repeat(np.sort(rng.choice(10_000, n_units, replace=False)), 4)
    shared = np.repeat(1.5 * rng.normal(size=n_units), 4)
    data = clean(rng, unit.size).assign(id=unit, shared=shared)
    data["y"] += data.pop("shared")
    return data


def test_the_identifier_of_an_unbalanced_panel_does_not_hide_dependence(rng):
    """A number that identifies units says no more than the same text does."""
    data = panel(rng)
    some = data.drop(index=[41, 42, 90])
    gaps = data.assign(z=data["z"].where(rng.uniform(size=len(data)) > 0.05))
    for one in (data, some, gaps):
        text = one.assign(id="u" + one["id"].astype(str))
        reported = [warned("y ~ x + z", two)[1] for two in (one, text)]
        first, second = (only(two, vs.SerialDependenceWarning) for two in reported)
        assert first == second
    assert not warned("y ~ x + z", some, groups="id")[1]
    alone = some.assign(y=some["x"] + rng.normal(size=len(some)))
    assert not warned("y ~ x + z", alone)[1]


def test_a_number_with_ties_by_which_rows_are_sorted_is_no_identifier(rng):
    """Residuals are alike within and between the values of a number that matters."""
    age = np.sort(rng.integers(20, 80, 400))
    data = clean(rng, 400).assign(age=age)
    data["y"] += 6 * np.sin(age / 8)
    assert not warned("y ~ x + z", data)[1]
    assert not warned("y ~ x + z + age", data)[1]
    binary = data.assign(y=(data["y"] > data["y"].median()).astype(float))
    within = binary.sort_values(["age", "y"])
    assert not warned("y ~ x + z", within)[1]
    assert not warned("y ~ x + z + age", within)[1]


def test_clusters_that_are_correlated(rng):
    """Blocks are what the warning asks for; between small ones there is dependence."""
    data = series(rng, 600, 0.95)
    small, large = np.arange(600) // 4, np.arange(600) // 60
    text = only(warned("y ~ x + z", data, groups=small)[1], vs.SerialDependenceWarning)
    assert "neighbouring clusters" in text
    assert not warned("y ~ x + z", data, groups=large)[1]
    interleaved = np.arange(600) % 60
    assert not warned("y ~ x + z", data, groups=interleaved)[1]


def test_two_classes_in_order(rng):
    data = series(rng, 400).assign(up=lambda d: np.where(d["y"] > 0, "yes", "no"))
    only(warned("up ~ x + z", data)[1], vs.SerialDependenceWarning)


def test_the_order_is_not_tested_without_out_of_bag_predictions(rng):
    assert not warned("y ~ x + z", series(rng), oob=False)[1]


# Query points.


def test_query_points_far_outside(rng):
    data = clean(rng)
    low, high = data["z"].min(), data["z"].max()
    near = {"x": [0.0, 0.0], "z": [high + 0.2 * (high - low), low]}
    far = {"x": [0.0, 90.0], "z": [high + 0.3 * (high - low), low]}
    assert not warned("y ~ x + z", data, at=near)[1]
    res, found = warned("y ~ x + z", data, at=far)
    text = only(found, vs.ExtrapolationWarning)
    assert "2 of 2 rows to predict lie far outside the training data" in text
    assert (
        f"x = 90 in row 1, where the training data go from {data['x'].min():.4g}"
        in text
    )
    assert f"to {high:.4g}. Predictions there" in text
    assert "2 of 2 rows to predict lie far" in " ".join(str(res.summary()).split())
    for ask in (res.predict, res.get_prediction):
        ask(near)
        with pytest.warns(vs.ExtrapolationWarning, match="x = 90") as caught:
            ask(far)
        assert [one.filename for one in caught] == [__file__]


def test_one_warning_for_a_file_of_predictions(rng, tmp_path):
    data = clean(rng)
    res = vs.fit("y ~ x + z", data, **FEW)
    far = pd.concat([data.assign(x=1e3)] * 3)
    with pytest.warns(vs.ExtrapolationWarning) as caught:
        res.predict(far, out=tmp_path / "out.csv")
    assert len(caught) == 1


def test_loaded_results_warn_and_keep_their_notes(rng, tmp_path):
    data = clean(rng, 60).iloc[np.repeat(np.arange(60), 4)].reset_index(drop=True)
    res, _ = warned("y ~ x + z", data)
    res.save(tmp_path / "res.vs")
    loaded = vs.load(tmp_path / "res.vs")
    assert loaded.info.data_notes == res.info.data_notes != ()
    with pytest.warns(vs.ExtrapolationWarning):
        loaded.predict({"x": [1e3], "z": [0.0]})


def test_levels_that_were_declared_and_never_observed(rng):
    data = clean(rng).assign(f=pd.Categorical(rng.choice([*"ab"], 200), [*"abc"]))
    res = vs.fit("y ~ x + f", data, **FEW)
    new = pd.DataFrame({"x": [0.0, 0.0], "f": pd.Categorical(["a", "c"], [*"abc"])})
    with pytest.warns(vs.UnobservedLevelWarning, match="f = 'c' in row 1"):
        res.predict(new)
    res.predict(new.iloc[:1])
    with pytest.raises(vs.FormulaError, match="the new data have 'd' in 'f'"):
        res.predict({"x": [0.0], "f": ["d"]})


# Columns.


COPIED = {
    "another unit": lambda y, rng: 2.54 * y + 1,
    "rounded": lambda y, rng: np.round(y, 1),
    "a logarithm": lambda y, rng: np.log(y - y.min() + 1),
    "a little noise": lambda y, rng: y + 0.01 * rng.normal(size=y.size),
    "a falling one": lambda y, rng: -(y**3),
}


@pytest.mark.parametrize("case", COPIED)
def test_predictors_that_are_copies_of_the_response(rng, case):
    data = clean(rng, 300).assign(copy=lambda d: COPIED[case](d["y"], rng))
    res, found = warned("y ~ .", data)
    text = only(found, vs.LeakageWarning)
    assert text.startswith("'copy' is almost a copy of the response 'y'")
    assert "`- copy`" in text
    assert "'copy' is almost a copy of the response." in str(res.summary())
    assert not warned("y ~ . - copy", data)[1]
    assert not warned("y ~ copy", data)[1]  # a sole predictor is meant


def test_classes_by_another_name(rng):
    data = clean(rng).assign(cls=lambda d: np.digitize(d["y"], [0, 2]))
    data["name"] = data["cls"].map({0: "low", 1: "middle", 2: "high"})
    for formula in ("name ~ x + cls", "cls ~ x + name", "C(cls) ~ x + name"):
        only(warned(formula, data)[1], vs.LeakageWarning)
    other = data.assign(name=lambda d: d["name"].where(d.index != 5, "low"))
    other.loc[other.index[5], "cls"] = 2
    assert not warned("name ~ x + cls", other)[1]


def test_texts_of_numbers(rng):
    years = rng.integers(8, 18, 200)
    data = clean(rng).assign(educ=years.astype(str))
    text = only(warned("y ~ x + educ", data)[1], vs.TextNumbersWarning)
    assert "its 10 different values are categories without an order" in text
    assert "data['educ'] = pd.to_numeric(data['educ'])" in text
    assert not warned("y ~ x + C(educ)", data)[1]
    assert not warned("y ~ x + educ", data.astype({"educ": "category"}))[1]
    stray = data.assign(educ=data["educ"].where(data.index > 3, "unknown"))
    text = only(warned("y ~ x + educ", stray)[1], vs.TextNumbersWarning)
    assert "errors='coerce'" in text
    codes = data.assign(educ=[f"{one:05}" for one in years])
    assert not warned("y ~ x + educ", codes)[1]
    assert not warned("y ~ x + educ", data.assign(educ=(years % 2).astype(str)))[1]
    halves = data.assign(grade=(years % 5 / 2).astype(str))
    text = only(warned("grade ~ x + z", halves)[1], vs.TextNumbersWarning)
    assert "its 5 different values are classes without an order" in text


def test_identifiers(rng):
    data = clean(rng).assign(name=[f"person {i}x" for i in range(200)])
    text = only(warned("y ~ .", data)[1], vs.IdentifierWarning)
    assert "'name' has 200 different values in 200 rows, such as 'person 0x'" in text
    assert "`- name`" in text
    assert not warned("y ~ . - name", data)[1]
    firms = data.assign(name=[f"firm {i % 80}x" for i in range(200)])
    assert not warned("y ~ .", firms)[1]


def test_a_statistic_and_filters_are_left_alone(rng):
    copies = np.repeat(rng.normal(size=50), 4)
    vs.statistic("mean", copies, k=10, B=50, rng=1)
    data = clean(rng, 60).iloc[np.repeat(np.arange(60), 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", vs.DataWarning)
        vs.fit("y ~ x + z", data, **FEW)


def test_minus_zero_and_missing_values_are_equal_to_themselves(rng):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0]])
    codes, first = duplicate_rows._row_codes(np.zeros(4), X)
    assert codes[0] == codes[1] != codes[2] == codes[3]
    assert sorted(first) == [0, 2]
