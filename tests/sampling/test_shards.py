"""Disjoint shards: how units are dealt, what their variance is, what works on them."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import vstatkit as vs
from vstatkit.ensemble.sampling_plan import (
    MOST_ERROR,
    choose_design,
    jackknife_error,
    jackknife_learners,
)
from vstatkit.inference.linear_tests import wald_test
from vstatkit.inference.stopping import TOL
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.grouped_learners import ShardsDesign, deal_units
from vstatkit.sampling.registry import make_design
from vstatkit.variance.estimators import ShardEstimator
from vstatkit.variance.formulas import shard_moments
from vstatkit.variance.registry import ESTIMATORS

G = 8


@pytest.fixture(scope="module")
def data():
    return vs.datasets.mars(800, rng=3)


@pytest.fixture(scope="module")
def results(data):
    return vs.fit("y ~ x1 + x4", data, design="shards", n_shards=G, k=30, B=80, rng=5)


# Dealing


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 10, 99, 100, 101, 1000])
def test_every_unit_is_dealt_once(n):
    for seed in range(5):
        assert_array_equal(np.sort(deal_units(np.arange(n), n, seed)), np.arange(n))


def test_the_unit_at_a_place_does_not_depend_on_the_other_places():
    whole = deal_units(np.arange(1000), 1000, 7)
    some = np.array([[999, 3], [500, 3]])
    assert_array_equal(deal_units(some, 1000, 7), whole[some])


@pytest.mark.parametrize("n", [7, 12])
def test_all_pairs_of_units_are_dealt_alike(n):
    # 8,000 orders; p-values of 2 x 3 tests: below 1e-4 once in 1,600 such suites.
    orders = np.array([deal_units(np.arange(n), n, seed) for seed in range(8000)])
    for first, second in [(0, 1), (2, 5), (0, n - 1)]:
        pairs = orders[:, first] * n + orders[:, second]
        seen = np.bincount(pairs, minlength=n * n).reshape(n, n)
        assert np.trace(seen) == 0
        assert stats.chisquare(seen[~np.eye(n, dtype=bool)]).pvalue > 1e-4


# The design


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("n", [80, 83, 87])
def test_shards_are_disjoint_and_learners_stay_in_theirs(n, replace):
    design = ShardsDesign(n, 10, replace, 3, n_shards=G)
    B = 40 * G
    members, groups = design.members(0, B), design.groups(B)
    held = [set(members[groups == g].ravel().tolist()) for g in range(G)]
    for one, other in itertools.combinations(held, 2):
        assert not one & other
    # 40 draws of 10 leave no unit of a shard of ten or eleven out.
    assert_array_equal([len(one) for one in held], design.sizes())
    assert sum(len(one) for one in held) == n
    if not replace:
        assert all(len(set(row)) == 10 for row in members.tolist())


def test_learners_are_drawn_alike_from_their_shard():
    design = ShardsDesign(80, 2, True, 1, n_shards=G)
    drawn = np.bincount(design.members(0, 4000 * G).ravel(), minlength=80)
    # 64,000 draws, 800 of every unit: chi-square with 79 degrees of freedom.
    assert stats.chisquare(drawn).pvalue > 1e-4


def test_any_range_of_learners_is_the_same():
    design = ShardsDesign(83, 10, True, 3, n_shards=G)
    assert_array_equal(design.members(0, 64)[13:29], design.members(13, 29))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 11}, r"`k` must be at most n / n_shards = 10 .* got 11"),
        ({"n_shards": 81, "k": None}, "`n_shards` must be at most n = 80.* got 81"),
        ({"n_shards": 3}, "`n_shards` must be at least 4; got 3"),
        ({"B": 20}, r"multiple of the n_shards = 8, and at least 16.* Use 16"),
        ({"B": 8}, "at least 16"),
        ({"n_shards": 2.5}, "`n_shards` must be a whole number"),
    ],
)
def test_what_shards_cannot_be(data, options, message):
    given = {"k": 10, "n_shards": G, "B": 16, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        vs.fit("y ~ x1", data.head(80), design="shards", **given)


def test_the_default_k_stays_within_a_shard(data):
    assert vs.fit("y ~ x1", data, design="shards", B=80, rng=1).k == 20  # not 211
    found = vs.fit("y ~ x1", data, design="shards", n_shards=4, B=8, rng=1)
    assert found.k == 200


# The variance


def by_hand(values, shards):
    """Variance between the means of shards, over their number, number by number."""
    means = [
        sum(v for v, s in zip(values, shards, strict=True) if s == g)
        / sum(s == g for s in shards)
        for g in sorted(set(shards))
    ]
    mean = sum(means) / len(means)
    count = len(means)
    return sum((one - mean) ** 2 for one in means) / (count - 1) / count


def test_the_variance_is_that_of_the_shard_means_over_their_number(results):
    shards = results.design.groups(80).tolist()
    expected = by_hand(results.values[:, 0].tolist(), shards)
    assert_allclose(results.bse.item() ** 2, expected, rtol=1e-12)
    assert_allclose(results.components.total.item(), expected, rtol=1e-12)
    assert results.df.item() == G - 1
    half = stats.t.isf(0.025, G - 1) * np.sqrt(expected)
    assert_allclose(results.conf_int()["upper"] - results.params, half, rtol=1e-12)


def test_the_parts_of_the_variance(results):
    values, shards = results.values[:, 0], results.design.groups(80)
    within = np.mean([values[shards == g].var(ddof=1) for g in range(G)])
    parts = results.components
    assert_allclose(parts.monte_carlo, within / 80, rtol=1e-12)
    assert_allclose(parts.sampling, parts.total - within / 80, rtol=1e-10)
    assert_allclose(parts.zeta_1, 800 / 30**2 * parts.sampling, rtol=1e-12)
    assert_allclose(parts.zeta_k, G * parts.total + 0.9 * within, rtol=1e-12)


def test_covariances_are_those_of_the_shard_means(results, data):
    at = data[["x1", "x4"]].head(3)
    predictions = results.get_prediction(at)
    values = results.predictor.values(at.to_numpy())
    means = values.reshape(-1, G, 3).mean(axis=0)
    expected = np.cov(means, rowvar=False) / G
    assert_allclose(predictions.cov(), expected, rtol=1e-10)
    assert_allclose(predictions.se_mean, np.sqrt(np.diag(expected)), rtol=1e-12)


def test_covariances_have_the_parts_of_the_variances(results):
    values = np.column_stack([results.values, results.effect_values.values])
    parts = ESTIMATORS["shards"].components(results.design, values, None)
    joint = ESTIMATORS["shards"].covariance(results.design, values, None)
    assert_allclose(np.diag(joint[0]), parts.sampling, rtol=1e-12)
    assert_allclose(np.diag(joint[1]), parts.monte_carlo, rtol=1e-12)


def test_influence_is_of_shards_and_adds_up_to_the_variance(results):
    influence = results.influence()
    assert influence.index.name == "shard"
    assert len(influence) == G
    assert_allclose((influence**2).sum(), results.bse**2, rtol=1e-12)
    assert_allclose(influence.sum(), 0, atol=1e-12)


def simulated(L, k, replace, n_sets=1500, n_shards=4):
    """Estimates and variance parts of the mean of 40 numbers, over many data sets."""
    groups = np.arange(n_shards * L) % n_shards
    rng = np.random.default_rng(11)
    rows = []
    for seed in range(n_sets):
        x = rng.exponential(size=40)
        design = ShardsDesign(40, k, replace, seed, n_shards=n_shards)
        values = x[design.members(0, n_shards * L)].mean(axis=1)[:, None]
        found = shard_moments(values, groups)
        rows.append([values.mean(), found.between.item(), found.within.item()])
    return np.array(rows)


@pytest.mark.parametrize("L", [2, 6])
@pytest.mark.parametrize("replace", [True, False])
def test_the_variance_is_unbiased_at_any_number_of_learners(L, replace):
    rows = simulated(L, 4, replace)
    reported, n_sets = rows[:, 1] / 4, len(rows)
    ratio = reported.mean() / rows[:, 0].var(ddof=1)
    # The variance of 1,500 estimates is known to 3.7 %, the mean of as many reported
    # ones, with three degrees of freedom each, to 2.1 %: 4 standard errors.
    assert abs(np.log(ratio)) < 4 * np.hypot(np.sqrt(2 / n_sets), 0.0211)


def test_the_parts_are_unbiased_for_a_linear_kernel():
    rows = simulated(5, 4, False)
    # Means of 4 of 10: zeta_k = 1/4; with all learners the mean of 40 has 1/40.
    sampling = rows[:, 1] / 4 - rows[:, 2] / 20
    zeta_k = rows[:, 1] + (1 - 1 / 5) * rows[:, 2]
    for values, truth in [(sampling, 1 / 40), (zeta_k, 1 / 4)]:
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - truth) < 4 * error


def test_shards_that_hold_the_same_share_of_every_class_would_hide_its_variance():
    """Why units are dealt at random and not by class."""
    y = np.repeat([0.0, 1.0], 40)
    by_class = y.reshape(2, 8, 5).transpose(1, 0, 2).reshape(8, 10).mean(axis=1)
    assert by_class.var() == 0  # while the share of a class has the variance 1/320
    shards = [
        y[deal_units(np.arange(80), 80, seed)].reshape(10, 8).mean(axis=0)
        for seed in range(2000)
    ]
    reported = np.var(shards, axis=1, ddof=1) / 8
    # Without replacement from these 80 the expectation is y.var(ddof=1) / 80.
    error = reported.std(ddof=1) / np.sqrt(2000)
    assert abs(reported.mean() - y.var(ddof=1) / 80) < 4 * error


def test_a_change_of_unit_changes_the_unit_alone(data):
    options = {"design": "shards", "n_shards": G, "k": 30, "B": 80, "rng": 5}
    one = vs.fit("y ~ x1 + x4", data, **options)
    other = vs.fit("y ~ x1 + x4", data.assign(y=2.0**300 * data["y"]), **options)
    assert_array_equal(other.bse, 2.0**300 * one.bse)


@pytest.mark.parametrize(("c", "d"), [(1e-8, 0), (-3.0, 7.0), (1.0, 1e8)])
def test_variances_scale_with_the_square_of_the_unit(c, d):
    design = ShardsDesign(80, 6, True, 2, n_shards=G)
    counts, shards = design.counts(0, 40), design.groups(40)
    values = np.random.default_rng(3).normal(size=(40, 2))
    order = np.random.default_rng(4).permutation(40)

    def parts(counts, values, shards):
        return vs.variance_components(counts, values, method="shards", groups=shards)

    plain = parts(counts, values, shards)
    moved = parts(counts[order], c * values[order] + d, shards[order])
    for name in ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se"):
        # An offset of 1e8 rounds the values themselves to 1.5e-8.
        expected = c**2 * getattr(plain, name)
        assert_allclose(getattr(moved, name), expected, rtol=1e-6)


# What works on it


def test_learners_that_are_added_continue_every_shard(results, data):
    grown = results.more(160)
    options = {"design": "shards", "n_shards": G, "k": 30, "rng": 5}
    whole = vs.fit("y ~ x1 + x4", data, B=160, **options)
    assert_array_equal(grown.values, whole.values)
    assert_array_equal(grown.bse, whole.bse)


@pytest.mark.parametrize("atol", [0.0, 0.05])
def test_auto_grows_until_more_would_hardly_make_errors_smaller(data, atol):
    at = data[["x1", "x4"]].head(5)
    options = {"design": "shards", "n_shards": G, "k": 50, "rng": 2, "at": at}
    found = vs.fit("y ~ x1 + x4", data, atol=atol, max_B=5000, **options)
    assert found.B % G == 0
    parts = found.components
    V, M = parts.sampling.mean(), parts.monte_carlo.mean()
    room = max(0.1 * np.sqrt(V), atol)
    assert np.sqrt(V + M) - np.sqrt(V) <= room
    first = vs.fit("y ~ x1 + x4", data, atol=atol, B=256, **options)
    assert first.tolerance.excess(first.estimates) > 1  # so it could not stop there
    text = " ".join(str(found.summary()).split())
    assert "infinitely many learners would make the Estimates' std err at most" in text
    mean = found.t_test([[0.2] * 5])
    assert mean.tolerance.excess(mean.estimates) <= 1
    assert "B was grown" not in str(mean.summary())


def test_what_is_left_at_the_learners_that_are_needed(results):
    """Exactly as much as is allowed, if the parts are what they seem."""
    tolerance = results.tolerance
    parts, scale = results.components, results.limit
    V, M = parts.sampling.mean(), parts.monte_carlo.mean()
    assert V > 0
    needed = tolerance.learners_needed(results.estimates).max()
    room = max(0.1 * np.sqrt(V), 0.1 * 0.02 * scale)
    assert_allclose(np.sqrt(V + M * 80 / needed) - np.sqrt(V), room, rtol=1e-10)
    excess = (np.sqrt(V + M) - np.sqrt(V)) / room
    assert_allclose(tolerance.excess(results.estimates), excess, rtol=1e-10)
    assert results.diagnostics["learners_needed"].item() == np.ceil(needed)


def test_estimates_of_different_units_count_as_one(data):
    """The means of their variances do, in the unit that they are in."""
    wide = data.assign(x1=data["x1"] / 64)
    options = {"design": "shards", "n_shards": G, "k": 50, "rng": 2}
    found = vs.fit("y ~ x1 + x4", wide, kernel="ols", B=80, **options)
    parts = found.components
    V, M = parts.sampling.mean(), parts.monte_carlo.mean()
    assert V > 0
    assert np.unique(found.estimates.unit).size > 1
    room = 0.1 * np.sqrt(V)
    needed = found.diagnostics["learners_needed"]
    expected = M * 80 / (room**2 + 2 * room * np.sqrt(V))
    assert_allclose(needed, np.ceil(expected))
    excess = (np.sqrt(V + M) - np.sqrt(V)) / room
    assert_allclose(found.tolerance.excess(found.estimates), excess, rtol=1e-10)


def test_the_noise_of_the_variance_is_at_most_all_of_it():
    rng = np.random.default_rng(5)
    design = ShardsDesign(80, 6, True, 2, n_shards=G)
    values = rng.normal(size=(16, 40))  # learners that have nothing in common
    shards = design.groups(16)
    parts = vs.variance_components(
        design.counts(0, 16), values, method="shards", groups=shards
    )
    negative = parts.sampling < 0
    assert 5 < negative.sum() < 35
    noise = np.minimum(parts.monte_carlo, parts.total) / (G - 1)
    expected = np.sqrt(2 * G * noise**2 + 4 * noise * np.maximum(parts.sampling, 0))
    assert_allclose(parts.mc_se, expected, rtol=1e-12)
    assert (parts.mc_se / (2 * parts.total)).max() <= np.sqrt(G / 2) / (G - 1) + 1e-12


def test_results_are_saved_and_pickled_with_their_shards(results, data, tmp_path):
    results.save(tmp_path / "shards.vst")
    at = data[["x1", "x4"]].head(4)
    for read in (vs.load(tmp_path / "shards.vst"), pickle.loads(pickle.dumps(results))):
        assert read.design == results.design
        assert_array_equal(read.bse, results.bse)
        expected = results.get_prediction(at).summary_frame()
        pd.testing.assert_frame_equal(read.get_prediction(at).summary_frame(), expected)
        assert str(read.summary()) == str(results.summary())


def test_effects_contrasts_and_bands(results, data):
    at = data[["x1", "x4"]].head(3).set_axis(list("abc"))
    found = vs.fit(
        "y ~ x1 + x4", data, design="shards", n_shards=G, k=30, B=80, rng=5, at=at
    )
    difference = found.t_test("a - b = 0")
    shards = found.values.reshape(-1, G, 3).mean(axis=0)
    moved = shards[:, 0] - shards[:, 1]
    assert_allclose(difference.bse.item(), moved.std(ddof=1) / np.sqrt(G), rtol=1e-10)
    assert difference.df.item() == G - 1
    effects = results.effect_values.values.reshape(-1, G, 2).mean(axis=0)
    expected = effects.std(axis=0, ddof=1) / np.sqrt(G)
    assert_allclose(results.effects["std_error"], expected, rtol=1e-12)
    alone, band = found.conf_int(), found.conf_int(simultaneous=True)
    assert (band["upper"] > alone["upper"]).all()


def test_joint_tests_are_hotellings():
    rng = np.random.default_rng(4)
    replicates = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 3)) + 0.4
    mean, cov = replicates.mean(axis=0), np.cov(replicates, rowvar=False) / 12
    found = wald_test(mean, cov, 11.0, "all zero", replicates=True)
    squared = mean @ np.linalg.solve(cov, mean)
    expected = squared * (12 - 3) / (3 * 11)
    assert_allclose(found.statistic, expected, rtol=1e-9)
    assert (found.df_num, found.df_denom) == (3, 9)
    assert_allclose(found.pvalue, stats.f.sf(expected, 3, 9), rtol=1e-9)
    one = wald_test(mean[:1], cov[:1, :1], 11.0, "zero", replicates=True)
    t = mean[0] / np.sqrt(cov[0, 0])
    assert_allclose(one.pvalue, 2 * stats.t.sf(abs(t), 11), rtol=1e-9)


def test_joint_tests_of_shards(data):
    at = data[["x1", "x4"]].head(6).set_axis(list("abcdef"))
    found = vs.fit(
        "y ~ x1 + x4", data, design="shards", n_shards=4, k=30, B=80, rng=5, at=at
    )
    test = found.wald_test("a = b, b = c")
    assert (test.df_num, test.df_denom) == (2, 2)
    with pytest.raises(ValueError, match="of 4 restrictions needs more than 4"):
        found.wald_test("a = b, b = c, c = d, d = e")


def test_clusters_are_dealt_whole(data):
    clusters = np.arange(800) // 4
    found = vs.fit(
        "y ~ x1", data, groups=clusters, design="shards", n_shards=5, k=10, B=20, rng=1
    )
    assert found.design.n == 200
    assert found.design.sizes().tolist() == [40] * 5


def test_predictions_need_no_table_of_units(results, data, monkeypatch):
    """Shards are few: points are not taken one by one because units are many."""
    calls = []
    components = ShardEstimator.components

    def counted(self, design, values, orders):
        calls.append(values.shape[1])
        return components(self, design, values, orders)

    monkeypatch.setattr("vstatkit.inference.estimates.CHUNK_ENTRIES", 1)
    monkeypatch.setattr(ShardEstimator, "components", counted)
    results.get_prediction(data)
    assert calls == [800]


def test_a_statistic_on_shards():
    x = np.random.default_rng(0).normal(size=400)
    found = vs.statistic("mean", x, k=5, design="shards", n_shards=10, B=2000, rng=1)
    places = np.arange(400).reshape(-1, 10)
    shards = x[deal_units(places, 400, 1)].mean(axis=0)
    # With 200 learners of 5 each, a shard's mean is that of its 40 units to 0.03.
    assert_allclose(found.params.item(), x.mean(), atol=0.04)
    assert_allclose(found.bse.item(), shards.std(ddof=1) / np.sqrt(10), rtol=0.25)


@pytest.mark.parametrize("name", ["ij", "jackknife", "hoeffding", "corrected_v", "im"])
def test_other_estimators_do_not_see_shards(results, name):
    with pytest.raises(ValueError, match=r"Use 'shards'|needs `design='two-level'`"):
        results.with_variance(name)


def test_shards_made_elsewhere_are_checked():
    rng = np.random.default_rng(1)
    counts = np.zeros((12, 30))
    shards = np.arange(12) % 3
    for row, g in enumerate(shards):
        counts[row, rng.choice(np.arange(10 * g, 10 * g + 10), 4, replace=False)] = 1
    values = rng.normal(size=12)
    found = vs.from_arrays(
        counts, values, replace=False, variance="shards", groups=shards
    )
    expected = by_hand(values.tolist(), shards.tolist())
    assert_allclose(found.bse.item() ** 2, expected, rtol=1e-12)
    counts[0], counts[1] = counts[1].copy(), counts[0].copy()
    mixed = vs.from_arrays(
        counts, values, replace=False, variance="shards", groups=shards
    )
    with pytest.raises(ValueError, match=r"disjoint parts of the data; \d obs"):
        mixed.summary()


# The choice


def test_the_predicted_error_is_that_of_the_jackknife():
    """The law is the noise of the estimates, far out where noise is all there is."""
    data = vs.datasets.mars(1000, rng=1)
    found = vs.fit("y ~ .", data, k=50, B=200, rng=1, variance="ij_u")
    parts = found.components
    ratio = parts.zeta_k.item() / (50 * parts.zeta_1.item())
    predicted = jackknife_error(1000, 200, ratio)
    noise = np.sqrt(2 * 1000) * parts.noise.item()
    assert_allclose(predicted, noise / parts.sampling.item(), rtol=0.02)
    needed = jackknife_learners(1000, ratio)
    assert_allclose(jackknife_error(1000, needed, ratio), 2 * TOL, rtol=1e-12)


def choose(n, kind, options, **changes):
    return choose_design(n, kind, options=options, **{"k": 100, **changes})


def test_shards_are_chosen_where_a_jackknife_is_hopeless():
    few, many = 124_000, 126_000  # where trees reach an error of one half
    assert jackknife_error(few, 10_000, 10) < MOST_ERROR
    assert jackknife_error(many, 10_000, 10) > MOST_ERROR
    trees, options = KernelKind.TREES, {}
    assert choose(few, trees, options) == ("iid", {})
    assert choose(many, trees, options) == ("shards", {"n_shards": 40})
    assert choose(many, trees, options, k=4000) == ("shards", {"n_shards": 31})
    assert choose(many, trees, options, k=0.04) == ("shards", {"n_shards": 25})
    assert choose(many, trees, options, k=6300) == ("shards", {"n_shards": 20})
    assert choose(2 * 10**6, KernelKind.UNKNOWN, {})[0] == "shards"
    assert choose(10**6, KernelKind.UNKNOWN, {})[0] == "iid"
    assert choose(10**7, KernelKind.SMOOTH, {})[0] == "iid"
    assert choose(many, trees, options, size=20_000) == ("iid", {})
    assert choose(many, trees, options, size=50)[0] == "shards"
    assert choose(many, trees, options, size="complete") == ("iid", {})


def test_few_learners_of_few_units_are_nobodys_reason_for_shards():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose(80, KernelKind.TREES, {}, max_B=50) == ("iid", {})
        assert choose(80, KernelKind.TREES, {}, size=50) == ("iid", {})
    assert choose(126_000, KernelKind.TREES, {}, max_B=40_000)[0] == "iid"


def test_shards_are_chosen_by_name_and_by_option():
    trees = KernelKind.TREES
    assert choose(500, trees, {}, variance="shards") == ("shards", {})
    assert choose(500, trees, {"n_shards": 9}) == ("shards", {"n_shards": 9})


@pytest.mark.parametrize(
    "changes",
    [
        {"variance": "ij"},
        {"variance": "jackknife"},
        {"design": "iid"},
    ],
)
def test_a_jackknife_of_many_units_is_warned_of_with_what_it_needs(changes):
    with pytest.warns(vs.MonteCarloWarning, match="about 26,000 learners"):
        name, _ = choose(126_000, KernelKind.TREES, {}, **changes)
    assert name == "iid"


@pytest.mark.parametrize("k", [None, 6301, 0.06])
def test_shards_never_make_k_smaller(k):
    """One more row does not change what is estimated: both ways out are named."""
    match = r"about 26,000 learners.*smaller `k` \(up to n / 20 = 6,300\), or des"
    with pytest.warns(vs.MonteCarloWarning, match=match):
        name, options = choose(126_000, KernelKind.TREES, {}, k=k)
    assert (name, options) == ("iid", {})
    assert choose(124_000, KernelKind.TREES, {}, k=k) == ("iid", {})


def test_the_default_size_stays_where_standard_errors_are_not_feasible(monkeypatch):
    data = vs.datasets.mars(3000, rng=1)
    few = vs.fit("y ~ x1", data, rng=1, B=40)
    monkeypatch.setattr("vstatkit.ensemble.sampling_plan.MOST_ERROR", 0.001)
    with pytest.warns(
        vs.MonteCarloWarning, match="their standard errors are mostly"
    ) as seen:
        found = vs.fit("y ~ x1", data, rng=1)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert (found.design.name, found.k, found.B) == ("iid", few.k, 512)
    again = vs.fit("y ~ x1", data, rng=1, design="shards", B=80)
    assert again.k == 75 < found.k
    with pytest.warns(vs.MonteCarloWarning, match="The fit has B = 40"):
        fixed = vs.fit("y ~ x1", data, rng=1, B=40)
    assert_allclose(fixed.params, few.params)


@pytest.mark.parametrize("changes", [{"design": "shards"}, {"design": "little-bags"}])
def test_designs_without_a_jackknife_are_not_warned_of(changes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        name, _ = choose(10**7, KernelKind.TREES, {}, **changes)
    assert name == changes["design"]


def test_fit_chooses_shards_and_says_so():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=126_000)})
    data["y"] = data["x"] + rng.normal(size=126_000)
    with pytest.warns(vs.VstatkitWarning, match="B = 90 rounded up to 120"):
        found = vs.fit("y ~ x", data, k=20, B=90, rng=1)
    assert (found.design.name, found.variance, found.B) == ("shards", "shards", 120)
    text = " ".join(str(found.summary(full=True)).split())
    assert "spread of the ensembles of 40 disjoint shards of 3,150 observations" in text
    assert "It has 39 degrees of freedom, so its relative error is 11%" in text
    assert "normality tests of the means of the 40 shards" in text


def test_make_design_knows_shards():
    design = make_design("shards", 100, 5, replace=True, seed=1, n_shards=10)
    assert design == ShardsDesign(100, 5, True, 1, n_shards=10)
