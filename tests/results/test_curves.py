"""Curves of averages: against scikit-learn, literal loops and known functions."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence

import vstatkit as vs
from vstatkit.ensemble.marginal_averages import (
    Intervals,
    _nearest_cells,
    quantile_grid,
)
from vstatkit.inference.estimates import estimate
from vstatkit.inference.intervals import band_critical_values

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=3)[["x1", "x2", "x4", "y"]]
    frame["g"] = np.array(["u", "v", "w"])[np.arange(60) % 3]
    return frame


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g", data, B=120, k=30, rng=1, n_jobs=1)


@pytest.fixture(scope="module")
def product():
    """A linear model of a product, the same for every learner."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.uniform(size=(80, 2)), columns=["a", "b"])
    frame["y"] = 1 + 2 * frame["a"] - frame["b"] + 3 * frame["a"] * frame["b"]
    return frame, vs.fit("y ~ a * b", frame, kernel="ols", B=30, k=40, rng=1)


def learner_values(res, frame):
    return res.predictor.values(res.predictor.rows(frame)[0])


def literal_estimates(res, values, limit):
    """Estimates with half the rho of predictions, known to half of that."""
    rho, error = res.orders.rho / 2, np.hypot(res.orders.error / 2, res.orders.rho / 4)
    mc_error = res.orders.mc_error / 2
    orders = replace(res.orders, rho=rho, error=error, mc_error=mc_error)
    return estimate(res.design, values, "hoeffding", limit, orders)


def test_the_curve_is_that_of_scikit_learn(data):
    X, y = data[["x1", "x2", "x4"]], data["y"]
    forest = vs.ForestRegressor(80, max_samples=30, random_state=4).fit(X.to_numpy(), y)
    res = vs.fit(
        "y ~ x1 + x2 + x4", data, kernel="forest", B=80, k=30, rng=forest.design_.seed
    )
    assert np.allclose(forest.predict(X.to_numpy()), res.predict(data), rtol=1e-12)
    theirs = partial_dependence(
        forest, X.to_numpy(), [2], method="brute", kind="average", grid_resolution=9
    )
    grid = theirs["grid_values"][0]
    ours = res.partial_dependence("x4", grid=grid)
    assert np.allclose(ours.params, theirs["average"][0], rtol=1e-10)
    both = partial_dependence(
        forest, X.to_numpy(), [0, 2], method="brute", grid_resolution=4
    )
    grids = dict(zip(["x1", "x4"], both["grid_values"], strict=True))
    ours = res.partial_dependence("x1", "x4", grid=grids)
    assert np.allclose(ours.params, both["average"][0].ravel(), rtol=1e-10)


def test_standard_errors_are_those_of_averages(res, data):
    curve = res.partial_dependence("x4", points=6)
    grid = np.quantile(data["x4"], np.linspace(0.05, 0.95, 6))
    H = np.column_stack(
        [learner_values(res, data.assign(x4=x)).mean(axis=1) for x in grid]
    )
    literal = literal_estimates(res, H, res.limit)
    assert np.allclose(curve.grid["x4"], grid)
    assert np.allclose(curve.params, literal.estimate, rtol=1e-12)
    assert np.allclose(curve.bse, literal.bse, rtol=1e-9)
    each, band = curve.conf_int(), curve.conf_int(simultaneous=True)
    assert (band["upper"] > each["upper"]).all()
    matrix = curve.results.covariances.correlation
    critical = band_critical_values(matrix, 0.05, literal.df, res.seed)
    assert np.allclose(band["upper"] - curve.params, critical * curve.bse)


def test_curves_for_the_population(res, data):
    curve = res.partial_dependence("x4", grid=[0.2, 0.8], se="population")
    for j, x in enumerate((0.2, 0.8)):
        same = res.avg_effects({"x4": (0.5, x)}, se="population")
        assert curve.results.points.values.shape == (60, 2)
        one = curve.results.points.values[:, j]
        mid = res.partial_dependence("x4", grid=[0.5], se="population")
        difference = one - mid.results.points.values[:, 0]
        assert np.allclose(difference, same.results.points.values[:, 0], atol=1e-12)


def test_curves_are_stacked_in_parts(res, monkeypatch):
    whole = res.partial_dependence("x4", points=5, se="population")
    monkeypatch.setattr("vstatkit.ensemble.marginal_averages.STACKED_ROWS", 130)
    parts = res.partial_dependence("x4", points=5, se="population")
    assert np.allclose(whole.params, parts.params, rtol=1e-14)
    assert np.allclose(whole.bse, parts.bse, rtol=1e-12)


