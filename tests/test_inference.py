import numpy as np
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

import vstatkit as vs
from tests.ensembles import SAME_ALGEBRA, make_ensemble
from vstatkit.inference import (
    MIN_DF,
    covariance,
    estimate,
    simultaneous_critical_value,
    wald_test,
)


def test_standard_errors_of_the_mean():
    x = np.random.default_rng(3).gamma(2, size=200)
    res = vs.statistic("mean", x, k=200, B=20_000, rng=1)
    assert_allclose(res.bse.item(), x.std() / np.sqrt(200), rtol=0.03)


def test_standard_errors_of_least_squares_are_hc0():
    data = vs.datasets.mars(300, rng=1).assign(
        g=np.random.default_rng(0).choice(list("abc"), 300)
    )
    ours = vs.fit("y ~ x1 + x4 + g", data, kernel="ols", k=1.0, B=20_000, rng=1)
    theirs = smf.ols("y ~ x1 + x4 + g", data).fit(cov_type="HC0")
    assert_allclose(ours.bse, theirs.bse, rtol=0.05)


def test_degrees_of_freedom_of_a_normal_mean_are_about_n():
    x = np.random.default_rng(5).normal(size=400)
    res = vs.statistic("mean", x, k=1, B="complete")
    assert 300 < res.df.item() <= 399


def test_degrees_of_freedom_see_heavy_tails():
    x = np.random.default_rng(5).standard_t(5, size=400)
    res = vs.statistic("mean", x, k=1, B="complete")
    kurtosis = stats.kurtosis(x, fisher=False)
    # 2 V**2 / (sum c**4 - V**2 / n), with V off by n / (n - 1).
    assert_allclose(res.df.item(), 2 * 400 / (kurtosis - 1), rtol=0.02)


@pytest.mark.parametrize("n", [3, 5, 8])
def test_intervals_of_few_observations_cover(n):
    """Student's t with n - 1 degrees is exact for a normal mean."""
    rng, runs = np.random.default_rng(n), 400
    hits = 0
    for _ in range(runs):
        res = vs.statistic("mean", rng.normal(size=n), k=1, B="complete")
        lower, upper = res.conf_int().iloc[0]
        hits += lower <= 0 <= upper
    # Three binomial standard errors of 1.1 points.
    assert abs(hits / runs - 0.95) < 0.033


def test_degrees_of_freedom_are_bounded_below():
    case = make_ensemble(n=12, k=11, B=4)
    estimates = estimate(case.design, case.values, "corrected_v")
    assert (estimates.df >= MIN_DF).all()


@pytest.mark.parametrize("seed", range(8))
def test_stabilised_variances_are_positive_and_at_least_the_raw_ones(seed):
    case = make_ensemble(n=30, k=20, B=40, m=20, seed=seed)
    noise = np.random.default_rng(seed).normal(size=case.values.shape)
    estimates = estimate(case.design, noise, "corrected_v")
    assert (estimates.components.sampling < 0).any()
    assert (estimates.sampling > 0).all()
    assert (estimates.sampling >= estimates.components.sampling).all()
    assert np.isfinite(estimates.pvalues).all()


def test_raw_estimators_that_cannot_be_negative_are_left_alone():
    case = make_ensemble()
    for method in ("ij", "bm"):
        estimates = estimate(case.design, case.values, method)
        assert_allclose(estimates.sampling, estimates.components.sampling)
        assert_allclose(estimates.variance, estimates.components.total)


def test_p_values_and_intervals_agree():
    case = make_ensemble(m=30)
    estimates = estimate(case.design, case.values, "ij")
    half = estimates.half_width(0.05)
    inside = np.abs(estimates.estimate) <= half
    np.testing.assert_array_equal(inside, estimates.pvalues >= 0.05)


def test_p_values_do_not_vanish_in_the_tail():
    x = 1000 + np.random.default_rng(0).normal(size=400)
    res = vs.statistic("mean", x, k=1, B="complete")
    assert 0 < res.pvalues.item() < 1e-300 or res.zvalues.item() > 1e4


