import itertools

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy import integrate, stats
from scipy.special import comb

import vstatkit as vs
from tests.oracles import literal
from tests.oracles.ensembles import (
    SAME_ALGEBRA,
    ensembles,
    make_ensemble,
    unseen_ensemble,
    with_columns,
)
from vstatkit.sampling.design import to_dense
from vstatkit.sampling.registry import make_design
from vstatkit.variance.formulas import (
    bag_moments,
    group_means,
    jackknife_after_bootstrap,
    little_bags,
    noise_variance,
    positive_mean,
    zeta_1_bm,
    zeta_1_corrected_u,
    zeta_1_corrected_v,
    zeta_1_ij_u,
    zeta_1_im,
)
from vstatkit.variance.moments import (
    EnsembleSums,
    moments_from_sums,
    presence_moments,
    sum_ensemble,
)
from vstatkit.variance.registry import ESTIMATORS, estimate_components


def moments_of(case):
    return moments_from_sums(sum_ensemble(case.design, case.values))


@given(ensembles("balanced"))
def test_bm_and_ij_agree_on_balanced_designs(case):
    """Theorem 4.2 of the paper."""
    n, k, _ = case.shape
    moments = moments_of(case)
    assert_allclose(
        k**2 / n * zeta_1_bm(moments),
        n / (n - 1) * moments.jackknife,
        **SAME_ALGEBRA,
    )


@given(ensembles("balanced", replace=False))
def test_corrected_u_and_ij_u_agree_by_their_factor(case):
    """On balanced designs they differ in the Monte Carlo term by O(1/n + 1/B)."""
    n, k, B = case.shape
    moments = moments_of(case)
    v = moments.squares / B
    bias = (n - 1) / n * B / (B - 1) * k * (n - k) / n * v / B
    ours = (n / (n - k)) ** 2 * (moments.jackknife - bias)
    theirs = (n / (n - k)) ** 2 * (moments.jackknife - k * (n - k) / n * v / B)
    assert_allclose(k**2 / n * zeta_1_corrected_u(moments), ours, **SAME_ALGEBRA)
    assert_allclose(
        k**2 / n * zeta_1_ij_u(moments, replace=False), theirs, **SAME_ALGEBRA
    )


@given(ensembles("balanced", replace=True))
def test_simple_correction_and_ij_agree_by_their_factor(case):
    n, k, B = case.shape
    parts = vs.variance_components(
        case.counts, case.values, method="corrected_v_simple"
    )
    moments = moments_of(case)
    expected = n / (n - 1) * moments.jackknife - k / B * moments.zeta_k
    assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)


def anova_by_loops(counts, h):
    """The printed sums of section 5.2, with the weighted mean of appendix C."""
    B, n = counts.shape
    N = counts.sum(axis=0)
    C = N.sum()
    m = [sum(counts[b, i] * h[b] for b in range(B)) / N[i] for i in range(n)]
    m_w = sum(N[i] * m[i] for i in range(n)) / C
    ss_tau = sum(N[i] * (m[i] - m_w) ** 2 for i in range(n))
    ss_eps = sum(
        counts[b, i] * (h[b] - m[i]) ** 2
        for i, b in itertools.product(range(n), range(B))
    )
    sigma2 = ss_eps / (C - n)
    return (ss_tau - (n - 1) * sigma2) / (C - (N**2).sum() / C)


@pytest.mark.parametrize("seed", range(5))
def test_corrected_v_is_the_literal_anova_on_unbalanced_designs(seed):
    case = make_ensemble(n=9, k=4, B=40, m=1, seed=seed)
    assert len(set(case.counts.sum(axis=0))) > 1
    expected = anova_by_loops(case.counts, case.values[:, 0])
    assert_allclose(zeta_1_corrected_v(moments_of(case)), expected, **SAME_ALGEBRA)


@pytest.mark.parametrize("method", ["bm", "corrected_v"])
def test_an_observation_never_drawn_leaves_zeta_1_alone(method):
    """The variance of conditional means is that of the observations drawn."""
    case = make_ensemble(n=9, k=4, B=40)
    plain = vs.variance_components(case.counts, case.values, method=method)
    wider = with_columns(case.counts, 0.0, 0.0, 0.0)
    parts = vs.variance_components(wider, case.values, method=method)
    assert_allclose(parts.zeta_1, plain.zeta_1, **SAME_ALGEBRA)
    assert_allclose(parts.sampling, 9 / 12 * plain.sampling, **SAME_ALGEBRA)