def test_factors_have_their_levels(res, data):
    curve = res.partial_dependence("g")
    means = [res.predict(data.assign(g=level)).mean() for level in "uvw"]
    assert curve.params.index.to_list() == ["u", "v", "w"]
    assert np.allclose(curve.params, means, rtol=1e-12)
    assert [one.get_text() for one in curve.plot().get_xticklabels()] == list("uvw")
    change = curve.contrast("w", "u")
    assert np.isclose(change.params.item(), means[2] - means[0], rtol=1e-9)
    with pytest.raises(ValueError, match="not a point of the curve"):
        curve.contrast("z")


@pytest.mark.parametrize("beyond", [-0.06, 0.56, 30.0])
def test_contrasts_do_not_go_beyond_the_curve(res, beyond):
    curve = res.partial_dependence("x1", grid=[0.0, 0.1, 0.4])
    with pytest.raises(ValueError, match=r"from x1 = 0 to 0\.4"):
        curve.contrast(beyond, 0.1)
    for near, point in ((-0.04, 0.0), (0.54, 0.4)):
        change, wanted = curve.contrast(near, 0.1), curve.contrast(point, 0.1)
        np.testing.assert_allclose(change.params, wanted.params)


def test_contrasts_are_combinations_of_points(res):
    curve = res.partial_dependence("x4", grid=[0.1, 0.4, 0.9])
    change = curve.contrast(0.88, 0.1)
    direct = curve.t_test([[-1.0, 0.0, 1.0]])
    assert change.labels.to_list() == ["x4: 0.1 → 0.9"]
    assert change.params.item() == direct.params.item()
    assert change.bse.item() == direct.bse.item()
    every = curve.contrast()
    assert np.allclose(every.params, curve.params - curve.params.mean())
    assert every.labels.to_list()[0] == "x4: mean → 0.1"
    one = curve.contrast(0.4)
    assert np.isclose(one.bse.item(), every.bse.iloc[1], rtol=1e-12)
    with pytest.raises(ValueError, match="must have values of x4"):
        curve.contrast((0.1, 0.2))


def test_two_predictors_make_a_map(res, data):
    curve = res.partial_dependence("x4", "g", points=3)
    assert curve.params.index.names == ["x4", "g"]
    x, level = curve.grid.iloc[4]
    literal = res.predict(data.assign(x4=x, g=level)).mean()
    assert np.isclose(curve.params.iloc[4], literal, rtol=1e-12)
    change = curve.contrast((x, "w"), (x, "u"))
    assert np.isclose(change.params.item(), curve.params.iloc[5] - curve.params.iloc[3])
    first, second = curve.plot()
    assert first.get_title() == "Partial dependence"
    assert second.get_title() == "Standard error"


def test_classes_have_a_curve_each():
    iris = vs.datasets.iris().iloc[::3]
    names = list(iris.columns)
    formula = f"{names[-1]} ~ Q('{names[2]}') + Q('{names[3]}')"
    res = vs.fit(formula, iris, B=60, k=25, rng=2)
    curve = res.partial_dependence(names[2], points=4)
    sums = curve.params.groupby(level=0).sum()
    assert np.allclose(sums, 1)
    x = curve.grid.iloc[0, 0]
    literal = res.predict(iris.assign(**{names[2]: x})).mean()
    assert np.allclose(curve.params.iloc[:3], literal)
    change = curve.contrast(curve.grid.iloc[-1, 0], x)
    assert np.allclose(change.params, curve.params.to_numpy()[-3:] - literal)
    assert change.labels[1].endswith("]")
    assert len(curve.plot().get_legend().get_texts()) == 3
    ale = res.accumulated_effects(names[2], points=3)
    assert len(ale.params) % 3 == 0


# Accumulated local effects


def literal_line(predict, frame, name, edges):
    """Apley and Zhu's formula, row by row."""
    x = frame[name].to_numpy()
    steps, counts = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for i in range(len(frame)):
        k = 0
        while x[i] > edges[k + 1]:
            k += 1
        row = frame.iloc[[i]]
        up = predict(row.assign(**{name: edges[k + 1]}))
        steps[k] += up - predict(row.assign(**{name: edges[k]}))
        counts[k] += 1
    line = np.concatenate([[0], np.cumsum(steps / counts)])
    mean = sum(c * (a + b) / 2 for c, a, b in zip(counts, line[1:], line, strict=False))
    return line - mean / counts.sum()


