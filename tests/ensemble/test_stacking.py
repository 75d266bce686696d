"""Weights of learners in a mix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

from vstatkit.ensemble.stacking import allocate_learners, stacking_weights


def residuals(rng, n=300):
    """Residuals of five candidates in two ensembles, from rough to smooth."""
    noise, waves = rng.normal(size=n), rng.normal(size=(5, n))
    sizes = np.array([0.7, 0.5, 0.6, 0.3, 0.9])[:, None]
    own = 0.3 * rng.normal(size=(2, 5, n))
    return noise + sizes * waves + own


def objective(r, s, n_units, weights):
    """Error and price of weights, written out."""
    c = len(r)
    error = np.mean((weights @ r) * (weights @ s))
    least = min(np.mean(r[j] * s[j]) for j in range(c))
    charged = sum(weights[j] * (c - 1 - j) / (c - 1) for j in range(c))
    return error + 15 * least / n_units * charged


@pytest.mark.parametrize("n_units", [300, 20])
def test_no_other_weights_are_better(rng, n_units):
    r, s = residuals(rng)
    weights = stacking_weights(r, s, n_units)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    found = objective(r, s, n_units, weights)
    best = optimize.minimize(
        lambda w: objective(r, s, n_units, w),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert found == pytest.approx(best.fun, rel=1e-4)  # shares below 2 % are left out
    assert_allclose(weights, best.x, atol=0.03)


def test_the_price_is_paid_for_roughness_by_units(rng):
    r, s = residuals(rng)
    shares = [stacking_weights(r, s, n) @ np.arange(5) for n in (10, 100, 10_000)]
    assert shares[0] > shares[1] > shares[2]


def test_of_equals_the_smoothest_is_taken(rng):
    noise = rng.normal(size=100)
    same = np.stack([noise, noise, noise])
    assert_allclose(stacking_weights(same, same, 100), [0, 0, 1], atol=1e-9)


def test_small_shares_are_left_out(rng):
    r, s = residuals(rng, 60)
    for n_units in range(20, 80, 5):
        weights = stacking_weights(r, s, n_units)
        assert ((weights == 0) | (weights >= 0.02)).all()
        assert weights.sum() == pytest.approx(1)


def test_one_candidate_and_perfect_ones():
    assert_array_equal(stacking_weights(np.ones((1, 5)), np.ones((1, 5)), 5), [1])
    none = np.zeros((3, 5))
    assert stacking_weights(none, none, 5).sum() == pytest.approx(1)


@pytest.mark.parametrize("B", [1, 2, 7, 200, 1001])
def test_learners_are_divided_by_shares(rng, B):
    for weights in (rng.dirichlet(np.ones(4)), np.array([0.1, 0.2, 0.7]), np.ones(1)):
        counts = allocate_learners(weights, B)
        assert counts.sum() == B
        assert (np.abs(counts - B * weights) < 1).all()
    assert_array_equal(allocate_learners(np.array([0.3, 0.3, 0.4]), 10), [3, 3, 4])
    assert_array_equal(allocate_learners(np.array([0.55, 0.25, 0.2]), 7), [4, 2, 1])


@pytest.mark.parametrize(("share", "kept"), [(0.015, 0.0), (0.025, 0.025)])
def test_shares_of_two_percent_are_kept(share, kept):
    """Two candidates whose errors have nothing in common."""
    larger = np.sqrt(1 / share - 1)
    r = np.array([[larger, -larger, 0, 0], [0, 0, 1, -1]])
    assert_allclose(stacking_weights(r, r, 10**12), [kept, 1 - kept], atol=1e-6)


def test_errors_below_zero_count_as_none():
    """By a grid: of noisy products, what is negative is taken to be zero."""
    r, s = np.random.default_rng(16).normal(size=(2, 3, 4))
    G = (r @ s.T + s @ r.T) / 8
    values, vectors = np.linalg.eigh(G)
    assert values[0] < -0.3
    clipped = (vectors * np.maximum(values, 0)) @ vectors.T
    steps = np.arange(101) / 100
    grid = [(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1]
    errors = [w @ clipped @ w for w in np.array(grid)]
    expected = grid[int(np.argmin(errors))]
    assert_allclose(stacking_weights(r, s, 10**12), expected, atol=0.02)


def test_there_is_no_price_where_errors_are_negative():
    r = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    s = np.array([[-0.1, 0.1, 0.0, 0.0], [0.0, 0.0, 4.0, -4.0]])
    assert_allclose(stacking_weights(r, s, 1), stacking_weights(r, s, 10**9))