def test_corrected_v_needs_more_draws_than_observations_drawn():
    """Six draws of six observations say nothing; of five out of nine, something."""
    h = np.array([[1.0], [4.0], [2.0]])
    once = np.kron(np.eye(3), np.ones(2))
    with pytest.raises(ValueError, match="exceed the 6 observations drawn; got 6"):
        vs.variance_components(once, h, method="corrected_v")
    shared = np.zeros((3, 9))
    shared[[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 3, 4]] = 1
    parts = vs.variance_components(shared, h, method="corrected_v")
    expected = literal.zeta_1_corrected_v(shared, h[:, 0])
    assert_allclose(parts.zeta_1, expected, **SAME_ALGEBRA)


def test_an_observation_in_every_subsample_leaves_the_jackknife_alone():
    """Unequal probabilities are noticed: then realised numbers count."""
    case = make_ensemble(n=9, k=4, B=40)
    sums = presence_sums(case.counts, case.values)
    plain = jackknife_after_bootstrap(presence_moments(sums), complete=False)
    wider = with_columns(case.counts, 1.0, 1.0)
    parts = vs.variance_components(wider, case.values, method="jackknife")
    assert_allclose(parts.sampling, plain, **SAME_ALGEBRA)


def presence_sums(counts, values, *, joint=False):
    sums = EnsembleSums.zero(counts.shape[1], 4, values[0], joint=joint)
    sums.add((counts > 0).astype(float), values)
    return sums


def left_out_jackknife(counts, values):
    moments = presence_moments(presence_sums(counts, values))
    return jackknife_after_bootstrap(moments, complete=True)


def test_jackknife_of_a_complete_ensemble_has_no_bias_to_take_out():
    case = unseen_ensemble()
    B, n = case.counts.shape
    for joint in (False, True):
        sums = presence_sums(case.counts, case.values, joint=joint)
        raw = jackknife_after_bootstrap(presence_moments(sums), complete=True)
        debiased = jackknife_after_bootstrap(presence_moments(sums), complete=False)
        q = (case.counts == 0).mean(axis=0)
        odds = np.mean((1 - q) / q)
        v = np.cov(case.values.T)
        v = v if joint else np.diag(v)
        assert_allclose(raw - debiased, (n - 1) * odds * v / B, **SAME_ALGEBRA)


def test_jackknife_needs_an_observation_that_was_left_out():
    values = np.arange(4.0)[:, None]
    counts = np.tile([1.0, 2.0, 1.0], (4, 1))
    with pytest.raises(ValueError, match="every subsample holds every observation"):
        presence_moments(presence_sums(counts, values))
    counts[2, 1] = 0  # left out by one learner alone
    found = left_out_jackknife(counts, values)
    assert_allclose(found, 0.0, atol=1e-15)
    counts[1, 0] = 0
    found = left_out_jackknife(counts, values)
    assert_allclose(found, ((1 - 1.5) ** 2 + (2 - 1.5) ** 2) / 2, **SAME_ALGEBRA)


def test_pins_weigh_the_same_however_many_learners_they_have():
    h = np.random.default_rng(1).normal([3.0, -8.0], size=(9, 2))
    groups = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    for i, j in itertools.product(range(2), repeat=2):
        expected = literal.zeta_1_im(h[:, i], groups, h[:, j])
        assert_allclose(
            zeta_1_im(h, groups, joint=True)[i, j], expected, **SAME_ALGEBRA
        )
    assert zeta_1_im(h, groups).shape == bag_moments(h, groups)[0].shape == (2,)


def test_group_means_stand_in_the_order_of_their_labels():
    values = np.array([[1.0, 10.0], [2.0, 20.0], [5.0, 0.0], [4.0, 40.0]])
    means = group_means(values, np.array([7, 3, 7, -1]))
    assert_allclose(means, [[4, 40], [2, 20], [3, 5]])


