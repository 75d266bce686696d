import dataclasses
import math

import numpy as np
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import integrate, linalg, optimize, special, stats

import vstatkit as vs
from tests.oracles import literal
from tests.oracles.ensembles import SAME_ALGEBRA, make_ensemble
from vstatkit.inference import estimates as inference
from vstatkit.inference import linear_tests as joint
from vstatkit.inference.estimates import (
    MIN_DF,
    Estimates,
    cache_counts,
    data_variance,
    ensemble_mean,
    estimate,
    join_estimates,
    ratio,
    stabilise,
    two_sided_pvalues,
)
from vstatkit.inference.intervals import (
    band_critical_values,
    simultaneous_critical_value,
)
from vstatkit.inference.linear_tests import covariance, wald_test
from vstatkit.sampling.design import CompleteDesign, to_dense
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import make_design
from vstatkit.validation import check_alpha
from vstatkit.variance.registry import estimate_components


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
    lower, upper = estimates.interval(0.05)
    inside = (lower <= 0) & (upper >= 0)
    np.testing.assert_array_equal(inside, estimates.pvalues >= 0.05)


def tail_of_t(z, df):
    """Two-sided p-value as an incomplete beta function, which loses no digits."""
    return special.betainc(df / 2, 0.5, df / (df + z**2))


@pytest.mark.parametrize("df", [1.0, 2.0, 5.0, 50.0, 399.0])
@pytest.mark.parametrize("z", [0.0, 0.3, 2.0, 12.0, -12.0, 40.0, -40.0])
def test_two_sided_p_values_keep_their_digits(z, df):
    ours = two_sided_pvalues(np.array([z]), np.array([df]))
    assert_allclose(ours, tail_of_t(z, df), rtol=1e-9)
    if df == 2:
        root = math.sqrt(z**2 + 2)
        assert_allclose(ours, 2 / (root * (root + abs(z))), rtol=1e-12)


@pytest.mark.parametrize("z", [12, 40])
def test_p_values_do_not_vanish_in_the_tail(z):
    x = np.random.default_rng(0).normal(size=400)
    x = (x - x.mean()) / x.std() + z / 20
    res = vs.statistic("mean", x, k=1, B="complete")
    assert_allclose(res.zvalues.item(), z, rtol=0.01)
    expected = tail_of_t(res.zvalues.item(), res.df.item())
    assert 0 < expected < 1e-20
    assert_allclose(res.pvalues.item(), expected, rtol=1e-9)


def made_up(method="corrected_v", *, n=50, **changes):
    """Components of one point, far below what a single learner varies by."""
    case = make_ensemble(n=n, k=1, B=20, m=1)
    parts = estimate_components(method, case.design, case.values)
    fields = {"sampling": 2.0, "monte_carlo": 0.1, "noise": 0.01, "concentration": 0.15}
    fields |= {"zeta_k": 1e6, "mc_se": 0.5, "ceiling": np.inf, "skew": 0.0} | changes
    arrays = {a: None if v is None else np.array([v]) for a, v in fields.items()}
    return dataclasses.replace(parts, **arrays)


@pytest.mark.parametrize("method", ["corrected_v", "ij"])
@pytest.mark.parametrize("n", [1, 2, 5, 50])
@pytest.mark.parametrize(
    ("V", "s2", "share"),
    [
        (2.0, 0.01, 0.15),
        (2.0, 0.01, 0.06),
        (2.0, 0.05, 1.0),
        (2.0, 1e-9, 0.05),
        (2.0, 0.02, 0.02),
        (2.0, 1e-9, 0.02),
        (0.5, 0.3, 0.9),
        (0.5, 0.01, 0.3),
        (0.03, 0.01, 0.5),
        (0.0, 0.02, 0.2),
        (-0.4, 0.02, 0.4),
    ],
)
def test_stabilised_variances_are_the_literal_steps(method, n, V, s2, share):
    nonnegative = method == "ij"
    V = abs(V) if nonnegative else V
    mc_se = math.sqrt(literal.noise_variance(V, s2, n))
    parts = made_up(method, sampling=V, noise=s2, concentration=share, mc_se=mc_se)
    parts = dataclasses.replace(parts, n=n)
    found = stabilise(np.array([7.0]), parts, 20.0)
    positive, df = literal.stabilised(V, s2, 0.1, share, n, nonnegative=nonnegative)
    assert_allclose(found.sampling, positive, rtol=1e-10)
    assert_allclose(found.df, df, rtol=1e-10)
    assert_allclose(found.variance, positive + 0.1, rtol=1e-10)
    assert_allclose(found.bse, math.sqrt(positive + 0.1), rtol=1e-10)
    assert (found.estimate, found.n_learners, found.null) == (7.0, 20.0, 0.0)
    assert found.scaled is parts


