"""Beyond the first order: the identities, the closure, rho and its error."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA, make_ensemble
from vstatkit.inference.estimates import estimate, stabilise
from vstatkit.kernels.base import KernelKind, kernel_kind
from vstatkit.sampling.design import CompleteDesign
from vstatkit.sampling.given import GivenDesign
from vstatkit.sampling.registry import make_design
from vstatkit.studies.experiment import Draw, iteration_stream
from vstatkit.studies.methods import Intervals, Method
from vstatkit.studies.simulation import Arm, Simulation
from vstatkit.variance import higher_orders
from vstatkit.variance import higher_orders as pairs_module
from vstatkit.variance.formulas import jackknife_after_bootstrap
from vstatkit.variance.higher_orders import (
    HigherOrders,
    PairChances,
    PairSums,
    combine,
    expected_orders,
    measure_orders,
    pair_chances,
    pair_weights,
    reference_rows,
    spread_columns,
    sum_pairs,
)
from vstatkit.variance.moments import presence_moments, sum_ensemble
from vstatkit.variance.registry import (
    ESTIMATORS,
    estimate_components,
    estimate_covariance,
    known_orders,
    resolve_for_design,
)

MARS = vs.datasets.mars(120, rng=3)


def all_subsets(n, presence):
    """Every subset as indicators, and its chance when rows come independently."""
    Z = np.array(list(itertools.product([0.0, 1.0], repeat=n)))
    size = Z.sum(axis=1)
    return Z, presence**size * (1 - presence) ** (n - size)


def literal_q(Z, chance, h, presence, j):
    """Q_j as it is defined, for rows that come independently."""
    odds = presence / (1 - presence)
    w = (Z - presence) / np.sqrt(presence * (1 - presence))
    centred = h - chance @ h
    sets = itertools.combinations(range(Z.shape[1]), j)
    return odds**j * sum(
        (chance @ (centred * w[:, list(S)].prod(axis=1))) ** 2 for S in sets
    )


def independent(presence):
    absent = 1 - presence
    return PairChances(presence, presence**2, presence * absent, absent**2)


@pytest.mark.parametrize("presence", [0.3, 0.632])
def test_the_jth_sum_counts_an_order_as_often_as_it_has_subsets_of_j(presence):
    """A component of order c is there where all its c rows are."""
    n = 7
    Z, chance = all_subsets(n, presence)
    for c, j in itertools.product(range(1, 5), range(1, 4)):
        h = Z[:, :c].prod(axis=1)
        variance = presence ** (2 * c)  # of the mean, its coefficient of variance one
        found = literal_q(Z, chance, h, presence, j)
        assert_allclose(found, math.comb(c, j) * variance, atol=1e-14)


def test_weights_of_pairs_are_the_sums_over_observations_and_pairs():
    n, presence = 6, 0.4
    Z, chance = all_subsets(n, presence)
    h = np.random.default_rng(1).normal(size=len(Z))
    centred = (h - chance @ h) * chance
    size = Z.sum(axis=1)
    first, second = pair_weights(Z @ Z.T, size[:, None], size, n, independent(presence))
    # The factors make sampling of a fixed size exact, see below.
    q_1 = n / (n - 1) * centred @ first @ centred
    q_2 = (n - 1) / (n - 3) * centred @ second @ centred
    assert_allclose(q_1, literal_q(Z, chance, h, presence, 1), rtol=1e-12)
    assert_allclose(q_2, literal_q(Z, chance, h, presence, 2), rtol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(6, 3), (8, 3), (8, 5), (7, 4)])
def test_coefficients_are_exact_for_subsamples_of_a_fixed_size(n, k):
    design = CompleteDesign(n, k, replace=False, seed=0)
    B = design.n_subsamples
    Z = np.asarray(design.counts(0, B), dtype=np.float64)
    chances = pair_chances(n, k, replace=False)
    for c in range(1, min(k, n - 2) + 1):
        h = Z[:, :c].prod(axis=1, keepdims=True)
        variance = h.mean() ** 2
        sums = sum_pairs(Z.astype(np.float32), h, chances, np.ones(B))
        q_1, q_2 = np.array([sums.q_1, sums.q_2]) * h.var()
        assert_allclose(q_1, c * (n - 1) / (n - c) * variance, rtol=1e-10)
        twice = math.comb(c, 2) * (n - 2) * (n - 3) / ((n - c) * (n - c - 1))
        assert_allclose(q_2, twice * variance, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("replace", [True, False])
def test_chances_of_presence_are_shares_of_all_subsamples(replace):
    design = CompleteDesign(5, 3, replace=replace, seed=0)
    B = design.n_subsamples
    weights = design.weights(0, B)
    share = np.full(B, 1 / B) if weights is None else weights / weights.sum()
    a, b = (np.asarray(design.counts(0, B)) > 0)[:, :2].T
    found = pair_chances(5, 3, replace=replace)
    assert_allclose(found, [share @ x for x in (a, a & b, a & ~b, ~a & ~b)])


@pytest.mark.parametrize("presence", [0.5, 0.7])
def test_two_terms_close_the_series_of_nearest_neighbours(presence):
    """The nearest row that is present predicts; rows stand in their order."""
    n = 13
    Z, chance = all_subsets(n, presence)
    nearest = np.where(Z.any(axis=1), Z.argmax(axis=1), -1)
    each = [(nearest == row).astype(float) for row in range(n)]
    V = sum((chance @ h) ** 2 for h in each)
    q_1, q_2 = (sum(literal_q(Z, chance, h, presence, j) for h in each) for j in (1, 2))
    # Rows beyond the thirteenth are missed, with a chance below 2e-4.
    assert_allclose(q_1 / (1 + q_2 / q_1), V, rtol=1e-3)
    assert_allclose(q_2 / q_1, presence / (2 - presence), rtol=1e-2)
    kind = KernelKind.TREES.expected_rho(presence)
    assert_allclose(kind, np.array([0.55, 0.35]) * presence / (2 - presence))


@pytest.mark.parametrize("shares", [[1], [0, 1], [0, 0, 1], [4, 3, 2, 1], [5, 0, 0, 2]])
def test_two_terms_differ_from_the_variance_by_the_spread_of_the_orders(shares):
    """With the mean m and the variance s of the order c, weighted by the shares of the
    variance, the estimate is 2 m^2 / (m + m^2 + s) times the truth.

    A single order c gives 2 c / (c + 1): at most twice the truth.
    """
    presence, shares = 0.5, np.array(shares) / np.sum(shares)
    orders = np.arange(1, shares.size + 1)
    Z, chance = all_subsets(int(orders.sum()), presence)
    rows = np.split(np.arange(orders.sum()), np.cumsum(orders)[:-1])  # of each order
    V, q = 0.0, np.zeros(2)
    for c, share, own in zip(orders, shares, rows, strict=True):
        h = np.sqrt(share) * Z[:, own].prod(axis=1) / presence**c
        V += (chance @ h) ** 2
        q += [literal_q(Z, chance, h, presence, j) for j in (1, 2)]
    mean = shares @ orders
    spread = shares @ (orders - mean) ** 2
    factor = HigherOrders(q[1] / q[0], *[0.0] * 6, 0, 0).factor
    assert_allclose(V, 1.0)
    ratio = q[0] * factor / V
    assert_allclose(ratio, 2 * mean**2 / (mean + mean**2 + spread))
    most = (mean - 1) * (shares.size - mean)  # largest variance of orders up to K
    assert 2 * mean**2 / (mean + mean**2 + most) <= ratio * (1 + 1e-12)
    assert ratio <= 2 * mean / (1 + mean) * (1 + 1e-12)


def test_two_terms_are_exact_for_orders_that_fall_geometrically():
    orders = np.arange(1, 400)
    for fall in (0.1, 0.5, 0.9):
        shares = (1 - fall) * fall ** (orders - 1)
        mean = shares @ orders
        spread = shares @ (orders - mean) ** 2
        assert_allclose(2 * mean**2 / (mean + mean**2 + spread), 1.0)
        q_1, q_2 = shares @ orders, shares @ (orders * (orders - 1) / 2)
        assert_allclose(q_1 / (1 + q_2 / q_1), 1.0)


def test_the_whole_series_compares_disjoint_subsamples():
    """Carried to its end it is the estimator of matched pairs."""
    n, presence = 5, 0.35
    Z, chance = all_subsets(n, presence)
    h = np.random.default_rng(2).normal(size=len(Z))
    series = sum(
        (-1) ** (j + 1) * literal_q(Z, chance, h, presence, j) for j in range(1, n + 1)
    )
    centred = h - chance @ h
    alone, neither = 1 / (1 - presence), (1 - 2 * presence) / (1 - presence) ** 2
    total = 0.0
    for a, b in itertools.product(range(len(Z)), repeat=2):
        if not (Z[a] * Z[b]).any():
            either = (Z[a] + Z[b]).sum()
            weight = alone**either * neither ** (n - either)
            total -= chance[a] * chance[b] * weight * centred[a] * centred[b]
    assert_allclose(series, total, rtol=1e-10)


@pytest.mark.parametrize("replace", [True, False])
def test_the_first_sum_is_the_jackknife(replace):
    design = CompleteDesign(6, 3, replace=replace, seed=0)
    B = design.n_subsamples
    h = np.random.default_rng(0).normal(size=(B, 1))
    weights = design.weights(0, B)
    weights = np.ones(B) if weights is None else weights
    Z = (np.asarray(design.counts(0, B)) > 0).astype(np.float32)
    found = sum_pairs(Z, h, pair_chances(6, 3, replace=replace), weights)
    centre = np.average(h[:, 0], weights=weights)
    spread = np.average((h[:, 0] - centre) ** 2, weights=weights)
    moments = presence_moments(sum_ensemble(design, h, presence=True))
    expected = jackknife_after_bootstrap(moments, complete=True)
    assert_allclose(found.q_1 * spread, expected[0], rtol=1e-10)


def brute_sums(Z, h, chances):
    L, n = Z.shape
    s = (h - h.mean(axis=0)) / h.std(axis=0)
    size = Z.sum(axis=1)
    weights = pair_weights(Z @ Z.T, size[:, None], size, n, chances)
    K = s @ s.T / s.shape[1] * (1 - np.eye(L))
    return [K * one for one in weights]


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(4)
    Z = (rng.random((23, 9)) < 0.4).astype(np.float64)
    h = rng.normal(size=(23, 4))
    chances = pair_chances(9, 4, replace=True)
    first, second = brute_sums(Z, h, chances)
    for block in (1, 5, 23, 100):
        monkeypatch.setattr(pairs_module, "BLOCK", block)
        found = sum_pairs(Z.astype(np.float32), h, chances)
        pairs = 23 * 22
        assert_allclose(
            [found.q_1, found.q_2], [first.sum(), second.sum()] / np.full(2, pairs)
        )
        assert_allclose(
            found.rows, np.array([first.sum(axis=1), second.sum(axis=1)]) / 22
        )
        squares = [(first**2).sum(), (first * second).sum(), (second**2).sum()]
        assert_allclose(found.squares, np.array(squares) / pairs)


def neighbours(design, B, y):
    """Values of the nearest row that is present, row 0 being the nearest."""
    present = np.asarray(design.counts(0, B)) > 0
    return y[present.argmax(axis=1)]


def test_the_error_of_rho_is_that_over_seeds():
    n, k, L, seeds = 40, 40, 250, 150
    y = np.random.default_rng(1).normal(size=(n, 12))
    found = []
    for seed in range(seeds):
        design = make_design("iid", n, k, replace=True, seed=seed)
        values = neighbours(design, L, y)
        present = (np.asarray(design.counts(0, L)) > 0).astype(np.float32)
        found.append(sum_pairs(present, values, pair_chances(n, k, replace=True)))
    rho = np.array([one.rho for one in found])
    stated = np.median([one.error for one in found])
    # 150 seeds give a standard deviation to 6 %; three of these are allowed.
    assert rho.std() == pytest.approx(stated, rel=0.18)
    # Twelve draws of y stand for the mean over them, which is known; theirs differ.
    assert rho.mean() == pytest.approx(0.632 / (2 - 0.632), rel=0.25)


def test_the_error_of_rho_is_that_of_a_u_statistic():
    rows = np.array([[1.0, 3.0, 2.0, 6.0], [0.5, 0.1, 0.9, 1.5]])
    squares = np.array([8.0, 0.5, 1.1])
    found = PairSums(2.0, 0.5, rows, squares)
    rho = 0.25
    pair = 1.1 - 2 * rho * 0.5 + rho**2 * 8.0
    single = np.var(rows[1] - rho * rows[0], ddof=1) - pair / 3
    assert single < 0  # noise of the pairs explains what learners differ by
    assert_allclose(found.error, np.sqrt(2 * pair / 12) / 2)
    apart = found._replace(rows=10 * rows)
    single = np.var(10 * (rows[1] - rho * rows[0]), ddof=1) - pair / 3
    assert_allclose(apart.error, np.sqrt(single + 2 * pair / 12) / 2)
    assert_allclose(found.outlook, np.sqrt(2 * 1.1 / 12) / 2)
    hidden = found._replace(q_1=-1.0)
    assert_allclose(hidden.outlook, np.sqrt(1.1 / 8.0))
    assert np.isnan(hidden.error)


def test_what_was_measured_and_expected_are_weighed_by_their_precision():
    found = combine(0.4, 0.1, (0.2, 0.3), n_learners=7, n_reference=3)
    weight = 0.3**2 / (0.3**2 + 0.1**2)
    assert_allclose(found.rho, weight * 0.4 + (1 - weight) * 0.2)
    assert_allclose(found.error, 1 / np.sqrt(1 / 0.3**2 + 1 / 0.1**2))
    assert_allclose(found.mc_error, weight * 0.1)
    assert (found.n_learners, found.n_reference) == (7, 3)
    assert_allclose(found.factor, 1 / (1 + found.rho))
    assert_allclose(found.relative_error, found.error / (1 + found.rho))
    assert_allclose(found.relative_mc_error, found.mc_error / (1 + found.rho))
    assert combine(0.4, 0.0, (0.2, 0.3)).rho == pytest.approx(0.4)  # known exactly
    alone = combine(np.nan, np.nan, (0.2, 0.3))
    assert (alone.rho, alone.error, alone.mc_error) == (0.2, 0.3, 0.0)
    assert combine(-5.0, 0.1, (0.2, 0.3)).rho == 0.0
    assert combine(0.4, 0.1, (0.0, 0.0)).rho == 0.0
    assert combine(0.4, 0.0, (0.0, 0.0)).rho == 0.0


def test_smooth_kernels_stay_with_the_jackknife():
    design = make_design("iid", 30, 30, replace=True, seed=1)
    y = np.random.default_rng(0).normal(size=30)
    values = np.asarray(design.counts(0, 400)) @ y[:, None] / 30
    measured = measure_orders(design, 400, lambda L: values[:L], KernelKind.SMOOTH)
    assert (measured.rho, measured.error, measured.n_learners) == (0.0, 0.0, 0)
    res = vs.statistic("mean", y, k=1.0, B=400, rng=1)
    assert res.variance == "corrected_v"
    ours, theirs = (res.with_variance(name) for name in ("hoeffding", "jackknife"))
    assert_allclose(ours.bse, theirs.bse, rtol=1e-14)


@pytest.mark.parametrize("replace", [True, False])
def test_rho_of_means_is_zero_when_it_is_measured(replace):
    """Nothing in a mean is beyond the first order; s / sqrt(n) stays."""
    n, k, B = 40, 20, 1500
    design = make_design("iid", n, k, replace=replace, seed=5)
    y = np.random.default_rng(2).normal(size=(n, 30))
    values = np.asarray(design.counts(0, B)) @ y / k
    found = measure_orders(design, B, lambda L: values[:L], KernelKind.UNKNOWN)
    # Three of its errors, and the 1/n that drawing with replacement leaves.
    assert abs(found.measured) < 3 * found.measured_error + 2 / n
    res = vs.from_arrays(
        np.asarray(design.counts(0, B)), values, replace=replace, variance="hoeffding"
    )
    true = y.var(axis=0, ddof=1) / n
    assert res.components.sampling.sum() / true.sum() == pytest.approx(1, abs=0.1)


def test_learners_are_compared_no_further_than_it_pays():
    n = 60
    design = make_design("iid", n, n, replace=True, seed=1)
    asked = []

    def values(L, scale):
        asked.append(L)
        rng = np.random.default_rng(0)
        noise = rng.normal(size=(5000, 40))[:L]
        y = np.random.default_rng(1).normal(size=(n, 40))
        return neighbours(design, L, y) + scale * noise

    clear = measure_orders(design, 5000, lambda L: values(L, 0.0), KernelKind.TREES)
    assert asked[0] == higher_orders.PILOT
    assert clear.n_learners < higher_orders.MOST_LEARNERS
    assert clear.measured_error < higher_orders.ENOUGH * 1.2 * clear.expected_error
    asked.clear()
    lost = measure_orders(design, 5000, lambda L: values(L, 30.0), KernelKind.TREES)
    assert asked == [higher_orders.PILOT]
    assert abs(lost.rho - lost.expected) < lost.expected_error
    few = measure_orders(design, 2, lambda L: values(L, 0.0), KernelKind.TREES)
    assert (few.rho, few.n_learners) == (few.expected, 0)


def test_all_subsamples_are_compared_where_they_are_all_there(monkeypatch):
    design = CompleteDesign(7, 3, replace=True, seed=0)
    B = design.n_subsamples
    y = np.random.default_rng(3).normal(size=(7, 5))
    values = neighbours(design, B, y)
    exact = measure_orders(design, B, lambda L: values[:L], KernelKind.UNKNOWN)
    assert (exact.error, exact.mc_error, exact.n_learners) == (0.0, 0.0, B)
    assert exact.rho == exact.measured
    ordered = np.array(list(itertools.product(range(7), repeat=3)))
    counts = np.stack([np.bincount(row, minlength=7) for row in ordered])
    Z = (counts > 0).astype(np.float32)
    whole = sum_pairs(
        Z,
        y[(counts > 0).argmax(axis=1)],
        pair_chances(7, 3, replace=True),
        np.ones(len(Z)),
    )
    assert_allclose(exact.measured, whole.rho, rtol=1e-10)
    monkeypatch.setattr(higher_orders, "MOST_LEARNERS", 60)
    drawn = measure_orders(design, B, lambda L: values[:L], KernelKind.UNKNOWN)
    assert drawn.n_learners == 60
    assert drawn.measured_error > 0


@pytest.mark.parametrize("method", ["hoeffding", "jackknife"])
def test_components_are_the_jackknifes_over_one_plus_rho(method):
    case = make_ensemble(n=12, k=5, B=300)
    plain = estimate_components("jackknife", case.design, case.values)
    known = HigherOrders(0.25, 0.1, 0.05, 0.2, 0.06, 0.3, 0.2, 100, 3)
    given = known if method == "hoeffding" else None
    parts = estimate_components(method, case.design, case.values, given)
    factor = 0.8 if method == "hoeffding" else 1.0
    for name in ("sampling", "zeta_1", "noise"):
        assert_allclose(getattr(parts, name), factor * getattr(plain, name))
    assert_allclose(parts.concentration, plain.concentration)
    assert_allclose(parts.zeta_k, plain.zeta_k)
    assert_allclose(parts.total, parts.sampling + parts.monte_carlo)
    if method == "jackknife":
        assert (parts.rho, parts.rho_se, parts.q_1, parts.q_2) == (None,) * 4
        return
    assert (parts.rho, parts.rho_se) == (0.25, 0.1)
    assert_allclose(parts.q_1, plain.sampling)
    assert_allclose(parts.q_2, 0.25 * plain.sampling)
    noise = 2 * 12 * parts.noise**2 + 4 * parts.noise * np.maximum(parts.sampling, 0)
    common = 0.05 / 1.25 * np.maximum(parts.sampling, 0)
    assert_allclose(parts.mc_se, np.sqrt(noise + common**2))
    table = parts.to_frame()
    assert list(table)[-4:] == ["q_1", "q_2", "rho", "rho_se"]
    assert table["rho"].eq(0.25).all()
    sampling, monte_carlo = estimate_covariance(
        "hoeffding", case.design, case.values, known
    )
    joint, _ = estimate_covariance("jackknife", case.design, case.values)
    assert_allclose(sampling, 0.8 * joint, **SAME_ALGEBRA)
    assert_allclose(np.diag(sampling), parts.sampling, **SAME_ALGEBRA)
    assert_allclose(np.diag(monte_carlo), parts.monte_carlo, **SAME_ALGEBRA)


def test_what_is_not_known_of_rho_lowers_the_degrees_of_freedom():
    case = make_ensemble(n=60, k=20, B=2000, m=1)
    known = HigherOrders(0.25, 0.0, 0.0, 0.2, 0.06, 0.3, 0.2, 100, 3)
    unsure = dataclasses.replace(known, error=0.5)
    a, b = (
        estimate(case.design, case.values, "hoeffding", orders=one)
        for one in (known, unsure)
    )
    assert_allclose(a.bse, b.bse)
    spread = [2 * one.variance**2 / one.df for one in (a, b)]
    assert_allclose(spread[1] - spread[0], (0.5 / 1.25 * a.sampling) ** 2, rtol=1e-8)


def test_a_bound_of_small_ensembles_is_the_spread_of_learners():
    case = make_ensemble(n=12, k=12, B=4, m=1)
    parts = estimate_components("hoeffding", case.design, case.values)
    assert (parts.ceiling <= parts.zeta_k - parts.monte_carlo).all()
    large = dataclasses.replace(parts, sampling=50 * parts.zeta_k)
    found = stabilise(np.zeros(1), large, 4.0)
    assert (found.bse**2 <= parts.zeta_k * (1 + 1e-12)).all()


def test_reference_rows_mix_rows_by_the_seed_alone():
    X = np.arange(60.0).reshape(20, 3)
    rows = reference_rows(X, 7)
    assert rows.shape == (higher_orders.MOST_REFERENCES, 3)
    assert all(set(rows[:, j]) <= set(X[:, j]) for j in range(3))
    mixed = ~(rows[:, None] == X).all(axis=2).any(axis=1)
    # A row of three is whole with chance 1/4, or where both rows are one.
    assert 0.5 < mixed.mean() < 0.9
    assert_allclose(reference_rows(X, 7), rows)
    assert not np.array_equal(reference_rows(X, 8), rows)
    assert len(reference_rows(X, 7, n_outputs=3)) == higher_orders.MOST_REFERENCES // 3


def test_reference_values_are_spread_over_all():
    assert spread_columns(4).tolist() == [0, 1, 2, 3]
    chosen = spread_columns(10_000)
    assert len(chosen) == higher_orders.MOST_REFERENCES
    assert (chosen[0], chosen[-1]) == (0, 9999)


def test_kinds_have_names():
    assert kernel_kind("smooth") is KernelKind.SMOOTH
    with pytest.raises(ValueError, match="'smooth', 'trees', 'unknown'; got 'apart'"):
        kernel_kind("apart")
    with pytest.raises(ValueError, match="'unknown'; got 'leafy'"):
        kernel_kind("leafy")


def automatic(design, kind=KernelKind.TREES):
    return resolve_for_design("auto", design, kind)


def test_auto_is_what_holds_for_kernel_design_and_size():
    def iid(n, k, replace=True):
        return make_design("iid", n, k, replace=replace, seed=0)

    assert automatic(iid(100, 40)) == "hoeffding"
    assert automatic(iid(100, 100)) == "hoeffding"
    assert automatic(iid(100, 40), KernelKind.UNKNOWN) == "hoeffding"
    assert automatic(iid(100, 40), KernelKind.SMOOTH) == "corrected_v"
    with pytest.raises(ValueError, match="at most 229"):  # 0.7 rows are left out
        automatic(iid(100, 500))
    assert automatic(iid(100, 500), KernelKind.SMOOTH) == "corrected_v"
    assert automatic(iid(100, 40, replace=False)) == "hoeffding"
    assert automatic(iid(100, 90, replace=False)) == "hoeffding"
    with pytest.raises(ValueError, match="at most 90"):
        automatic(iid(100, 95, replace=False))
    smooth = automatic(iid(100, 95, replace=False), KernelKind.SMOOTH)
    assert smooth == "corrected_u"
    assert automatic(iid(6, 3)) == "corrected_v"
    assert automatic(CompleteDesign(8, 2, False, 0)) == "corrected_u"
    for name, own in (("matched", "matched"), ("little-bags", "little_bags")):
        design = make_design(name, 40, 10, replace=False, seed=0)
        assert automatic(design) == own
    balanced = make_design("balanced", 40, 10, replace=True, seed=0)
    assert automatic(balanced) == "hoeffding"
    full = GivenDesign(4, 8, True, 0, table=np.full((5, 4), 2.0))
    assert automatic(full) == "corrected_v"


def test_units_left_out_are_counted():
    design = make_design("iid", 50, 30, replace=True, seed=0)
    table = np.asarray(design.counts(0, 4000))
    given = GivenDesign(50, 30, True, 0, table=table)
    assert given.n_absent == pytest.approx((table == 0).sum() / 4000)
    # A sum of 4000 nearly binomial numbers of variance below 8.
    assert design.n_absent == pytest.approx(given.n_absent, abs=4 * (8 / 4000) ** 0.5)
    assert make_design("iid", 50, 30, replace=False, seed=0).n_absent == 20


@pytest.fixture(scope="module")
def forest():
    return vs.fit("y ~ .", MARS, B=600, rng=1, at=MARS.head(6))


def test_a_fit_compares_trees_on_rows_of_its_own(forest):
    assert forest.variance == "hoeffding"
    assert forest.orders.n_reference == higher_orders.MOST_REFERENCES
    assert 0 < forest.orders.rho < 0.5
    again = forest.with_variance("jackknife").with_variance("hoeffding")
    assert again.orders == forest.orders
    alone = vs.fit("y ~ .", MARS, B=600, rng=1, at=MARS.iloc[[3]])
    assert alone.orders == forest.orders
    assert_allclose(alone.bse.item(), forest.bse.iloc[3], rtol=1e-12)
    fresh = forest.get_prediction(MARS.iloc[[3]])
    assert_allclose(fresh.se_mean.item(), forest.bse.iloc[3], rtol=1e-12)
    parallel = vs.fit("y ~ .", MARS, B=600, rng=1, at=MARS.head(6), n_jobs=2)
    assert parallel.orders == forest.orders


def test_everything_follows_the_estimator(forest):
    plain, factor = forest.with_variance("jackknife"), forest.orders.factor
    assert_allclose(forest.components.sampling, factor * plain.components.sampling)
    assert_allclose(forest.components.q_1, plain.components.sampling, rtol=1e-12)
    contrast = forest.t_test([[1, -1, 0, 0, 0, 0]])
    other = plain.t_test([[1, -1, 0, 0, 0, 0]])
    assert_allclose(contrast.components.sampling, factor * other.components.sampling)
    assert contrast.orders == forest.orders
    assert_allclose(np.diag(forest.cov_params()), forest.bse**2)
    assert np.linalg.eigvalsh(forest.cov_params()).min() > -1e-10
    pointwise = dataclasses.replace(forest, pooled=None)
    moved = [one.effects["std_error"] for one in (pointwise, plain)]
    assert (moved[0] < moved[1]).all()
    # Bands use the least of the degrees of freedom, so each is wider than one alone.
    band, single = forest.conf_int(simultaneous=True), forest.conf_int()
    assert (band["upper"] > single["upper"]).all()
    joint = forest.get_prediction(MARS.head(6)).cov()
    assert_allclose(joint, forest.cov_params(), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200])
def test_rho_does_not_depend_on_units(unit, forest):
    scaled = MARS.assign(y=MARS["y"] * unit)
    res = vs.fit("y ~ .", scaled, B=600, rng=1, at=MARS.head(6))
    assert_allclose(res.orders.measured, forest.orders.measured, rtol=1e-9)
    assert_allclose(res.bse / unit, forest.bse, rtol=1e-9)


def test_saved_results_keep_what_was_found(forest, tmp_path):
    path = tmp_path / "forest.vsk"
    forest.save(path)
    loaded = vs.load(path)
    assert (loaded.orders, loaded.kind) == (forest.orders, forest.kind)
    assert_allclose(loaded.bse, forest.bse, rtol=0)
    plain = forest.with_variance("corrected")
    dataclasses.replace(plain, orders=None).save(path)
    switched = vs.load(path).with_variance("auto")
    assert switched.orders == forest.orders


def test_clusters_are_compared_as_units():
    data = MARS.assign(site=np.repeat(np.arange(30), 4))
    res = vs.fit("y ~ x1 + x2", data, groups="site", B=400, rng=1)
    chances = pair_chances(30, res.k, replace=True)
    expected = KernelKind.TREES.expected_rho(chances.one)
    found = (res.orders.expected, res.orders.expected_error)
    assert_allclose(found, expected)
    assert expected_orders(res.design, res.kind).rho == pytest.approx(expected[0])


def test_ensembles_of_others_are_compared_on_their_values(forest):
    counts = np.asarray(forest.design.counts(0, forest.B))
    res = vs.from_arrays(counts, forest.values, replace=True, kind="trees")
    assert res.orders.n_reference == 6
    values = forest.values[:, spread_columns(6)]
    design = res.design
    expected = measure_orders(design, forest.B, lambda L: values[:L], KernelKind.TREES)
    assert res.orders == expected
    parts = vs.variance_components(counts, forest.values, method="hoeffding")
    unknown = known_orders("hoeffding", design, forest.values, None)
    assert_allclose(parts.rho, unknown.rho, rtol=1e-12)
    assert known_orders("ij", design, forest.values, None) is None


def test_growing_expects_rho_before_it_is_measured():
    design = make_design("iid", 40, 20, replace=True, seed=0)
    h = np.random.default_rng(0).normal(size=(50, 2))
    sums = sum_ensemble(design, h, presence=True)
    expected = expected_orders(design, KernelKind.TREES)
    parts = ESTIMATORS["hoeffding"].from_sums(design, sums, expected)
    assert parts.rho == expected.rho > 0
    assert_allclose(
        parts.sampling,
        estimate_components("jackknife", design, h).sampling / (1 + expected.rho),
    )


def test_studies_measure_rho_as_a_fit_does():
    measure = Intervals((Method("ours", "hoeffding", interval="t"),), 0.1)
    study = Simulation(
        "one",
        lambda rng: MARS.head(60),
        "y ~ .",
        (Arm("one", None, (100, 300), measure),),
        at=MARS.head(2),
        kernel="forest",
    )
    record = study.run(7, 0)
    draws = iteration_stream(7, "one", 0, Draw.ENSEMBLE)
    seed = int(draws.integers(2**62, size=1)[0])
    for place, B in enumerate((100, 300)):
        fitted = vs.fit("y ~ .", MARS.head(60), B=B, at=MARS.head(2), rng=seed)
        assert fitted.variance == "hoeffding"
        found = record["one/variance"][place, 0]
        assert_allclose(found, fitted.bse**2, rtol=1e-9)
