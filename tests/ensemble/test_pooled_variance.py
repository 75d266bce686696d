"""Pooled variances of forests, measured on blocks of the data."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.ensemble.pooled_variance import (
    ForestData,
    can_pool,
    measure_pooled_variance,
    new_points,
    typical_pooled_share,
)
from vstatkit.sampling.design import IidDesign

# Points in five dimensions, of which the last two do nothing.
POINTS = np.random.default_rng(99).uniform(size=(12, 5))
MANY_POINTS = np.random.default_rng(99).uniform(size=(150, 5))


def draw(seed, n=200):
    rng = np.random.default_rng([seed, n])
    X = rng.uniform(size=(n, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2] + rng.normal(size=n)
    return X, y


def frame(seed=1, n=200):
    X, y = draw(seed, n)
    return pd.DataFrame(X, columns=list("abcde")).assign(y=y)


def pointwise(forest, X):
    how = dataclasses.replace(
        forest._estimation(), pooled=None, residuals=None, pairs=None
    )
    return forest._predictor.estimates(X, how)


def test_estimated_and_true_variance_agree_with_few_trees():
    """Over 60 data sets, B = 50 and k = n = 200; the jackknife is 8 times too large.

    The variance over data sets has a relative standard error of 18 % at one point, and
    the mean over 150 points one of about 5 %.
    """
    means, variances, alone = [], [], []
    for seed in range(60):
        forest = vs.ForestRegressor(50, random_state=seed).fit(*draw(seed))
        estimates = forest._estimate(MANY_POINTS)
        means.append(estimates.estimate)
        variances.append(estimates.variance)
        alone.append(pointwise(forest, MANY_POINTS).variance)
    true = np.var(means, axis=0, ddof=1).mean()
    assert 0.84 < np.mean(variances) / true < 1.3
    assert np.mean(alone) / true > 4
    covered = np.abs(means - np.mean(means, axis=0)) < 1.96 * np.sqrt(variances)
    assert 0.9 < covered.mean() < 0.99


def test_trees_of_one_leaf_have_the_standard_error_of_the_mean():
    """Exact case: the prediction is a mean, its variance s**2 / n, and c is one."""
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(400, 3)), rng.normal(size=400)
    forest = vs.ForestRegressor(40, min_samples_leaf=400, random_state=1).fit(X, y)
    estimates = forest._estimate(X[:1])
    assert (estimates.pooled_share > 0.5).all()
    assert np.sqrt(estimates.sampling) == pytest.approx(y.std() / 20, rel=0.15)
    assert forest._pooled[0].ratio == pytest.approx(1, abs=0.4)


def test_another_seed_hardly_changes_the_standard_errors():
    X, y = draw(1, 400)
    errors = [
        vs.ForestRegressor(B, random_state=seed)
        .fit(X, y)
        .predict(POINTS, return_std=True)[1]
        for B in (100, 400)
        for seed in range(4)
    ]
    typical = np.mean(errors, axis=0)
    assert np.abs(np.log(errors / typical)).mean() < 0.12
    few, many = np.split(np.array(errors), 2)
    # With more trees only their own Monte Carlo variance is smaller.
    assert 0.85 < many.mean() / few.mean() < 1.02


def test_many_trees_lead_to_the_jackknife():
    X, y = draw(2)
    forest = vs.ForestRegressor(6000, max_samples=0.3, random_state=1).fit(X, y)
    found, alone = forest._estimate(POINTS), pointwise(forest, POINTS)
    assert forest._pooled is None
    assert_array_equal(found.bse, alone.bse)
    orders = forest._orders
    assert typical_pooled_share(forest.design_, 200, orders) > 0.5
    assert typical_pooled_share(forest.design_, 10**6, orders) < 0.01


@pytest.mark.parametrize("unit", [1e-200, 2.0**70, 1e200])
def test_standard_errors_follow_the_unit(unit):
    X, y = draw(3)
    plain = vs.ForestRegressor(60, random_state=1).fit(X, y)
    scaled = vs.ForestRegressor(60, random_state=1).fit(X, unit * y)
    for one, other in zip(
        plain.predict(POINTS, return_std=True),
        scaled.predict(POINTS, return_std=True),
        strict=True,
    ):
        assert_allclose(other / unit, one, rtol=1e-9)


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("y ~ .", {}),
        ("y ~ .", {"replace": False, "k": 100}),
        ("y ~ .", {"design": "balanced"}),
        ("y ~ . - w", {"weights": "w"}),
        ("y ~ . - g", {"groups": "g"}),
        ("kind ~ . - y", {}),
        ("half ~ . - y - kind", {}),
        ("y ~ .", {"kernel": "tree", "min_samples_leaf": 5}),
    ],
)
def test_everything_follows(formula, options, tmp_path):
    """Tables, tests, covariances and files use the same pooled variances."""
    data = frame(4, 240)
    rng = np.random.default_rng(1)
    if "w" in options.get("weights", ""):
        data["w"] = rng.exponential(size=240)
    if "groups" in options:
        data["g"] = np.arange(240) // 2
    data["kind"] = np.where(data["y"] > 6, "hi", np.where(data["y"] > 3, "mid", "lo"))
    data["half"] = (data["y"] > 5).astype(float)
    if not formula.startswith(("kind", "half")):
        data = data.drop(columns=["kind", "half"])
    elif formula.startswith("kind"):
        data = data.drop(columns="half")
    at = data.head(3)
    options = {"k": 120 if "groups" in options else 240, **options}
    res = vs.fit(formula, data, B=80, rng=1, at=at, **options)
    assert res.pooled is not None
    assert res.diagnostics["pooled_share"].median() > 0.4
    again = res.get_prediction(at)
    assert_allclose(again.se_mean, res.bse, rtol=1e-6)
    covariance = res.cov_params().to_numpy()
    assert_allclose(np.diag(covariance), res.bse**2, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * covariance.max()
    assert_allclose(again.cov_params(), covariance, rtol=1e-6, atol=1e-12)
    m = len(res.labels)
    assert_allclose(res.t_test(np.eye(m)).sd.ravel(), res.bse, rtol=1e-6)
    difference = np.eye(m)[:1] - np.eye(m)[1:2]
    contrast = res.t_test(difference)
    assert contrast.diagnostics["pooled_share"].item() > 0.3
    # Contrasts are not far from what the covariance says.
    implied = np.sqrt(difference @ covariance @ difference.T).item()
    assert 0.5 < contrast.sd.item() / max(implied, 1e-12) < 2
    res.save(tmp_path / "fit.vs")
    for other in (vs.load(tmp_path / "fit.vs"), pickle.loads(pickle.dumps(res))):
        assert_array_equal(other.bse, res.bse)
        assert_array_equal(other.effects["std_error"], res.effects["std_error"])
        assert_allclose(other.get_prediction(at).se_mean, again.se_mean, rtol=1e-12)
        assert_allclose(other.t_test(difference).sd, contrast.sd, rtol=1e-12)
    plain = res.with_variance("jackknife")
    assert (plain.diagnostics["pooled_share"] == 0).all()
    assert_allclose(plain.with_variance("auto").bse, res.bse, rtol=1e-12)
    assert "pooled" in " ".join(str(res.summary()).split())


def test_more_learners_are_pooled_anew():
    data = frame(5)
    few = vs.fit("y ~ .", data, B=100, k=200, rng=1)
    more, whole = few.more(160), vs.fit("y ~ .", data, B=160, k=200, rng=1)
    assert more.pooled == whole.pooled
    assert_allclose(more.bse, whole.bse, rtol=1e-9)


def test_pickled_forests_have_the_same_errors():
    X, y = draw(6)
    forest = vs.ForestRegressor(60, random_state=1).fit(X, y)
    pickled = pickle.dumps(forest)  # before standard errors were asked for
    expected = forest.predict(POINTS, return_std=True)[1]
    loaded = pickle.loads(pickled)
    assert_allclose(loaded.predict(POINTS, return_std=True)[1], expected, rtol=1e-12)


def test_fits_with_enough_learners_are_as_before():
    data = frame(7)
    res = vs.fit("y ~ .", data, B=3000, rng=1)
    assert res.pooled is None
    assert (res.diagnostics["pooled_share"] == 0).all()
    assert all(tree.leaf_rows is None for tree in res.predictor.learners)


def test_what_cannot_be_pooled():
    X, y = draw(8)
    forest = vs.ForestRegressor(60, random_state=1).fit(X, y)
    kernel, design = forest._trained.kernel, forest.design_
    assert can_pool(kernel, design)
    assert not can_pool(kernel, IidDesign(99, 99, True, 1))  # too few units
    assert not can_pool(kernel, IidDesign(200, 195, False, 1))  # hardly any is absent
    assert not can_pool(forest._kernel, design)  # no training data
    few = ForestData(kernel, design, None, forest.estimators_[:7])
    assert measure_pooled_variance(few, forest._orders) is None
    boosted = vs.ForestRegressor(60, boost=1, random_state=1).fit(X, y)
    with pytest.warns(vs.MonteCarloWarning):
        boosted.predict(POINTS, return_std=True)
    assert boosted._pooled is None


def test_new_points_take_their_features_from_several_rows():
    rng = np.random.default_rng(1)
    X = np.arange(300.0).reshape(100, 3)
    points = new_points(X, None, rng)
    assert points.shape == (100, 3)
    assert np.isin(points, X).all()
    rows = points // 3
    assert (rows.max(axis=1) > rows.min(axis=1)).all()
    single = new_points(X[:, :1], None, rng)
    assert not np.isin(single, X).any()
    assert (single > X.min()).all()
    levels = np.array([[0.0], [1.0], [2.0]])
    assert np.isin(new_points(levels, (3,), rng), levels).all()


def test_the_picture_of_convergence_ends_at_the_standard_error():
    res = vs.fit("y ~ .", frame(9), B=120, k=200, rng=1)
    assert res.pooled is not None
    line = res.plot(kind="convergence").lines[0]
    assert line.get_ydata()[-1] == pytest.approx(res.bse.item())


def test_adopted_forests_of_ours_are_pooled_at_other_points():
    data = frame(10)
    X, y = data.drop(columns="y"), data["y"]
    forest = vs.ForestRegressor(80, random_state=1).fit(X, y)
    adopted = vs.from_sklearn(forest, X, y, at=X.head(4))
    errors = forest.predict(X.head(4), return_std=True)[1]
    assert_allclose(adopted.bse, errors, rtol=1e-6)
