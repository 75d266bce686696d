import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit import exact
from vstatkit.sampling.design import count_orderings

X = np.array([0.3, -1.2, 2.5, 0.9, 4.1, -0.4, 1.7])


def half_square(z):
    return (z[0] - z[1]) ** 2 / 2


def product_and_max(z):
    """A kernel of three arguments with no special structure."""
    return math.prod(z) + max(z) ** 2


@pytest.mark.parametrize(("replace", "ddof"), [(False, 1), (True, 0)])
def test_variance_kernel_gives_numpys_variance(replace, ddof):
    res = vs.statistic("variance", X, k=2, B="complete", replace=replace)
    assert_allclose(res.params.item(), np.var(X, ddof=ddof), **SAME_ALGEBRA)
    by_hand = exact.complete_v if replace else exact.complete_u
    assert_allclose(by_hand(half_square, X, 2), np.var(X, ddof=ddof), **SAME_ALGEBRA)


def test_kendalls_kernel_gives_scipys_tau(rng):
    xy = rng.normal(size=(25, 2))
    res = vs.statistic("kendall", xy, k=2, B="complete", replace=False)
    tau = stats.kendalltau(xy[:, 0], xy[:, 1]).statistic
    assert_allclose(res.params.item(), tau, **SAME_ALGEBRA)


def test_other_classical_kernels_give_their_textbook_values():
    pairs = itertools.combinations(X, 2)
    gini = vs.statistic("gini", X, k=2, B="complete", replace=False)
    assert_allclose(
        gini.params.item(), np.mean([abs(a - b) for a, b in pairs]), **SAME_ALGEBRA
    )
    third = vs.statistic("moment3", X, k=3, B="complete", replace=False)
    assert_allclose(third.params.item(), stats.kstat(X, 3), **SAME_ALGEBRA)
    mean = vs.statistic("mean", X, k=1, B="complete")
    assert_allclose(mean.params.item(), X.mean(), **SAME_ALGEBRA)


@pytest.mark.parametrize("name", ["mean", "variance", "gini", "moment3"])
def test_classical_kernels_of_any_size_are_the_u_statistic_of_the_smallest(name):
    """The complete U-statistic does not depend on the size of an unbiased kernel."""
    small = vs.classical.CLASSICAL[name].degree
    a, b = (
        vs.statistic(name, X, k=k, B="complete", replace=False).params.item()
        for k in (small, small + 2)
    )
    assert_allclose(a, b, **SAME_ALGEBRA)


@pytest.mark.parametrize("name", vs.classical.CLASSICAL)
def test_classical_kernels_take_many_subsamples_at_once(name, monkeypatch):
    kernel = vs.classical.CLASSICAL[name]
    data = np.random.default_rng(1).normal(size=(30, kernel.n_columns)).squeeze()
    asked = []

    def function(samples):
        asked.append(samples.shape)
        return kernel.function(samples)

    counting = replace(kernel, function=function)
    monkeypatch.setitem(vs.classical.CLASSICAL, name, counting)
    res = vs.statistic(name, data, k=3, B="complete", replace=False)
    assert len(asked) == 1
    members = itertools.combinations(range(30), 3)
    one_by_one = [kernel.function(data[list(rows)]) for rows in members]
    assert_allclose(res.values[:, 0], one_by_one, **SAME_ALGEBRA)


@pytest.mark.parametrize("name", vs.classical.CLASSICAL)
def test_classical_kernels_of_clusters_of_any_size(name):
    kernel = vs.classical.CLASSICAL[name]
    data = np.random.default_rng(1).normal(size=(40, kernel.n_columns)).squeeze()
    clusters = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 4, 4, 4])
    res = vs.statistic(name, data, k=4, B=20, groups=clusters, rng=1)
    for units, value in zip(res.design.members(0, 20), res.values[:, 0], strict=True):
        rows = np.concatenate([np.flatnonzero(clusters == u) for u in units])
        assert_allclose(value, kernel.function(data[rows]), **SAME_ALGEBRA)


def test_large_subsamples_of_array_kernels_are_taken_in_parts(monkeypatch):
    monkeypatch.setattr("vstatkit.kernels.base.SUBSAMPLE_ENTRIES", 40)
    parted = vs.statistic("gini", X, k=4, B=30, rng=1)
    monkeypatch.undo()
    assert_allclose(
        parted.values, vs.statistic("gini", X, k=4, B=30, rng=1).values, rtol=1e-14
    )


