"""Partial dependence by one walk of each tree: the same as predicting every copy."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

import vstatkit as vs
from vstatkit.ensemble import marginal_averages
from vstatkit.kernels.tree_options import check_codes
from vstatkit.kernels.tree_prediction import Axis, Grid, compute_dependence
from vstatkit.results.marginal_effects import averager_of, sample_of

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


def brute(kernel, learners, grid):
    """Predict copies of all rows, one for each point, and average them."""
    found = []
    for points in itertools.product(*(axis.values for axis in grid.axes)):
        copy = np.array(grid.rows, order="C")
        for axis, point in zip(grid.axes, points, strict=True):
            copy[:, list(axis.columns)] = point
        predicted = [kernel.predict(one, copy) for one in learners]
        found.append(np.average(predicted, axis=1, weights=grid.weights))
    return np.stack(found, axis=1).reshape(len(learners), -1)


def axis_of(*columns, points=7, rng=None):
    """Points within and beyond the data, one of them twice, in no order."""
    values = np.random.default_rng(rng).uniform(-0.1, 1.1, (points, len(columns)))
    values[-1] = values[0]
    return Axis(columns, values)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(60, 5))
    X[:, 4] = rng.integers(0, 4, 60)
    y = 3 * X[:, 0] * X[:, 1] + X[:, 2] + (X[:, 4] % 2) + rng.normal(0, 0.1, 60)
    return X, y


def grown(X, y, **options):
    kind = vs.ForestClassifier if y.dtype.kind in "US" else vs.ForestRegressor
    forest = kind(9, random_state=2, **options).fit(X, y)
    return forest._kernel, forest.estimators_


CASES = {
    "plain": {},
    "far": {"offset": 1e8},
    "poisson": {"criterion": "poisson", "min_samples_leaf": 3},
    "factor": {"categorical_features": [4]},
    "boost": {"boost": 1},
    "trend": {"trend": "linear"},
    "trend, boost": {"trend": "linear", "boost": 1},
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_walks_are_predictions_of_all_copies(table, name, weighted, missing):
    X, y = table
    options = dict(CASES[name])
    y = abs(y) + options.pop("offset", 0.0)
    if missing:
        X = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.15, np.nan, X)
    kernel, trees = grown(X, y, **options)
    weights = np.random.default_rng(3).uniform(0, 2, len(X)) if weighted else None
    level = Axis((4,), np.array([[3.0], [0.0], [np.nan], [2.0]]))
    cells = [(axis_of(0),), (axis_of(2), axis_of(1, points=4)), (level,)]
    cells += [(axis_of(1), level), (level, axis_of(0)), (axis_of(0, 1),)]
    if missing:
        cells.append((Axis((2,), np.array([[np.nan], [0.5]])), axis_of(0, 3)))
    for axes in cells:
        grid = Grid(X, axes, weights)
        wanted = brute(kernel, trees, grid)
        found = compute_dependence(kernel, trees, grid)
        assert np.ptp(wanted, axis=1).max() > 0.01  # the axes do something
        assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_walks_of_classes(table, n_classes):
    X, y = table
    cut = np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1])
    labels = np.array(list("abcd"))[np.searchsorted(cut, y)]
    for options in ({}, {"min_samples_leaf": 6, "class_weight": "balanced"}):
        kernel, trees = grown(X, labels, **options)
        for axes in ((axis_of(0),), (axis_of(1), axis_of(0, points=3))):
            grid = Grid(X, axes)
            found = compute_dependence(kernel, trees, grid)
            assert found.shape == (9, grid.n_points * kernel.n_outputs)
            assert_allclose(found, brute(kernel, trees, grid), rtol=1e-13, atol=1e-14)
            if n_classes > 2:
                whole = found.reshape(9, grid.n_points, n_classes).sum(axis=2)
                assert_allclose(whole, 1, rtol=1e-13)


def test_points_on_splits_go_where_predictions_go(table):
    X, y = table
    kernel, trees = grown(np.round(X, 1), y)
    used = [one.nodes["value"][one.nodes["feature"] == 0] for one in trees]
    points = np.unique(np.concatenate([*used, np.nextafter(used[0], 9)]))
    assert points.size > 15
    for order in (points, points[::-1]):
        grid = Grid(np.round(X, 1), (Axis((0,), order[:, None]),))
        wanted = brute(kernel, trees, grid)
        assert_allclose(compute_dependence(kernel, trees, grid), wanted, rtol=1e-13)


def test_grids_that_no_split_divides_are_exactly_flat(table):
    X, y = table
    kernel, trees = grown(X, y)
    grid = Grid(X, (Axis((0,), np.array([[0.5], [0.5 + 1e-12], [0.5]])),))
    found = compute_dependence(kernel, trees, grid)
    assert_array_equal(found, np.repeat(found[:, :1], 3, axis=1))


# -- results ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x2", "x4", "y"]]
    frame["g"] = np.array(["u", "v", "w"])[np.arange(60) % 3]
    frame["h"] = np.arange(60) % 4
    frame["my x"] = frame["x2"]
    return frame


def walked(res, axes, se="sample"):
    averager = averager_of(res, sample_of(res, None), se)
    return marginal_averages.build_grid(averager, axes), averager


WALKED = [
    ("y ~ x1 + x4 + g", {"x1": [0.1, 0.7]}, {}),
    ("y ~ x1 + x4 + g", {"g": ["w", "u", "v"], "x4": [0.3, 0.1, 0.8]}, {}),
    ("y ~ x1 + g", {"g": ["w", "u"]}, {"categorical_splits": True}),
    ("y ~ np.log(x1) + C(h) + x2", {"h": [3, 0]}, {}),
    ("y ~ x1 + h", {"h": [0.5, 2.5]}, {}),
    ("y ~ x1 + h + C(h)", {"h": [3.0, 1.0]}, {}),
    ("y ~ Q('my x') + x1:x4 + g", {"my x": [0.2, 0.4], "g": ["u", "w"]}, {}),
    ("y ~ x1 + x4", {"x4": [0.2, 0.4]}, {"trend": "linear", "boost": 1}),
    ("g ~ x1 + x4", {"x4": [0.2, 0.4], "x1": [0.5]}, {}),
]

PREDICTED = [
    ("y ~ np.log(x1) + x4", {"x1": [0.1, 0.7]}, {}),
    ("y ~ x1 + I(x1**2) + x4", {"x1": [0.1, 0.7]}, {}),
    ("y ~ x1 * g + x4", {"x4": [0.3], "g": ["u", "v"]}, {}),
    ("y ~ x1:x4 + x2", {"x2": [0.3], "x4": [0.3, 0.9]}, {}),
    ("y ~ x1:x4 + x2", {"x1": [0.3, 0.9]}, {}),
    ("y ~ x1 + x4", {"x4": [0.3, 0.9]}, {"kernel": "ols"}),
]


@pytest.mark.parametrize(("formula", "axes", "options"), [*WALKED, *PREDICTED])
def test_averages_do_not_depend_on_the_way(data, formula, axes, options):
    res = vs.fit(formula, data, B=40, k=30, rng=1, n_jobs=1, **options)
    grid, averager = walked(res, axes)
    assert (grid is not None) == ((formula, axes, options) in WALKED)
    settings = [
        dict(zip(axes, one, strict=True)) for one in itertools.product(*axes.values())
    ]
    wanted, _ = marginal_averages.average_settings(averager, settings)
    found, influence = marginal_averages.average_grid(averager, axes)
    assert influence is None
    assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    curve = res.partial_dependence(*axes, grid=axes)
    assert list(curve.grid.columns) == list(axes)


def test_curves_for_the_population_predict_every_row(data):
    res = vs.fit("y ~ x1 + x4", data, B=40, k=30, rng=1, n_jobs=1)
    grid, averager = walked(res, {"x4": [0.2, 0.6]}, se="population")
    values, influence = marginal_averages.average_grid(averager, {"x4": [0.2, 0.6]})
    assert influence.values.shape == (60, 2)
    assert_allclose(values, averager.predictor.dependence(grid), rtol=1e-12)


def test_rows_that_lack_the_predictor_are_averaged_over(data):
    frame = data.assign(x1=data["x1"].where(np.arange(60) % 5 > 0))
    res = vs.fit("y ~ x1 + x4", frame, B=40, k=30, rng=1, missing="pass")
    for name in ("x1", "x4"):
        curve = res.partial_dependence(name, grid=[0.2, 0.7])
        means = [res.predict(frame.assign(**{name: x})).mean() for x in (0.2, 0.7)]
        assert_allclose(curve.params, means, rtol=1e-12)


def test_learners_in_parts_and_in_threads_are_the_same(data):
    one, two = (
        vs.fit("y ~ x1 + x4", data, B=50, k=30, rng=1, n_jobs=n_jobs)
        .partial_dependence("x4", points=5)
        .results.values
        for n_jobs in (1, 2)
    )
    assert one.shape == (50, 5)
    assert_array_equal(one, two)


# -- forests ---------------------------------------------------------------------------


def test_forests_answer_as_scikit_learn_does(table):
    X, y = table
    forest = vs.ForestRegressor(30, random_state=1).fit(X, y)
    weights = np.arange(60.0)
    for features in ([0], 3, (0, 2), [(1, 4)]):
        how = {"grid_resolution": 8, "percentiles": (0.1, 0.8)}
        theirs = partial_dependence(
            forest, X, features, method="brute", sample_weight=weights, **how
        )
        found = forest.partial_dependence(X, features, sample_weight=weights, **how)
        for one, other in zip(found.grid_values, theirs.grid_values, strict=True):
            assert_array_equal(one, other)
        assert found.average.shape == theirs.average.shape
        assert_allclose(found.average, theirs.average, rtol=1e-12)
    plain = forest.partial_dependence(X, 0, custom_values={0: [0.9, 0.1]})
    assert_array_equal(plain.grid_values[0], [0.9, 0.1])
    copies = [forest.predict(np.c_[np.full(60, v), X[:, 1:]]) for v in (0.9, 0.1)]
    assert_allclose(plain.average[0], np.mean(copies, axis=1), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_forests_of_classes_and_factors(table, n_classes):
    X, y = table
    frame = pd.DataFrame(X, columns=list("abcde"))
    levels = pd.CategoricalDtype(["low", "high", "mid", "never", "top"])
    names = np.array(["mid", "low", "top", "high"])[X[:, 4].astype(int)]
    frame["e"] = pd.Categorical(names, dtype=levels)
    labels = np.searchsorted(np.quantile(y, [0.4, 0.7][: n_classes - 1]), y)
    forest = vs.ForestClassifier(
        30, random_state=1, categorical_features="from_dtype"
    ).fit(frame, labels)
    for features in (["e"], ["b", "e"]):
        theirs = partial_dependence(
            forest, frame, features, grid_resolution=3, categorical_features=["e"]
        )
        found = forest.partial_dependence(frame, features, grid_resolution=3)
        assert list(found.grid_values[-1]) == ["high", "low", "mid", "top"]
        assert_array_equal(found.grid_values[-1], theirs.grid_values[-1])
        assert_allclose(found.average, theirs.average, rtol=1e-12)
    one = forest.partial_dependence(frame, "e", custom_values={"e": ["top", "low"]})
    assert_allclose(one.average, at_levels(forest, frame), rtol=1e-12)


def at_levels(forest, frame):
    """Average the probabilities at two levels, as `average` has them."""
    found = [
        forest.predict_proba(
            frame.assign(e=pd.Categorical([level] * 60, dtype=frame["e"].dtype))
        ).mean(axis=0)
        for level in ("top", "low")
    ]
    table = np.stack(found, axis=1)
    return table[1:] if len(table) == 2 else table


def test_standard_errors_are_those_of_results(table):
    X, y = table
    forest = vs.ForestRegressor(60, max_samples=25, random_state=1).fit(X, y)
    points = [0.1, 0.5, 0.6]
    found = forest.partial_dependence(
        X, 0, custom_values={"x0": points}, return_std=True
    )
    curve = forest.results_.partial_dependence("x0", grid=points)
    assert_allclose(found.average[0], curve.params, rtol=1e-12)
    assert_allclose(found.std_error[0], curve.bse, rtol=1e-9)
    assert "std_error" not in forest.partial_dependence(X, 0)


def test_answers_can_be_drawn_by_scikit_learn(table):
    X, y = table
    forest = vs.ForestRegressor(10, random_state=1).fit(X, y)
    display = PartialDependenceDisplay(
        [forest.partial_dependence(X, 0), forest.partial_dependence(X, (0, 1))],
        features=[(0,), (0, 1)],
        feature_names=[f"x{j}" for j in range(5)],
        target_idx=0,
        deciles={j: np.quantile(X[:, j], np.linspace(0.1, 0.9, 9)) for j in (0, 1)},
    ).plot()
    line = display.lines_.ravel()[0].get_ydata()
    assert_allclose(line, forest.partial_dependence(X, 0).average[0])


def test_missing_values_are_no_points(table):
    X, y = table
    holes = np.where(np.random.default_rng(1).uniform(size=X.shape) < 0.2, np.nan, X)
    forest = vs.ForestRegressor(10, random_state=1).fit(holes, y)
    for place in (0, 4):
        found = forest.partial_dependence(holes, place, grid_resolution=9)
        assert np.isfinite(found.grid_values[0]).all()
        assert np.isfinite(found.average).all()
    check_codes(found.grid_values[0], 4, "the last column")


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        ([0, 1, 2], {}, "one feature, or two different ones"),
        ([1, 1], {}, "one feature, or two different ones"),
        (7, {}, "positions from 0 to 4"),
        ("x11", {}, "did you mean 'x1'"),
        ([True], {}, "got True"),
        (0, {"grid_resolution": 1}, "at least 2"),
        (0, {"percentiles": (0.9, 0.1)}, "ascending order"),
        (0, {"custom_values": {0: 0.5}}, "a list of points"),
        (3, {"percentiles": (0.01, 0.02), "grid_resolution": 3}, "further apart"),
    ],
)
def test_questions_that_have_no_answer(table, features, options, message):
    X, y = table
    X = X.copy()
    X[:55, 3] = 0.0
    forest = vs.ForestRegressor(3, random_state=1).fit(X, y)
    with pytest.raises(ValueError, match=message):
        forest.partial_dependence(X, features, **options)


def test_unknown_categories_are_refused(table):
    X, y = table
    frame = pd.DataFrame({"a": X[:, 0], "g": pd.Categorical(list("uvw") * 20)})
    forest = vs.ForestRegressor(
        3, random_state=1, categorical_features="from_dtype"
    ).fit(frame, y)
    with pytest.raises(ValueError, match="'z' is none of the categories"):
        forest.partial_dependence(frame, "g", custom_values={"g": ["u", "z"]})
