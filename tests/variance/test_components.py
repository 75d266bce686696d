import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from tests.oracles import literal
from tests.oracles.ensembles import (
    SAME_ALGEBRA,
    make_ensemble,
    unseen_ensemble,
    with_columns,
)
from vstatkit.kernels.base import KernelKind
from vstatkit.sampling.design import CompleteDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import make_design
from vstatkit.variance.estimators import VarianceComponents
from vstatkit.variance.moments import (
    moments_by_gram,
    moments_from_sums,
    presence_moments,
    sum_ensemble,
)
from vstatkit.variance.registry import (
    ESTIMATORS,
    GROUPED_DESIGNS,
    estimate_components,
    estimate_covariance,
    moment_estimator,
    resolve_for_design,
)

PLAIN = [
    *((name, True) for name in literal.SAMPLING),
    *((name, False) for name in literal.SAMPLING_WITHOUT),
]


def formula(method, replace):
    return (literal.SAMPLING if replace else literal.SAMPLING_WITHOUT)[method]


def cases(replace):
    """Even and uneven counts, observations never drawn, one drawn by all."""
    plain = make_ensemble(n=8, k=3, B=25, m=2, replace=replace, seed=5)
    yield plain
    yield unseen_ensemble(replace=replace)
    counts = with_columns(plain.counts, 1.0, 0.0)
    design = GivenDesign(10, 4, replace=replace, seed=0, table=counts)
    yield dataclasses.replace(plain, design=design, counts=counts)


@pytest.mark.parametrize(("method", "replace"), PLAIN)
def test_variances_are_the_literal_formulas(method, replace):
    for case in cases(replace):
        (n, k, B), h = case.shape, case.values
        parts = estimate_components(method, case.design, h)
        assert (parts.method, parts.n) == (method, n)
        for j in range(h.shape[1]):
            V = formula(method, replace)(case.counts, h[:, j])
            spread = literal.zeta_k(h[:, j])
            assert_allclose(parts.sampling[j], V, **SAME_ALGEBRA)
            assert_allclose(parts.zeta_1[j], n / k**2 * V, **SAME_ALGEBRA)
            assert_allclose(parts.zeta_k[j], spread, **SAME_ALGEBRA)
            assert_allclose(parts.monte_carlo[j], spread / B, **SAME_ALGEBRA)
            assert_allclose(parts.total[j], V + spread / B, **SAME_ALGEBRA)


@pytest.mark.parametrize(("method", "replace"), PLAIN)
def test_covariances_are_the_literal_formulas(method, replace):
    for case in cases(replace):
        h, B = case.values, len(case.values)
        sampling, monte_carlo = estimate_covariance(method, case.design, h)
        for i, j in itertools.product(range(2), repeat=2):
            V = formula(method, replace)(case.counts, h[:, i], h[:, j])
            assert_allclose(sampling[i, j], V, **SAME_ALGEBRA)
            spread = literal.zeta_k(h[:, i], h[:, j])
            assert_allclose(monte_carlo[i, j], spread / B, **SAME_ALGEBRA)


@pytest.mark.parametrize(("method", "replace"), PLAIN)
def test_noise_and_mc_se_are_those_of_the_influences(method, replace):
    for case in cases(replace):
        n, k, B = case.shape
        h = case.values[:, 0]
        if method == "jackknife":
            _, odds = literal.deletions(case.counts, h, replace=replace)
            noise = odds * literal.zeta_k(h) / B
        else:
            inflated = method in ("ij_u", "corrected_u") and not replace
            stretch = n / (n - k) if inflated else 1.0
            noise = literal.count_variance(case.counts) * literal.zeta_k(h) / B
            noise *= stretch**2
        V = formula(method, replace)(case.counts, h)
        parts = estimate_components(method, case.design, case.values)
        assert_allclose(parts.noise[0], noise, **SAME_ALGEBRA)
        mc_se = np.sqrt(literal.noise_variance(V, noise, n))
        assert_allclose(parts.mc_se[0], mc_se, **SAME_ALGEBRA)