def test_orderings_are_counted_unit_by_unit():
    for n, k in ((3, 4), (5, 3), (2, 12)):
        rows = np.array(
            list(itertools.combinations_with_replacement(range(n), k)), dtype=np.int64
        )
        literal = [
            math.factorial(k) / math.prod(map(math.factorial, np.bincount(row)))
            for row in rows
        ]
        assert count_orderings(rows).tolist() == literal
        assert count_orderings(rows).sum() == n**k


def test_more_orderings_than_floating_point_holds_are_refused():
    with pytest.raises(ValueError, match=r"2\*\*1100 of them are too many"):
        vs.statistic("mean", [1.0, 2.0], k=1100, B="complete")


def test_complete_mean_has_the_standard_error_of_the_mean():
    res = vs.statistic("mean", X, k=1, B="complete")
    assert_allclose(res.bse.item(), X.std(ddof=1) / np.sqrt(X.size), **SAME_ALGEBRA)
    assert res.components.mc_se.item() == 0
    assert res.components.monte_carlo.item() == 0


def test_complete_u_has_the_jackknife_variance():
    n, k = X.size, 2
    res = vs.statistic("gini", X, k=k, B="complete", replace=False)
    left_out = [
        vs.statistic("gini", np.delete(X, i), k=k, B="complete", replace=False)
        for i in range(n)
    ]
    t = np.array([one.params.item() for one in left_out])
    jackknife = (n - 1) / n * ((t - res.params.item()) ** 2).sum()
    assert_allclose(
        res.components.sampling.item(), n / (n - 1) * jackknife, **SAME_ALGEBRA
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_stirling_decomposition_is_the_v_statistic(k):
    """Lemma 3.1, n = 5."""
    data = list(X[:5])

    def h(z):
        return math.prod(z) + max(z) ** 2

    parts = exact.stirling_decomposition(h, data, k)
    brute = np.mean([h(z) for z in itertools.product(data, repeat=k)])
    assert_allclose(sum(w * u for w, u in parts), brute, **SAME_ALGEBRA)
    assert_allclose(sum(w for w, _ in parts), 1.0, **SAME_ALGEBRA)


def test_stirling_numbers():
    assert [exact.stirling2(5, j) for j in range(1, 6)] == [1, 15, 25, 10, 1]


def test_composite_kernel_makes_the_v_statistic_a_u_statistic():
    """Section 3.2, n = 5, k = 3."""
    data = list(X[:5])
    phi = exact.composite_kernel(product_and_max, 5, 3)
    assert_allclose(
        exact.complete_u(phi, data, 3),
        exact.complete_v(product_and_max, data, 3),
        **SAME_ALGEBRA,
    )


def test_composite_weights_sum_to_draws_over_subsets():
    n, k = 6, 3
    total = sum(
        exact.composite_weight(n, k, len({*b}))
        for b in itertools.product(range(k), repeat=k)
    )
    assert_allclose(total, n**k / math.comb(n, k), **SAME_ALGEBRA)


def test_complete_v_evaluates_multisets_with_their_weights():
    data = X[:5]
    res = vs.statistic(
        lambda x: product_and_max(list(x)), data, k=3, B="complete", replace=True
    )
    assert_allclose(
        res.params.item(),
        exact.complete_v(product_and_max, list(data), 3),
        **SAME_ALGEBRA,
    )
    assert math.comb(7, 3) == res.B


def test_complete_components_are_the_exact_zetas_of_the_empirical_law():
    """zeta_1 of the empirical distribution is the variance of the conditional means."""
    data = list(X[:5])
    res = vs.statistic(
        lambda x: product_and_max(list(x)), np.array(data), k=3, B="complete"
    )
    n = len(data)
    zeta_1 = exact.exact_zeta(product_and_max, data, 3, 1)
    zeta_k = exact.exact_zeta(product_and_max, data, 3, 3)
    assert_allclose(
        res.with_variance("bm").components.zeta_1 * (n - 1) / n,
        [zeta_1],
        **SAME_ALGEBRA,
    )
    assert_allclose(res.components.zeta_k * (n**3 - 1) / n**3, [zeta_k], **SAME_ALGEBRA)


def test_exact_zetas_grow_with_the_number_of_shared_observations():
    zetas = [exact.exact_zeta(product_and_max, X[:4], 3, c) for c in (1, 2, 3)]
    assert zetas == sorted(zetas)
    with pytest.raises(ValueError, match="between 1 and k = 3"):
        exact.exact_zeta(product_and_max, X[:4], 3, 4)
