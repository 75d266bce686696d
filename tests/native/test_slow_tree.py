"""The compiled grower against a literal one in exact arithmetic, node by node."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.oracles.slow_tree import SlowTree, threshold
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.streams import learner_keys


def both(X, y, weights, n_classes, seed, **options):
    """The same tree, grown by the compiled code and by the slow one."""
    kernel = tree_kernel(
        "tree", X, y, n_classes=n_classes, weights=None, options=options
    )
    keys = learner_keys(seed, 0, 1)
    (fast,) = kernel.grow(UnitDraw(weights[None]), keys, X[:0], keep=True).learners
    exact = [Fraction(one) if n_classes is None else int(one) for one in y]
    options.setdefault("max_features", X.shape[1])
    slow = SlowTree(
        X.tolist(), exact, [Fraction(w) for w in weights], n_classes, **options
    ).grow(int(keys[0]))
    return kernel, fast, slow


def leaf_of(kernel, tree, node):
    """Shares, or the mean, of a stored leaf, written out."""
    K = kernel.n_classes
    if K is None:
        return [kernel.centre + kernel.scale * node["value"]]
    if K == 2:
        return [1 - node["value"], node["value"]]
    if node["feature"] == -2:
        return np.eye(K)[node["right"]]
    return tree.shares[K * node["right"] : K * (node["right"] + 1)]


def assert_same(kernel, fast, slow):
    assert len(fast.nodes) == len(slow.nodes)
    for node, expected in zip(fast.nodes, slow.nodes, strict=True):
        if expected[0] == "leaf":
            assert node["feature"] < 0
            shares = [float(one) for one in expected[1]]
            assert_allclose(leaf_of(kernel, fast, node), shares, rtol=1e-9, atol=1e-9)
            continue
        found = (node["feature"], node["value"], node["right"] & 1, node["right"] >> 1)
        assert found == expected
    gains = [float(slow.gains.get(f, 0)) for f in range(kernel.n_features)]
    assert_allclose(fast.gains * kernel.scale**2, gains, rtol=1e-9, atol=1e-9)


KINDS = {
    "few values": [0.0, 1.0, 2.0, 3.0, 4.0],
    "neighbours": list(1 + np.arange(6) * 2.0**-52),
    "least": [-1e-323, -5e-324, 0.0, 5e-324, 1e-323],
    "largest": [-1.7e308, -1.6e308, 1.6e308, 1.7e308],
}


def example(rng, kind, n_classes):
    """Small data with ties, missing values and rows outside the subsample."""
    n, p = int(rng.integers(2, 28)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, p))
    if kind != "all different":
        X = rng.choice(KINDS[kind], size=(n, p))
    if rng.uniform() < 0.5:
        X[rng.uniform(size=(n, p)) < 0.25] = np.nan
    if n_classes is None:
        y = rng.integers(5, size=n) if rng.uniform() < 0.7 else rng.normal(size=n)
    else:
        y = rng.integers(n_classes, size=n)
    weights = rng.integers(0, 3, size=n) * rng.choice([0.5, 1.0, 3.0])
    weights[rng.integers(n)] = 1.0
    return X, y.astype(float), weights


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("kind", [*KINDS, "all different"])
def test_every_node_is_that_of_the_slow_tree(kind, n_classes, seed):
    rng = np.random.default_rng([seed, 0 if n_classes is None else n_classes])
    settled_by_rounding = True
    while settled_by_rounding:
        X, y, weights = example(rng, kind, n_classes)
        options = {
            "max_features": int(rng.integers(1, X.shape[1] + 1)),
            "min_samples_leaf": int(rng.choice([1, 1, 2, 4])),
            "min_samples_split": int(rng.choice([2, 2, 5])),
            "max_depth": [None, None, 3][int(rng.integers(3))],
            "honest": bool(rng.uniform() < 0.4),
        }
        kernel, fast, slow = both(X, y, weights, n_classes, seed, **options)
        settled_by_rounding = slow.settled_by_rounding
    assert_same(kernel, fast, slow)


@pytest.mark.parametrize("honest", [False, True])
@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("seed", range(4))
def test_larger_nodes_are_sorted_the_same(seed, n_classes, honest):
    """Nodes above 32 rows are sorted digit by digit, smaller ones by counting."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(150, 3)), 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y = rng.integers(4, size=150) if n_classes is None else rng.integers(3, size=150)
    weights = rng.integers(0, 4, size=150).astype(float)
    options = {"max_features": 2, "min_samples_leaf": 2, "honest": honest}
    assert_same(*both(X, y.astype(float), weights, n_classes, seed, **options))