@pytest.mark.parametrize("joint", [False, True])
def test_little_bags_about_a_given_centre(joint):
    """Deviations from a centre are those from the mean of values shifted by it."""
    h = np.random.default_rng(2).normal(size=(18, 2))
    centre = np.array([0.7, -0.4])
    groups = np.repeat(np.arange(6), 3)
    rho = h - centre
    bags = rho.reshape(6, 3, 2).mean(axis=1)
    vb, vt = bags.T @ bags / 6, rho.T @ rho / 18
    noise = (vt - vb) / 2
    first, scale = vb - noise, np.maximum(vb, noise) * np.sqrt(2 / 6)
    positive = positive_mean(np.diag(first), np.diag(scale))
    moment, spread = bag_moments(h, groups, joint=joint, centre=centre)
    variance, again = little_bags(h, groups, joint=joint, centre=centre)
    assert_allclose(moment, first if joint else np.diag(first), **SAME_ALGEBRA)
    for found in (spread, again):
        assert_allclose(found, scale if joint else np.diag(scale), **SAME_ALGEBRA)
    if joint:
        assert_allclose(variance[0, 1], first[0, 1], **SAME_ALGEBRA)
        assert_allclose(variance[1, 0], first[0, 1], **SAME_ALGEBRA)
        variance = np.diag(variance)
    assert_allclose(variance, positive, **SAME_ALGEBRA)


def test_ij_u_is_the_literal_formula():
    for replace in (True, False):
        case = make_ensemble(n=15, k=6, B=50, replace=replace)
        N, h, (n, k, B) = case.counts, case.values, case.shape
        hc = h - h.mean(axis=0)
        raw = (((N - N.mean(axis=0)).T @ hc / B) ** 2).sum(axis=0)
        v = (hc**2).mean(axis=0)
        expected = raw - n * N.var(axis=0).mean() * v / B
        if not replace:
            expected = expected / (1 - N.mean()) ** 2
        parts = vs.variance_components(N, h, method="ij_u", replace=replace)
        assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)
        assert_allclose(parts.zeta_1, n / k**2 * expected, **SAME_ALGEBRA)


def test_jackknife_is_the_literal_formula():
    case = make_ensemble(n=15, k=15, B=200)
    N, h, (n, _, B) = case.counts, case.values, case.shape
    q = (14 / 15) ** 15
    d, centred = (N > 0) - (1 - q), h - h.mean(axis=0)
    products = (d @ d.T)[:, :, None] * centred[:, None] * centred
    products[np.diag_indices(B)] = 0.0
    factor = (n - 1) / n * B / ((B - 1) * (B**2 - 2 * B + 2))
    expected = factor / q**2 * products.sum(axis=(0, 1))
    parts = vs.variance_components(N, h, method="jackknife")
    assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)


def pair_values(counts):
    """Products and squares of presence: all orders, and unequal spread of learners."""
    z = np.array([1.0, -2.0, 0.5, 3.0])
    present = (counts > 0) @ z
    return np.column_stack([present + present**2, np.abs(present - 1.0)])


@pytest.mark.parametrize(("k", "replace"), [(3, True), (2, False)])
@pytest.mark.parametrize("B", [2, 3])
def test_the_jackknife_is_unbiased_over_all_ensembles_of_few_learners(k, replace, B):
    """The mean over every possible ensemble is the value of infinitely many."""
    n = 4
    if replace:
        draws = itertools.product(range(n), repeat=k)
    else:
        draws = itertools.combinations(range(n), k)
    subsamples = np.array([np.bincount(one, minlength=n) for one in draws])
    chance = (1 - 1 / n) ** k if replace else 1 - k / n
    counts, times = np.unique(subsamples, axis=0, return_counts=True)
    weight, values = times / times.sum(), pair_values(counts)
    centred = values - weight @ values
    absent = (counts == 0) / chance
    t = absent.T @ (weight[:, None] * centred)
    expected = (n - 1) / n * t.T @ t
    found = np.zeros((2, 2))
    for ensemble in itertools.product(range(len(counts)), repeat=B):
        drawn = list(ensemble)
        sums = presence_sums(counts[drawn], values[drawn], joint=True)
        moments = presence_moments(sums, chance)
        raw = jackknife_after_bootstrap(moments, complete=False)
        found += np.prod(weight[drawn]) * raw
    assert_allclose(found, expected, rtol=1e-10)


def nearest_present(x, y, points, counts):
    """Response of the nearest neighbour in every subsample, shape (B, m)."""
    order = np.argsort(np.abs(x[:, None] - points), axis=0)
    first = (counts[:, order] > 0).argmax(axis=1)
    return y[np.take_along_axis(order[None], first[:, None], axis=1)[:, 0]]