@pytest.mark.parametrize("method", ["corrected_v", "ij", "ij_u", "jackknife"])
def test_degrees_of_freedom_are_the_literal_steps_on_an_ensemble(method):
    case = make_ensemble(n=12, k=4, B=400, m=1)
    N, h, (n, _, B) = case.counts, case.values[:, 0], case.shape
    V = literal.SAMPLING[method](N, h)
    share = literal.count_variance(N)
    if method == "jackknife":
        share = literal.deletions(N, h, replace=True)[1]
    s2 = share * literal.zeta_k(h) / B
    share = literal.concentration(N, h)
    if method == "jackknife":
        share = literal.presence_concentration(N, h)
    positive, df = literal.stabilised(
        V, s2, literal.zeta_k(h) / B, share, n, nonnegative=method == "ij"
    )
    found = estimate(case.design, case.values, method)
    assert MIN_DF < df < n - 1
    assert_allclose(found.df, df, rtol=1e-8)
    assert_allclose(found.sampling, positive, rtol=1e-8)


def test_the_variance_of_a_sample_variance_is_the_textbooks():
    """Over samples of normal, short-tailed and long-tailed values; 0.2 % noise."""
    rng, n = np.random.default_rng(1), 30
    for draw, kurtosis in ((rng.normal, 0.0), (rng.uniform, -1.2), (rng.laplace, 3.0)):
        x = draw(size=(100_000, n))
        realised = x.var(axis=1, ddof=1).var() / x.var() ** 2
        assert_allclose(2 / (n - 1) + kurtosis / n, realised, rtol=0.05)
        c = x - x.mean(axis=1, keepdims=True)
        share = (c**4).sum(axis=1) / (c**2).sum(axis=1) ** 2
        # Unbiased where values are normal; the bound of the kurtosis shows in tails.
        assert_allclose(data_variance(share, n).mean(), realised, rtol=0.25)
        if kurtosis >= 0:
            bias = realised - data_variance(share, n).mean()
            assert abs(bias) < 0.8 * (realised - (share - 1 / n).mean())


