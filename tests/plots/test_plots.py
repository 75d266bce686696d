import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit import plots
from vstatkit.plots.registry import PLOTS


@pytest.fixture(scope="module")
def res():
    data = vs.datasets.mars(80, rng=4).assign(g=np.tile(list("ab"), 40))
    return vs.fit("y ~ x1 + x2 + g", data, B=200, rng=1, at=data.head(3))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_estimates_show_every_interval(res):
    ax = plots.plot_estimates(res)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]
    (lines,) = ax.collections
    spans = np.array([segment[:, 0] for segment in lines.get_segments()])
    np.testing.assert_allclose(spans, res.conf_int())


@pytest.fixture(scope="module")
def priced():
    """Names that matplotlib cannot read as mathematics."""
    data = vs.datasets.mars(60, rng=4).rename(columns={"x1": "$a_{$"})
    data["g"] = np.tile(["$", "$\\frac$", "c$"], 20)
    return data[["$a_{$", "x4", "g"]].assign(**{"$y_{$": data["y"]})


@pytest.fixture(scope="module")
def dollars(priced):
    return vs.fit("Q('$y_{$') ~ .", priced, B=60, rng=1, at=priced.head(2))


NAMED = {
    "effects": lambda res, _: res.plot(),
    "estimates": lambda res, at: res.get_prediction(at).results.plot(kind="estimates"),
    "averages": lambda res, _: res.avg_effects().plot(),
    "profile": lambda res, _: res.plot(kind="profile")[0],
    "one profile": lambda res, _: res.plot(kind="profile", variable="g"),
    "curve": lambda res, _: res.partial_dependence("$a_{$").plot(),
    "map": lambda res, _: res.partial_dependence("$a_{$", "g").plot()[0],
    "importance": lambda res, _: res.plot(kind="importance"),
    "predictions": lambda res, at: res.get_prediction(at).plot(),
    "interaction": lambda res, _: res.interaction_test("$a_{$", "g").plot(),
    "function": lambda res, _: res.transform(lambda p: {"$b_{$": p[0]}).plot(),
    "misses": lambda res, _: res.normality_check().plot(),
    "bootstrap": lambda res, _: res.bootstrap(10).plot(),
}


@pytest.mark.parametrize("picture", NAMED)
def test_dollars_in_names_are_no_mathematics(dollars, priced, picture):
    at = priced.head(2).set_axis(["$c_{$", "d"])
    NAMED[picture](dollars, at).figure.canvas.draw()


def test_dollars_in_names_of_classes_are_no_mathematics(priced):
    at = priced.head(2).set_axis(["$c_{$", "d"])
    res = vs.fit("g ~ x4 + Q('$a_{$')", priced, B=60, rng=1, at=at)
    for ax in (
        res.plot(),
        res.plot(kind="estimates"),
        res.plot(kind="profile")[0],
        res.plot(kind="profile", variable="x4"),
        res.compare_variance().plot(),
        res.get_prediction(at).plot(),
        res.bootstrap(10).plot(),
    ):
        ax.figure.canvas.draw()


def test_numbers_on_an_axis_may_be_mathematics_later(res):
    ax = vs.plots.plot_profile(res, "x1")
    ax.set_yscale("log")
    ax.figure.canvas.draw()
    assert any(label.get_parse_math() for label in ax.get_yticklabels())


def test_intervals_of_classes_stand_beside_each_other():
    iris = vs.datasets.iris()
    res = vs.fit("species ~ petal_width", iris, B=100, rng=1)
    grid = np.linspace(0.1, 2.5, 7)
    curve = res.partial_dependence("petal_width", grid=grid)
    found = [np.array(one.get_segments()) for one in curve.plot().collections]
    places = np.concatenate([one[:, 0, 0] for one in found])
    assert [len(one) for one in found] == [8, 8, 8]
    assert np.allclose(np.diff(np.sort(places)), 2.4 / 24)
    bounds = curve.conf_int().to_numpy().reshape(7, 3, 2)
    for j, one in enumerate(found):
        for end in (0, 1):
            wanted = np.interp(one[:, end, 0], grid, bounds[:, j, end])
            np.testing.assert_allclose(one[:, end, 1], wanted)


def test_effects_name_their_moves(res):
    ax = res.plot()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[-1] == "g: a → b"
    assert "Change in y" in ax.get_xlabel()


def test_profile_bands_enclose_the_curve(res):
    ax = plots.plot_profile(res, "x1", n_points=12)
    curve, _ = ax.lines
    wide, narrow = (band.get_paths()[0].vertices[:, 1] for band in ax.collections)
    assert wide.min() < narrow.min() < curve.get_ydata().min()
    assert ax.get_xlabel() == "x1, others at typical values"


