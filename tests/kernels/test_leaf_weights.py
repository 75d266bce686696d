"""The weights that the leaves of trees give to training rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from vstatkit.kernels.leaf_weights import (
    GROUPS,
    has_leaf_rows,
    influence_powers,
    leaf_weights,
)
from vstatkit.kernels.tree import Tree

SAME_ALGEBRA = {"rtol": 1e-6, "atol": 1e-9}  # shares are in single precision
B = 20
OPTIONS = {
    "default": {},
    "leaves of five": {"min_samples_leaf": 5},
    "honest": {"honest": True, "min_samples_leaf": 2},
    "few leaves": {"max_leaf_nodes": 6},
    "one leaf": {"min_samples_leaf": 200},
    "without replacement": {"bootstrap": False, "max_samples": 0.5},
    "random splits": {"splitter": "random"},
}


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(1)
    X = np.round(rng.uniform(size=(120, 4)), 1)
    y = 4 * X[:, 0] + X[:, 1] ** 2 + rng.normal(size=120)
    return X, y, rng.exponential(size=120)


def weights_by_tree(forest, X, n):
    """Sum the weights of each tree alone: (trees, points, rows)."""
    tables = []
    for b in range(len(forest.estimators_)):
        used = np.zeros((len(X), len(forest.estimators_)), dtype=bool)
        used[:, b] = True
        parts = leaf_weights(forest._kernel, forest.estimators_, X, n, used)
        tables.append(sum(part.toarray() for part in parts))
    return np.array(tables)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_predictions_are_weighted_means_of_the_responses(name, weighted, sample):
    X, y, w = sample
    forest = vs.ForestRegressor(B, random_state=2, **OPTIONS[name])
    forest.fit(X, y, sample_weight=w if weighted else None)
    points = X[:15] + 0.03
    table = weights_by_tree(forest, points, len(y))
    assert_allclose(table.sum(axis=2), 1, **SAME_ALGEBRA)
    values = forest._predictor.values(points)
    assert_allclose(table @ y, values, rtol=1e-5, atol=1e-6)
    held = forest.design_.counts(0, B)
    assert (np.asarray(held)[:, None, :] >= (table > 0)).all()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_weighted_means_of_indicators(n_classes, sample):
    X, y, _ = sample
    codes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    forest = vs.ForestClassifier(B, random_state=2, min_samples_leaf=2).fit(X, codes)
    table = weights_by_tree(forest, X[:15], len(y))
    classes = range(1, 2) if n_classes == 2 else range(n_classes)
    shares = np.stack([table @ (codes == c) for c in classes], axis=2)
    values = forest._predictor.values(X[:15])
    assert_allclose(shares.reshape(B, -1), values, rtol=1e-5, atol=1e-6)


def test_powers_are_those_of_pairs_of_trees_in_different_groups(sample):
    """Against double loops over trees, for clusters and for single rows."""
    X, y, _ = sample
    forest = vs.ForestRegressor(B, random_state=2, min_samples_leaf=3).fit(X, y)
    errors = np.random.default_rng(3).normal(size=(len(y), 1))
    clusters = np.arange(len(y)) // 3
    for units in (None, clusters):
        member = np.eye(len(y)) if units is None else np.eye(40)[clusters]
        table = weights_by_tree(forest, X[:6], len(y)) * errors[:, 0] @ member
        square = fourth = pairs = fours = 0.0
        for a in range(B):
            for b in range(B):
                if a % GROUPS == b % GROUPS:
                    continue
                square = square + (table[a] * table[b]).sum(axis=1)
                pairs += 1
        quarters = [table[j::4].sum(axis=0) for j in range(4)]
        fours = np.prod([len(table[j::4]) for j in range(4)])
        fourth = np.prod(quarters, axis=0).sum(axis=1) / fours
        found = influence_powers(
            *(forest._kernel, forest.estimators_, X[:6], errors),
            unit_of_row=units,
            n_units=member.shape[1],
        )
        assert_allclose(found[0], square / pairs, rtol=1e-5, atol=1e-7)
        assert_allclose(found[1], fourth, rtol=1e-5, atol=1e-7)


def test_trees_forget_and_stack_the_rows_of_their_leaves(sample):
    X, y, _ = sample
    forest = vs.ForestRegressor(B, random_state=2, min_samples_leaf=3).fit(X, y)
    assert has_leaf_rows(forest._kernel, forest.estimators_)
    again = Tree.unstack(Tree.stack(forest.estimators_))
    for one, other in zip(forest.estimators_, again, strict=True):
        assert_array_equal(one.nodes, other.nodes)
        assert_array_equal(one.leaf_rows, other.leaf_rows)
        assert_array_equal(one.leaf_shares, other.leaf_shares)
    forgotten = [tree.forget_leaf_rows() for tree in forest.estimators_]
    assert not has_leaf_rows(forest._kernel, forgotten)
    assert "tree_leaf_rows" not in Tree.stack(forgotten)
    assert (forgotten[0].nodes["right"][forgotten[0].nodes["feature"] < 0] == 0).all()
    for one, other in zip(forest.estimators_, forgotten, strict=True):
        predicted = [forest._kernel.predict(tree, X) for tree in (one, other)]
        assert_array_equal(*predicted)
        assert other.nbytes < one.nbytes


def test_boosted_trees_have_no_such_weights(sample):
    X, y, _ = sample
    forest = vs.ForestRegressor(B, random_state=2, boost=1).fit(X, y)
    assert not has_leaf_rows(forest._kernel, forest.estimators_)