def test_few_units_behind_an_estimate_leave_few_degrees_of_freedom():
    for method in ("corrected_v", "jackknife"):
        for units, n in ((4, 30), (8, 60)):
            z = np.zeros(n)
            z[:units] = np.tile([1.0, -1.0], units // 2)
            counts = np.random.default_rng(2).multinomial(n, np.full(n, 1 / n), 4000)
            res = vs.from_arrays(counts, counts @ z, replace=True, variance=method)
            assert 3 < res.df.item() < 3 * units


@pytest.mark.parametrize("missing", ["noise", "concentration"])
@pytest.mark.parametrize("method", ["im", "matched"])
def test_without_influences_the_spread_is_mc_se(method, missing):
    parts = made_up(**{missing: None}, sampling=0.4)
    parts = dataclasses.replace(parts, method=method)
    found = stabilise(np.zeros(1), parts, 20.0)
    r = 0.4 / 0.5
    raised = 0.4 + 0.5 * stats.norm.pdf(r) / stats.norm.cdf(r)
    positive = 0.4 if method == "im" else raised
    assert_allclose(found.sampling, positive, rtol=1e-12)
    expected = 2 * (positive + 0.1) ** 2 / 0.25
    assert_allclose(found.df, max(expected, 3.0), rtol=1e-12)
    wide = stabilise(np.zeros(1), dataclasses.replace(parts, n=4), 20.0)
    assert_allclose(wide.df, 3.0)
    sure = dataclasses.replace(parts, mc_se=np.array([0.05]), sampling=np.ones(1))
    assert_allclose(stabilise(np.zeros(1), sure, 20.0).df, 49.0)


def made_up_estimates(**changes):
    parts = made_up(**changes)
    return Estimates(
        estimate=np.array([3.0]),
        scaled=parts,
        positive=np.array([1.5]),
        bounded=np.array([False]),
        df=np.array([2.0]),
        n_learners=80.0,
        unit=np.ones(1),
        null=0.5,
    )


def test_intervals_and_tests_of_made_up_estimates():
    found = made_up_estimates()
    assert_allclose(found.variance, 1.6)
    assert_allclose(found.bse, math.sqrt(1.6))
    assert_allclose(found.zvalues, 2.5 / math.sqrt(1.6))
    assert_allclose(found.pvalues, tail_of_t(2.5 / math.sqrt(1.6), 2.0))
    for alpha in (0.05, 0.3):
        # The quantile of Student's t with two degrees, in closed form.
        t = (1 - alpha) * math.sqrt(2 / (1 - (1 - alpha) ** 2))
        assert_allclose(found.half_width(alpha), t * math.sqrt(1.6), rtol=1e-10)
    with pytest.raises(ValueError, match="`alpha` must lie strictly between"):
        found.half_width(1.0)


@pytest.mark.parametrize("alpha", [-0.1, 0.0, 1.0, 1.5, math.nan])
def test_levels_outside_zero_and_one_are_refused(alpha):
    with pytest.raises(ValueError, match=f"strictly between 0 and 1.*got {alpha}"):
        check_alpha(alpha)


@pytest.mark.parametrize("alpha", [1e-9, 0.05, 0.5, 1 - 1e-9])
def test_levels_between_zero_and_one_are_taken(alpha):
    assert check_alpha(alpha) is None


def test_ratios_with_zeros():
    a, b = np.array([1.0, -1, 0, 4, -4, 0]), np.array([0.0, 0, 0, 2, 2, 3])
    assert_allclose(ratio(a, b), [np.inf, -np.inf, 0, 2, -2, 0])
    assert_allclose(ratio(a, b, zero=0.0), [0, 0, 0, 2, -2, 0])
    assert_allclose(ratio(a, b, zero=5.0), [5, -5, 0, 2, -2, 0])


@pytest.mark.parametrize("tol", [0.1, 0.003])
def test_learners_needed_reach_the_tolerance(tol):
    """Noise falls as 1/B: at the B that is named the error is the tolerance."""
    found = made_up_estimates()
    n, s2, variance = 50, 0.01, 1.6
    error = math.sqrt(literal.noise_variance(1.5, s2, n)) / (2 * variance)
    assert_allclose(found.relative_mc_error, error, rtol=1e-12)
    needed = found.learners_needed(tol).item()
    then = literal.noise_variance(1.5, s2 * 80 / needed, n)
    assert_allclose(math.sqrt(then) / (2 * variance), tol, rtol=1e-10)


@pytest.mark.parametrize("tol", [0.1, 0.003])
def test_learners_needed_where_influences_are_not_known(tol):
    found = made_up_estimates(noise=None, concentration=None)
    assert_allclose(found.relative_mc_error, 0.5 / 3.2, rtol=1e-12)
    needed = found.learners_needed(tol).item()
    assert_allclose(0.5 * math.sqrt(80 / needed) / 3.2, tol, rtol=1e-10)


@pytest.mark.parametrize("noise", [None, 0.0, 0.01])
def test_nothing_that_varies_needs_no_learners(noise):
    parts = made_up(noise=noise, monte_carlo=0.0, mc_se=0.25)
    no, one = np.array([False]), np.ones(1)
    found = Estimates(one, parts, np.zeros(1), no, np.array([3.0]), 80.0, one)
    assert found.relative_mc_error == 0
    assert found.learners_needed(0.1) == 0
    assert np.isnan(found.zvalues)
    assert np.isnan(found.pvalues)


def assert_same_estimates(one, two):
    for name in ("estimate", "sampling", "df", "bse"):
        assert_allclose(getattr(one, name), getattr(two, name), **SAME_ALGEBRA)
    assert one.n_learners == two.n_learners
    for name in ("zeta_1", "total", "mc_se", "noise", "concentration"):
        a, b = (getattr(x.components, name) for x in (one, two))
        assert_allclose(a, b, **SAME_ALGEBRA)


@pytest.mark.parametrize(
    ("entries", "widths"), [(25, [2, 2, 1]), (24, [2, 2, 1]), (11, [1] * 5), (60, [5])]
)
def test_query_points_are_taken_in_chunks_of_bounded_size(entries, widths, monkeypatch):
    case = make_ensemble(n=12, m=5)
    whole = estimate(case.design, case.values, "corrected_v")
    seen = []

    def watched(method, design, values, *more):
        seen.append(values.shape[1])
        return estimate_components(method, design, values, *more)

    monkeypatch.setattr(inference, "CHUNK_ENTRIES", entries)
    monkeypatch.setattr(inference, "estimate_components", watched)
    assert_same_estimates(estimate(case.design, case.values, "corrected_v"), whole)
    assert seen == widths
    assert whole.n_learners == 60


def test_one_part_is_not_joined():
    case = make_ensemble()
    part = estimate(case.design, case.values, "ij")
    assert join_estimates([part]) is part


def test_means_of_complete_designs_are_weighted():
    design = CompleteDesign(4, 2, replace=True, seed=0)
    z = np.array([1.0, 3.0, 4.0, 8.0])
    values = z[design.members(0, 10)].max(axis=1, keepdims=True)
    ordered = [max(a, b) for a in z for b in z]
    assert_allclose(ensemble_mean(design, values), np.mean(ordered))
    assert_allclose(ensemble_mean(design, values + 2.0**40), np.mean(ordered) + 2.0**40)
    found = estimate(design, values, "ij")
    assert found.n_learners == 16
    assert_allclose(found.estimate, np.mean(ordered))
    without = CompleteDesign(4, 2, replace=False, seed=0)
    assert estimate(without, values[:6], "ij").n_learners == 6


def test_means_are_averages_over_learners():
    case = make_ensemble(m=3)
    expected = [literal.mean(case.values[:, j]) for j in range(3)]
    assert_allclose(ensemble_mean(case.design, case.values), expected, **SAME_ALGEBRA)
    flat = np.full((3, 1), 0.1)  # whose plain average is 0.10000000000000002
    design = GivenDesign(2, 1, replace=True, seed=0, table=np.ones((3, 2)))
    assert ensemble_mean(design, flat) == 0.1


@pytest.fixture
def few_entries(monkeypatch):
    monkeypatch.setattr(inference, "CACHED_ENTRIES", 100)


@pytest.mark.parametrize(
    ("k", "B", "kept"),
    [
        (5, 10, True),  # 100 entries at most
        (5, 11, False),
        (15, 5, True),  # no more than n entries in a row
        (15, 6, False),
        (2, 25, True),
        (2, 26, False),
    ],
)
@pytest.mark.usefixtures("few_entries")
def test_counts_are_held_where_they_are_few(k, B, kept):
    design = make_design("iid", 20, k, replace=True, seed=3)
    found = cache_counts(design, B, 7)
    assert (found is not design) is kept
    if kept:
        assert isinstance(found, GivenDesign)
        assert (found.n, found.k, found.replace, found.seed) == (20, k, True, 3)
        assert found.n_values == 7
        one, two = to_dense(found.counts(0, B)), to_dense(design.counts(0, B))
        np.testing.assert_array_equal(one, two)


@pytest.mark.usefixtures("few_entries")
def test_counts_of_groups_and_weights_are_not_held():
    pairs = make_design("matched", 20, 5, replace=False, seed=3)
    weighted = CompleteDesign(4, 2, replace=True, seed=0)
    assert cache_counts(pairs, 10, 100) is pairs
    assert cache_counts(weighted, 10, 100) is weighted


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


def repaired(sampling, monte_carlo, bse, monkeypatch):
    """Covariance of estimates with given standard errors and given parts."""
    bse = np.asarray(bse)
    m = bse.size
    parts = dataclasses.replace(made_up(), monte_carlo=np.zeros(m))
    no, df, unit = np.full(m, False), np.full(m, 9.0), np.ones(m)
    estimates = Estimates(np.zeros(m), parts, bse**2, no, df, 20.0, unit)
    pieces = np.asarray(sampling), np.asarray(monte_carlo)
    monkeypatch.setattr(joint, "estimate_covariance", lambda *_: pieces)
    return covariance(None, np.zeros((2, m)), estimates)


def test_a_correlation_above_one_is_brought_to_one(monkeypatch):
    sampling = np.array([[1.0, 7.0], [7.0, 12.0]])
    monte_carlo = np.array([[3.0, 2.0], [2.0, 24.0]])
    found = repaired(sampling, np.diag([3.0, 24.0]), [2.0, 6.0], monkeypatch)
    assert_allclose(found.matrix, [[4, 7], [7, 36]], **SAME_ALGEBRA)
    # Now 1.5 on the correlation scale: eigenvalues 2.5 and -0.5.
    sampling[[0, 1], [1, 0]] = 16.0
    found = repaired(sampling, monte_carlo, [2.0, 6.0], monkeypatch)
    assert_allclose(found.matrix, [[4, 12], [12, 36]], **SAME_ALGEBRA)
    assert_allclose(found.repaired, 0.5 / 3)


def test_the_repair_is_the_nearest_matrix_with_unit_diagonal(monkeypatch):
    rng = np.random.default_rng(3)
    bse = np.array([1.0, 2.0, 0.5, 4.0])
    half = rng.normal(size=(4, 4))
    raw = (half + half.T) / 2 + np.diag([1.0, 0.5, 0.8, 1.2])
    skew = np.triu(rng.normal(size=(4, 4)), 1)
    found = repaired(
        np.outer(bse, bse) * (raw + skew - skew.T), np.zeros((4, 4)), bse, monkeypatch
    )
    magnitude = linalg.sqrtm(raw @ raw).real
    nearest = (raw + magnitude) / 2
    unit = np.sqrt(np.diag(nearest))
    expected = nearest / np.outer(unit, unit) * np.outer(bse, bse)
    assert_allclose(found.matrix, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(np.diag(found.matrix), bse * bse)
    lost = np.trace(magnitude - raw) / 2
    assert_allclose(found.repaired, lost / np.trace(magnitude), rtol=1e-7)
    assert 0.1 < found.repaired < 0.6


def test_estimates_without_error_have_no_covariance(monkeypatch):
    sampling = [[4.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]
    found = repaired(sampling, np.zeros((3, 3)), [2.0, 0.0, 1.0], monkeypatch)
    assert_allclose(found.matrix, sampling, **SAME_ALGEBRA)
    assert found.repaired == 0
    nothing = repaired(np.zeros((2, 2)), np.zeros((2, 2)), [0, 0.0], monkeypatch)
    assert_allclose(nothing.matrix, 0)
    assert nothing.repaired == 0
    assert type(nothing.repaired) is type(found.repaired) is float


def test_a_negative_variance_is_repaired_whole(monkeypatch):
    found = repaired([[-2.0]], [[0.0]], [2.0], monkeypatch)
    assert found.repaired == 1.0
    assert_allclose(found.matrix, 4.0)


def joint_quantile(correlation, alpha, df):
    """Quantile of the larger of two |t|, by integrals of the normal density."""

    def inside(c):
        joint = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]])

        def given(chi):
            box = joint.cdf([c * chi] * 2, lower_limit=[-c * chi] * 2)
            density = stats.chi2.pdf(df * chi**2, df) * 2 * df * chi
            return float(box) * density

        return integrate.quad(given, 0, 6, epsabs=1e-8)[0] - (1 - alpha)

    return optimize.brentq(inside, 0.5, 20, xtol=1e-4)