@pytest.mark.parametrize(("method", "replace"), PLAIN)
def test_concentration_is_that_of_the_influences_whatever_the_scale(method, replace):
    for case in cases(replace):
        parts = estimate_components(method, case.design, case.values)
        for j, h in enumerate(case.values.T):
            expected = literal.concentration(case.counts, h)
            if method == "jackknife":
                expected = literal.presence_concentration(
                    case.counts, h, replace=replace
                )
            assert_allclose(parts.concentration[j], expected, **SAME_ALGEBRA)
        moved = parts.in_units(np.full(case.values.shape[1], 8.0)).concentration
        assert_allclose(moved, parts.concentration, rtol=0)


def test_concentration_counts_the_units_that_matter():
    """Noise of any size is taken out of it, on average over ensembles."""
    design = CompleteDesign(6, 2, replace=True, seed=0)
    N = np.asarray(design.counts(0, design.n_subsamples))
    for z, share in (([1, 1, 1, -1, -1, -1], 1 / 6), ([1, -1, 0, 0, 0, 0], 1 / 2)):
        values = N @ np.array(z, dtype=float)[:, None]
        parts = estimate_components("ij", design, values)
        assert_allclose(parts.concentration, share, rtol=1e-10)


def test_fourth_powers_of_the_jackknife_of_a_mean_are_known():
    n, k = 7, 4
    design = CompleteDesign(n, k, replace=True, seed=0)
    z = np.array([3.0, -1.0, 0.5, 2.0, -2.5, 0.0, 1.0])
    B = design.n_subsamples
    values = np.asarray(design.counts(0, B)) @ z[:, None] / k
    moments = presence_moments(sum_ensemble(design, values, presence=True))
    # The mean without observation i differs by (zbar - z_i) / (n - 1).
    expected = np.sum(((z - z.mean()) / (n - 1)) ** 4)
    assert_allclose(moments.quartic, expected, rtol=1e-9)


@pytest.mark.parametrize(("method", "replace"), [("jackknife", True), ("ij", True)])
def test_noise_is_the_monte_carlo_variance_of_one_influence(method, replace):
    """Learners of pure noise: what an influence varies by is its noise."""
    n, k, B, runs = 10, 10, 50, 300
    noise, found = [], []
    for seed in range(runs):
        design = make_design("iid", n, k, replace=replace, seed=seed)
        h = np.random.default_rng(seed).normal(size=(B, 1))
        counts = np.asarray(design.counts(0, B))
        parts = estimate_components(method, design, h)
        noise.append(parts.noise[0])
        if method == "ij":
            found.append((counts - counts.mean(axis=0)).T @ (h - h.mean()) / B)
        else:
            out = counts == 0
            found.append(out.T @ h / out.sum(axis=0)[:, None] - h.mean())
    # 3000 squares, those of one run nearly independent: their mean has a relative
    # standard error of 3 %. Four of them, and terms of order 1/B, are allowed.
    assert np.mean(np.square(found)) == pytest.approx(np.mean(noise), rel=0.14)


def test_gram_form_has_noise_but_no_fourth_powers():
    case = unseen_ensemble(replace=False)
    by_gram = moments_by_gram(case.counts, case.values, size=4)
    direct = moments_from_sums(sum_ensemble(case.design, case.values))
    for method in ("bm", "ij_u", "corrected_u"):
        a = moment_estimator(method).from_moments(by_gram, replace=False)
        b = moment_estimator(method).from_moments(direct, replace=False)
        assert a.concentration is None
        for name in ("zeta_1", "zeta_k", "total", "mc_se", "noise"):
            assert_allclose(getattr(a, name), getattr(b, name), **SAME_ALGEBRA)


def test_only_estimators_from_moments_are_computed_from_moments():
    with pytest.raises(ValueError, match="'jackknife' is not computed from moments"):
        moment_estimator("jackknife")


