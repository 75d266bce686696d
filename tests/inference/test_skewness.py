"""Intervals of skewed estimates: longer on one side, and never beyond zero."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs
from tests.support.hostile_files import dropped
from vstatkit.inference.intervals import Tails
from vstatkit.inference.skew_correction import (
    FULL_SKEW,
    LEAST_SHARE,
    SMALL_SKEW,
    known_skew,
    least_error,
    quantile_of,
    reach,
    skew_curvature,
    threshold_skew,
    trusted_share,
)
from vstatkit.kernels.tree import response_bounds

CURVES = st.floats(-1.0, 1.0)
QUANTILES = st.floats(0.0, 1e3)


def zero_inflated(seed, n=200, p=1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(size=(n, p)), columns=[f"x{j}" for j in range(p)])
    y = np.where(rng.uniform(size=n) < 0.85, 0.0, rng.gamma(1.5, 1 / 1.5, n))
    return frame.assign(y=y)


@pytest.fixture(scope="module")
def skewed():
    return zero_inflated(3, 150, 3)


@pytest.fixture(scope="module")
def fitted(skewed):
    return vs.fit("y ~ x0 + x1 + x2", skewed, B=400, rng=1, at=skewed.head(8))


@given(QUANTILES, st.floats(0, 1e3), CURVES)
def test_intervals_are_nested_and_undone_by_their_inverse(t, more, curvature):
    b = np.array([curvature])
    one, two = reach(t, b), reach(t + more, b)
    assert 0 <= one <= two
    assert_allclose(quantile_of(one, b), t, rtol=1e-9, atol=1e-9)
    size = np.abs(b)
    slack = 1e-9 * t + 1e-300
    assert reach(t, size) - slack <= t <= reach(t, -size) + slack


@given(QUANTILES)
def test_without_skewness_the_reach_is_the_quantile(t):
    assert reach(t, np.zeros(1)) == t
    assert quantile_of(np.array([t]), np.zeros(1)) == t
    assert quantile_of(np.array([np.inf]), np.array([0.3])) == np.inf


@pytest.mark.parametrize("g", [-0.4, 0.05, 0.3])
def test_the_reach_is_edgeworths_at_two_standard_errors(g):
    """Quantiles of a studentised sum are z - g (2 z**2 + 1) / 6 to first order."""
    b = skew_curvature(np.array([abs(g)]), np.array([2.0]))
    assert_allclose(reach(2.0, -b), 2 + abs(g) * (2 * 2**2 + 1) / 6)
    b = skew_curvature(np.array([1e-6]), np.array([2.0]))
    assert_allclose((2 - reach(2.0, b)) / 1e-6, 9 / 6, rtol=1e-4)


def test_the_reach_is_that_of_means_of_skewed_numbers():
    """Quantiles of 100,000 studentised means of 40 exponential variables."""
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(100_000, 40))
    T = np.sort((x.mean(axis=1) - 1) / (x.std(axis=1, ddof=1) / np.sqrt(40)))
    t = stats.t.isf(0.025, 39)
    b = skew_curvature(
        np.array([2 / np.sqrt(40)]), np.array([stats.t.isf(stats.norm.sf(2), 39)])
    )
    low, high = T[2500], T[97_500]
    assert_allclose(reach(t, -b), -low, rtol=0.1)
    assert_allclose(reach(t, b), high, rtol=0.05)


def test_the_skewness_of_a_mean_is_that_of_the_numbers():
    x = np.random.default_rng(2).exponential(size=12)
    c = x - x.mean()
    expected = (c**3).sum() / (c**2).sum() ** 1.5
    for replace in (True, False):
        for name in ("jackknife", "ij"):
            res = vs.statistic(
                "mean", x, k=2, B="complete", replace=replace, variance=name
            )
            assert_allclose(res.estimates.scaled.skew, expected, rtol=1e-9)


def test_a_skewness_that_may_be_chance_is_none():
    c = np.array([0.02, 0.2])
    expected = 0.3 * (1 - 2 * 6 * (0.2 / 3) ** 2 / 0.3**2)
    found = known_skew(np.full(2, 0.3), np.zeros(2), c, 100)
    assert_allclose(found[1], expected)
    assert known_skew(np.full(2, 0.3), np.zeros(2), c, 100)[0] > 0.29
    assert known_skew(np.array([0.3]), np.array([0.1]), c[:1], 100) == 0
    assert known_skew(np.array([5.0]), np.zeros(1), np.zeros(1), 100) == 1
    assert known_skew(np.zeros(1), np.zeros(1), np.zeros(1), 100) == 0


def test_few_learners_do_not_make_estimates_skewed():
    """Student's t applies if the ensemble does not determine the standard error."""
    rng = np.random.default_rng(4)
    x = pd.DataFrame(rng.uniform(size=(300, 4)), columns=list("abcd"))
    data = x.assign(y=np.exp(x["a"] + x["b"] + rng.normal(size=300)))
    seen = 0
    for seed in range(5):
        res = vs.fit("y ~ a + b + c + d", data, B=50, rng=seed, n_jobs=1)
        found = res.avg_slopes().results.estimates
        unknown = found.relative_mc_error > 0.3
        parts = found.scaled
        noise = parts.noise / found.positive
        raw = known_skew(parts.skew, noise, parts.concentration, parts.n)
        seen += np.sum(unknown & (np.abs(raw) > SMALL_SKEW))
        expected = 2 * stats.t.sf(np.abs(found.zvalues), found.df)
        assert_allclose(found.pvalues[unknown], expected[unknown], rtol=1e-9)
        lower, upper = found.interval(0.05)
        middle = (lower + upper) / 2
        assert_allclose(middle[unknown], found.estimate[unknown], rtol=1e-9)
    assert seen > 2