@pytest.mark.parametrize(
    ("correlation", "alpha", "df"), [(0.0, 0.1, 4.0), (-0.8, 0.3, 9.0)]
)
def test_simultaneous_value_of_two_estimates_is_the_integral(correlation, alpha, df):
    scale = np.array([1e-3, 50.0])
    matrix = np.array([[1, correlation], [correlation, 1]]) * np.outer(scale, scale)
    ours = simultaneous_critical_value(matrix, alpha, df, seed=2)
    # 20 000 draws: a standard error of about 1 % at these levels.
    expected = joint_quantile(correlation, alpha, df)
    assert ours == pytest.approx(expected, rel=0.03)
    again = simultaneous_critical_value(matrix, alpha, df, seed=2)
    other = simultaneous_critical_value(matrix, alpha, df, seed=3)
    assert ours == again
    assert ours != other


def test_simultaneous_value_leaves_out_what_has_no_error():
    matrix = np.diag([4.0, 0.0, 9.0])
    ours = simultaneous_critical_value(matrix, 0.1, 20.0, seed=1)
    live = simultaneous_critical_value(np.eye(2), 0.1, 20.0, seed=1)
    assert ours == live
    nothing = simultaneous_critical_value(np.zeros((2, 2)), 0.1, 20.0, seed=1)
    assert nothing == pytest.approx(stats.t.ppf(0.95, 20.0))
    with pytest.raises(ValueError, match="`alpha` must lie"):
        simultaneous_critical_value(np.eye(2), 2.0, 20.0, seed=1)