@pytest.mark.parametrize("method", ["bm", "ij", "ij_u", "jackknife", "corrected_v"])
def test_complete_ensembles_have_no_monte_carlo_part(method):
    design = CompleteDesign(5, 3, replace=True, seed=0)
    B = design.n_subsamples
    z = np.array([1.0, 4.0, -2.0, 0.5, 3.0])
    values = np.sort(z[design.members(0, B)], axis=1)[:, 1:2]  # the median of three
    parts = estimate_components(method, design, values)
    assert parts.monte_carlo == 0
    assert parts.noise == 0
    assert_allclose(parts.total, parts.sampling)
    ordered = list(itertools.product(range(5), repeat=3))
    counts = np.array([np.bincount(row, minlength=5) for row in ordered], dtype=float)
    h = np.array([np.median(z[list(row)]) for row in ordered])
    n, k = 5, 3
    expected = {
        "bm": literal.factor(counts) * literal.zeta_1_bm(counts, h),
        "corrected_v": literal.factor(counts) * literal.zeta_1_bm(counts, h),
        "ij": literal.sampling_ij(counts, h),
        "ij_u": literal.sampling_ij(counts, h),
        "jackknife": (n - 1)
        / n
        * sum(
            (t - literal.mean(h)) ** 2
            for t in literal.left_out_means(counts, h).values()
        ),
    }[method]
    assert_allclose(parts.sampling, expected, **SAME_ALGEBRA)
    assert_allclose(parts.zeta_1, n / k**2 * expected, **SAME_ALGEBRA)
    sampling, monte_carlo = estimate_covariance(method, design, values)
    assert_allclose(sampling, [[expected]], **SAME_ALGEBRA)
    assert monte_carlo == 0


def grouped(method, *, seed=1, B=42, m=2):
    """An ensemble whose groups stand in another order than its learners."""
    name = next(d for d, estimator in GROUPED_DESIGNS.items() if estimator == method)
    options = {"im": {"n_in": 6}, "little_bags": {"group_size": 3}, "matched": {}}
    case = make_ensemble(
        name, n=15, k=6, B=B, m=m, replace=False, seed=seed, **options[method]
    )
    return case, case.design.groups(B)


def group_parts(method, case, groups):
    return vs.variance_components(
        case.counts, case.values, method=method, replace=False, groups=groups
    )


@pytest.mark.parametrize("method", ["im", "little_bags", "matched"])
def test_estimators_of_groups_are_the_literal_formulas(method):
    case, groups = grouped(method)
    n, k, _ = case.shape
    parts = group_parts(method, case, groups)
    assert (parts.method, parts.n) == (method, n)
    assert parts.noise is None
    assert parts.concentration is None
    for j in range(2):
        h = case.values[:, j]
        if method == "im":
            V = k**2 / n * literal.zeta_1_im(h, groups)
            mc_se = V * np.sqrt(2 / (len(set(groups)) - 1))
        elif method == "little_bags":
            V = literal.sampling_little_bags(h, groups)
            mc_se = literal.little_bags_scale(h, groups)
        else:
            V = literal.sampling_matched(h)
            products = literal.matched_products(h)
            mc_se = np.sqrt(literal.zeta_k(products) / len(products))
        assert_allclose(parts.sampling[j], V, **SAME_ALGEBRA)
        assert_allclose(parts.zeta_1[j], n / k**2 * V, **SAME_ALGEBRA)
        assert_allclose(parts.zeta_k[j], literal.zeta_k(h), **SAME_ALGEBRA)
        assert_allclose(parts.mc_se[j], mc_se, **SAME_ALGEBRA)
    assert_allclose(parts.total, parts.sampling + parts.monte_carlo, rtol=1e-14)


@pytest.mark.parametrize("method", ["im", "little_bags", "matched"])
def test_covariances_of_groups_are_the_literal_formulas(method):
    case, groups = grouped(method, m=3)
    n, k, _ = case.shape
    sampling, _ = estimate_covariance(method, case.design, case.values)
    for i, j in itertools.product(range(3), repeat=2):
        h, g = case.values[:, i], case.values[:, j]
        if method == "im":
            expected = k**2 / n * literal.zeta_1_im(h, groups, g)
        elif method == "matched":
            expected = literal.sampling_matched(h, g)
        elif i == j:
            expected = literal.sampling_little_bags(h, groups)
        else:
            vb, noise, _ = literal.bag_parts(h, groups, g)
            expected = vb - noise
        assert_allclose(sampling[i, j], expected, **SAME_ALGEBRA)


@pytest.mark.parametrize("method", ["im", "little_bags", "matched"])
def test_monte_carlo_covariances_of_groups_fit_their_variances(method):
    """The covariance of two values is a quarter of var(a + b) - var(a - b)."""
    case, _ = grouped(method, m=3)
    _, monte_carlo = estimate_covariance(method, case.design, case.values)
    assert monte_carlo.shape == (3, 3)
    for i, j in itertools.product(range(3), repeat=2):
        a, b = case.values[:, i], case.values[:, j]
        both = dataclasses.replace(case, values=np.column_stack([a + b, a - b]))
        parts = estimate_components(method, both.design, both.values)
        plus, minus = parts.monte_carlo
        assert_allclose(monte_carlo[i, j], (plus - minus) / 4, **SAME_ALGEBRA)
    _, single = estimate_covariance(method, case.design, case.values[:, :1])
    assert_allclose(single, monte_carlo[:1, :1], **SAME_ALGEBRA)