def test_the_weight_of_own_skewness_is_continuous():
    at = np.array([0.0, 0.1999, 0.2 + 1e-9, 0.27, 0.3 - 1e-9, 0.3, 5.0, np.inf])
    found = trusted_share(at)
    assert_array_equal(found[:2], 1.0)
    assert_allclose(found[2:], [1, 0.3, 0, 0, 0, 0], atol=1e-7)
    assert_array_equal(found[-3:], 0.0)


def test_own_skewness_is_used_if_the_standard_error_is_known():
    x = np.random.default_rng(2).exponential(size=12)
    res = vs.statistic("mean", x, k=2, B="complete", replace=True, variance="ij")
    found = res.estimates
    assert found.relative_mc_error.item() < 0.2
    parts = found.scaled
    noise = parts.noise / found.positive
    raw = known_skew(parts.skew, noise, parts.concentration, parts.n)
    assert_array_equal(found.own_skew, raw)


def test_the_transition_from_symmetric_intervals_is_smooth():
    g = np.array([-0.3, -SMALL_SKEW, 0.0, SMALL_SKEW, SMALL_SKEW + 1e-9, 0.3])
    assert_allclose(threshold_skew(g), [-0.2, 0, 0, 0, 1e-9, 0.2], atol=1e-15)
    assert_allclose(
        least_error(np.array([0.0, 1e-9, FULL_SKEW, 1.0]), 3.0),
        3 * np.sqrt(LEAST_SHARE) * np.array([0, np.sqrt(1e-9 / FULL_SKEW), 1, 1]),
    )


def test_intervals_of_a_forest_by_hand(fitted):
    found = fitted.estimates
    tails = fitted.tails
    assert tails.skew > 0.3
    g = tails.skew - SMALL_SKEW
    share = LEAST_SHARE * min(g / FULL_SKEW, 1)
    error = np.maximum(found.bse, np.sqrt(share) * tails.error)
    for alpha in (0.01, 0.05, 0.4):
        t = stats.t.isf(alpha / 2, found.df)
        b = 0.75 * g * 2 / stats.t.isf(stats.norm.sf(2), found.df)
        lower = np.maximum(found.estimate - error * np.log(1 + b * t) / b, 0)
        upper = found.estimate + error * (t + b * t**2 / 2)
        assert_allclose(fitted.conf_int(alpha).T, [lower, upper], rtol=1e-10)


def test_the_typical_error_and_skewness_are_pooled_over_reference_rows(fitted):
    rows = pd.DataFrame(fitted.reference[:300], columns=["x0", "x1", "x2"])
    found = fitted.get_prediction(rows).estimates
    # Pooled variances of the reference rows have the leaves of fewer trees.
    error = np.sqrt(found.sampling.mean())
    assert fitted.tails.error == pytest.approx(error, rel=0.01)
    weight = found.sampling**1.5
    raw = found.scaled.skew @ weight / weight.sum()
    r = found.components.noise.sum() / found.sampling.sum()
    noise = 9 * r * found.scaled.concentration.mean() + 36 * r**2 + 15 * 150 * r**3
    expected = raw * (1 - 2 * noise / raw**2)
    assert fitted.tails.skew == pytest.approx(expected, rel=0.01)


def test_p_values_and_intervals_agree(fitted):
    alpha = 0.07
    lower, upper = fitted.conf_int(alpha).to_numpy().T
    for null in np.linspace(0.001, 0.6, 23):
        found = dataclasses.replace(fitted.estimates, null=null)
        inside = (lower <= null) & (null <= upper)
        assert_array_equal(found.pvalues >= alpha, inside)


