"""Limits of new observations, and the classes that they may have."""

import dataclasses
import math
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import vstatkit as vs
from vstatkit.ensemble import prediction, prediction_intervals
from vstatkit.ensemble.oob_scores import Scores, score_rows
from vstatkit.ensemble.prediction_intervals import (
    LEAST_SPREAD,
    N_TREES,
    OutOfBagErrors,
    class_thresholds,
    collect_errors,
    fit_residual_scale,
    local_limits,
)
from vstatkit.inference.conformal import (
    least_units,
    lower_quantile,
    unit_masses,
    upper_quantile,
)
from vstatkit.kernels.base import OutOfBag
from vstatkit.sampling.design import IidDesign
from vstatkit.sampling.streams import Purpose, stream
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays

METHODS = ("local", "residuals", "jackknife+")


def fanned(n, seed):
    """Draw errors whose spread grows elevenfold with x1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 3))
    y = 2 * x[:, 0] + (0.2 + 2 * x[:, 0]) * rng.normal(size=n)
    return pd.DataFrame(x, columns=["x1", "x2", "x3"]).assign(y=y)


@pytest.fixture(scope="module")
def data():
    frame = fanned(120, 1)
    rng = np.random.default_rng(2)
    return frame.assign(
        w=rng.integers(1, 5, 120).astype(float),
        cluster=np.repeat(np.arange(60), 2)[rng.permutation(120)],
        kind=np.where(frame["x1"] + 0.3 * rng.normal(size=120) > 0.5, "hi", "lo"),
        three=np.array(list("abc"))[
            np.clip((3 * frame["x1"] + 0.5 * rng.normal(size=120)).astype(int), 0, 2)
        ],
    )


@pytest.fixture(scope="module")
def results(data):
    return vs.fit("y ~ x1 + x2 + x3", data, B=80, rng=3)


def literal_upper(values, masses, alpha):
    """The first value, from below, at which the masses reach the level."""
    needed = (1 - alpha) * (sum(masses) + 1)
    for value, _ in sorted(zip(values, masses, strict=True)):
        there = sum(m for v, m in zip(values, masses, strict=True) if v <= value)
        if there >= needed - 1e-8:
            return value
    return None


# Quantiles


@pytest.mark.parametrize("n", [1, 2, 9, 19, 38, 39, 40, 57])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2, 0.5, 0.73])
def test_equal_masses_give_the_order_statistics_of_residuals(n, alpha, rng):
    residuals = rng.normal(size=n)
    found = Scores({}, residuals, n).interval_offsets(alpha)
    ones = np.ones(n)
    low = lower_quantile(residuals, ones, alpha / 2)
    high = upper_quantile(residuals, ones, alpha / 2)
    if found is None:
        assert low is None
        assert high is None
    else:
        assert found == (low, high)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.3, 0.6])
def test_masses_are_added_up_to_the_level(alpha, rng):
    masses = unit_masses(np.arange(30) // 3, rng.uniform(0.2, 3, size=30))
    values = rng.normal(size=(30, 4)).round(1)  # with ties
    found = upper_quantile(values, masses, alpha)
    expected = [literal_upper(column, masses, alpha) for column in values.T]
    if None in expected:
        assert found is None
    else:
        assert_array_equal(found, expected)
        mirrored = lower_quantile(-values, masses, alpha)
        assert_array_equal(mirrored, -np.array(expected))
        assert upper_quantile(values[:, 0], masses, alpha) == expected[0]


@pytest.mark.parametrize("n", [3, 6, 9, 22, 48, 99, 102])
def test_levels_that_are_whole_ranks_are_not_rounded_up(n):
    """One minus j/(n + 1), times n + 1, is seldom n + 1 - j in floating point."""
    values = np.arange(1.0, n + 1)
    for j in range(1, n + 1):
        assert upper_quantile(values, np.ones(n), j / (n + 1)) == n + 1 - j
        halves = upper_quantile(np.repeat(values, 2), np.full(2 * n, 0.5), j / (n + 1))
        assert halves == n + 1 - j


def test_masses_of_ones_and_nearly_ones_agree(rng):
    values = rng.normal(size=(40, 3))
    nearly = np.ones(40)
    nearly[0] += 1e-15
    nearly[1] -= 1e-15
    for alpha in (0.05, 1 / 41, 0.31):
        exact = upper_quantile(values, np.ones(40), alpha)
        assert_array_equal(upper_quantile(values, nearly, alpha), exact)


def test_a_unit_has_a_mass_of_one_on_average():
    units = np.array([5, 5, 2, 9, 9, 9])
    assert_allclose(unit_masses(units), [1 / 2, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 3])
    weights = np.array([1.0, 3.0, 2.0, 1.0, 1.0, 4.0])
    raw = weights / [2, 2, 1, 3, 3, 3]
    found = unit_masses(units, weights)
    assert_allclose(found, raw * 3 / raw.sum())
    assert_allclose(unit_masses(units, 7 * weights), found)


@pytest.mark.parametrize("alpha", [0.025, 0.05, 0.1, 0.3, 0.9])
def test_the_least_number_of_units_is_the_first_that_reaches_the_level(alpha):
    n = least_units(alpha)
    assert upper_quantile(np.arange(float(n)), np.ones(n), alpha) is not None
    if n > 1:
        assert upper_quantile(np.arange(n - 1.0), np.ones(n - 1), alpha) is None


def test_a_new_cluster_is_covered_as_often_as_the_level_says():
    """Clusters are alike, rows within them are not: masses belong to the clusters."""
    rng, runs, G, alpha = np.random.default_rng(8), 3000, 9, 0.2
    hits = 0
    for _ in range(runs):
        sizes = rng.choice([1, 12], size=G + 1)
        centres = rng.normal(size=G + 1) + 3 * (sizes == 12)
        units = np.repeat(np.arange(G), sizes[:-1])
        values = centres[units] + 0.1 * rng.normal(size=units.size)
        high = upper_quantile(values, unit_masses(units), alpha)
        hits += centres[-1] + 0.1 * rng.normal() <= high
    # At least 1 - alpha, and at most a cluster's mass above it; three binomial errors.
    error = 3 * math.sqrt(alpha * (1 - alpha) / runs)
    assert 1 - alpha - error < hits / runs < 1 - alpha + 1 / (G + 1) + error


# The spread


def test_the_spread_is_learnt_by_trees_that_did_not_see_the_unit(data, results):
    errors = results.out_of_bag_errors
    seed = int(stream(3, 0, Purpose.SPREAD).integers(2**63))
    counts = IidDesign(120, math.ceil(120**0.8), True, seed).counts(0, N_TREES)
    trees = errors.spread.trees
    assert len(trees) == N_TREES
    X = data[["x1", "x2", "x3"]].to_numpy()
    each = np.stack([errors.spread.kernel.predict(tree, X)[:, 0] for tree in trees])
    least = LEAST_SPREAD * np.abs(results.scores.residuals).mean()
    for i in range(120):
        outside = each[counts[:, i] == 0, i].mean()
        assert errors.expected[i] == pytest.approx(max(outside, least))
    assert_allclose(errors.spread.at(X), np.maximum(each.mean(axis=0), least))
    # Leaves of ten draws or more, of the 47 that a tree has.
    assert max((tree.nodes["feature"] < 0).sum() for tree in trees) <= 4
    assert max((tree.nodes["feature"] < 0).sum() for tree in trees) > 1


def test_trees_of_the_spread_see_whole_clusters(data):
    res = vs.fit("y ~ x1 + x2", data, groups="cluster", B=40, rng=3)
    errors = res.out_of_bag_errors
    assert_array_equal(errors.units, data["cluster"])
    assert_allclose(errors.masses, 0.5)
    seed = int(stream(3, 0, Purpose.SPREAD).integers(2**63))
    counts = IidDesign(60, math.ceil(60**0.8), True, seed).counts(0, N_TREES)
    X = data[["x1", "x2"]].to_numpy()
    trees = errors.spread.trees
    each = np.stack([errors.spread.kernel.predict(tree, X)[:, 0] for tree in trees])
    for i in (0, 17, 119):
        outside = each[counts[:, errors.units[i]] == 0, i].mean()
        assert errors.expected[i] == pytest.approx(outside)


def test_errors_are_expected_where_they_are(data):
    wide = fit_residual_scale(
        data[["x1"]].to_numpy(),
        np.where(data["x1"] > 0.5, 3.0, 1.0),
        np.arange(120),
        weights=None,
        levels=None,
        seed=1,
    )[0]
    assert_allclose(wide.at(np.array([[0.1], [0.9]])), [1, 3], rtol=1e-10)


def test_errors_of_zero_and_of_few_units_are_alike_everywhere():
    X = np.arange(6.0)[:, None]
    plain = {"weights": None, "levels": None, "seed": 1}
    none, expected = fit_residual_scale(X, np.zeros(6), np.arange(6), **plain)
    assert none.at(X).tolist() == expected.tolist() == [1.0] * 6
    few, expected = fit_residual_scale(X, np.arange(6.0), np.arange(6) // 2, **plain)
    assert few.at(X).tolist() == expected.tolist() == [2.5] * 6


def test_expected_errors_are_weighted():
    """Rows that are all alike: a leaf has the weighted mean of its draws."""
    sizes, weights = np.tile([1.0, 3.0], 200), np.tile([3.0, 1.0], 200)
    spread, _ = fit_residual_scale(
        np.zeros((400, 1)), sizes, np.arange(400), weights=weights, levels=None, seed=1
    )
    assert spread.at(np.zeros((1, 1)))[0] == pytest.approx(1.5, abs=0.05)


def test_weights_are_handed_to_the_spread(data):
    res = vs.fit("y ~ x1 + x2", data, weights="w", B=40, rng=3)
    _, expected = fit_residual_scale(
        data[["x1", "x2"]].to_numpy(),
        np.abs(res.scores.residuals),
        np.arange(120),
        weights=data["w"].to_numpy(),
        levels=None,
        seed=3,
    )
    assert_array_equal(res.out_of_bag_errors.expected, expected)


def test_the_least_expected_error_is_a_share_of_the_mean():
    X = np.repeat([0.0, 1.0], 200)[:, None]
    sizes = np.repeat([0.0, 2.0], 200)
    spread, expected = fit_residual_scale(
        X, sizes, np.arange(400), weights=None, levels=None, seed=1
    )
    assert_allclose(spread.at(np.array([[0.0], [1.0]])), [0.05, 2.0])
    assert_allclose(expected, np.repeat([0.05, 2.0], 200))
    weights = np.repeat([3.0, 1.0], 200)
    spread, _ = fit_residual_scale(
        X, sizes, np.arange(400), weights=weights, levels=None, seed=1
    )
    assert_allclose(spread.at(np.array([[0.0], [1.0]])), [0.025, 2.0])


# Limits


def literal_jackknife(res, X, units, masses, alpha):
    """The jackknife+ after bootstrap, row by row and point by point."""
    counts = res.design.counts(0, res.B)
    weights = res.design.weights(0, res.B)
    weights = np.ones(res.B) if weights is None else weights
    h, residuals = res.predictor.values(X), res.scores.residuals
    lower, upper = [], []
    for j in range(len(X)):
        low, high = [], []
        for i, residual in enumerate(residuals):
            absent = counts[:, units[i]] == 0
            mean = np.average(h[absent, j], weights=weights[absent])
            low.append(-(mean - abs(residual)))
            high.append(mean + abs(residual))
        lower.append(-literal_upper(low, masses, alpha))
        upper.append(literal_upper(high, masses, alpha))
    return lower, upper


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": "cluster"},
        {"weights": "w"},
        {"replace": False, "k": 30},
        {"kernel": "ols", "k": 30},
        {"design": "balanced"},
        {"design": "little-bags"},
        {"design": "shards", "n_shards": 4, "k": 20},
    ],
)
def test_the_jackknife_is_the_literal_one(options, data, monkeypatch):
    monkeypatch.setattr(prediction_intervals, "DRAWN_AT_ONCE", 1000)
    res = vs.fit("y ~ x1 + x2", data, B=40, rng=5, **options)
    new = data.head(3)
    X, _ = res.predictor.rows(new)
    units = data["cluster"].to_numpy() if "groups" in options else np.arange(120)
    weights = data["w"].to_numpy() if "weights" in options else None
    masses = unit_masses(units, weights)
    assert res.scores.n_scored == 120
    expected = literal_jackknife(res, X, units, masses, 0.1)
    frame = res.get_prediction(new, obs_method="jackknife+").summary_frame(0.1)
    assert_allclose(frame["obs_ci_lower"], expected[0], rtol=1e-9)
    assert_allclose(frame["obs_ci_upper"], expected[1], rtol=1e-9)
    monkeypatch.setattr(prediction_intervals, "HELD_DRAWS", 0)
    again = res.get_prediction(new).summary_frame(0.1, "jackknife+")
    assert_array_equal(again["obs_ci_upper"], frame["obs_ci_upper"])


def test_the_jackknife_takes_points_in_pieces(data, results, monkeypatch):
    whole = results.get_prediction(data).summary_frame(0.1, "jackknife+")
    sizes = []
    means = prediction_intervals._Membership.means_without

    def watched(seen, values):
        found = means(seen, values)
        sizes.append(found.shape)
        return found

    monkeypatch.setattr(prediction_intervals._Membership, "means_without", watched)
    monkeypatch.setattr(prediction, "CHUNK_ENTRIES", 7 * (80 + 5 * 120))
    pieces = results.get_prediction(data).summary_frame(0.1, "jackknife+")
    assert sizes == [(120, 7)] * 17 + [(120, 1)]
    assert_allclose(pieces, whole, rtol=1e-12)


def test_the_jackknife_of_a_complete_ensemble(data):
    few = data.head(8)
    res = vs.fit("y ~ x1", few, kernel="tree", k=3, B="complete", replace=True)
    assert res.design.weights(0, res.B) is not None
    X, _ = res.predictor.rows(few)
    ones = np.ones(8)
    expected = literal_jackknife(res, X, range(8), ones, 0.2)
    frame = res.get_prediction(few).summary_frame(0.2, "jackknife+")
    assert_allclose(frame["obs_ci_lower"], expected[0], rtol=1e-9)
    assert_allclose(frame["obs_ci_upper"], expected[1], rtol=1e-9)


def test_rows_that_were_never_out_of_bag_are_left_out(data):
    res = vs.fit("y ~ x1", data, k=180, B=6, rng=1, variance="bm")
    counts = res.design.counts(0, 6)
    known = np.flatnonzero((counts == 0).any(axis=0))
    assert 70 < known.size < 110
    assert_array_equal(res.out_of_bag_errors.units, known)
    expected = fit_residual_scale(
        data[["x1"]].to_numpy()[known],
        np.abs(res.scores.residuals),
        known,
        weights=None,
        levels=None,
        seed=1,
    )[1]
    assert_array_equal(res.out_of_bag_errors.expected, expected)
    X, _ = res.predictor.rows(data.head(2))
    ones = np.ones(known.size)
    expected = literal_jackknife(res, X, known, ones, 0.2)
    frame = res.get_prediction(data.head(2)).summary_frame(0.2, "jackknife+")
    assert_allclose(frame["obs_ci_upper"], expected[1])


def test_local_limits_are_scaled_residuals(data, results):
    errors = results.out_of_bag_errors
    prediction = results.get_prediction(data)
    for alpha in (0.05, 0.1, 0.4):
        frame = prediction.summary_frame(alpha)
        ratios = np.sort(results.scores.residuals / errors.expected)
        rank = math.floor(121 * alpha / 2)
        sigma = errors.spread.at(results.predictor.kernel.X)
        assert_allclose(frame["obs_ci_lower"], frame["mean"] + ratios[rank - 1] * sigma)
        assert_allclose(frame["obs_ci_upper"], frame["mean"] + ratios[-rank] * sigma)


def test_weights_count_in_local_limits(data):
    res = vs.fit("y ~ x1 + x2", data, weights="w", B=40, rng=3)
    errors = res.out_of_bag_errors
    assert_allclose(errors.masses, data["w"] / data["w"].mean())
    mean, sigma = np.array([1.0]), np.array([2.0])
    ratios = errors.sizes / errors.expected
    low, high = local_limits(errors, mean, sigma, 0.1)
    assert high == 1 + 2 * literal_upper(ratios, errors.masses, 0.05)
    assert low == 1 - 2 * literal_upper(-ratios, errors.masses, 0.05)


def test_rows_without_weight_are_left_out():
    class Kernel:
        X = np.arange(12.0)[:, None]
        weights = np.r_[np.zeros(4), np.ones(8)]

    rows = np.arange(2, 10)
    scores = Scores({}, rows.astype(float), 8, rows)
    errors = collect_errors(scores, Kernel, None, seed=1, n_jobs=1)
    assert errors.units.tolist() == errors.sizes.tolist() == [4, 5, 6, 7, 8, 9]
    assert_array_equal(errors.masses, np.ones(6))
    nothing = Scores({}, rows[:2].astype(float), 2, rows[:2])
    assert collect_errors(nothing, Kernel, None, seed=1, n_jobs=1) is None


def test_scores_know_their_rows():
    """Of the rows that were chosen to be predicted, those that were out of bag."""
    y = np.arange(10.0)
    total = np.array([[1.0], [0.0], [3.0]])
    oob = OutOfBag(total, np.array([1.0, 0.0, 3.0]), np.array([2, 5, 9]))
    scores = score_rows(y, oob, SimpleNamespace(n_classes=None))
    assert scores.rows.tolist() == [2, 9]
    assert scores.residuals.tolist() == [1.0, 8.0]


@pytest.mark.parametrize("method", METHODS)
def test_limits_of_a_point_do_not_depend_on_its_company(method, data, results):
    every = results.get_prediction(data, obs_method=method).summary_frame()
    for i in (0, 50):
        one = results.get_prediction(data.iloc[[i]], obs_method=method).summary_frame()
        for column in ("obs_ci_lower", "obs_ci_upper"):
            assert one[column].iloc[0] == pytest.approx(
                every[column].iloc[i], rel=1e-12
            )


def test_local_limits_are_the_default(data, results):
    frame = results.get_prediction(data).summary_frame()
    assert frame.attrs["obs_method"] == "local"
    widths = frame["obs_ci_upper"] - frame["obs_ci_lower"]
    assert widths[data["x1"] > 0.8].mean() > 3 * widths[data["x1"] < 0.2].mean()
    plain = results.get_prediction(data, obs_method="residuals").summary_frame()
    assert np.ptp(plain["obs_ci_upper"] - plain["obs_ci_lower"]) < 1e-12
    offsets = results.scores.interval_offsets(0.05)
    assert_allclose(plain["obs_ci_lower"] - plain["mean"], offsets[0])
    assert plain.attrs["obs_method"] == "residuals"


def test_tables_and_pickles_grow_nothing(data, monkeypatch, tmp_path):
    res = vs.fit("y ~ x1", data, B=20, rng=1)
    longer = res.more(40)
    forest = vs.ForestRegressor(40, random_state=1).fit(data[["x1"]], data["y"])
    assert forest.results_.errors is not None

    def refuse(*_, **__):
        raise AssertionError("a forest is grown")

    monkeypatch.setattr(
        "vstatkit.ensemble.prediction_intervals.fit_residual_scale", refuse
    )
    for one in (res, longer, res.with_variance("ij"), forest.results_):
        frame = one.get_prediction(data[["x1"]]).summary_frame()
        assert frame.attrs["obs_method"] == "local"
        again = pickle.loads(pickle.dumps(one)).get_prediction(data[["x1"]])
        pd.testing.assert_frame_equal(again.summary_frame(), frame)
        one.save(tmp_path / "saved")
    pickle.dumps(forest)
    assert vs.fit("y ~ x1", data, B=20, rng=1, oob=False).errors is None


def test_responses_that_are_missing_do_not_shift_residuals(data):
    gaps = data.assign(y=data["y"].mask(data.index % 7 == 3))
    gaps.loc[::5, "x2"] = np.nan
    res = vs.fit("y ~ x1 + x2", gaps, missing="pass", B=60, rng=1)
    kept = gaps.dropna(subset="y")
    assert res.nobs == len(kept)
    complete = vs.fit(
        "y ~ x1 + x2", kept.reset_index(drop=True), missing="pass", B=60, rng=1
    )
    for method in METHODS:
        first, second = (
            one.get_prediction(gaps, obs_method=method).summary_frame()
            for one in (res, complete)
        )
        assert_array_equal(first, second)
        assert first.notna().all(axis=None)


def test_more_learners_have_errors_of_their_own(data):
    few = vs.fit("y ~ x1 + x2", data, B=60, rng=1)
    few.get_prediction(data).summary_frame()
    grown = few.more(90)
    fitted = vs.fit("y ~ x1 + x2", data, B=90, rng=1)
    for method in METHODS:
        first, second = (
            one.get_prediction(data, obs_method=method).summary_frame()
            for one in (grown, fitted)
        )
        assert_allclose(first, second, rtol=1e-9)


def test_other_kernels_have_local_limits(data):
    res = vs.fit("y ~ x1 + x2", data, kernel="ols", k=60, B=40, rng=1)
    frame = res.get_prediction(data).summary_frame()
    widths = frame["obs_ci_upper"] - frame["obs_ci_lower"]
    assert widths[data["x1"] > 0.8].mean() > 3 * widths[data["x1"] < 0.2].mean()


def test_factors_that_are_split_whole(data):
    res = vs.fit("y ~ three + x1", data, categorical_splits=True, B=40, rng=1)
    assert res.out_of_bag_errors.spread.kernel.levels == res.predictor.kernel.levels
    frame = res.get_prediction(data).summary_frame()
    assert frame.attrs["obs_method"] == "local"


def test_forests_of_scikit_learn(data):
    X, y = data[["x1", "x2"]], data["y"]
    forest = RandomForestRegressor(60, max_samples=50, random_state=1).fit(X, y)
    res = vs.from_sklearn(forest, X, y, X.head(2))
    frame = res.get_prediction(X).summary_frame()
    assert frame.attrs["obs_method"] == "local"
    rows = X.head(2).to_numpy()
    units, ones = np.arange(120), np.ones(120)
    expected = literal_jackknife(res, rows, units, ones, 0.1)
    plus = res.get_prediction(X.head(2)).summary_frame(0.1, "jackknife+")
    assert_allclose(plus["obs_ci_lower"], expected[0])
    classifier = RandomForestClassifier(60, max_samples=50, random_state=1)
    sets = vs.from_sklearn(classifier.fit(X, data["kind"]), X, data["kind"], X.head(2))
    assert list(sets.get_prediction(X).class_sets(0.2)) == ["hi", "lo"]


def test_a_written_file_has_the_limits_that_were_asked_for(data, results, tmp_path):
    for method in METHODS:
        path = results.get_prediction(
            data, out=tmp_path / "p.csv", alpha=0.1, obs_method=method
        )
        frame = results.get_prediction(data).summary_frame(0.1, method)
        assert_allclose(pd.read_csv(path), frame, rtol=1e-12)


def test_new_observations_are_covered_in_every_slice():
    """Twelve data sets of 200 rows, 500 new observations each; the seed is fixed."""
    hits = {"local": [], "residuals": []}
    slices = []
    for seed in range(12):
        train, new = fanned(200, [seed, 0]), fanned(500, [seed, 1])
        prediction = vs.fit("y ~ x1 + x2 + x3", train, B=100, rng=seed).get_prediction(
            new
        )
        slices.append((5 * new["x1"]).astype(int))
        for method, found in hits.items():
            frame = prediction.summary_frame(0.1, method)
            inside = new["y"].between(frame["obs_ci_lower"], frame["obs_ci_upper"])
            found.append(inside)
    within = pd.concat(slices).to_numpy()
    local, plain = (pd.concat(found) for found in hits.values())
    assert local.mean() == pytest.approx(0.9, abs=0.03)
    assert plain.mean() == pytest.approx(0.9, abs=0.03)
    assert local.groupby(within).mean().min() > 0.85
    assert plain.groupby(within).mean().min() < 0.78


# What cannot be done is said


def test_levels_that_cannot_be_reached_are_named(data):
    res = vs.fit("y ~ x1", data.head(20), B=30, rng=1)
    prediction = res.get_prediction(data.head(2))
    words = r"NaN: .*obs_method='local' need .* at least 39 units; there are 20"
    with pytest.warns(vs.FewUnitsWarning, match=words) as caught:
        frame = prediction.summary_frame(0.05)
    assert caught[0].filename == __file__
    assert frame[["obs_ci_lower", "obs_ci_upper"]].isna().all(axis=None)
    assert list(frame.columns) == list(prediction.summary_frame(0.1).columns)
    assert frame["mean_ci_lower"].notna().all()
    assert "obs_method" not in frame.attrs
    assert frame.attrs["obs_note"].endswith("'jackknife+', which needs 19.")
    assert "obs_note" not in prediction.summary_frame(0.1).attrs
    with pytest.warns(vs.FewUnitsWarning, match="Use a larger `alpha`.$"):
        prediction.summary_frame(0.01)
    for method, needed in (("local", 39), ("residuals", 39)):
        with pytest.raises(
            ValueError, match=rf" at least {needed} units.*there are 20"
        ):
            prediction.summary_frame(0.05, method)
    assert "obs_ci_lower" in prediction.summary_frame(0.05, "jackknife+")
    with pytest.raises(ValueError, match=r" at least 99 units.*there are 20"):
        prediction.summary_frame(0.01, "jackknife+")


def test_a_level_needs_clusters_and_not_rows(data):
    some = data.assign(cluster=data["cluster"] // 3)  # twenty clusters of six
    res = vs.fit("y ~ x1", some, groups="cluster", B=60, rng=1)
    prediction = res.get_prediction(some.head(2))
    with pytest.warns(vs.FewUnitsWarning, match=r"at least 39 units.*there are 20"):
        frame = prediction.summary_frame(0.05)
    assert frame["obs_ci_lower"].isna().all()
    with pytest.raises(ValueError, match=r"at least 39 units.*there are 20"):
        prediction.summary_frame(0.05, "local")
    assert prediction.summary_frame(0.1).attrs["obs_method"] == "local"


def test_clusters_that_are_not_known_are_not_made_up(data):
    """Results whose rows are in clusters, and that do not know in which."""
    res = vs.fit("y ~ x1", data, groups="cluster", B=20, rng=1)
    lost = dataclasses.replace(res, recipe=None, errors=None)
    prediction = lost.get_prediction(data.head(2))
    assert prediction.summary_frame().attrs["obs_method"] == "residuals"
    with pytest.raises(ValueError, match="needs the units and predictors"):
        prediction.summary_frame(obs_method="local")


def test_results_without_scores_say_so(data):
    res = vs.fit("y ~ x1", data, oob=False, B=20, rng=1)
    prediction = res.get_prediction(data.head(2))
    frame = prediction.summary_frame()
    assert "obs_ci_lower" not in frame
    assert "Fit with oob=True" in frame.attrs["obs_note"]
    for method in METHODS:
        with pytest.raises(ValueError, match="Fit with oob=True"):
            prediction.summary_frame(obs_method=method)
    classes = vs.fit("kind ~ x1", data, oob=False, B=20, rng=1)
    with pytest.raises(ValueError, match="with oob=True"):
        classes.get_prediction(data.head(2)).class_sets()


def test_what_is_asked_for_is_checked(data, results):
    prediction = results.get_prediction(data.head(2))
    with pytest.raises(ValueError, match="must be one of 'local', 'residuals'"):
        results.get_prediction(data, obs_method="jackknife")
    with pytest.raises(ValueError, match="must be one of 'local', 'residuals'"):
        prediction.summary_frame(obs_method="conformal")
    with pytest.raises(ValueError, match="this one is numeric"):
        prediction.class_sets()
    classes = vs.fit("kind ~ x1", data, B=20, rng=1).get_prediction(data.head(2))
    with pytest.raises(ValueError, match="class_sets"):
        classes.summary_frame(obs_method="local")
    for alpha in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            classes.class_sets(alpha)


# Sets of classes


@pytest.mark.parametrize("formula", ["kind ~ x1 + x2", "three ~ x1 + x2"])
@pytest.mark.parametrize("by_class", [False, True])
def test_a_class_is_in_the_set_if_it_is_probable_enough(formula, by_class, data):
    res = vs.fit(formula, data, B=60, rng=1)
    prediction, response = res.get_prediction(data), data[formula[:5].strip(" ~")]
    alpha = 0.15
    classes = sorted(response.unique())
    counts = res.design.counts(0, 60)
    values = res.predictor.values(res.predictor.kernel.X).reshape(60, 120, -1)
    if values.shape[2] == 1:
        values = np.concatenate([1 - values, values], axis=2)
    own = [
        1 - values[counts[:, i] == 0, i, classes.index(response[i])].mean()
        for i in range(120)
    ]
    shares = values.mean(axis=0)
    sets = prediction.class_sets(alpha, by_class=by_class)
    assert list(sets.columns) == classes
    assert sets.index.equals(data.index)
    for c, name in enumerate(classes):
        mine = [one for one, y in zip(own, response, strict=True) if y == name]
        used = mine if by_class else own
        most = sorted(used)[math.ceil((1 - alpha) * (len(used) + 1) - 1e-9) - 1]
        least = sets.attrs["least_probability"][name]
        assert least == pytest.approx(1 - most)
        clear = np.abs(shares[:, c] - least) > 1e-9
        assert_array_equal(sets[name][clear], shares[clear, c] > least)


def test_sets_cover_new_observations():
    """Twenty data sets of 150 rows, 300 new observations each; the seed is fixed."""
    hits, within = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=450)
        share = 1 / (1 + np.exp(4 - 6 * x))
        frame = pd.DataFrame(
            {"x": x, "y": np.where(rng.uniform(size=450) < share, 1, 0)}
        )
        frame["y"] = frame["y"].map({0: "no", 1: "yes"})
        train, new = frame[:150], frame[150:]
        prediction = vs.fit("y ~ x", train, B=100, rng=seed).get_prediction(new)
        for by_class, found in ((False, hits), (True, within)):
            sets = prediction.class_sets(0.1, by_class=by_class)
            found.append(np.where(new["y"] == "yes", sets["yes"], sets["no"]))
            if by_class:
                found[-1] = [found[-1][new["y"] == one].mean() for one in sets]
    assert np.mean(hits) == pytest.approx(0.9, abs=0.03)
    # Classes of some fifty rows: rounding up to whole rows adds one in a hundred, and
    # shares of fewer trees out of bag are a little more extreme.
    assert (np.mean(within, axis=0) > 0.88).all()
    assert (np.mean(within, axis=0) < 0.96).all()


def test_responses_of_zeros_and_ones_have_classes_without_names(data):
    frame = data.assign(z=(data["kind"] == "hi").astype(int))
    res = vs.fit("z ~ x1", frame, kernel="logit", k=60, B=40, rng=1)
    sets = res.get_prediction({"x1": [0.05, 0.95]}).class_sets(0.1)
    assert sets.to_numpy().tolist() == [[True, False], [False, True]]
    assert list(sets.columns) == [0, 1]


def test_classes_that_are_too_rare_are_named(data):
    rare = data.assign(kind=np.where(np.arange(120) < 8, "odd", data["kind"]))
    res = vs.fit("kind ~ x1", rare, B=60, rng=1)
    prediction = res.get_prediction(rare.head(3))
    assert prediction.class_sets(0.1).shape == (3, 3)
    with pytest.raises(
        ValueError, match=r"at least 9 units of class 'odd'.*there are 8"
    ):
        prediction.class_sets(0.1, by_class=True)
    with pytest.raises(ValueError, match=r"at least 999 units that.*there are 120"):
        prediction.class_sets(0.001)


def test_thresholds_count_clusters():
    errors = OutOfBagErrors(
        np.array([0.1, 0.2, 0.3, 0.9]),
        np.array([0, 0, 1, 2]),
        unit_masses(np.array([0, 0, 1, 2])),
        np.array([0, 0, 1, 1]),
    )
    # Masses 1/2 1/2 1 1, and one for the new cluster: 2 of 4 are reached at 0.3.
    assert_allclose(class_thresholds(errors, 2, 0.5, by_class=False), [0.7, 0.7])
    # One cluster of the first class and a new one: 1 of 2 is reached at 0.2.
    found = class_thresholds(errors, 2, 0.5, by_class=True)
    assert_allclose(found, [0.8, 0.1])


def test_a_class_has_a_mass_of_one_a_unit_whatever_its_weight():
    """Three units of one class, together as heavy as twelve: the third of four."""
    heavy = OutOfBagErrors(
        np.array([0.1, 0.2, 0.3, 0.5]),
        np.arange(4),
        np.array([1.3, 1.3, 1.3, 0.1]),
        np.array([0, 0, 0, 1]),
    )
    found = class_thresholds(heavy, 2, 0.25, by_class=True)
    assert found[0] == pytest.approx(0.7)
    assert np.isnan(found[1])
    # Masses of 1.3 would reach 78 % of 4.9, masses of one do not reach it of four.
    assert np.isnan(class_thresholds(heavy, 2, 0.22, by_class=True)[0])


# Files


CASES = [
    ("y ~ x1 + x2", {}),
    ("y ~ x1 + x2", {"groups": "cluster", "weights": "w"}),
    ("y ~ x1 + three", {"categorical_splits": True}),
    ("y ~ x1", {"kernel": "ols"}),
    ("kind ~ x1", {"groups": "cluster"}),
    ("three ~ x1 + x2", {"weights": "w"}),
]


@pytest.mark.parametrize(("formula", "options"), CASES)
def test_limits_travel(formula, options, data, tmp_path):
    res = vs.fit(formula, data, B=40, rng=1, **options)
    pickled = pickle.loads(pickle.dumps(res))  # before anything else asks for errors
    path = tmp_path / "r.npz"
    res.save(path)
    loaded = vs.load(path)
    loaded.save(tmp_path / "again.npz")
    others = (pickled, loaded, vs.load(tmp_path / "again.npz"))
    for other in others:
        new, old = other.get_prediction(data), res.get_prediction(data)
        if formula.startswith("y"):
            for method in METHODS:
                assert_array_equal(
                    new.summary_frame(0.1, method), old.summary_frame(0.1, method)
                )
            continue
        for by_class in (False, True):
            assert_array_equal(
                new.class_sets(0.2, by_class=by_class),
                old.class_sets(0.2, by_class=by_class),
            )


def test_errors_that_are_alike_travel(data, tmp_path):
    few = data.head(3).assign(y=[1.0, 2.0, 4.0])
    res = vs.fit("y ~ x1", few, k=2, B=60, rng=1)
    assert res.out_of_bag_errors.spread.trees == []
    res.save(tmp_path / "r.npz")
    first, second = (
        one.get_prediction(few).summary_frame(0.6)
        for one in (res, vs.load(tmp_path / "r.npz"))
    )
    assert "obs_ci_lower" in first
    assert_array_equal(first, second)


SPOILT = {
    "no unit": lambda arrays, _: arrays["errors"].__setitem__((1, 0), 1e6),
    "half a unit": lambda arrays, _: arrays["errors"].__setitem__((1, 0), 0.5),
    "no mass": lambda arrays, _: arrays["errors"].__setitem__((2, 0), 0.0),
    "not positive": lambda arrays, _: arrays["errors"].__setitem__((3, 0), -1.0),
    "not finite": lambda arrays, _: arrays["errors"].__setitem__((0, 0), np.nan),
    "missing rows": lambda arrays, _: arrays.update(errors=arrays["errors"][:3]),
    "no array": lambda arrays, _: arrays.pop("errors"),
    "no trees": lambda arrays, _: arrays.pop("spread_tree_nodes"),
    "no spread": lambda _, doc: doc["errors"].update(spread=None),
    "no trees told": lambda _, doc: doc["errors"]["spread"].update(n_trees=0),
    "more trees": lambda _, doc: doc["errors"]["spread"].update(n_trees=101),
    "classes": lambda _, doc: doc["errors"]["spread"].update(n_classes=3),
    "least": lambda _, doc: doc["errors"]["spread"].update(least=0.0),
    "a list": lambda _, doc: doc.update(errors=[]),
    "nothing": lambda _, doc: doc.pop("errors"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_spoilt_errors_are_refused(spoil, results, tmp_path):
    path = tmp_path / "r.npz"
    results.save(path)
    document, arrays = read_archive(path, known_arrays())
    spoil(arrays, document)
    write_archive(path, document, arrays)
    with pytest.raises(vs.FileError, match="cannot be loaded"):
        vs.load(path)


@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("value", [-1.0, 7.5])
def test_spoilt_errors_of_classes_are_refused(row, value, data, tmp_path):
    path = tmp_path / "r.npz"
    vs.fit("three ~ x1", data, B=10, rng=1).save(path)
    document, arrays = read_archive(path, known_arrays())
    arrays["errors"][row, 0] = value
    write_archive(path, document, arrays)
    with pytest.raises(vs.FileError, match="an error is"):
        vs.load(path)


def test_older_files_say_what_they_lack(data, tmp_path):
    path = tmp_path / "r.npz"
    for formula in ("y ~ x1", "kind ~ x1"):
        vs.fit(formula, data, B=20, rng=1).save(path)
        document, arrays = read_archive(path, known_arrays())
        kept = {
            name: one
            for name, one in arrays.items()
            if not name.startswith(("errors", "spread_"))
        }
        document["format"] = 4
        del document["errors"]
        write_archive(path, document, kept)
        prediction = vs.load(path).get_prediction(data.head(2))
        if formula == "y ~ x1":
            assert prediction.summary_frame().attrs["obs_method"] == "residuals"
            for method in ("local", "jackknife+"):
                with pytest.raises(ValueError, match="saved by an earlier version"):
                    prediction.summary_frame(obs_method=method)
        else:
            with pytest.raises(ValueError, match="saved by an earlier version"):
                prediction.class_sets()
