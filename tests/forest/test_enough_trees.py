"""Forests that grow as many trees as their standard errors need, or say so."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

import vstatkit as vs
from tests.forest.test_estimators import SUBSAMPLING
from vstatkit.forest import number_of_trees
from vstatkit.forest.number_of_trees import watched_rows
from vstatkit.inference.stopping import ErrorCurve, Tolerance
from vstatkit.variance.formulas import positive_mean


@pytest.fixture(scope="module")
def sample():
    frame = vs.datasets.mars(150, rng=3)
    return frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()


@pytest.fixture(scope="module")
def auto(sample):
    return vs.ForestRegressor(random_state=1).fit(*sample)


def typical_error(forest, X):
    return ErrorCurve.of_mean(forest._estimate(X)).relative_error(forest.n_estimators_)


def pointwise(forest, X):
    """Estimate the errors of each point alone, as with variance='jackknife'."""
    how = replace(forest._estimation(), pooled=None, residuals=None, pairs=None)
    return forest._predictor.estimates(X, how)


def test_auto_is_the_default_and_reaches_its_tolerance(sample, auto):
    assert auto.get_params()["n_estimators"] == "auto"
    assert auto.n_estimators_ == len(auto.estimators_) == 500
    assert typical_error(auto, auto._reference) <= 0.12
    estimates = pointwise(auto, auto._reference)
    assert ErrorCurve.of_mean(estimates).relative_error(500) > 0.1


def test_estimators_that_are_not_pooled_need_more_trees(sample):
    X, y = sample
    auto = vs.ForestRegressor(variance="jackknife", random_state=1).fit(X, y)
    assert 500 < auto.n_estimators_ == len(auto.estimators_) < 5000
    rows = watched_rows(auto._reference, 1)
    assert typical_error(auto, rows) <= 0.1
    few = vs.ForestRegressor(500, variance="jackknife", random_state=1).fit(X, y)
    with pytest.warns(vs.MonteCarloWarning):
        assert typical_error(few, rows) > 0.1


def test_auto_grows_the_trees_of_a_number(sample, auto):
    fixed = vs.ForestRegressor(auto.n_estimators_, random_state=1).fit(*sample)
    for a, b in zip(auto.estimators_, fixed.estimators_, strict=True):
        assert_array_equal(a.nodes, b.nodes)
    assert_array_equal(auto.predict(sample[0]), fixed.predict(sample[0]))


def test_workers_and_units_change_nothing(sample, auto):
    X, y = sample
    two = vs.ForestRegressor(random_state=1, n_jobs=2).fit(X, y)
    assert two.n_estimators_ == auto.n_estimators_
    assert_array_equal(two.predict(X), auto.predict(X))
    for unit in (2.0**-900, 2.0**900):
        scaled = vs.ForestRegressor(random_state=1).fit(X, unit * y)
        assert scaled.n_estimators_ == auto.n_estimators_


def test_some_reference_rows_are_watched(auto):
    rows = auto._reference
    assert_array_equal(watched_rows(rows, 1), rows[:50])
    assert_array_equal(watched_rows(rows, 10), rows[:20])
    assert_array_equal(watched_rows(rows, 1000), rows[:10])


def test_out_of_bag_scores_use_all_trees(sample):
    X, y = sample
    options = {"oob_score": True, "random_state": 1, "variance": "jackknife"}
    auto, fixed = (
        vs.ForestRegressor(number, **options).fit(X, y) for number in ("auto", 500)
    )
    assert auto.oob_score_ != fixed.oob_score_
    again = vs.ForestRegressor(auto.n_estimators_, **options)
    assert auto.oob_score_ == pytest.approx(again.fit(X, y).oob_score_, rel=1e-11)


def test_large_trees_bound_their_number(sample, monkeypatch, auto):
    nodes = np.mean([tree.nodes.size for tree in auto.estimators_[:500]])
    monkeypatch.setattr(number_of_trees, "AUTO_NODES", int(600.5 * nodes))
    forest = vs.ForestRegressor(variance="jackknife", random_state=1)
    assert forest.fit(*sample).n_estimators_ == 600
    monkeypatch.setattr(number_of_trees, "AUTO_NODES", 1)
    assert forest.fit(*sample).n_estimators_ == 500


@pytest.mark.parametrize(
    "options", [{"bootstrap": False}, {"max_depth": 1, "min_samples_leaf": 100}]
)
def test_forests_without_errors_stop_early(sample, options):
    assert (
        vs.ForestRegressor(**options, random_state=1).fit(*sample).n_estimators_ == 500
    )


def test_one_row_and_one_class_can_be_fitted(sample):
    X, y = sample
    assert vs.ForestRegressor(random_state=1).fit(X[:1], y[:1]).n_estimators_ == 500
    constant = vs.ForestClassifier(random_state=1).fit(X, np.ones(len(y)))
    assert constant.n_estimators_ == 500


def test_classes_have_enough_trees(sample):
    X, y = sample
    forest = vs.ForestClassifier(random_state=1).fit(X, np.digitize(y, [12, 16]))
    assert forest.n_estimators_ == 500
    assert typical_error(forest, forest._reference) <= 0.15
    forest = vs.ForestClassifier(random_state=1, variance="jackknife")
    forest.fit(X, np.digitize(y, [12, 16]))
    rows = watched_rows(forest._reference, 3)
    assert 500 < forest.n_estimators_ < 5000
    assert typical_error(forest, rows) <= 0.1


def test_standard_errors_that_are_hardly_known_come_with_advice(sample):
    X, y = sample
    options = {"variance": "jackknife", "random_state": 1}
    forest = vs.ForestRegressor(100, **options).fit(X, y)
    with pytest.warns(vs.MonteCarloWarning) as seen:
        forest.predict(X, return_std=True)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    found = re.search(
        r"error of about (\d+)%. About ([\d,]+) trees", str(seen[0].message)
    )
    error, needed = (int(text.replace(",", "")) for text in found.groups())
    assert error > 25
    assert error == pytest.approx(100 * typical_error(forest, X).item(), abs=0.5)
    enough = vs.ForestRegressor(needed, **options).fit(X, y)
    # The forecast of 100 trees takes the variance for known.
    assert typical_error(enough, X).item() == pytest.approx(0.1, rel=0.25)
    forest.predict_interval(X)  # told once
    forest.fit(X, y)
    with pytest.warns(vs.MonteCarloWarning):
        forest.predict_interval(X)
    classes = vs.ForestClassifier(60, **options).fit(X, y > 14)
    with pytest.warns(vs.MonteCarloWarning) as seen:
        classes.predict_proba(X, return_std=True)
    assert seen[0].filename == __file__


def test_predictions_and_known_errors_come_without_a_word(sample, auto):
    X, y = sample
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        auto.predict(X, return_std=True)
        auto.predict_interval(X)
        vs.ForestRegressor(20, random_state=1).fit(X, y).predict(X)
    assert [str(one.message) for one in seen] == []


def likely_variance(V, s, typical):
    """Average a raw variance of error s and the typical one, by their precisions."""
    spread = typical**2
    if typical < V:
        spread += max((V - typical) ** 2 - 4 * s**2, 0.0)
    weight = spread / (spread + s**2)
    return positive_mean(weight * V + (1 - weight) * typical, weight**0.5 * s)


def pairs_of(parts):
    typical = parts.orders.factor * parts.orders.share * parts.zeta_k
    return zip(parts.sampling, parts.mc_se, typical, strict=True)


def test_few_trees_are_enough_and_the_advice_is_stable():
    """At n = 1,500 and k = n the jackknife alone needs some 10,000 trees."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2] + rng.normal(size=1500)
    advised = []
    for B in (100, 200, 500, 1000):
        forest = vs.ForestRegressor(B, random_state=1).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            estimates = forest._estimate(X[:10] + 0.01)
        assert typical_error(forest, X[:10] + 0.01) < 0.12
        assert estimates.pooled_share.mean() > 0.7
        tolerance = Tolerance(0.1, pooled=True)
        advised.append(tolerance.learners_needed(estimates).item())
    assert max(advised) < 1.5 * min(advised)
    assert max(advised) < 500


