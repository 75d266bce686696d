"""Results travel: pickles and copies of them summarise and predict alike."""

import copy
import importlib.util
import pickle
import pickletools
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs
from vstatkit.formula.parse import parse
from vstatkit.pandas_pickling import Plain


def by_joblib(value, tmp_path):
    path = tmp_path / "value.joblib"
    joblib.dump(value, path)
    return joblib.load(path)


TRIPS = {
    "pickle": lambda value, _: pickle.loads(pickle.dumps(value)),
    "deepcopy": lambda value, _: copy.deepcopy(value),
    "joblib": by_joblib,
}
if importlib.util.find_spec("cloudpickle") is not None:
    import cloudpickle

    TRIPS["cloudpickle"] = lambda value, _: pickle.loads(cloudpickle.dumps(value))

RIGHTS = [
    "x1 + x2 + g + b",
    "C(w) + x1",
    "C(g, Treatment('z')) + x1",
    "bs(x1, 4) + x2",
    "poly(x1, 2) + poly(x2, 2)",
    "scale(x1) + center(x2)",
    "np.log(x1) + log(x2)",
    "x1*g + x2:x1",
    "Q('my x') + I(x1 > x2)",
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    frame = vs.datasets.mars(70, rng=2)
    return frame.assign(
        g=rng.choice(list("xyz"), 70),
        b=rng.random(70) > 0.5,
        w=rng.integers(0, 3, 70),
        **{"my x": rng.normal(size=70)},
    )


def check_same(again, res, new):
    assert str(again.summary()) == str(res.summary())
    if res.predictor is not None:
        one, other = again.get_prediction(new), res.get_prediction(new)
        assert_array_equal(one.predicted_mean, other.predicted_mean)
        assert_array_equal(one.se_mean, other.se_mean)
        assert_array_equal(again.predict(new), res.predict(new))


@pytest.mark.parametrize("trip", TRIPS)
@pytest.mark.parametrize("right", RIGHTS)
def test_results_of_formulas_travel(data, tmp_path, right, trip):
    kernel = "ols" if "poly" in right else "forest"
    res = vs.fit(f"y ~ {right}", data, kernel=kernel, k=40, B=30, rng=1)
    check_same(TRIPS[trip](res, tmp_path), res, data.iloc[[5, 2, 60]])


@pytest.mark.parametrize("trip", TRIPS)
def test_classes_and_missing_values_travel(data, tmp_path, trip):
    gappy = data.assign(x1=data["x1"].where(data["x1"] > 0.2))
    for formula, missing in [("g ~ x1 + b", "drop"), ("y ~ x1 + g", "pass")]:
        res = vs.fit(formula, gappy, missing=missing, B=30, rng=1)
        new = gappy.head(9) if missing == "pass" else gappy.dropna().head(9)
        again = TRIPS[trip](res, tmp_path)
        check_same(again, res, new)
        assert again.info.n_dropped == res.info.n_dropped


@pytest.mark.parametrize("trip", TRIPS)
def test_other_results_travel(data, tmp_path, trip):
    rng = np.random.default_rng(3)
    X, y = data[["x1", "x2"]], data["y"]
    forest = RandomForestRegressor(30, max_samples=30, random_state=1).fit(X, y)
    counts = rng.multinomial(20, np.full(20, 1 / 20), size=60)
    for res in (
        vs.statistic("gini", data["x1"], k=4, B=50, rng=1),
        vs.from_arrays(counts, counts @ rng.normal(size=20), replace=True),
        vs.from_sklearn(forest, X, y, X.head(3)),
    ):
        check_same(TRIPS[trip](res, tmp_path), res, X.head(5))
    ours = vs.ForestRegressor(n_estimators=20, random_state=1).fit(X, y)
    assert_array_equal(TRIPS[trip](ours, tmp_path).predict(X), ours.predict(X))


@pytest.mark.parametrize("trip", TRIPS)
def test_parts_of_results_travel(data, tmp_path, trip):
    res = vs.fit("y ~ bs(x1, 4) + g", data, B=30, rng=1)
    predictions = res.get_prediction(data.head(4))
    again = TRIPS[trip](predictions, tmp_path)
    pd.testing.assert_frame_equal(again.summary_frame(), predictions.summary_frame())
    predictor = TRIPS[trip](res.predictor, tmp_path)
    coding = TRIPS[trip](res.predictor.coding, tmp_path)
    X, _ = res.predictor.rows(data.head(6))
    assert_array_equal(predictor.rows(data.head(6))[0], X)
    assert_array_equal(coding.matrix(data.head(6)), X)
    with pytest.raises(vs.FormulaError, match="have 'new' in 'g'"):
        coding.matrix(data.head(1).assign(g="new"))


def test_another_process_reads_the_pickle(data, tmp_path):
    power = 3

    def cube(x):
        return x**power

    formulas = [f"y ~ {right}" for right in RIGHTS] + ["g ~ x1"]
    made = [vs.fit(formula, data, B=20, rng=1) for formula in formulas]
    made.append(vs.fit("y ~ cube(x1) + x2", data, B=20, rng=1))
    new = data.head(7)
    (tmp_path / "results.pkl").write_bytes(pickle.dumps((made, new)))
    code = (
        "import pickle\n"
        "made, new = pickle.load(open('results.pkl', 'rb'))\n"
        "found = [(str(one.summary()), one.predict(new),\n"
        "          one.get_prediction(new).se_mean) for one in made]\n"
        "pickle.dump(found, open('found.pkl', 'wb'))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    found = pickle.loads((tmp_path / "found.pkl").read_bytes())
    for res, (text, means, errors) in zip(made, found, strict=True):
        assert text == str(res.summary())
        assert_array_equal(means, res.predict(new))
        assert_array_equal(errors, res.get_prediction(new).se_mean)


def test_only_names_that_the_formula_uses_are_carried(data):
    unused = threading.Lock()
    times = 2.0
    made = vs.fit("y ~ I(times * x1) + np.exp(x2) + log(x3)", data, B=10, rng=1)
    assert times == 2
    assert not unused.locked()
    assert made.predictor.coding.recipe.names == {"times": 2.0, "np": np}
    again = pickle.loads(pickle.dumps(made))
    assert again.predictor.coding.recipe.names == {"times": 2.0, "np": np}


def test_what_cannot_be_pickled_is_named(data):
    lock = threading.Lock()

    def locked(x):
        with lock:
            return x + 1

    made = vs.fit("y ~ locked(x1)", data, B=10, rng=1)
    with pytest.raises(vs.FormulaError, match="'locked', which cannot be pickled"):
        pickle.dumps(made)


def test_what_is_not_available_is_named(data, tmp_path, monkeypatch):
    (tmp_path / "travel_guide.py").write_text("def half(x):\n    return x / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    half = __import__("travel_guide").half
    packed = pickle.dumps(vs.fit("y ~ half(x1)", data, B=10, rng=1))
    assert half(2) == 1
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "travel_guide")
    with pytest.raises(vs.FormulaError, match="'half', which is not available here"):
        pickle.loads(packed)


def test_copies_grow_on_and_pickles_do_not(data):
    res = vs.fit("y ~ x1 + g", data, B=20, rng=1)
    whole = vs.fit("y ~ x1 + g", data, B=40, rng=1)
    grown = copy.deepcopy(res).more(40)
    assert str(grown.summary()) == str(whole.summary())
    with pytest.raises(ValueError, match="a file or a pickle"):
        pickle.loads(pickle.dumps(res)).more(40)


def test_formulas_of_strangers_travel_too(data):
    made = parse("y ~ np.log(x1) + g", data, environment=None, intercept=True)
    again = pickle.loads(pickle.dumps(made))
    assert_array_equal(again.coding.matrix(data), made.X)
    assert again.names == made.names


def pandas_in(pickled):
    """List what a pickle needs of pandas."""
    texts = [(code.name, value) for code, value, _ in pickletools.genops(pickled)]
    return [
        value
        for name, value in texts
        if name == "GLOBAL" and value.startswith("pandas")
    ]


def travellers():
    frame = vs.datasets.mars(80, rng=1)
    frame["g"] = np.where(frame["x3"] > 0.5, "a", "b")
    frame["kind"] = pd.Categorical(np.where(frame["x5"] > 0.5, "u", "v"))
    named = frame.set_axis([f"r{i}" for i in range(80)])
    res = vs.fit("y ~ x1 + log(x2) + g + kind", named, B=20, rng=1)
    several = vs.fit("C(z) ~ x1", frame.assign(z=frame.index % 3), B=20, rng=1)
    X = frame[["x1", "kind"]]
    forest = vs.ForestRegressor(20, categorical_features="from_dtype", random_state=1)
    return {
        "results": res,
        "classes": several,
        "predictions": res.get_prediction(named.head(2)),
        "test": res.t_test("x1 = 0"),
        "averages": res.avg_effects(),
        "curve": res.partial_dependence("x1"),
        "importance": res.importance(learners=20),
        "comparison": res.compare_variance(),
        "statistic": vs.statistic("mean", frame["y"], k=5, B=20, rng=1),
        "forest": forest.fit(X, frame["y"]),
    }


def test_pickles_hold_nothing_of_pandas():
    """Its insides change between versions: pickles would not travel between them."""
    for name, value in travellers().items():
        for used in (str(value), repr(value)):  # tables that were made are kept
            assert used
        pickled = pickle.dumps(value, protocol=2)  # which names globals in full
        assert pandas_in(pickled) == [], name
        again = pickle.loads(pickled)
        assert str(again) == str(value)
        for copied in (copy.copy(value), copy.deepcopy(value)):
            assert str(copied) == str(value)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3, 9, 3, name="n"),
        pd.Index(["a", "b"], name="text"),
        pd.Index([], dtype=object),
        pd.Index(["a", None], dtype=object),
        pd.Index([("a", 1), ("b", 2)], tupleize_cols=False),
        pd.Index([1.5, np.nan]),
        pd.Index([True, False]),
        pd.CategoricalIndex(["u", "v", "u"], ["v", "u"], ordered=True),
        pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["g", None]),
        pd.to_datetime(["2020-01-01", "2021-05-05"]),
        pd.to_datetime(["2020-01-01", "2021-05-05"]).tz_localize("Europe/Berlin"),
        pd.to_timedelta([1, 2], unit="D"),
        pd.interval_range(0, 3),
        pd.Index([1, None], dtype="Int64"),
    ],
    ids=str,
)
def test_indexes_and_columns_travel_whole(index):
    made = pickle.loads(pickle.dumps(Plain(index)))
    pd.testing.assert_index_equal(made, index)
    if not isinstance(index, pd.MultiIndex):
        column = pd.Series(index, name="column")
        made = pickle.loads(pickle.dumps(Plain(column)))
        pd.testing.assert_series_equal(made, column)
    frame = pd.DataFrame({"x": np.arange(len(index)), "y": "text"}, index)
    frame.attrs["note"] = "kept"
    made = pickle.loads(pickle.dumps(Plain(frame)))
    pd.testing.assert_frame_equal(made, frame)
    assert made.attrs == frame.attrs
