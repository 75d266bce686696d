"""Intervals of probabilities: inside their range, and at their level near the ends."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from statsmodels.stats.proportion import proportion_confint

import vstatkit as vs
from tests.support.hostile_files import dropped
from vstatkit.inference.intervals import MOST_TIMES, Support, effective_size

NORMAL = stats.norm.isf(0.025)

ROUNDING = {"rtol": 1e-9, "atol": 1e-12}
"""The two sides round differently."""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.uniform(size=(90, 3)), columns=list("abc"))
    noise = rng.logistic(size=90)
    frame["y"] = np.where(8 * frame["a"] - 5 + noise > 0, "yes", "no")
    frame["level"] = np.digitize(3 * frame["b"] + noise / 4, [0.8, 2.2]).astype(str)
    return frame


@pytest.fixture(scope="module")
def binary(data):
    return vs.fit("y ~ a + b + c", data, B=300, rng=1, at=data.head(12))


@pytest.mark.parametrize(("x", "n"), [(0, 30), (3, 40), (25, 50), (299, 300)])
def test_shares_have_the_interval_of_statsmodels(x, n):
    share = np.array([x / n])
    expected = proportion_confint(x, n, 0.05, method="agresti_coull")
    for error in (0.0, math.sqrt(x / n * (1 - x / n) / n)):
        found = Support(0.0, 1.0, n).interval(share, np.array([error]), NORMAL)
        assert_allclose(np.ravel(found), expected, **ROUNDING)


@pytest.mark.parametrize(("share", "fewer"), [(0.1, 20), (0.6, 5), (0.98, 50)])
def test_a_standard_error_stands_for_a_number_of_observations(share, fewer):
    error = math.sqrt(share * (1 - share) / fewer)
    expected = proportion_confint(share * fewer, fewer, 0.05, method="agresti_coull")
    found = Support(0.0, 1.0, 500).interval(
        np.array([share]), np.array([error]), NORMAL
    )
    assert_allclose(np.ravel(found), expected, **ROUNDING)


@pytest.mark.parametrize("n", [10, 20, 50, 200, 1000])
def test_shares_are_covered_near_the_ends_too(n):
    """Exact: every share of n independent observations, by its probability."""
    x = np.arange(n + 1)
    share = x / n
    error = np.sqrt(share * (1 - share) / n)
    lower, upper = Support(0.0, 1.0, n).interval(share, error, NORMAL)
    truth = np.linspace(0.002, 0.998, 250)[:, None]
    chance = stats.binom.pmf(x, n, truth)
    covered = (chance * ((lower <= truth) & (truth <= upper))).sum(axis=1)
    assert covered.min() > 0.925
    assert covered[50:200].mean() < 0.965
    symmetric = np.abs(share - truth) <= NORMAL * error
    assert (chance * symmetric).sum(axis=1).min() < 0.9  # what they are made against


SHARES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300, 0.5, 1 - 1e-16]))
ERRORS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-300, 1e-12, 10.0]))


LAST_DIGITS = 4 * np.finfo(float).eps  # of shares, from the square root of a difference


@given(SHARES, ERRORS, st.integers(2, 10**6), st.floats(1.0, 1e6))
@example(0.25, 10.0, 2, 141710.0)  # the lower bound rounds by one unit
def test_bounds_lie_inside_and_around_the_estimate(share, error, n, critical):
    support = Support(0.0, 1.0, n)
    p, s = np.array([share]), np.array([error])
    lower, upper = support.interval(p, s, critical)
    assert 0 <= lower[0] <= share <= upper[0] <= 1
    assert lower[0] < upper[0]
    for low, high in (
        support.interval(p, s, 1.5 * critical),
        support.interval(p, 2 * s, critical),
    ):
        assert low[0] <= lower[0] + LAST_DIGITS
        assert upper[0] <= high[0] + LAST_DIGITS


@given(st.integers(0, 1024), st.floats(0, 0.5), st.integers(2, 10**6))
def test_the_complement_has_the_mirrored_interval(place, error, n):
    share = place / 1024  # one minus it is exact
    support, s = Support(0.0, 1.0, n), np.array([error])
    lower, upper = support.interval(np.array([share]), s, 2.0)
    low, high = support.interval(np.array([1 - share]), s, 2.0)
    assert_allclose([low[0], high[0]], [1 - upper[0], 1 - lower[0]], atol=1e-14)


@given(st.floats(0, 1), st.floats(0, 2), st.floats(0.1, 10), st.floats(0, 3))
def test_units_and_origin_do_not_matter(place, error, unit, shift):
    """Ranges without zero inside: those with it are differences."""
    share, s = np.array([place]), np.array([error])
    one = np.array(Support(0.0, 1.0, 50).interval(share, s, 2.0))
    moved = Support(shift, shift + unit, 50).interval(
        shift + unit * share, unit * s, 2.0
    )
    assert_allclose((np.array(moved) - shift) / unit, one, rtol=0, atol=1e-9)


def test_rounding_at_the_ends_is_no_spread():
    """Learners that say one but for their last digit have an error above zero."""
    found = Support(0.0, 1.0, 100).interval(np.ones(1), np.array([1e-17]), 2.0)
    agreed = Support(0.0, 1.0, 100).interval(np.ones(1), np.zeros(1), 2.0)
    assert_array_equal(found, agreed)


def test_differences_may_be_known_better_than_shares():
    d, s = np.array([0.0, 0.3, 1.0, -1.0]), np.array([1e-4, 1e-3, 0.0, 0.3])
    lower, upper = Support(-1.0, 1.0, 100).interval(d, s, 2.0)
    assert_allclose([lower[0], upper[0]], [-2e-4, 2e-4], rtol=1e-6)
    assert upper[1] - lower[1] < 0.03
    assert (lower >= -1).all()
    assert (upper <= 1).all()
    assert (lower <= d).all()
    assert (upper >= d).all()
    assert upper[3] > -0.7


@pytest.mark.parametrize("error", [0.0, 1e-17])
def test_a_difference_that_all_learners_agree_on_has_an_interval(error):
    """Each probability could be as large as the upper limit of a share of zero."""
    u = proportion_confint(0, 60, 0.05, method="agresti_coull")[1]
    support, none = Support(0.0, 1.0, 60.0), np.array([error])
    single = support.interval(np.zeros(1), np.zeros(1), NORMAL)
    assert_allclose(np.ravel(single), [0, u], **ROUNDING)
    difference = support.combine(np.array([[1.0, -1.0]]))
    for at, expected in {
        0.0: (-u, u),
        1.0: (1 - 2 * u, 1),
        -0.5: (-0.5 - u / 2, -0.5 + 1.5 * u),
    }.items():
        found = difference.interval(np.array([at]), none, NORMAL)
        assert_allclose(np.ravel(found), expected, **ROUNDING)
    average = support.combine(np.full((1, 4), 0.25))
    found = average.interval(np.array([0.25]), none, NORMAL)  # three zeros and a one
    assert_allclose(np.ravel(found), [(1 - u) / 4, (1 + 3 * u) / 4], **ROUNDING)
    wider = difference.interval(np.zeros(1), none, 5.0, NORMAL)
    assert_allclose(np.ravel(wider), [-u, u], **ROUNDING)


def test_results_with_a_standard_error_of_zero_have_intervals():
    x = np.arange(60.0)
    data = pd.DataFrame({"x": x, "y": np.where(x < 30, "a", "b")})
    res = vs.fit("y ~ x", data, B=60, rng=1, n_jobs=1)
    pair = res.get_prediction(data.iloc[[2, 5, 55]])
    assert (pair.se_mean == 0).all()
    u = pair.conf_int().loc[2, "upper"]
    assert 0.01 < u < 0.5
    same = pair.t_test([[1, -1, 0]]).conf_int()
    assert_allclose(np.ravel(same), [-u, u], **ROUNDING)
    other = pair.t_test([[-1, 0, 1]]).conf_int()
    assert_allclose(np.ravel(other), [1 - 2 * u, 1], **ROUNDING)
    mean = res.avg_predictions(data.iloc[[2, 5, 55]], se="sample").frame
    assert mean["std_error"].item() == 0
    ends = mean[["ci_lower", "ci_upper"]].to_numpy().ravel()
    assert_allclose(ends, [(1 - u) / 3, (1 + 2 * u) / 3], **ROUNDING)


def test_a_single_possible_value_is_its_own_interval():
    support = Support(0.0, 1.0, 9).combine(np.zeros((1, 2)))
    assert_array_equal(
        support.interval(np.zeros(1), np.zeros(1), 2.0), np.zeros((2, 1))
    )


def test_ranges_of_combinations():
    coefs = np.array([[1.0, -1.0], [0.5, 0.5], [-2.0, 0.0]])
    found = Support(0.0, 1.0, 9).combine(coefs)
    assert_array_equal(found.low, [-1, 0, -2])
    assert_array_equal(found.high, [1, 1, 0])


def test_a_forests_probabilities_stay_probabilities(data, binary):
    for alpha in (0.001, 0.05, 0.5):
        bounds = binary.conf_int(alpha)
        assert ((bounds >= 0) & (bounds <= 1)).all(axis=None)
        t = stats.t.isf(alpha / 2, binary.df)
        expected = Support(0.0, 1.0, 90).interval(
            binary.params.to_numpy(), binary.bse.to_numpy(), t
        )
        assert_array_equal(bounds.T, expected)
        frame = binary.summary_frame(alpha)[["mean_ci_lower", "mean_ci_upper"]]
        assert_array_equal(frame, bounds)
        assert_array_equal(binary.tidy(alpha)[["conf_low", "conf_high"]], bounds)
        again = binary.get_prediction(data.head(12)).conf_int(alpha)
        assert_allclose(again, bounds, rtol=1e-9)
    assert (binary.effects[["ci_lower", "ci_upper"]].abs() <= 1).all(axis=None)


@pytest.mark.parametrize("formula", ["y ~ a + b + c", "level ~ a + b"])
def test_bands_of_probabilities_hold_the_single_intervals(data, formula):
    res = vs.fit(formula, data, B=200, k=1.0, rng=2, at=data.head(6))
    for one in (res, res.get_prediction(data.head(6))):
        each, band = one.conf_int(0.1), one.conf_int(0.1, simultaneous=True)
        assert ((band >= 0) & (band <= 1)).all(axis=None)
        assert (band["lower"] <= each["lower"]).all()
        assert (band["upper"] >= each["upper"]).all()
        assert (band != each).any(axis=None)


def test_numeric_responses_keep_symmetric_intervals():
    mars = vs.datasets.mars(60, rng=1)
    res = vs.fit("y ~ x1 + x2", mars, B=100, rng=1)
    half = stats.t.isf(0.025, res.df) * res.bse
    assert_array_equal(res.conf_int()["lower"], res.params - half)
    assert_array_equal(res.conf_int()["upper"], res.params + half)
    moved = res.effects
    half = stats.t.isf(0.025, moved["df"]) * moved["std_error"]
    assert_array_equal(moved["ci_upper"], moved["estimate"] + half)


@pytest.mark.filterwarnings("ignore::vstatkit.ExtrapolationWarning")
def test_a_logits_predictions_stay_inside_and_its_coefficients_do_not(data):
    res = vs.fit("y ~ b", data, kernel="logit", B=100, rng=1)
    half = stats.t.isf(0.025, res.df) * res.bse
    assert_array_equal(res.conf_int()["upper"], res.params + half)
    far = pd.DataFrame({"b": [-30.0, 0.5, 30.0]})
    prediction = res.get_prediction(far)
    for simultaneous in (False, True):
        bounds = prediction.conf_int(simultaneous=simultaneous)
        assert ((bounds >= 0) & (bounds <= 1)).all(axis=None)


def test_contrasts_of_probabilities_stay_between_minus_one_and_one(binary):
    low, high = binary.params.argmin(), binary.params.argmax()
    contrast = np.zeros((3, 12))
    contrast[0, [high, low]] = 1, -1
    contrast[1, low] = 1
    contrast[2, [high, low]] = 0.5, 0.5
    found = binary.t_test(contrast)
    bounds = found.conf_int(0.001)
    assert bounds["lower"].iloc[0] >= -1
    assert bounds["upper"].iloc[0] <= 1
    single = binary.conf_int(0.001).iloc[low]
    assert_allclose(bounds.iloc[1], single, rtol=1e-9)
    assert ((bounds.iloc[2] >= 0) & (bounds.iloc[2] <= 1)).all()


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_estimators_answer_with_probabilities(data):
    X, y = data[["a", "b", "c"]], data["y"]
    forest = vs.ForestClassifier(30, random_state=1).fit(X, y)
    bounds = forest.predict_interval(X)
    share = forest.predict_proba(X)
    assert bounds.min() >= 0
    assert bounds.max() <= 1
    assert (bounds[..., 0] <= share + 1e-12).all()
    assert (bounds[..., 1] >= share - 1e-12).all()
    assert_array_equal(bounds[:, 0, 0], 1 - bounds[:, 1, 1])
    assert (bounds[..., 0] < bounds[..., 1]).all()
    three = vs.ForestClassifier(30, random_state=1).fit(X, data["level"])
    bounds = three.predict_interval(X, alpha=0.01)
    assert bounds.shape == (90, 3, 2)
    assert ((bounds >= 0) & (bounds <= 1)).all()
    alone = vs.ForestClassifier(30, random_state=1).fit(X, np.zeros(90))
    assert alone.predict_interval(X.head(2)).shape == (2, 1, 2)
    assert_array_equal(alone.predict_interval(X.head(2))[..., 1], 1)


def test_learners_that_agree_do_not_claim_certainty(data):
    sure = data.assign(y=np.where(data["a"] > 0.5, "yes", "no"))
    at = pd.DataFrame({"a": [0.001, 0.999]})
    res = vs.fit("y ~ a", sure, B=100, rng=1, at=at)
    assert_array_equal(res.bse, 0)
    assert_array_equal(res.conf_int()["lower"].iloc[0], 0)
    assert_array_equal(res.conf_int()["upper"].iloc[1], 1)
    N, z2 = res.support.nobs, NORMAL**2
    assert 5 < N < 45
    q = z2 / 2 / (N + z2)
    bound = q + math.sqrt(z2 * q * (1 - q) / (N + z2))
    assert res.conf_int()["upper"].iloc[0] == pytest.approx(bound)
    assert res.conf_int()["lower"].iloc[1] == pytest.approx(1 - bound)
    text = " ".join(str(res.summary()).split())
    assert f"Their bounds are those of a proportion among {N:.0f} observations." in text


def test_ranges_are_saved(data, binary, tmp_path):
    contrast = np.eye(12)[:2] - np.eye(12)[2:4]
    for number, saved in enumerate([binary, binary.t_test(contrast)]):
        saved.save(tmp_path / f"{number}.npz")
        loaded = vs.load(tmp_path / f"{number}.npz")
        assert_array_equal(loaded.conf_int(0.01), saved.conf_int(0.01))
    X, y = data[["a", "b"]], data["y"]
    theirs = RandomForestClassifier(60, random_state=1).fit(X, y)
    adopted = vs.from_sklearn(theirs, X, y, X.head(4))
    assert ((adopted.conf_int() >= 0) & (adopted.conf_int() <= 1)).all(axis=None)
    with pytest.warns(vs.VstatkitWarning, match="without the learners"):
        adopted.save(tmp_path / "adopted.npz")
    loaded = vs.load(tmp_path / "adopted.npz")
    assert_array_equal(loaded.conf_int(), adopted.conf_int())


def test_older_files_know_their_range_by_their_learners(binary, tmp_path):
    binary.save(tmp_path / "new.npz")
    older = dropped("support")((tmp_path / "new.npz").read_bytes())
    (tmp_path / "old.npz").write_bytes(older)
    assert_array_equal(vs.load(tmp_path / "old.npz").conf_int(), binary.conf_int())


def test_the_effective_number_is_that_of_shares_of_m_observations():
    share = np.linspace(0.05, 0.95, 7)
    variance = share * (1 - share) / 12
    assert effective_size(share, variance, 500) == pytest.approx(12 * MOST_TIMES)
    assert effective_size(share, variance, 20) == 20
    assert effective_size(share, 100 * variance, 20) == 1
    assert effective_size(np.array([0.0, 1.0]), np.zeros(2), 20) == 20


@given(SHARES, ERRORS, st.floats(1, 1e4))
def test_averages_are_bound_at_the_very_ends_only(share, error, size):
    p, s = np.array([share]), np.array([error])
    average = Support(0.0, 1.0, size, average=True).interval(p, s, 2.0)
    free = Support(0.0, 1.0, np.inf).interval(p, s, 2.0)
    single = Support(0.0, 1.0, size).interval(p, s, 2.0)
    spread = share * (1 - share) > np.finfo(float).eps
    if spread and error <= np.finfo(float).eps:  # all learners agree
        u = Support(0.0, 1.0, size).interval(np.zeros(1), np.zeros(1), 2.0)[1]
        free = share - u * share, share + u * (1 - share)
    assert_allclose(average, free if spread else single, rtol=1e-12, atol=1e-12)


def test_a_smaller_quantile_applies_where_the_number_of_observations_decides():
    p, s = np.array([0.0, 0.5]), np.array([0.0, 0.2])
    found = Support(0.0, 1.0, 20.0).interval(p, s, 4.0, 2.0)
    by_number = Support(0.0, 1.0, 20.0).interval(p, s, 2.0)
    by_error = Support(0.0, 1.0, 20.0).interval(p, s, 4.0)
    assert_array_equal(np.array(found)[:, 0], np.array(by_number)[:, 0])
    assert_array_equal(np.array(found)[:, 1], np.array(by_error)[:, 1])


def test_combinations_of_several_probabilities_are_averages():
    coefs = np.array([[0, 2.0, 0], [0.5, 0.5, 0], [0, 0, 1]])
    support = Support(0.0, 1.0, 9.0, np.array([False, False, True]))
    assert_array_equal(support.combine(coefs).average, [False, True, True])
    beside = support.join(support.of_differences, 3, 2)
    assert_array_equal(beside.average, [False, False, True, False, False])


def noise_of(chance, n, rng, p=1):
    frame = pd.DataFrame(rng.uniform(size=(n, p)), columns=[f"x{j}" for j in range(p)])
    return frame.assign(y=np.where(rng.uniform(size=n) < chance, "yes", "no"))


def test_rare_classes_are_covered_where_all_learners_agree():
    """With N at most the number of rows, these intervals cover .6 to .7."""
    at = pd.DataFrame({"x0": [0.1, 0.35, 0.6, 0.85]})
    covered, estimates = [], []
    for seed in range(30):
        data = noise_of(0.08, 200, np.random.default_rng(seed))
        res = vs.fit("y ~ x0", data, B=200, rng=seed, at=at)
        covered.append(((res.conf_int() - 0.08).prod(axis=1) <= 0).to_numpy())
        estimates.append(res.params)
    assert abs(np.mean(estimates) - 0.08) < 0.02  # what the intervals are for
    assert np.mean(covered) > 0.9


def test_clusters_count_and_not_their_rows():
    rng = np.random.default_rng(4)
    code = np.repeat(np.arange(30), 20)
    data = pd.DataFrame({"x": rng.uniform(size=30)[code], "z": rng.uniform(size=600)})
    data["y"] = np.where((np.arange(30) < 2)[code], "yes", "no")
    at = pd.DataFrame({"x": [0.2, 0.5, 0.8], "z": 0.5})
    res = vs.fit("y ~ x + z", data, B=200, rng=1, at=at, groups=code)
    assert 1 <= res.support.nobs <= 30
    least = proportion_confint(0, 30, 0.05, method="agresti_coull")[1]
    assert (res.conf_int()["upper"] >= least - 1e-9).all()
    assert (res.get_prediction(at).conf_int()["upper"] >= least - 1e-9).all()


@pytest.fixture(scope="module")
def apart():
    """Three classes: one that is apart, two that overlap."""
    rng = np.random.default_rng(8)
    code = np.repeat([0, 1, 2], 40)
    columns = {f"x{j}": 2.0 * code + rng.normal(size=120) for j in range(2)}
    columns["x0"] += 3 * (code > 0)
    return pd.DataFrame(columns).assign(y=np.array([*"abc"])[code])


def test_averages_of_probabilities_agree_with_their_standard_errors(apart):
    res = vs.fit("y ~ x0 + x1", apart, B=200, rng=1)
    found = res.avg_predictions()
    bounds, half = found.conf_int(), stats.t.isf(0.025, found.df) * found.bse
    assert (found.bse < 0.03).all()
    assert_allclose(bounds["upper"] - bounds["lower"], 2 * half, rtol=0.05)
    by_hand = Support(0.0, 1.0, 120.0, average=True).interval(
        found.params.to_numpy(), found.bse.to_numpy(), half / found.bse
    )
    assert_allclose(bounds.T, by_hand, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_every_way_to_an_interval_knows_the_effective_number(apart, tmp_path):
    X, at = apart[["x0", "x1"]], apart.iloc[[0, 60, 100]]
    res = vs.fit("y ~ x0 + x1", apart, B=200, rng=1, at=at)
    size = res.support.nobs
    reference = res.reference[:100]  # of three classes
    again = res.get_prediction(pd.DataFrame(reference, columns=["x0", "x1"]))
    p, V = again.estimates.estimate, again.estimates.components.total
    assert size == pytest.approx(min(MOST_TIMES * (p * (1 - p)).sum() / V.sum(), 120))
    assert size < 120
    bounds = res.conf_int()
    assert_allclose(res.get_prediction(at).conf_int(), bounds, rtol=1e-9)
    assert_allclose(res.t_test(np.eye(9)).conf_int(), bounds, rtol=1e-9)
    res.save(tmp_path / "new.npz")
    loaded = vs.load(tmp_path / "new.npz")
    assert loaded.support.nobs == size
    assert_allclose(loaded.get_prediction(at).conf_int(), bounds, rtol=1e-9)
    assert res.more(260).support.nobs != size
    theirs = RandomForestClassifier(200, random_state=1).fit(X, apart["y"])
    adopted = vs.from_sklearn(theirs, X, apart["y"], X.iloc[[0, 60]])
    assert 5 < adopted.support.nobs < 120
    forest = vs.ForestClassifier(200, random_state=1).fit(X, apart["y"])
    expected = forest.results_.get_prediction(X).conf_int().to_numpy()
    found = forest.predict_interval(X).reshape(-1, 2)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    few = vs.fit("y ~ x0 + x1", apart, B=60, rng=1, design="shards", n_shards=4)
    assert 1 <= few.support.nobs <= 120