def test_the_advice_without_pooling_is_of_the_same_order():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2] + rng.normal(size=1500)
    advised = []
    for B in (100, 200, 500, 1500):
        forest = vs.ForestRegressor(B, random_state=1).fit(X, y)
        estimates = pointwise(forest, X[:10] + 0.01)
        tolerance = Tolerance(0.1, pooled=True)
        advised.append(tolerance.learners_needed(estimates).item())
    assert max(advised) < 2.5 * min(advised)
    assert min(advised) > 2500


def test_a_variance_far_above_the_typical_one_counts_as_it_is():
    assert likely_variance(0.5, 0.02, 0.05) == pytest.approx(0.5, rel=0.01)
    assert likely_variance(0.06, 1.0, 0.05) < 0.1  # noise is not taken for variance
    assert likely_variance(-1.0, 1.0, 0.05) > 0.01


def test_the_typical_law_is_the_mean_of_all(sample):
    """Against sums written out, in the unit of the response."""
    X, y = sample
    forest = vs.ForestRegressor(700, random_state=1).fit(X, y)
    found = pointwise(forest, X[:40])
    parts = found.components
    B, n = 700, 150
    likely = [likely_variance(*one) for one in pairs_of(parts)]
    variance = np.mean(likely + parts.monte_carlo)
    spread = np.mean(2 * n * parts.noise**2 + 4 * parts.noise * likely)
    curve = ErrorCurve.of_mean(found)
    assert curve.variance * curve.unit**2 == pytest.approx(variance, rel=1e-6)
    expected = np.sqrt(spread) / (2 * variance)
    assert curve.relative_error(B) == pytest.approx(expected, rel=1e-6)
    tolerance = Tolerance(expected, pooled=True)
    assert tolerance.excess(found) == pytest.approx(1, rel=1e-6)
    assert tolerance.learners_needed(found) == pytest.approx(B, rel=1e-6)


def test_the_typical_variance_of_few_trees_is_made_positive(sample):
    X, y = sample
    y = np.where(np.arange(len(y)) % 2, y, 1e-3 * y)  # points of different units
    forest = vs.ForestRegressor(20, variance="corrected", random_state=1).fit(X, y)
    with pytest.warns(vs.MonteCarloWarning):
        found = forest._estimate(X[:8])
    parts, curve = found.components, ErrorCurve.of_mean(found)
    assert np.unique(found.unit).size > 1
    scale = np.sqrt(np.mean(parts.mc_se**2) / 8)
    expected = positive_mean(parts.sampling.mean(), scale) + parts.monte_carlo.mean()
    assert expected > 1.01 * parts.total.mean()
    assert curve.variance * curve.unit**2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", [vs.ForestRegressor, vs.ForestClassifier])
@pytest.mark.global_generator
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks_pass_at_the_default(kind, monkeypatch):
    monkeypatch.setattr(number_of_trees, "AUTO_FIRST", 16)
    monkeypatch.setattr(number_of_trees, "AUTO_MOST", 64)
    answers = check_estimator(
        kind(),
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": SUBSAMPLING
        },
        on_skip=None,
    )
    assert sum(answer["status"] == "passed" for answer in answers) > 50