@pytest.mark.parametrize(("a", "b"), [(4.0, 0.0), (-2.0, 0.0), (-1.0, 8.0)])
def test_intervals_change_with_the_unit_and_the_origin(skewed, fitted, a, b):
    moved = skewed.assign(y=a * skewed["y"] + b)
    found = vs.fit("y ~ x0 + x1 + x2", moved, B=400, rng=1, at=skewed.head(8))
    whole = fitted.conf_int(0.5)["lower"] > 0  # where zero cuts nothing off
    lower, upper = a * fitted.conf_int(0.5)[whole].to_numpy().T + b
    expected = (lower, upper) if a > 0 else (upper, lower)
    assert whole.sum() >= 6
    assert_allclose(found.conf_int(0.5)[whole].T, expected, rtol=1e-6, atol=1e-9)


def test_other_query_points_do_not_matter(skewed, fitted):
    alone = vs.fit("y ~ x0 + x1 + x2", skewed, B=400, rng=1, at=skewed.iloc[[3]])
    assert_allclose(alone.conf_int(), fitted.conf_int().iloc[[3]], rtol=1e-9)


def test_no_interval_of_responses_of_one_sign_is_beyond_zero(skewed, fitted):
    assert (fitted.conf_int(0.001)["lower"] == 0).any()
    assert (fitted.conf_int(0.001)["lower"] >= 0).all()
    assert (fitted.get_prediction(skewed).conf_int(0.001)["lower"] >= 0).all()
    assert (fitted.conf_int(0.01, simultaneous=True)["lower"] >= 0).all()
    assert fitted.avg_predictions().conf_int(1e-9)["lower"].iloc[0] == 0
    assert (fitted.t_test(np.eye(8)).conf_int(0.001)["lower"] >= 0).all()
    difference = fitted.t_test(np.eye(8)[:1] - np.eye(8)[1:2])
    assert difference.conf_int(0.001)["lower"].iloc[0] < 0
    text = " ".join(str(fitted.summary()).split())
    assert "allow for skewness" in text
    assert "No interval of an estimate extends beyond zero, as no response" in text
    mirrored = skewed.assign(y=-skewed["y"])
    below = vs.fit("y ~ x0 + x1 + x2", mirrored, B=400, rng=1, at=skewed.head(8))
    assert (below.conf_int(0.001)["upper"] <= 0).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_the_summary_counts_skewed_estimates_and_effects(seed):
    """Those whose interval is not symmetric about the estimate are counted."""
    data = zero_inflated(seed, n=80, p=3)
    data["y"] += 3 * (data["x0"] > 0.95) - 1  # responses of both signs
    res = vs.fit("y ~ x0 + x1 + x2", data, B=400, k=40, rng=1, at=data.head(3))
    text = " ".join(str(res.summary()).split())
    said = []
    for what, frame in {"estimates": res.tidy(), "effects": res.effects}.items():
        low, high = (
            ("conf_low", "conf_high") if "term" in frame else ("ci_lower", "ci_upper")
        )
        middle = (frame[low] + frame[high]) / 2
        count = int((~np.isclose(middle, frame["estimate"], rtol=1e-9)).sum())
        if count:
            said.append(f"{count} of {len(frame)} {what}")
    assert ("effects" in str(said)) == (seed in (0, 5))
    note = f"intervals and p-values of {' and '.join(said)} allow for skewness"
    assert (note in text) == ("allow for skewness" in text) == bool(said)