def test_profiles_are_predictions_within_the_observed_range(res):
    ax = plots.plot_profile(res, "x1", n_points=7)
    curve, rug = ax.lines
    observed = res.recipe.data["x1"]
    grid = np.linspace(observed.min(), observed.max(), 7)
    np.testing.assert_allclose(curve.get_xdata(), grid)
    rows = pd.concat([res.typical] * 7).assign(x1=grid)
    np.testing.assert_allclose(curve.get_ydata(), res.predict(rows))
    np.testing.assert_allclose(rug.get_xdata(), observed)


def test_profiles_of_few_values_are_drawn_at_these(res):
    data = vs.datasets.mars(80, rng=4).assign(kids=np.arange(80) % 4)
    fitted = vs.fit("y ~ x1 + kids", data, B=100, rng=1)
    curve = plots.plot_profile(fitted, "kids").lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), [0, 1, 2, 3])


def test_profiles_of_factors_have_a_point_for_each_level(res):
    ax = plots.plot_profile(res, "g")
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert texts == ["a\nn = 40", "b\nn = 40"]
    (points,) = ax.lines
    rows = pd.concat([res.typical] * 2).assign(g=["a", "b"])
    np.testing.assert_allclose(points.get_ydata(), res.predict(rows))
    band, each = (np.array([s[:, 1] for s in c.get_segments()]) for c in ax.collections)
    np.testing.assert_allclose(each, res.get_prediction(rows).conf_int())
    assert (band[:, 0] < each[:, 0]).all()


def test_profiles_of_classes_have_a_curve_each():
    data = vs.datasets.iris()
    res = vs.fit("species ~ petal_length + petal_width", data, B=100, rng=1)
    ax = plots.plot_profile(res, "petal_length", n_points=5)
    lines = ax.lines[:3]
    assert [line.get_label() for line in lines] == ["setosa", "versicolor", "virginica"]
    total = sum(line.get_ydata() for line in lines)
    np.testing.assert_allclose(total, 1)
    assert ax.get_ylabel() == "P(species)"
    two = data.assign(v=data["species"] == "virginica")
    binary = vs.fit("v ~ petal_length", two, B=100, rng=1)
    assert plots.plot_profile(binary, "petal_length").get_ylabel() == "P(v = True)"


def test_profiles_of_several_predictors_have_a_panel_each(res):
    axes = plots.plot_profile(res)
    assert [ax.get_xlabel() for ax in axes] == ["x1", "x2", "g"]
    assert [ax.get_ylabel() for ax in axes] == ["y", "", ""]
    (legend,) = axes[0].figure.legends
    assert len(legend.get_texts()) == 3
    _, two = plt.subplots(1, 2)
    drawn = res.plot(two, kind="profile", variable=["g", "x2"])
    assert list(drawn) == list(two)
    with pytest.raises(ValueError, match="axes for 3 panels; got 2"):
        plots.plot_profile(res, ax=two)


def test_profiles_of_too_many_predictors_ask_for_names(rng):
    X = rng.normal(size=(40, 13))
    forest = vs.ForestRegressor(20, max_samples=20, random_state=1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="at most 12 panels; there are 13 predictors"):
        plots.plot_profile(forest.results_)
    assert len(plots.plot_profile(forest.results_, ["x0", "x12"])) == 2


def test_loaded_results_have_profiles_without_a_rug(res, tmp_path):
    res.save(tmp_path / "fit.vsk")
    loaded = vs.load(tmp_path / "fit.vsk")
    assert len(plots.plot_profile(loaded, "x1").lines) == 1
    texts = [
        one.get_text() for one in plots.plot_profile(loaded, "g").get_xticklabels()
    ]
    assert texts == ["a", "b"]


def test_profiles_name_the_predictors(res):
    with pytest.raises(
        ValueError, match=r"got 'x11'; did you mean 'x1'. The predictors are"
    ):
        plots.plot_profile(res, "x11")
    with pytest.raises(ValueError, match="`n_points` must be at least 2"):
        plots.plot_profile(res, "x1", n_points=1)


def test_predictions_draw_their_intervals(res):
    data = res.recipe.data
    found = res.get_prediction(data.head(5))
    ax = found.plot(alpha=0.2)
    frame = found.summary_frame(0.2)
    obs, mean = (np.array([s[:, 0] for s in c.get_segments()]) for c in ax.collections)
    np.testing.assert_allclose(obs, frame[["obs_ci_lower", "obs_ci_upper"]])
    np.testing.assert_allclose(mean, frame[["mean_ci_lower", "mean_ci_upper"]])
    np.testing.assert_allclose(ax.lines[0].get_xdata(), frame["mean"])
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["0", "1", "2", "3", "4"]
    many = res.get_prediction(data).plot()
    assert (np.diff(many.lines[0].get_xdata()) >= 0).all()
    assert many.get_ylabel() == "rows, from low to high"