@pytest.mark.parametrize(("k", "replace"), [(40, True), (15, True), (20, False)])
@pytest.mark.parametrize(("B", "seeds"), [(50, 1500), (100, 700), (500, 120)])
def test_the_jackknife_is_unbiased_over_seeds(k, replace, B, seeds):
    """Nearest neighbours, n = 40: within 5 standard errors, these below 3 %.

    The value of infinitely many learners is exact: the i-th nearest is the neighbour
    if it is present and all nearer ones are absent.
    """
    n, m = 40, 6
    rng = np.random.default_rng(7)
    x, points = rng.uniform(size=n), np.linspace(0.1, 0.9, m)
    y = 3 * x + rng.normal(size=n)
    expected = limit_of_nearest(x, y, points, k, replace)
    found = np.empty((seeds, m))
    for seed in range(seeds):
        design = make_design("iid", n, k, replace=replace, seed=seed).with_size(B)
        counts = to_dense(design.counts(0, B))
        values = nearest_present(x, y, points, counts)
        found[seed] = estimate_components("jackknife", design, values).sampling
    total = found.sum(axis=1)
    error = total.std(ddof=1) / np.sqrt(seeds)
    assert error < 0.03 * expected.sum()
    assert abs(total.mean() - expected.sum()) < 5 * error


def limit_of_nearest(x, y, points, k, replace):
    """Jackknife variance of infinitely many one-neighbour learners, shape (m,)."""
    n = x.size

    def none_of(c):
        if replace:
            return (1 - c / n) ** k
        return comb(n - c, k, exact=True) / comb(n, k, exact=True)

    out = np.array([none_of(c) for c in range(n + 1)])
    first = out[:-1] - out[1:]  # chance that the i-th nearest is the neighbour
    limits = []
    for point in points:
        near = y[np.argsort(np.abs(x - point))]
        whole = first @ near
        without = []
        for i in range(n):
            # Given that the i-th is absent: with c others absent, out[c + 1] / out[1].
            chances = (out[1:-1] - out[2:]) / out[1]
            without.append(chances @ np.delete(near, i))
        limits.append((n - 1) / n * np.sum((np.array(without) - whole) ** 2))
    return np.array(limits)


def test_the_jackknife_of_many_learners_is_the_realised_one():
    """Known chances and realised numbers have the same limit."""
    case = make_ensemble(n=15, k=15, B=20_000)
    sums = presence_sums(case.counts, case.values)
    chance = case.design.chance_absent
    both = [presence_moments(sums, one) for one in (chance, None)]
    known, realised = (jackknife_after_bootstrap(one, complete=False) for one in both)
    assert_allclose(known, realised, rtol=0.02)


def test_jackknife_and_ij_agree_without_replacement_on_balanced_designs():
    case = make_ensemble("balanced", n=12, k=5, B=36, replace=False)
    n, k, B = case.shape
    moments = moments_of(case)
    # t_i - hbar is -(n / (n - k)) times the influence.
    raw = (n - 1) / n * (n / (n - k)) ** 2 * moments.jackknife
    # Learners have equal numbers of units, so their own part is known too.
    own = n * k / (n - k) * moments.squares / B / B
    centring = B**3 / ((B - 1) * (B**2 - 2 * B + 2))
    expected = centring * (raw - (n - 1) / n * own)
    parts = vs.variance_components(
        case.counts, case.values, method="jackknife", replace=False
    )
    assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)


def test_im_is_the_variance_of_the_pins_means():
    case = make_ensemble("two-level", B=100, n_in=20)
    means = case.values.reshape(5, 20, -1).mean(axis=1)
    groups = case.design.groups(100)
    parts = vs.variance_components(case.counts, case.values, method="im", groups=groups)
    assert_allclose(parts.zeta_1, means.var(axis=0, ddof=1), **SAME_ALGEBRA)
    assert_allclose(parts.zeta_k, case.values.var(axis=0, ddof=1), **SAME_ALGEBRA)


def test_little_bags_is_the_formula_of_grf():
    case = make_ensemble("little-bags", n=20, k=8, B=60, replace=False, group_size=3)
    rho = case.values - case.values.mean(axis=0)
    bags = rho.reshape(20, 3, -1).mean(axis=1)
    between, total = (bags**2).mean(axis=0), (rho**2).mean(axis=0)
    noise = (total - between) / 2
    first = between - noise
    scale = np.maximum(between, noise) * np.sqrt(2 / 20)
    r = first / scale
    expected = first + scale * stats.norm.pdf(r) / stats.norm.cdf(r)
    parts = vs.variance_components(
        case.counts,
        case.values,
        method="little_bags",
        replace=False,
        groups=case.design.groups(60),
    )
    assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)