def test_intervals_of_zeros_and_ones_end_at_both(tmp_path):
    rng = np.random.default_rng(6)
    x = pd.DataFrame(rng.uniform(size=(150, 2)), columns=["a", "b"])
    data = x.assign(y=(rng.uniform(size=150) < 0.2 + 0.75 * x["a"]).astype(float))
    res = vs.fit("y ~ a + b", data, B=100, rng=1, at=data.head(40), n_jobs=1)
    found, t = res.estimates, stats.t.isf(0.005, res.estimates.df)
    assert (found.estimate + t * found.bse > 1.05).any()  # without the ends
    assert (found.estimate - t * found.bse < -0.05).any()
    bounds = res.conf_int(0.01)
    assert bounds["lower"].min() == 0
    assert bounds["upper"].max() == 1
    frame = res.get_prediction(data).summary_frame(0.05)
    assert frame["mean_ci_upper"].max() == 1
    mean = res.avg_predictions().conf_int(1e-9)
    assert_array_equal(mean, [[0.0, 1.0]])
    contrast = res.t_test(np.eye(40)[:1] - np.eye(40)[1:2]).conf_int(1e-9)
    assert_array_equal(contrast, [[-1.0, 1.0]])
    for table in (res.effects_frame(1e-9), res.avg_effects().results.tidy(1e-9)):
        low, high = table.filter(regex="low"), table.filter(regex="upp|high")
        assert_allclose(low, -1.0, rtol=1e-12)
        assert_allclose(high, 1.0, rtol=1e-12)
    assert_array_equal(res.t_test("a = 0").conf_int(1e-9), [[-1.0, 1.0]])
    assert "All responses are 0 or 1" in " ".join(str(res.summary()).split())
    res.save(tmp_path / "saved.npz")
    assert_array_equal(vs.load(tmp_path / "saved.npz").conf_int(0.01), bounds)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([0.0, 1.0], (0, 1)),
        ([0.0, 1.0, 0.5], (0, np.inf)),
        ([1.0, 1.0], (0, np.inf)),
        ([0.0, 1.0, 2.0], (0, np.inf)),
        ([0.0, -1.0], (-np.inf, 0)),
        ([-1.0, 1.0], (-np.inf, np.inf)),
        ([0.1 + 0.2 - 0.3, 1.0 - 1e-16], (0, 1)),
    ],
)
def test_bounds_of_responses(y, expected):
    assert response_bounds(np.array(y)) == expected


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_every_way_to_an_interval_allows_for_skewness(skewed, fitted, tmp_path):
    at, X, y = skewed.head(8), skewed[["x0", "x1", "x2"]], skewed["y"]
    bounds = fitted.conf_int()
    assert_allclose(fitted.get_prediction(at).conf_int(), bounds, rtol=1e-9)
    assert_allclose(fitted.t_test(np.eye(8)).conf_int(), bounds, rtol=1e-9)
    twice = fitted.t_test(-2 * np.eye(8)).conf_int()
    assert_allclose(twice, -2 * bounds.to_numpy()[:, ::-1], rtol=1e-9, atol=1e-12)
    same = fitted.transform(lambda p: p * 1.0)
    assert_allclose(same.conf_int(), bounds, rtol=1e-6, atol=1e-9)
    fitted.save(tmp_path / "new.npz")
    loaded = vs.load(tmp_path / "new.npz")
    assert_array_equal(loaded.conf_int(), bounds)
    assert_allclose(loaded.get_prediction(at).conf_int(), bounds, rtol=1e-12)
    older = dropped("tails")((tmp_path / "new.npz").read_bytes())
    (tmp_path / "old.npz").write_bytes(older)
    old = vs.load(tmp_path / "old.npz")
    assert old.tails.skew == pytest.approx(fitted.tails.skew)
    forest = vs.ForestRegressor(400, random_state=1).fit(X, y)
    expected = forest.results_.get_prediction(at).conf_int()
    assert_allclose(forest.predict_interval(X.head(8)), expected, rtol=1e-9, atol=1e-12)
    theirs = RandomForestRegressor(300, random_state=1).fit(X, y)
    adopted = vs.from_sklearn(theirs, X, y, X.head(4))
    assert adopted.tails.skew > SMALL_SKEW
    assert (adopted.conf_int()["lower"] >= 0).all()


def test_symmetric_noise_keeps_symmetric_intervals():
    rng = np.random.default_rng(6)
    data = pd.DataFrame(rng.uniform(size=(400, 3)), columns=[*"abc"])
    data["y"] = 2 * data["a"] + rng.normal(size=400)
    res = vs.fit("y ~ a + b + c", data, B=400, rng=1, at=data.head(5))
    assert abs(res.tails.skew) < SMALL_SKEW
    half = stats.t.isf(0.025, res.df) * res.bse
    assert_array_equal(res.conf_int()["upper"], res.params + half)
    assert_array_equal(res.conf_int()["lower"], res.params - half)
    expected = 2 * stats.t.sf(np.abs(res.tvalues), res.df)
    assert_allclose(res.pvalues, expected, rtol=1e-12)


def test_combinations_have_tails_of_their_own():
    tails = Tails(2.0, 0.5, 0.0, np.inf)
    coefs = np.array([[1.0, 0.0], [-3.0, 0.0], [1.0, -1.0], [0.5, 0.5]])
    found = tails.combine(coefs)
    assert_array_equal(found.error, [2, 6, 0, 0])
    assert_array_equal(found.skew, [0.5, -0.5, np.nan, np.nan])
    assert_array_equal(found.low, [0, -np.inf, -np.inf, 0])
    assert_array_equal(found.high, [np.inf, 0, np.inf, np.inf])
    beside = tails.join(1, 1)
    assert_array_equal(beside.low, [0, -np.inf])
    assert_array_equal(beside.skew, [0.5, np.nan])


def test_responses_with_many_zeros_are_covered():
    """Symmetric intervals cover .55 to .75 here, and miss on one side."""
    at = pd.DataFrame({"x0": [0.1, 0.35, 0.6, 0.85]})
    covered, estimates = [], []
    for seed in range(30):
        res = vs.fit("y ~ x0", zero_inflated(seed), B=200, rng=seed, at=at)
        covered.append(((res.conf_int() - 0.15).prod(axis=1) <= 0).to_numpy())
        estimates.append(res.params)
    assert abs(np.mean(estimates) - 0.15) < 0.04
    assert np.mean(covered) > 0.88