@pytest.mark.parametrize("method", ["im", "little_bags", "matched"])
def test_the_order_of_learners_in_a_group_is_of_no_account(method):
    case, groups = grouped(method)
    order = np.random.default_rng(0).permutation(len(groups))
    moved = dataclasses.replace(
        case, counts=case.counts[order], values=case.values[order]
    )
    one = group_parts(method, case, groups)
    two = group_parts(method, moved, 10 - 3 * groups[order])
    for name in ("zeta_1", "sampling", "zeta_k", "mc_se"):
        assert_allclose(getattr(two, name), getattr(one, name), **SAME_ALGEBRA)


@pytest.mark.parametrize("method", ["im", "matched"])
def test_mc_se_of_groups_is_the_spread_over_ensembles(method):
    """Values of independent groups: normal group means, pairs with correlation."""
    G, size, runs = 12, 2, 1000
    rng = np.random.default_rng(8)
    shared = rng.normal(size=(runs, G, 1))
    values = (shared + rng.normal(size=(runs, G, size))).reshape(runs, -1).T
    counts = make_design("matched", 8, 3, replace=False, seed=1).counts(0, G * size)
    parts = vs.variance_components(
        counts,
        values,
        method=method,
        replace=False,
        groups=np.repeat(np.arange(G), size),
    )
    # 1000 runs give a standard deviation to 2-4 %; estimates of a variance from
    # 12 groups are themselves skewed, which the squared mean allows for.
    spread = parts.sampling.std()
    claimed = np.sqrt(np.mean(parts.mc_se**2))
    skew = np.sqrt(1 + 2 / (G - 1)) if method == "im" else 1.0
    assert spread == pytest.approx(claimed / skew, rel=0.1)


@pytest.mark.parametrize(
    ("name", "facts"),
    {
        "im": ("IM", "groups", True, None, "two-level", False),
        "bm": ("BM", "moments", True, None, None, False),
        "ij": ("IJ", "moments", True, None, None, False),
        "ij_u": ("IJ-U", "moments", False, None, None, True),
        "jackknife": ("J-U", "presence", False, None, None, False),
        "corrected_v": ("corrected-V", "moments", False, True, None, False),
        "corrected_v_simple": (
            "corrected-V (simple)",
            "moments",
            False,
            True,
            None,
            False,
        ),
        "corrected_u": ("corrected-U", "moments", False, False, None, True),
        "little_bags": ("little bags", "groups", True, None, "little-bags", False),
        "matched": ("matched pairs", "groups", False, False, "matched", False),
    }.items(),
)
def test_the_registry_says_what_each_estimator_is(name, facts):
    entry = ESTIMATORS[name]
    found = (
        entry.label,
        entry.source,
        entry.nonnegative,
        entry.replace,
        entry.design,
        entry.inflated,
    )
    assert found == facts


