"""Results in marginaleffects: its estimands with our standard errors."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.interop.marginaleffects import EnsembleModel, ErrorRule, learner_estimates

pytestmark = [
    pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.global_generator,  # its import draws from it
]


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(80, rng=3)[["x1", "x4", "y"]]
    frame["y"] += 1000.0
    frame["g"] = np.array(["u", "w", "v"])[np.arange(80) % 3]
    frame["year"] = pd.Categorical(2000 + np.arange(80) % 2)
    return frame


@pytest.fixture(scope="module")
def res(data):
    return vs.fit("y ~ x1 + x4 + g + year", data, B=120, k=40, rng=1, n_jobs=1)


@pytest.fixture(scope="module")
def package():
    return pytest.importorskip("marginaleffects")


def same(table, ours):
    """Compare estimates and standard errors, row by row."""
    frame = ours if isinstance(ours, pd.DataFrame) else ours.frame
    assert_allclose(table["estimate"], frame["estimate"], rtol=1e-9)
    assert_allclose(table["std_error"], frame["std_error"], rtol=1e-6)


def test_averages_are_ours(package, res):
    model = res.to_marginaleffects()
    same(package.avg_predictions(model), res.avg_predictions())
    same(package.avg_predictions(model, by="g"), res.avg_predictions(by="g"))
    half = res.recipe.data.iloc[::2]
    table = package.avg_predictions(model, newdata=half, by="year")
    same(table, res.avg_predictions(half, by="year"))


def test_effects_are_ours(package, res):
    model = res.to_marginaleffects()
    asked = {"x4": (0.2, 0.8), "x1": (0.1, 0.5)}
    table = package.avg_comparisons(model, {name: [*asked[name]] for name in asked})
    same(table, res.avg_effects(asked))
    table = package.avg_comparisons(model, {"g": "reference"})
    ours = pd.concat([res.avg_effects({"g": ("u", to)}).frame for to in "vw"])
    same(table, ours)
    table = package.avg_comparisons(model, {"x4": [0.2, 0.8]}, by="year")
    same(table, res.avg_effects({"x4": (0.2, 0.8)}, by="year"))


def test_slopes_are_differences_over_eps(package, res, data):
    inner = data[(data["x4"] > 0.2) & (data["x4"] < 0.8)]
    table = package.avg_slopes(
        res.to_marginaleffects(), variables="x4", newdata=inner, eps=0.3
    )
    x = inner["x4"]
    up, down = (res.predict(inner.assign(x4=x + side)) for side in (0.15, -0.15))
    assert_allclose(table["estimate"], ((up - down) / 0.3).mean(), rtol=1e-6)
    assert (table["std_error"] > 0).all()


def test_slopes_of_trees_need_a_step(package, res, data):
    model = res.to_marginaleffects()
    for variables in ("x4", ["x1", "x4"]):
        with pytest.raises(ValueError, match="too short for a slope of trees"):
            package.avg_slopes(model, variables=variables)
    near = data.head(3).assign(x4=data["x4"] + 1e-6)
    package.predictions(model, newdata=data.head(3))
    package.predictions(model, newdata=near)
    line = vs.fit("y ~ x1 + x4", data, kernel="ols", B=60, k=40, rng=1)
    slope = package.avg_slopes(line.to_marginaleffects(), variables="x4")
    assert_allclose(slope["estimate"], line.params["x4"], rtol=1e-6)


def test_levels_that_are_no_text(package, data):
    banded = data.assign(band=pd.cut(data["x4"], [0, 0.3, 0.6, 1]))
    res = vs.fit("y ~ x1 + band", banded, B=60, k=40, rng=1)
    table = package.avg_predictions(res.to_marginaleffects(), by="band")
    same(table, res.avg_predictions(by="band"))


def test_rows_have_the_errors_of_predictions(package, res, data):
    model = res.to_marginaleffects()
    table = package.predictions(model, newdata=data.head(7))
    wanted = res.get_prediction(data.head(7)).summary_frame()
    assert_allclose(table["estimate"], wanted["mean"], rtol=1e-12)
    assert_allclose(table["std_error"], wanted["mean_se"], rtol=1e-6)
    none = package.predictions(model, newdata=data.head(7), vcov=False)
    assert "std_error" not in none.columns


def test_intervals_take_the_smallest_degrees_of_freedom(package, res):
    model = res.to_marginaleffects()
    table = package.avg_predictions(model, by="g", conf_level=0.9)
    ours = res.avg_predictions(by="g")
    least = ours.frame["df"].idxmin()
    place = ours.frame.index.get_loc(least)
    wanted = ours.conf_int(0.1).loc[least]
    assert_allclose(table["conf_low"][place], wanted["lower"], rtol=1e-9)
    assert_allclose(table["conf_high"][place], wanted["upper"], rtol=1e-9)
    assert model.df_resid == pytest.approx(ours.frame["df"].min(), rel=1e-6)


def test_contrasts_and_ratios(package, res):
    model = res.to_marginaleffects()
    table = package.avg_predictions(model, by="g", hypothesis="b1 - b0 = 0")
    ours = res.avg_predictions(by="g").t_test([[-1.0, 1.0, 0.0]])
    assert_allclose(table["std_error"], ours.bse, rtol=1e-6)
    ratio = package.avg_comparisons(model, {"x4": [0.2, 0.8]}, comparison="ratio")
    curve = res.partial_dependence("x4", grid=[0.2, 0.8])
    by_delta = curve.transform(lambda p: p[1] / p[0])
    assert_allclose(ratio["estimate"], by_delta.params, rtol=1e-9)
    assert_allclose(ratio["std_error"], by_delta.bse, rtol=0.1)


def test_classes_are_groups(package):
    data = vs.datasets.mars(90, rng=1)[["x1", "x4", "y"]]
    data["level"] = pd.cut(data["y"], 3, labels=["low", "mid", "high"])
    res = vs.fit("level ~ x1 + x4", data, B=80, k=40, rng=1, n_jobs=1)
    table = package.avg_predictions(res.to_marginaleffects(), by="group")
    ours = res.avg_predictions().frame.droplevel(0)
    order = [str(one) for one in table["group"]]
    same(table, ours.loc[order])
    rows = package.predictions(res.to_marginaleffects(), newdata=data.head(4))
    wanted = res.get_prediction(data.head(4)).summary_frame()
    keys = list(zip(rows["rowid"], rows["group"].cast(str), strict=True))
    assert_allclose(rows["std_error"], wanted.loc[keys, "mean_se"], rtol=1e-6)


def test_there_are_no_coefficients(package, res):
    model = res.to_marginaleffects()
    with pytest.raises(ValueError, match="no coefficients to test"):
        package.hypotheses(model)
    with pytest.raises(ValueError, match="`vcov` must be True or False"):
        package.avg_predictions(model, vcov="HC3")


def test_who_takes_the_rule_for_a_matrix_gets_no_numbers(res):
    model = EnsembleModel()
    model.ensemble = res
    rule = ErrorRule.of(model)
    assert rule.shape == (120, 120)
    assert np.isnan(np.asarray(rule)).all()
    jacobian = np.random.default_rng(0).normal(size=(3, 120))
    found = learner_estimates(res, jacobian.T / 1024, of_points=False)
    assert_allclose(((jacobian @ rule) * jacobian).sum(axis=1), found.bse**2)
    zero = np.zeros((1, 120))
    assert_allclose(zero @ rule, 0)


def test_the_package_is_asked_for(res, monkeypatch):
    monkeypatch.setitem(sys.modules, "marginaleffects", None)
    monkeypatch.setitem(sys.modules, "marginaleffects.classes", None)
    with pytest.raises(ImportError, match=r"vstatkit\[marginaleffects\]"):
        res.to_marginaleffects()


def test_newer_polars_is_reported(package, res, monkeypatch):
    polars = pytest.importorskip("polars")

    def fail(*args, **options):
        raise polars.exceptions.PolarsError("as polars 2 does")

    monkeypatch.setattr("marginaleffects.classes.ModelVault", fail)
    with pytest.raises(ImportError, match="polars<2"):
        res.to_marginaleffects()