def test_simultaneous_value_of_copies_is_the_pointwise_one():
    ones = np.ones((3, 3))
    ours = simultaneous_critical_value(ones, 0.05, np.inf, seed=1)
    assert ours == pytest.approx(stats.norm.isf(0.025), rel=0.02)


def tail_of_f(F, d1, d2):
    return special.betainc(d2 / 2, d1 / 2, d2 / (d2 + d1 * F))


@pytest.mark.parametrize("size", [1.0, 12.0, 60.0])
def test_wald_test_is_the_literal_quadratic_form(size):
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 9.0, -2.0], [0.5, -2.0, 1.0]])
    difference = size * np.array([1.0, -2.0, 0.5])
    found = wald_test(difference, matrix, 37.0, "all = 0")
    chi2 = difference @ np.linalg.solve(matrix, difference)
    statistic = chi2 / 3 * 37 / 39  # the covariance is estimated in three directions
    assert found.df_num == 3
    assert found.df_denom == 37.0
    assert_allclose(found.statistic, statistic, rtol=1e-10)
    assert_allclose(found.pvalue, tail_of_f(statistic, 3, 37.0), rtol=1e-8)
    assert 0 < found.pvalue < 1


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_wald_test_does_not_depend_on_units(unit):
    matrix = np.array([[4.0, 1.0], [1.0, 9.0]])
    scale = np.diag([unit, 1.0])
    one = wald_test(np.array([1.0, -2.0]), matrix, 37.0, "x")
    two = wald_test(scale @ [1.0, -2.0], scale @ matrix @ scale, 37.0, "x")
    assert (one.df_num, two.df_num) == (2, 2)
    assert_allclose(two.statistic, one.statistic, rtol=1e-10)