def test_predictions_of_classes_have_a_colour_each():
    data = vs.datasets.iris()
    res = vs.fit("species ~ petal_length", data, B=100, rng=1)
    found = res.get_prediction(data.iloc[::30])
    ax = found.plot()
    labels = ["setosa", "versicolor", "virginica"]
    assert [line.get_label() for line in ax.lines] == labels
    shares = np.stack([line.get_xdata() for line in ax.lines], axis=1)
    np.testing.assert_allclose(shares.ravel(), found.predicted_mean)
    assert len({line.get_color() for line in ax.lines}) == 3
    assert len(res.get_prediction(data).plot().lines) == 3


def test_bands_of_convergence_are_never_below_zero(res, monkeypatch):
    look = SimpleNamespace(bse=np.array([2.0]), relative_mc_error=np.array([1.5]))
    monkeypatch.setattr("vstatkit.plots.estimates.estimate", lambda *_, **options: look)
    ax = plots.plot_convergence(res)
    assert ax.get_ylim()[0] == 0
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 5)
    assert "200" in [text.get_text() for text in ax.get_xticklabels()]


PLOTS_ON_DEMAND = """
import sys
import vstatkit as vs
assert "matplotlib" not in sys.modules
assert "plots" in dir(vs)
assert callable(vs.plots.plot_profile)
assert "matplotlib" in sys.modules
try:
    vs.plotz
except AttributeError as error:
    assert "no attribute 'plotz'" in str(error)
else:
    raise AssertionError
"""


def test_plots_are_there_without_importing_them():
    subprocess.run([sys.executable, "-c", PLOTS_ON_DEMAND], check=True)


def test_influence_and_convergence_draw_on_given_axes(res):
    _, (left, right) = plt.subplots(1, 2)
    assert plots.plot_influence(res, ax=left) is left
    assert plots.plot_convergence(res, ax=right) is right
    np.testing.assert_allclose(right.lines[0].get_ydata()[-1], res.bse.iloc[0])


def test_pictures_that_make_no_sense_are_refused():
    res = vs.statistic("mean", np.arange(9.0), k=2, B="complete")
    with pytest.raises(ValueError, match="no effects"):
        plots.plot_effects(res)
    with pytest.raises(ValueError, match="no Monte Carlo error"):
        plots.plot_convergence(res)
    with pytest.raises(ValueError, match="requires results of `fit`"):
        plots.plot_profile(res, "x1")
    assert res.plot().get_xlabel().startswith("mean")


def test_a_partial_dependence_says_what_it_needs(res):
    with pytest.raises(ValueError, match=r"`variable`.* variable='x1'; .* x1, x2, g\."):
        res.plot(kind="partial dependence")
    with pytest.raises(
        ValueError, match=r"got \[\], and the predictors are x1, x2, g\."
    ):
        res.partial_dependence()
    two = res.plot(kind="partial dependence", variable=["x1", "g"])
    assert [ax.get_ylabel() for ax in two] == ["g", "g"]


def test_pictures_of_a_statistic_say_that_it_does_not_predict():
    mean = vs.statistic("mean", np.arange(20.0), k=5, B=20, rng=1)
    with pytest.raises(ValueError, match="'mean' is a statistic"):
        mean.plot(kind="partial dependence")


@pytest.mark.parametrize("kind", ["profile", "average effects", "partial dependence"])
def test_pictures_need_predictors(kind):
    data = vs.datasets.mars(30, rng=4)
    res = vs.fit("y ~ 1", data, kernel="ols", B=20, rng=1)
    with pytest.raises(ValueError, match="the model has no predictors"):
        res.plot(kind=kind)


def test_options_that_a_picture_lacks_are_named(res):
    with pytest.raises(TypeError) as caught:
        res.plot(variable="x1")
    assert str(caught.value) == (
        "the plot 'effects' has no option 'variable'. Its options are: alpha. "
        "kind='profile' and kind='partial dependence' has 'variable'."
    )
    with pytest.raises(
        TypeError, match=r"are: variable, alpha, data, points, grid, se"
    ):
        res.plot(kind="partial dependence", variable="x1", about=1)
    with pytest.raises(TypeError, match="'variable'; did you mean 'variables'"):
        res.plot(kind="average effects", variable="x1")
    with pytest.raises(TypeError, match=r"Its options are: none\.$"):
        res.plot(kind="convergence", color="red")


def test_importance_is_drawn_at_any_level(res):
    wide, narrow = (
        res.plot(kind="importance", variables=["x1", "x2"], alpha=alpha)
        for alpha in (0.01, 0.5)
    )
    spans = [
        np.ptp([part[:, 0] for part in ax.collections[0].get_segments()], axis=1)
        for ax in (wide, narrow)
    ]
    assert (spans[0] > spans[1]).all()


def test_pictures_of_ones_own_may_take_anything(res, monkeypatch):
    monkeypatch.setitem(PLOTS, "own", lambda results, *, ax=None, **options: options)
    assert res.plot(kind="own", anything=1) == {"anything": 1}
