"""Joint tests depend on what is restricted, not on how it is written."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import vstatkit as vs
from vstatkit.inference.linear_tests import joint_df
from vstatkit.results.labels import label_texts
from vstatkit.variance.registry import estimate_covariance

ROUNDING = {"rtol": 1e-6}


def numbers(test):
    return [test.statistic, test.df_denom, test.pvalue]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    g = rng.choice(list("abcd"), 200)
    x = rng.uniform(size=200)
    y = (
        x
        + pd.Series(g).map({"a": 0, "b": 0.3, "c": 0.5, "d": 0})
        + rng.normal(size=200)
    )
    return pd.DataFrame({"y": y, "g": g, "x": x})


@pytest.fixture(scope="module")
def prediction(data):
    """Five predictions by few trees: their covariance has negative eigenvalues."""
    res = vs.fit("y ~ g + x", data, B=60, rng=1, n_jobs=1)
    return res.get_prediction(data.iloc[[0, 3, 10, 20, 31]])


CHAIN = np.diff(np.eye(5), axis=0)


def test_the_covariance_of_the_example_is_indefinite(prediction):
    joint = prediction
    matrix = np.add(
        *estimate_covariance(joint.variance, joint.design, joint.values, joint.orders)
    )
    assert np.linalg.eigvalsh(CHAIN @ matrix @ CHAIN.T).min() < 0


@pytest.mark.parametrize("seed", range(4))
def test_invertible_transformations_leave_the_test_as_it_is(prediction, seed):
    one = prediction.wald_test(CHAIN)
    T = np.random.default_rng(seed).normal(size=(4, 4)) * [[1e3], [1], [1], [1e-3]]
    other = prediction.wald_test(T @ CHAIN)
    assert one.df_num == other.df_num == 4
    assert_allclose(numbers(other), numbers(one), **ROUNDING)


def test_differences_from_the_first_and_the_last_give_one_test(prediction):
    first = np.column_stack([np.ones(4), -np.eye(4)])
    last = np.column_stack([np.eye(4), -np.ones(4)])
    one = prediction.wald_test(CHAIN)
    assert_allclose(numbers(prediction.wald_test(first)), numbers(one), **ROUNDING)
    assert_allclose(numbers(prediction.wald_test(last)), numbers(one), **ROUNDING)


def test_restrictions_that_follow_from_others_are_counted_and_reported(prediction):
    one = prediction.wald_test(CHAIN)
    more = prediction.wald_test(np.vstack([CHAIN, CHAIN.sum(axis=0)]))
    assert (more.df_num, more.n_restrictions) == (4, 5)
    assert_allclose(numbers(more), numbers(one), **ROUNDING)
    assert str(more).endswith("(4 of 5 restrictions are independent)")
    assert "independent" not in str(one)


@pytest.mark.parametrize("B", [60, 400])
def test_the_reference_level_does_not_change_the_test(data, B):
    formulas = ["y ~ g + x", "y ~ C(g, Treatment('c')) + x"]
    fits = [vs.fit(one, data, B=B, rng=1, n_jobs=1) for one in formulas]
    one, other = (res.wald_test("g = 0") for res in fits)
    assert one.df_num == other.df_num == 3
    assert_allclose(numbers(other), numbers(one), **ROUNDING)
    one, other = (res.avg_effects().wald_test("g = 0") for res in fits)
    assert_allclose(numbers(other), numbers(one), **ROUNDING)


def test_values_of_the_restrictions_are_transformed_with_them(data):
    res = vs.fit("y ~ g + x", data, B=60, rng=1, n_jobs=1)
    one = res.wald_test("g[b] = 0.2, g[c] = 0.5")
    other = res.wald_test("g[b] + g[c] = 0.7, g[b] - g[c] = -0.3")
    assert_allclose(numbers(other), numbers(one), **ROUNDING)


@pytest.mark.parametrize("B", [20, 300])
def test_one_restriction_is_the_square_of_t(data, B):
    res = vs.fit("y ~ g + x", data, B=B, rng=1, n_jobs=1)
    single = res.t_test("g[b] = 0.1").estimates
    joint = res.wald_test("g[b] = 0.1")
    assert_allclose(joint.statistic, single.zvalues.item() ** 2, rtol=1e-10)
    assert_allclose(joint.df_denom, single.df.item(), rtol=1e-10)
    expected = 2 * stats.t.sf(abs(single.zvalues.item()), single.df.item())
    assert_allclose(joint.pvalue, expected, rtol=1e-8)


def test_the_statistic_is_the_quadratic_form_if_learners_are_many():
    """Learners without noise: B = 20,000 means of subsamples."""
    z = np.random.default_rng(1).normal(size=(30, 3)) + 0.3
    rng = np.random.default_rng(2)
    counts = rng.multinomial(15, np.full(30, 1 / 30), size=20_000)
    res = vs.from_arrays(counts, counts @ z / 15, replace=True, variance="ij_u")
    matrix = np.add(*estimate_covariance("ij_u", res.design, res.values))
    mean = res.params.to_numpy()
    test = res.wald_test(np.eye(3))
    squares, nu = mean @ np.linalg.solve(matrix, mean), test.df_denom
    assert_allclose(test.statistic, squares / 3 * nu / (nu + 2), rtol=1e-6)
    assert np.min(res.estimates.df) * 0.5 < test.df_denom < 30


def test_the_joint_test_rejects_as_often_as_it_should():
    """Subsample means of normal vectors, 400 learners; 200 data sets, error 1.5 %."""
    rng = np.random.default_rng(5)
    mix, pvalues = rng.normal(size=(3, 3)), []
    for _ in range(200):
        counts = rng.multinomial(20, np.full(60, 1 / 60), size=400)
        values = counts @ (rng.normal(size=(60, 3)) @ mix) / 20
        res = vs.from_arrays(counts, values, replace=True)
        pvalues.append(res.wald_test(np.eye(3)).pvalue)
    assert np.mean(np.array(pvalues) < 0.05) < 0.09


def test_degrees_of_freedom_match_the_mean_of_squared_t():
    """F with these degrees of freedom has the expectation of the mean of squares."""
    df = np.array([5.0, 9.0, 40.0])
    found = joint_df(df)
    expected = np.mean([stats.t(one).var() for one in df])
    assert_allclose(stats.f(3, found).mean(), expected, rtol=1e-12)
    assert df.min() < found < stats.hmean(df)
    assert joint_df(np.array([7.3])) == 7.3
    assert joint_df(np.full(3, 1.0)) == 1.0
    assert joint_df(np.array([2.0, 50.0])) == 2.0
    assert_allclose(joint_df(np.array([2 + 1e-9, 50.0])), 2.0, atol=1e-8)


def test_a_sum_that_no_learner_changes_is_left_out_or_has_no_test():
    """Probabilities of three classes add up to one."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"y": rng.choice(list("abc"), 90), "x": rng.uniform(size=90)})
    res = vs.fit("y ~ x", data, B=100, rng=1, at=data.head(1), n_jobs=1)
    assert (res.bse > 0).all()
    alike = res.wald_test([[1.0, -1, 0], [0, 1, -1]])
    a, b, c = (f"`{name}`" for name in label_texts(res.labels))
    both = res.wald_test(f"{a} = 1/3, {b} = 1/3")
    every = res.wald_test(f"{a} = 1/3, {b} = 1/3, {c} = 1/3")
    assert (both.df_num, every.df_num, every.n_restrictions) == (2, 2, 3)
    assert_allclose(numbers(both), numbers(alike), **ROUNDING)
    assert_allclose(numbers(every), numbers(alike), **ROUNDING)
    impossible = res.wald_test(np.eye(3))
    assert np.isnan([impossible.statistic, impossible.pvalue]).all()


def test_more_restrictions_than_learners_can_show_raise_an_error(data):
    res = vs.fit("y ~ g + x", data, B=5, rng=1, n_jobs=1)
    found = res.get_prediction(data.head(20))
    with pytest.raises(
        ValueError, match="needs more than 19 base learners; there are 5"
    ):
        found.wald_test(np.diff(np.eye(20), axis=0))