@pytest.mark.parametrize(
    ("name", "method", "replace"),
    [
        ("iid", "corrected_v", True),
        ("iid", "corrected_u", False),
        ("iid", "ij", True),
        ("iid", "jackknife", True),
        ("two-level", "im", True),
        ("little-bags", "little_bags", False),
        ("matched", "matched", False),
    ],
)
def test_covariance_is_semidefinite_with_squared_errors_on_its_diagonal(
    name, method, replace
):
    case = make_ensemble(name, n=40, k=15, B=200, m=6, replace=replace)
    estimates = estimate(case.design, case.values, method)
    result = covariance(case.design, case.values, estimates)
    assert_allclose(np.diag(result.matrix), estimates.variance, rtol=1e-10)
    assert np.linalg.eigvalsh(result.matrix).min() > -1e-12
    assert 0 <= result.repaired < 1


def test_covariance_of_ij_is_the_cross_product_of_influences():
    case = make_ensemble(n=40, k=15, B=400, m=3)
    res = vs.from_arrays(case.counts, case.values, replace=True, variance="ij")
    c = res.influence().to_numpy()
    expected = c.T @ c + np.cov(case.values.T) / 400
    assert_allclose(res.cov_params(), expected, **SAME_ALGEBRA)


def test_covariance_does_not_depend_on_units():
    case = make_ensemble(n=30, k=20, B=60, m=5)
    scale = np.array([1e-6, 1.0, 1e6, 3.0, 1e3])
    one, two = (
        vs.from_arrays(case.counts, case.values * s, replace=True).cov_params()
        for s in (1.0, scale)
    )
    assert_allclose(two, one * np.outer(scale, scale), rtol=1e-6)


def test_simultaneous_value_of_independent_estimates_is_sidaks():
    m = 10
    ours = simultaneous_critical_value(np.eye(m), 0.05, np.inf, seed=1)
    sidak = stats.norm.isf((1 - 0.95 ** (1 / m)) / 2)
    # 20 000 draws: the quantile's standard error is about 0.4 %.
    assert ours == pytest.approx(sidak, rel=0.015)


def test_simultaneous_value_of_one_estimate_is_the_pointwise_one():
    ours = simultaneous_critical_value(np.eye(1), 0.05, 7.0, seed=1)
    assert ours == pytest.approx(stats.t.isf(0.025, 7.0), rel=0.02)


def test_wald_test_of_one_restriction_is_the_square_of_t():
    case = make_ensemble(B=300)
    res = vs.from_arrays(case.counts, case.values, replace=True, labels=list("abc"))
    single = res.t_test("a = b")
    joint = res.wald_test("a = b")
    assert_allclose(joint.statistic, single.zvalues.item() ** 2, rtol=1e-10)
    assert_allclose(joint.pvalue, single.pvalues.item(), rtol=1e-8)
    assert "a = b" in str(joint)


def test_wald_test_against_statsmodels():
    data = vs.datasets.mars(300, rng=1)
    ours = vs.fit("y ~ x1 + x3 + x5", data, kernel="ols", k=1.0, B=8000, rng=1)
    theirs = smf.ols("y ~ x1 + x3 + x5", data).fit(cov_type="HC0")
    a = ours.wald_test("x1 = 0, x3 = 0")
    b = theirs.wald_test("x1 = 0, x3 = 0", scalar=True)
    assert a.df_num == 2
    # statsmodels gives a chi-square for robust covariances, we an F.
    assert_allclose(2 * a.statistic, b.statistic, rtol=0.1)


def test_a_redundant_restriction_does_not_count():
    matrix = np.array([[1.0, 1.0], [1.0, 1.0]])
    result = wald_test(np.array([2.0, 2.0]), matrix, 50.0, "a = b = 0")
    assert result.df_num == 1
    assert_allclose(result.statistic, 4.0)