def test_accumulated_effects_row_by_row(product):
    frame, res = product
    found = res.accumulated_effects("a", points=5)
    edges = np.quantile(frame["a"], np.linspace(0, 1, 6))
    literal = literal_line(lambda d: res.predict(d).item(), frame, "a", edges)
    assert np.allclose(found.grid["a"], edges)
    assert np.allclose(found.params, literal, atol=1e-9)


def test_accumulated_effects_of_a_known_function(data):
    """Of a line the effects are the line itself, less its mean, and nothing jointly."""
    frame = data.assign(y=5 * data["x1"] - 2 * data["x4"])
    res = vs.fit("y ~ x1 + x4", frame, kernel="ols", B=20, k=30, rng=1)
    found = res.accumulated_effects("x1", points=8)
    line = 5 * found.grid["x1"].to_numpy()
    assert np.allclose(np.diff(found.params), np.diff(line), atol=1e-9)
    joint = res.accumulated_effects("x1", "x4", points=4)
    assert len(joint.params) == 25
    assert np.abs(joint.params).max() < 1e-9


def test_standard_errors_of_accumulated_effects(res, data):
    found = res.accumulated_effects("x4", points=3)
    edges = np.quantile(data["x4"], [0, 1 / 3, 2 / 3, 1])
    columns = []
    for learner in res.predictor.learners[:2]:

        def predict(row, learner=learner):
            X = res.predictor.rows(row)[0]
            return res.predictor.kernel.predict(learner, X).item()

        columns.append(literal_line(predict, data, "x4", edges))
    assert np.allclose(found.results.values[:2], columns, atol=1e-10)
    again = literal_estimates(res, found.results.values, None)
    assert np.allclose(found.bse, again.bse)


def literal_map(f, x, z, first, second):
    """What ALEPlot computes, with loops; cells without rows must not occur."""
    K, L = len(first) - 1, len(second) - 1
    D, n = np.zeros((K, L)), np.zeros((K, L))
    for a, b in zip(x, z, strict=True):
        k = next(j for j in range(K) if a <= first[j + 1])
        m = next(j for j in range(L) if b <= second[j + 1])
        up = f(first[k + 1], second[m + 1]) - f(first[k + 1], second[m])
        D[k, m] += up - (f(first[k], second[m + 1]) - f(first[k], second[m]))
        n[k, m] += 1
    D /= n
    F = np.zeros((K + 1, L + 1))
    for k in range(K):
        for m in range(L):
            F[k + 1, m + 1] = D[: k + 1, : m + 1].sum()
    one, two = np.zeros(K + 1), np.zeros(L + 1)
    for k in range(K):
        rise = F[k + 1] - F[k]
        one[k + 1] = one[k] + n[k] @ (rise[1:] + rise[:-1]) / 2 / n[k].sum()
    for m in range(L):
        rise = F[:, m + 1] - F[:, m]
        two[m + 1] = two[m] + n[:, m] @ (rise[1:] + rise[:-1]) / 2 / n[:, m].sum()
    F = F - one[:, None] - two
    mean = (F[1:, 1:] + F[1:, :-1] + F[:-1, 1:] + F[:-1, :-1]) / 4
    return F - (n * mean).sum() / n.sum()


def test_accumulated_effects_of_two_predictors(product):
    frame, res = product
    found = res.accumulated_effects("a", "b", points=3)
    edges = [np.quantile(frame[name], np.linspace(0, 1, 4)) for name in "ab"]

    def f(a, b):
        return 1 + 2 * a - b + 3 * a * b

    literal = literal_map(f, frame["a"], frame["b"], *edges)
    assert np.allclose(found.params, literal.ravel(), atol=1e-9)
    middle = [(one[1:] + one[:-1]).mean() / 2 for one in edges]
    about = 3 * np.outer(edges[0] - middle[0], edges[1] - middle[1])
    assert np.abs(literal - about).max() < 0.15  # as rows are nearly independent