def test_tests_and_critical_values_are_plain_numbers():
    """They print as numbers, and are written to files as such."""
    for difference in ([1.0, 1.0], [0.0, 3.0]):
        found = wald_test(np.array(difference), np.diag([4.0, 0.0]), 9.0, "x")
        assert type(found.statistic) is float
        assert type(found.df_num) is int
        assert type(found.pvalue) is float
    fair = wald_test(np.array([1.0]), np.eye(1), 9.0, "x")
    values = [
        simultaneous_critical_value(matrix, 0.1, 9.0, seed=1)
        for matrix in (np.eye(2), np.zeros((2, 2)))
    ]
    plain = make_ensemble()
    complete = CompleteDesign(4, 2, replace=True, seed=0)
    learners = [
        estimate(plain.design, plain.values, "ij").n_learners,
        estimate(complete, np.arange(10.0)[:, None], "ij").n_learners,
    ]
    numbers = [fair.statistic, fair.pvalue, *values, *learners]
    assert {type(x) for x in numbers} == {float}
    assert type(fair.df_num) is int


def test_wald_test_reads_as_a_sentence():
    found = wald_test(np.array([2.0]), np.array([[1.0]]), 50.0, "a = 0")
    p = tail_of_f(4.0, 1, 50.0)
    assert str(found) == f"Wald test of a = 0: F(1, 50) = 4, P>F = {p:.4g}"