def test_matched_pairs_are_vh_less_vs():
    case = make_ensemble("matched", n=20, k=8, B=60, replace=False)
    h = case.values
    vh = ((h[::2] - h[1::2]) ** 2 / 2).mean(axis=0)
    parts = vs.variance_components(
        case.counts, h, method="matched", replace=False, groups=case.design.groups(60)
    )
    assert_allclose(parts.sampling, vh - h.var(axis=0), **SAME_ALGEBRA)


ALL = [
    (name, replace)
    for name, estimator in ESTIMATORS.items()
    for replace in (True, False)
    # Shards must be disjoint, which these subsamples are not: see test_shards.py.
    if estimator.replace in (None, replace) and name != "shards"
]


def components(method, replace, counts, values, groups=None):
    grouped = ESTIMATORS[method].source == "groups"
    return vs.variance_components(
        counts,
        values,
        method=method,
        replace=replace,
        groups=groups if grouped else None,
    )


@pytest.mark.parametrize(("method", "replace"), ALL)
@pytest.mark.parametrize(("c", "d"), [(1e-8, 0), (1e8, 0), (-3.0, 7.0), (1.0, 1e8)])
def test_variances_scale_with_the_square_of_the_unit(method, replace, c, d):
    case = make_ensemble(n=20, k=7, B=120, replace=replace)
    groups = np.arange(120) // 2
    plain = components(method, replace, case.counts, case.values, groups)
    moved = components(method, replace, case.counts, c * case.values + d, groups)
    for name in ("zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se"):
        # An offset of 1e8 rounds the values themselves to 1.5e-8.
        scale = np.abs(getattr(plain, name)).max() * c**2
        assert_allclose(
            getattr(moved, name),
            c**2 * getattr(plain, name),
            rtol=1e-6,
            atol=1e-6 * scale,
        )


@pytest.mark.parametrize(("method", "replace"), ALL)
def test_relabelling_and_permuting_change_nothing(method, replace, rng):
    case = make_ensemble(n=20, k=7, B=120, replace=replace)
    groups = np.arange(120) // 2
    plain = components(method, replace, case.counts, case.values, groups)
    relabelled = components(
        method, replace, case.counts[:, rng.permutation(20)], case.values, groups
    )
    order = rng.permutation(120)
    permuted = components(
        method, replace, case.counts[order], case.values[order], groups[order]
    )
    assert_allclose(relabelled.total, plain.total, **SAME_ALGEBRA)
    assert_allclose(permuted.total, plain.total, **SAME_ALGEBRA)