def test_one_feature_is_sorted_once(rng):
    """Children take over the order of the feature that was split."""
    X = rng.integers(40, size=(90, 1)).astype(float)
    y = rng.integers(3, size=90).astype(float)
    assert_same(*both(X, y, np.ones(90), None, 1))


def test_a_better_split_wins_by_little():
    """The first of two splits keeps its place if they tie, not if they nearly do."""
    y = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    X = np.arange(6.0)[:, None]
    _, tied, _ = both(X, y, np.ones(6), None, 1, max_depth=1)
    assert tied.nodes["value"][0] == 0.5
    for nudge in (1e-7, -1e-7):
        moved = y.copy()
        moved[5] += nudge
        kernel, fast, slow = both(X, moved, np.ones(6), None, 1, max_depth=1)
        assert_same(kernel, fast, slow)
        assert fast.nodes["value"][0] == (0.5 if nudge > 0 else 4.5)


def test_the_first_feature_to_reach_a_gain_keeps_it():
    """Copies of a column tie; which one is first depends on the seed alone."""
    rng = np.random.default_rng(3)
    column = rng.normal(size=20)
    X = np.column_stack([column, 2 * column, column**3])
    taken = set()
    for seed in range(12):
        kernel, fast, slow = both(X, rng.normal(size=20), np.ones(20), None, seed)
        assert_same(kernel, fast, slow)
        taken |= set(fast.nodes["feature"])
    assert taken == {-1, 0, 1, 2}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, 1.5),
        (1 + 2.0**-52, 1 + 2.0**-51, 1 + 2.0**-52),  # halfway rounds up, to `high`
        (1.0, 1 + 2.0**-52, 1.0),
        (-1.7e308, 1.7e308, 0.0),
        (2.0**1023, 1.5 * 2.0**1023, 1.25 * 2.0**1023),
        (-5e-324, 0.0, -5e-324),
    ],
)
def test_thresholds_lie_below_the_upper_value(low, high, expected):
    X = np.array([[low], [high]])
    _, fast, _ = both(X, np.array([0.0, 1.0]), np.ones(2), None, 1)
    assert fast.nodes["value"][0] == expected == threshold(low, [high])


@pytest.mark.parametrize(("n_left", "n_right"), [(2, 3), (3, 2), (3, 3)])
def test_missing_values_that_are_new_follow_the_majority(n_left, n_right):
    """With as many rows on both sides they go right."""
    X = np.arange(n_left + n_right, dtype=float)[:, None]
    y = (np.arange(n_left + n_right) >= n_left) * 1.0
    kernel, fast, _ = both(X, y, np.ones(len(y)), None, 1)
    (at_missing,) = kernel.predict(fast, np.array([[math.nan]]))
    assert_allclose(at_missing, 0.0 if n_left > n_right else 1.0, atol=1e-12)


@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_missing_rows_count_among_the_rows_of_a_leaf(least):
    """Two missing rows on a side make it large enough, or leave too few known ones."""
    X = np.array([0.0, 1.0, 2.0, 3.0, np.nan, np.nan])[:, None]
    for y in ([5, 0, 0, 0, 5, 5], [0, 0, 0, 5, 5, 5], [0, 1, 4, 9, 2, 7]):
        response = np.array(y, dtype=float)
        options = {"min_samples_leaf": least, "max_depth": 1}
        assert_same(*both(X, response, np.ones(6), None, 1, **options))