def resolve(method="corrected", *, kind=KernelKind.UNKNOWN, design="iid", **options):
    facts = dict(replace=True, k=3, n=9, complete=False, has_groups=False, n_absent=0.0)
    given = SimpleNamespace(name=design, **(facts | options))
    return resolve_for_design(method, given, kind)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "corrected_v"),
        ({"replace": False}, "corrected_u"),
        ({"design": "balanced"}, "corrected_v"),
        ({"design": "two-level"}, "im"),
        ({"design": "little-bags", "replace": False}, "little_bags"),
        ({"design": "matched", "replace": False}, "matched"),
        ({"design": "given"}, "corrected_v"),
        ({"method": "im", "design": "given"}, "im"),
        ({"method": "matched", "design": "given", "replace": False}, "matched"),
        ({"method": "ij", "replace": False, "k": 9}, "ij"),
        ({"method": "ij_u", "k": 9}, "ij_u"),
        ({"method": "ij_u", "replace": False, "k": 8}, "ij_u"),
        ({"method": "ij", "complete": True}, "ij"),
        ({"method": "jackknife", "complete": True}, "jackknife"),
    ],
)
def test_the_estimator_that_is_meant(options, name):
    assert resolve(**options) == name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "magic"},
            "must be one of 'auto', 'corrected', 'im', 'bm'.*got 'magic'",
        ),
        (
            {"method": "corrected_u"},
            "sampling without replacement.*`replace=True`. Use 'corrected_v'",
        ),
        (
            {"method": "corrected_v", "replace": False},
            "sampling with replacement.*`replace=False`. Use 'corrected_u'",
        ),
        ({"method": "im"}, "needs `design='two-level'`; this design is 'iid'"),
        (
            {"method": "matched", "replace": False, "design": "little-bags"},
            "needs `design='matched'`; this design is 'little-bags'",
        ),
        ({"method": "ij_u", "replace": False, "k": 9}, "k < n.*got k = n = 9"),
        ({"method": "corrected_u", "replace": False, "k": 9}, "got k = n = 9"),
        (
            {"method": "im", "design": "two-level", "complete": True},
            "'im'` does not apply to `B='complete'`",
        ),
    ],
)
def test_estimators_that_do_not_apply_say_why(options, message):
    with pytest.raises(ValueError, match=message):
        resolve(**options)


def labelled(labels):
    labels = None if labels is None else np.asarray(labels)
    return GivenDesign(
        3, 1, replace=False, seed=0, table=np.tile(np.eye(3), (4, 1)), labels=labels
    )


@pytest.mark.parametrize(
    ("method", "labels", "message"),
    [
        ("im", None, "'im' compares groups of learners; give the group"),
        ("im", [4] * 12, "'im' needs at least two groups of learners; got 1"),
        ("matched", [0, 1, 2, 3] * 3, "'matched' needs groups of exactly two"),
        ("matched", [0] * 4 + [1, 2, 3, 4] * 2, "'matched' needs groups of exactly"),
        ("im", [0] * 5 + [1] * 7, "groups of one size.*got sizes 5 to 7"),
        ("little_bags", [0] * 5 + [1] * 7, "groups of one size.*got sizes 5 to 7"),
        ("little_bags", range(12), "at least two learners.*got sizes 1 to 1"),
    ],
)
def test_groups_that_do_not_fit_say_why(method, labels, message):
    with pytest.raises(ValueError, match=message):
        ESTIMATORS[method].groups(labelled(labels), np.ones((12, 1)))


@pytest.mark.parametrize(
    ("method", "labels"),
    [
        ("im", list(range(12))),
        ("im", [0, 1] * 6),
        ("matched", [0, 1, 2, 3, 4, 5] * 2),
        ("little_bags", [0, 1, 2, 3, 4, 5] * 2),
        ("little_bags", [7] * 6 + [3] * 6),
    ],
)
def test_groups_that_fit_are_handed_on(method, labels):
    groups = ESTIMATORS[method].groups(labelled(labels), np.ones((12, 1)))
    np.testing.assert_array_equal(groups.labels, np.asarray(labels))


def test_components_of_several_points_are_put_together():
    case = make_ensemble(m=5)
    whole = estimate_components("ij", case.design, case.values)
    joined = VarianceComponents.join(
        [estimate_components("ij", case.design, case.values[:, j]) for j in COLUMNS]
    )
    assert (joined.method, joined.n) == ("ij", 12)
    names = ["zeta_1", "zeta_k", "sampling", "monte_carlo", "total", "mc_se"]
    for name in [*names, "noise", "concentration"]:
        assert_allclose(getattr(joined, name), getattr(whole, name), **SAME_ALGEBRA)
    frame = joined.to_frame(pd.Index(list("abcde")))
    assert list(frame.columns) == names
    assert list(frame.index) == list("abcde")
    assert_allclose(frame["mc_se"], whole.mc_se, **SAME_ALGEBRA)
    pairs, groups = grouped("matched", m=4)
    parts = [
        group_parts("matched", dataclasses.replace(pairs, values=h), groups)
        for h in (pairs.values[:, :3], pairs.values[:, 3:])
    ]
    joined = VarianceComponents.join(parts)
    assert joined.noise is None
    assert_allclose(joined.mc_se, group_parts("matched", pairs, groups).mc_se)


COLUMNS = [slice(0, 2), slice(2, 3), slice(3, 5)]