@pytest.mark.filterwarnings("ignore::vstatkit.LeakageWarning")
def test_cells_without_rows_take_the_nearest(rng):
    x = np.linspace(0, 1, 40)
    frame = pd.DataFrame({"a": x, "b": x + 0.001 * rng.normal(size=40)})
    frame["y"] = frame["a"] * 2 + frame["b"] ** 2
    res = vs.fit("y ~ a * b", frame, kernel="ols", B=20, k=20, rng=1)
    found = res.accumulated_effects("a", "b", points=4)
    assert np.isfinite(found.params).all()


def test_the_nearest_cell_is_found_by_ranks():
    counts = np.array([[3, 0, 0], [0, 0, 0], [0, 0, 2]])
    full = [(0, 0), (2, 2)]
    nearest = _nearest_cells(counts)
    for k, m in itertools.product(range(3), repeat=2):
        gaps = [(k - a) ** 2 + (m - b) ** 2 for a, b in full]
        a, b = full[int(np.argmin(gaps))]
        assert nearest[3 * k + m] == 3 * a + b


def test_intervals_hold_their_upper_edges():
    cut = Intervals.of("x", np.array([0.0, 1.0, 1.0, 2.0, 3.0]), 2)
    assert cut.edges.tolist() == [0.0, 1.0, 3.0]
    assert cut.codes.tolist() == [0, 0, 0, 1, 1]
    assert cut.masses.tolist() == [3, 2]
    tied = Intervals.of("x", np.array([1.0, 1.0, 1.0, 5.0]), 3)
    assert tied.edges.tolist() == [1.0, 5.0]
    assert quantile_grid(np.array([np.nan, 0.0, 1.0]), 2).tolist() == [0.05, 0.95]


def test_many_rows_are_drawn(res, monkeypatch):
    monkeypatch.setitem(vs.results.dependence_curves.CURVE_ROWS, 1, 10)
    one, two = (res.partial_dependence("x4", points=3) for _ in range(2))
    assert "10 of 60 training rows" in str(one)
    assert np.array_equal(one.params, two.params)


@pytest.mark.parametrize("names", [["x4"], ["x1", "x4"], ("x1", "x4")])
def test_a_list_of_predictors_is_taken(res, names):
    for method in (res.partial_dependence, res.accumulated_effects):
        listed, single = method(names, points=3), method(*names, points=3)
        pd.testing.assert_frame_equal(listed.frame, single.frame)
    with pytest.raises(ValueError, match=r"two different ones; got \['x1', 'x1'\]"):
        res.partial_dependence(["x1", "x1"])


def test_bad_curves_are_refused(res, data):
    with pytest.raises(ValueError, match="one predictor, or two different ones"):
        res.partial_dependence("x1", "x4", "g")
    with pytest.raises(ValueError, match="one predictor, or two different ones"):
        res.partial_dependence("x1", "x1")
    with pytest.raises(ValueError, match="must be predictors of the model"):
        res.partial_dependence("x2")
    with pytest.raises(ValueError, match="numeric predictors"):
        res.accumulated_effects("g")
    with pytest.raises(ValueError, match="`points` must be at least 2"):
        res.partial_dependence("x1", points=1)
    with pytest.raises(ValueError, match="a dict of points by name"):
        res.partial_dependence("x1", "x4", grid=[0.1])
    with pytest.raises(ValueError, match="does not vary"):
        res.accumulated_effects("x1", data=data.assign(x1=0.5))


def test_curves_print_and_plot(res):
    curve = res.partial_dependence("x4", points=4)
    text = str(curve)
    assert "Averages over 60 training rows" in text
    assert "se='sample'" in text
    assert f"{curve.grid['x4'].iloc[0]:.4f} " in text
    assert "Curve: Partial dependence on x4, 4 points" in repr(curve)
    ax = curve.plot()
    assert len(ax.collections) == 2
    assert ax.get_xlabel() == "x4"
    drawn = res.plot(kind="partial dependence", variable="x4", points=4)
    assert np.allclose(drawn.lines[0].get_ydata(), ax.lines[0].get_ydata())
    assert "<table" in curve._repr_html_()


def test_a_predictor_may_be_called_class():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"x": rng.normal(size=80), "class": rng.choice(["a", "b"], 80)}
    )
    frame["y"] = frame["x"] + (frame["class"] == "a") + rng.normal(size=80)
    res = vs.fit("y ~ .", frame, B=40, rng=1)
    curve = res.partial_dependence("x", "class", grid={"x": [0.0]})
    assert curve.texts(named=True) == ["x = 0, class = a", "x = 0, class = b"]
    assert "0, b  " in str(curve.summary())