def test_wald_test_of_what_does_not_vary():
    matrix = np.diag([4.0, 0.0, 0.0])
    sure = wald_test(np.array([2.0, 3.0, 0.0]), matrix, 9.0, "x")
    assert np.isnan([sure.statistic, sure.pvalue]).all()
    assert (sure.df_num, sure.df_denom, sure.null) == (2, 9.0, "x")
    fair = wald_test(np.array([2.0, 0.0, 0.0]), matrix, 9.0, "x")
    assert (fair.statistic, fair.df_num) == (1.0, 1)
    assert_allclose(fair.pvalue, tail_of_f(1.0, 1, 9.0))
    nothing = wald_test(np.zeros(2), np.zeros((2, 2)), 9.0, "x")
    assert np.isnan([nothing.statistic, nothing.pvalue]).all()
    assert nothing.df_num == 0


@pytest.mark.parametrize(("gap", "rank"), [(1e-7, 2), (1e-9, 1)])
def test_restrictions_count_where_they_differ(gap, rank):
    """Eigenvalues of the correlation below 1e-8 are rounding."""
    matrix = 25 * np.array([[1.0, 1 - gap], [1 - gap, 1.0]])
    z = np.array([1.0, 1.00001])
    found = wald_test(5 * z, matrix, 50.0, "x")
    assert found.df_num == rank
    # Along (1, 1) with eigenvalue 2 - gap, and along (1, -1) with gap where it counts.
    chi2 = z.sum() ** 2 / 2 / (2 - gap)
    chi2 += (z[0] - z[1]) ** 2 / 2 / gap if rank == 2 else 0.0
    factor = 50 / (50 + rank - 1)
    assert_allclose(found.statistic, factor * chi2 / rank, rtol=1e-6)


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


def test_bands_have_the_harmonic_mean_of_the_degrees_of_freedom():
    matrix = 0.4 + 0.6 * np.eye(5)
    largest = simultaneous_critical_value(matrix, 0.1, np.inf, 3)
    known = band_critical_values(matrix, 0.1, np.full(5, np.inf), 3)
    assert_allclose(known, largest, rtol=1e-9)
    df = np.array([1.0, 5, 10, 40, np.inf])
    found = band_critical_values(matrix, 0.1, df, 3)
    # One quantile for all, of the harmonic mean, but never below a single interval's.
    level, middle = 2 * stats.norm.sf(largest), 5 / (1 + 1 / 5 + 1 / 10 + 1 / 40)
    assert_allclose(found[1:], stats.t.isf(level / 2, middle), rtol=1e-9)
    assert_allclose(found[0], stats.t.isf(0.05, 1), rtol=1e-9)
    assert (found >= stats.t.isf(0.05, df)).all()
    assert_allclose(
        band_critical_values(np.eye(1), 0.1, np.array([4.0]), 3)[0],
        stats.t.isf(0.05, 4),
        rtol=0.02,
    )


def test_what_is_not_known_has_no_p_value():
    a = np.array([2.0, np.nan, np.nan, 0.0, 2.0, -2.0, 0.0, 3.0])
    b = np.array([np.nan, 1.0, 0.0, np.nan, 0.0, 0.0, 0.0, 2.0])
    z = ratio(a, b)
    expected = [np.nan, np.nan, np.nan, np.nan, np.inf, -np.inf, 0.0, 1.5]
    np.testing.assert_array_equal(z, expected)
    p = two_sided_pvalues(z, np.full(8, 10.0))
    np.testing.assert_array_equal(np.isnan(p), [True] * 4 + [False] * 4)
    np.testing.assert_array_equal(p[4:7], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(ratio(a, b, zero=0.0)[4:6], [0.0, 0.0])