@pytest.mark.parametrize(("method", "replace"), ALL)
def test_total_is_sampling_plus_monte_carlo(method, replace):
    case = make_ensemble(n=20, k=7, B=120, replace=replace)
    parts = components(method, replace, case.counts, case.values, np.arange(120) // 2)
    assert parts.method == method
    assert_allclose(parts.total, parts.sampling + parts.monte_carlo, rtol=1e-14)
    if ESTIMATORS[method].source == "groups":
        pairs = case.values.reshape(60, 2, -1).mean(axis=1)
        assert_allclose(parts.monte_carlo, pairs.var(axis=0, ddof=1) / 60, rtol=1e-12)
    else:
        assert_allclose(parts.monte_carlo, parts.zeta_k / 120, rtol=1e-14)
    assert_allclose(parts.sampling, 7**2 / 20 * parts.zeta_1, rtol=1e-12)


def test_many_points_by_gram_agree_with_few_by_product():
    case = make_ensemble(n=30, k=9, B=20, m=400)
    whole = vs.variance_components(case.counts, case.values)
    first = vs.variance_components(case.counts, case.values[:, :5])
    assert_allclose(whole.total[:5], first.total, **SAME_ALGEBRA)
    assert_allclose(whole.mc_se[:5], first.mc_se, **SAME_ALGEBRA)


def test_clusters_drawn_whole_count_as_units():
    case = make_ensemble(n=10, k=4, B=80)
    clusters = np.repeat(np.arange(10), 3)
    parts = vs.variance_components(
        case.counts[:, clusters], case.values, groups=clusters
    )
    units = vs.variance_components(case.counts, case.values)
    assert_allclose(parts.total, units.total, **SAME_ALGEBRA)


@pytest.mark.parametrize(("estimate", "scale"), [(-5, 1), (-0.2, 3), (0, 2), (4, 1)])
def test_positive_mean_is_the_posterior_mean(estimate, scale):
    density = stats.norm(estimate, scale).pdf
    mass = integrate.quad(density, 0, np.inf, epsabs=0)[0]
    first = integrate.quad(lambda v: v * density(v), 0, np.inf, epsabs=0)[0]
    ours = positive_mean(np.array([float(estimate)]), np.array([float(scale)]))
    assert_allclose(ours, first / mass, rtol=1e-7)


def test_positive_mean_far_below_zero_and_without_noise():
    deep = positive_mean(np.array([-600.0, -499.0]), np.ones(2))
    assert_allclose(deep, [1 / 600, 1 / 499], rtol=1e-4)
    known = positive_mean(np.array([-1.0, 2.0]), np.zeros(2))
    assert_allclose(known, [0, 2])


@pytest.mark.parametrize("z", [-30.0, -100.0, -499.9, -500.1, -2000.0, -1e6, -1e100])
def test_positive_mean_far_below_zero_is_its_expansion(z):
    """`z + phi(z)/Phi(z)` is 1/x - 2/x**3 + 10/x**5 - ... with x = -z."""
    x, u = -z, -1 / z
    expected = u * (1 - 2 * u**2 + 10 * u**4 - 74 * u**6)
    # Below -500 the first term alone is used: 8e-6 off; above it digits cancel.
    tolerance = 1e-5 if x > 300 else 1e-6 if x > 50 else 1e-7
    for scale in (1.0, 3e-7):
        ours = positive_mean(np.array([z * scale]), np.array([scale]))
        assert_allclose(ours, expected * scale, rtol=tolerance)


def test_positive_mean_of_what_is_surely_positive_is_the_estimate():
    ours = positive_mean(np.array([40.0, 1e200, 3.0]), np.array([1.0, 1.0, 0.0]))
    assert_allclose(ours, [40.0, 1e200, 3.0], rtol=1e-15)


def test_pairs_that_differ_by_rounding_alone_give_no_warning():
    """The pairs' products are equal but for a digit: the noise is next to nothing."""
    counts = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 2)
    values = np.array([[0.1], [0.1], [0.3], [0.3]])
    res = vs.from_arrays(
        counts, values, replace=False, variance="matched", groups=[0, 0, 1, 1]
    )
    assert 0 < res.components.mc_se.item() < 1e-15
    assert res.components.sampling.item() == pytest.approx(-0.01)
    assert np.isfinite(res.bse.item())


def test_positive_mean_is_by_point():
    ours = positive_mean(np.array([-2.0, 0.0, -1.0]), np.array([0.0, 2.0, 1.0]))
    phi, Phi = stats.norm.pdf(-1), stats.norm.cdf(-1)
    assert_allclose(ours, [0, 2 * np.sqrt(2 / np.pi), -1 + phi / Phi], rtol=1e-12)


@pytest.mark.parametrize("V", [-1.0, 0.0, 2.0])
def test_noise_variance_is_that_of_a_sum_of_noisy_squares(V):
    n, s2 = 7, 0.3
    ours = noise_variance(np.array([V]), np.array([s2]), n)
    assert_allclose(ours, literal.noise_variance(V, s2, n), rtol=1e-14)
    if V >= 0:
        rng = np.random.default_rng(4)
        influence = np.sqrt(V / n) * np.ones(n)
        noisy = influence + np.sqrt(s2) * rng.normal(size=(20_000, n))
        # The variance of 20 000 sums has a relative standard error of 1 to 2 %.
        assert_allclose((noisy**2).sum(axis=1).var(), ours, rtol=0.05)


def test_mc_se_is_the_spread_over_ensembles():
    """Corrected-V over many ensembles of one data set varies as mc_se says."""
    n, k, B, runs = 40, 20, 100, 400
    z = np.random.default_rng(4).normal(size=n)
    estimates, errors = [], []
    for seed in range(runs):
        case = make_ensemble(n=n, k=k, B=B, m=1, seed=seed)
        noise = np.random.default_rng(seed + 10_000).normal(size=(B, 1))
        parts = vs.variance_components(
            case.counts, (case.counts @ z / k)[:, None] + noise
        )
        estimates.append(parts.total[0])
        errors.append(parts.mc_se[0] ** 2)
    # 400 runs give the standard deviation to about 4 %; three times that, and
    # the approximation of the formula, are allowed.
    assert np.std(estimates) == pytest.approx(np.sqrt(np.mean(errors)), rel=0.15)
