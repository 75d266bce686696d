"""Variances that are expected from what all predictions of a forest have in common."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from vstatkit.inference.estimates import MIN_DF, expect_variances, stabilise
from vstatkit.sampling.design import BalancedDesign, IidDesign
from vstatkit.variance.formulas import noise_variance
from vstatkit.variance.leaf_influence import InfluencePowers
from vstatkit.variance.learner_pairs import LearnerPairs
from vstatkit.variance.pooled_variance import ExpectedVariance, PooledVariance
from vstatkit.variance.registry import estimate_components

POOLED = PooledVariance(ratio=3.0, error=0.1, typical=0.01, near=0.5, spread=0.3)


def test_the_expected_variance_is_the_printed_formula():
    A, zeta = np.array([0.005, 0.01, 0.5]), np.array([1.0, 2.0, 1.0])
    beta = 2 * 0.01
    expected = A + beta * zeta + 0.5 * np.maximum(A - 0.02 * zeta, 0)
    assert_allclose(POOLED.expected(A, zeta), expected, rtol=1e-12)
    assert POOLED.split == pytest.approx(beta)
    # At new points, where A is typical, it is the ratio times A.
    assert POOLED.expected(np.array(0.01), np.array(1.0)) == pytest.approx(0.03)


def test_a_ratio_below_one_reduces_what_fixed_splits_give():
    low = dataclasses.replace(POOLED, ratio=0.8, near=0.0)
    assert low.expected(np.array([0.01]), np.ones(1)) == pytest.approx(0.008)
    assert low.split == 0


def test_noise_below_zero_stays_positive():
    assert (POOLED.expected(np.array([-1.0, 0.0]), np.ones(2)) > 0).all()


def test_trees_that_agree_have_no_variance():
    assert POOLED.expected(np.array([0.2]), np.zeros(1)) == 0
    iris = vs.datasets.iris()
    res = vs.fit("species ~ .", iris, B=100, k=150, rng=1, at=iris.iloc[[0, 60]])
    assert res.pooled is not None
    assert (res.bse[res.components.zeta_k == 0] == 0).all()
    assert (res.conf_int()["upper"] - res.conf_int()["lower"] < 0.9).all()


def components(V, B, n=400, zeta=1.0):
    """Components of the jackknife with k = n, for a raw sampling variance V."""
    design = IidDesign(n, n, True, 1)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(B, len(V)))
    values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    made = estimate_components("jackknife", design, values * np.sqrt(zeta))
    return dataclasses.replace(made, sampling=np.array(V))


def stabilised(V, V_0, B, spread=0.3):
    V_0 = np.array(V_0)
    parts = components(V, B)
    expected = ExpectedVariance(V_0, np.full(len(V_0), 3 / 400), spread, 0.1)
    return stabilise(np.zeros(len(V_0)), parts, B, expected=expected), parts


def test_few_learners_give_the_expected_and_many_the_raw_variance():
    few, _ = stabilised([0.9], [0.03], 30)
    assert few.positive == pytest.approx(0.03, rel=0.05)
    assert few.pooled_share > 0.99
    many, _ = stabilised([0.9], [0.03], 400)
    parts = dataclasses.replace(components([0.05], 400), noise=np.array([1e-9]))
    expected = ExpectedVariance(np.array([0.03]), np.array([0.01]), 0.3, 0.1)
    known = stabilise(np.zeros(1), parts, 400, expected=expected)
    assert known.positive == pytest.approx(0.05, rel=1e-3)
    assert known.pooled_share < 1e-3 < many.pooled_share


def test_weights_are_those_of_the_precisions():
    V, V_0 = np.array([0.05, -0.02]), np.array([0.03, 0.03])
    found, parts = stabilised(V, V_0, 300)
    s2 = noise_variance(V_0, parts.noise, 400)
    share = s2 / (s2 + (0.3 * V_0) ** 2)
    assert_allclose(found.pooled_share, share, rtol=1e-12)
    assert_allclose(found.positive, (1 - share) * V + share * V_0, rtol=1e-6)
    assert (found.df >= MIN_DF).all()


def test_there_is_no_inflation_by_truncation():
    """The mean over the noise of the jackknife is the mean of the two."""
    rng = np.random.default_rng(4)
    V_0 = np.full(20_000, 0.03)
    _, parts = stabilised([0.03], [0.03], 200)
    s = np.sqrt(noise_variance(0.03, parts.noise[0], 400))
    raw = 0.03 + s * rng.normal(size=V_0.size)
    assert (raw < 0).mean() > 0.1
    repeated = {
        name: np.repeat(getattr(parts, name), V_0.size)
        for name in ("zeta_1", "zeta_k", "monte_carlo", "mc_se", "noise", "ceiling")
    }
    many = dataclasses.replace(
        parts, **repeated, sampling=raw, concentration=V_0, skew=V_0
    )
    expected = ExpectedVariance(V_0, V_0, 0.3, 0.1)
    found = stabilise(np.zeros(V_0.size), many, 200, expected=expected)
    assert found.positive.mean() == pytest.approx(0.03, rel=0.01)
    assert found.positive.min() > 0


def test_single_influences_show_in_the_degrees_of_freedom():
    values = np.random.default_rng(1).normal(size=(50, 2))
    zeta = values.var(axis=0, ddof=1)
    # The influence of one unit, and of a hundred alike.
    fixed = np.array([0.5, 0.5]) * zeta
    fourths = fixed**2 * np.array([1.0, 0.01])
    pooled = dataclasses.replace(POOLED, near=0.0)
    powers = InfluencePowers(fixed, fourths, 400)
    expected = expect_variances(values, pooled, powers)
    one, hundred = expected.concentration
    assert 0.8 < one < 1
    assert 0.005 < hundred < 0.03


@pytest.mark.parametrize(
    "design",
    [
        IidDesign(60, 60, True, 1),
        IidDesign(60, 25, False, 1),
        BalancedDesign(60, 40, True, 1, n_learners=50),
    ],
)
def test_pairs_of_learners_give_the_jackknife(design):
    values = np.random.default_rng(2).normal(size=(50, 7))
    pairs = LearnerPairs.of(design, 50)
    if design.chance_absent is None:
        assert pairs is None
        return
    whole = estimate_components("jackknife", design, values)
    fast = estimate_components("jackknife", design, values, pairs=pairs)
    for name in ("sampling", "zeta_k", "monte_carlo", "mc_se", "noise", "ceiling"):
        assert_allclose(getattr(fast, name), getattr(whole, name), rtol=1e-9)
    assert fast.skew is None


def test_too_many_learners_have_no_table_of_pairs():
    assert LearnerPairs.of(IidDesign(60, 60, True, 1), 1001) is None


def test_a_point_does_not_depend_on_the_others():
    data = vs.datasets.mars(150, rng=1)
    X, y = data.drop(columns="y"), data["y"]
    forest = vs.ForestRegressor(100, random_state=1).fit(X, y)
    together = forest.predict(X, return_std=True)[1]
    alone = [forest.predict(X.iloc[[i]], return_std=True)[1].item() for i in (0, 9, 77)]
    assert_allclose(alone, together[[0, 9, 77]], rtol=1e-12)
