"""The compiled tree grower against scikit-learn, brute force and itself."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import vstatkit as vs
from tests.oracles.ensembles import SAME_ALGEBRA
from tests.oracles.slow_tree import mix
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import (
    MOST_ROWS,
    NODE_BYTES,
    StoredTreeKernel,
    rank_columns,
    tree_kernel,
)
from vstatkit.kernels.tree_options import feature_count, grower_options
from vstatkit.native import _engine
from vstatkit.sampling.streams import learner_keys


def grow(X, y, counts, *, at=None, n_classes=None, oob=False, keep=True, **options):
    """Grow one tree for each row of counts, all features tried by default."""
    kernel = tree_kernel(
        options.pop("name", "tree"),
        np.asarray(X, dtype=float),
        np.asarray(y, dtype=float),
        n_classes=n_classes,
        weights=options.pop("weights", None),
        options=options,
    )
    counts = np.atleast_2d(counts)
    keys = learner_keys(options.get("seed", 1), 0, len(counts))
    points = np.asarray(X if at is None else at, dtype=float)
    rows = np.arange(len(kernel.y)) if oob else None
    return kernel, kernel.grow(UnitDraw(counts), keys, points, oob_rows=rows, keep=keep)


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=120)
    counts = rng.multinomial(120, np.full(120, 1 / 120), size=20)
    return X, y, counts


@pytest.mark.parametrize("seed", range(200))
def test_regression_trees_are_scikit_learns_on_their_own_rows(seed):
    """Off the subsample they may differ: features that part rows alike tie."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 120)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    y = rng.normal(size=n)
    counts = rng.multinomial(n, np.full(n, 1 / n))
    options = {
        "min_samples_leaf": int(rng.choice([1, 3])),
        "min_samples_split": int(rng.choice([2, 6])),
        "max_depth": [None, 4][int(rng.integers(2))],
    }
    _, ours = grow(X, y, counts, **options)
    drawn = counts > 0
    theirs = DecisionTreeRegressor(random_state=0, **options)
    theirs.fit(X, y, sample_weight=counts)
    rows = drawn if p > 1 else np.full(n, True)
    assert_allclose(ours.values[0][rows], theirs.predict(X)[rows], **SAME_ALGEBRA)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(20))
def test_classification_trees_are_scikit_learns_on_their_own_rows(n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3)).astype(np.float32).astype(float)
    y = rng.integers(n_classes, size=80).astype(float)
    counts = rng.multinomial(80, np.full(80, 1 / 80))
    drawn = counts > 0
    _, ours = grow(X, y, counts, n_classes=n_classes)
    theirs = DecisionTreeClassifier(random_state=0).fit(X, y, sample_weight=counts)
    share = ours.values[0].reshape(80, -1)
    expected = theirs.predict_proba(X)
    expected = expected[:, 1:] if n_classes == 2 else expected
    assert_allclose(share[drawn], expected[drawn], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_trees_are_scikit_learns_everywhere_where_nothing_ties(n_classes, seed):
    """Large leaves: no two features part a node alike; weights tell classes apart."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(100, 300)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    y = rng.normal(size=n) if n_classes is None else rng.integers(n_classes, size=n)
    weights = rng.uniform(0.5, 2, size=n)
    counts = rng.multinomial(n, np.full(n, 1 / n))
    at = rng.normal(size=(200, p)).astype(np.float32).astype(float)
    options = {
        "min_samples_leaf": int(rng.choice([6, 9])),
        "min_samples_split": int(rng.choice([2, 30])),
        "max_depth": [None, 3][int(rng.integers(2))],
    }
    _, ours = grow(X, y, counts, at=at, n_classes=n_classes, weights=weights, **options)
    peer = DecisionTreeRegressor if n_classes is None else DecisionTreeClassifier
    theirs = peer(random_state=0, **options).fit(X, y, sample_weight=counts * weights)
    if n_classes is None:
        assert_allclose(ours.values[0], theirs.predict(at), **SAME_ALGEBRA)
        return
    expected = theirs.predict_proba(at)[:, 1 if n_classes == 2 else 0 :]
    share = ours.values[0].reshape(200, -1)
    assert_allclose(share, expected, rtol=1e-12, atol=1e-12)


def best_stump(x, y, w, n_classes):
    """Least impurity over all splits of one feature, by brute force."""

    def impurity(rows):
        if n_classes is None:
            mean = np.average(y[rows], weights=w[rows])
            return (w[rows] * (y[rows] - mean) ** 2).sum()
        shares = np.array([w[rows][y[rows] == c].sum() for c in range(n_classes)])
        return shares.sum() - (shares**2).sum() / shares.sum()

    found = []
    known = x[~np.isnan(x)]
    for threshold, missing_left in itertools.product(np.unique(known), (True, False)):
        left = np.where(np.isnan(x), missing_left, x <= threshold)
        if left.any() and not left.all():
            found.append(impurity(left) + impurity(~left))
    return min(found)


@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_a_stump_is_the_best_of_all_splits(seed, missing, n_classes):
    rng = np.random.default_rng(seed)
    X = rng.integers(9, size=(40, 3)).astype(float)
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    y = rng.normal(size=40) if n_classes is None else rng.integers(n_classes, size=40)
    counts = rng.multinomial(40, np.full(40, 1 / 40))
    drawn = counts > 0
    _, ours = grow(X, y, counts, n_classes=n_classes, max_depth=1)
    w, value = counts[drawn], ours.values[0].reshape(40, -1)[drawn]
    if n_classes is None:
        reached = (w * (y[drawn] - value[:, 0]) ** 2).sum()
    else:
        full = np.column_stack([1 - value, value]) if n_classes == 2 else value
        reached = (w * (1 - full[np.arange(len(w)), y[drawn].astype(int)])).sum()
    best = min(
        best_stump(X[drawn, j], np.asarray(y, float)[drawn], w, n_classes)
        for j in range(3)
    )
    assert_allclose(reached, best, rtol=1e-9, atol=1e-9)


small = st.integers(2, 25)


@given(st.data())
def test_full_trees_give_the_mean_of_equal_rows(data):
    """Splitting goes on until rows are equal, whatever ties and weights there are."""
    n, p = data.draw(small), data.draw(st.integers(1, 3))
    values = st.one_of(st.integers(0, 3).map(float), st.just(np.nan), st.just(1e300))
    X = data.draw(hnp.arrays(float, (n, p), elements=values))
    y = data.draw(hnp.arrays(float, n, elements=st.floats(-1e6, 1e6)))
    counts = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    counts[0] = max(counts[0], 1)
    _, ours = grow(X, y, counts)
    alike = [
        [np.array_equal(X[i], X[j], equal_nan=True) for j in range(n)] for i in range(n)
    ]
    scale = np.abs(y).max() + 1
    for i in np.flatnonzero(counts):
        same = np.array(alike[i]) & (counts > 0)
        expected = np.average(y[same], weights=counts[same])
        assert_allclose(ours.values[0, i], expected, rtol=1e-9, atol=1e-9 * scale)


@given(
    hnp.arrays(float, (12, 2), elements=st.floats(allow_infinity=False, width=64)),
    st.integers(1, 6),
)
def test_leaves_hold_at_least_their_rows(X, least):
    y = np.arange(12.0)
    counts = np.ones(12)
    _, ours = grow(X, y, counts, min_samples_leaf=least)
    _, sizes = np.unique(ours.values[0], return_counts=True)
    assert sizes.min() >= least


def test_stored_trees_predict_what_was_evaluated(sample):
    X, y, counts = sample
    for n_classes in (None, 2, 5):
        response = y if n_classes is None else np.arange(120) % n_classes
        options = {"max_depth": 3, "name": "forest"}
        kernel, ours = grow(X, response, counts, n_classes=n_classes, **options)
        for tree, value in zip(ours.learners, ours.values, strict=True):
            assert_array_equal(kernel.predict(tree, X).ravel(), value)


def test_nodes_are_small(sample):
    X, y, counts = sample
    _, ours = grow(X, y, counts)
    assert ours.learners[0].nodes.itemsize == NODE_BYTES <= 24
    _, pure = grow(X, np.arange(120) % 10, counts, n_classes=10)
    assert pure.learners[0].shares.size == 0  # full trees have pure leaves


def test_growing_only_what_is_asked_for_changes_nothing(sample):
    X, y, counts = sample
    for name in ("forest", "tree"):
        _, whole = grow(X, y, counts, at=X[:3], name=name)
        _, part = grow(X, y, counts, at=X[:3], name=name, keep=False)
        assert_array_equal(whole.values, part.values)
        assert part.learners == []


def test_out_of_bag_sums_are_predictions_of_the_trees_that_missed_the_row(sample):
    X, y, counts = sample
    kernel, ours = grow(X, y, counts, oob=True)
    total, times = np.zeros((120, 1)), np.zeros(120)
    for tree, row in zip(ours.learners, counts, strict=True):
        outside = row == 0
        total[outside] += kernel.predict(tree, X[outside])
        times[outside] += 1
    assert_array_equal(ours.oob.times, times)
    assert_allclose(ours.oob.total, total, **SAME_ALGEBRA)


def test_batches_do_not_matter(sample):
    X, y, counts = sample
    kernel, whole = grow(X, y, counts, name="forest")
    keys = learner_keys(1, 0, 20)
    parts = [kernel.grow(UnitDraw(counts[[b]]), keys[[b]], X) for b in range(20)]
    assert_array_equal(whole.values, np.concatenate([part.values for part in parts]))


def test_trees_of_a_forest_differ_and_repeat(sample):
    X, y, counts = sample
    kernel, _ = grow(X, y, counts, name="forest")
    same = np.repeat(counts[:1], 5, axis=0)
    first, again = (
        kernel.grow(UnitDraw(same), learner_keys(1, 0, 5), X) for _ in range(2)
    )
    assert_array_equal(first.values, again.values)
    assert len(np.unique(first.values[:, 0])) > 1


@pytest.mark.parametrize(("c", "d"), [(2.0**40, 0), (1e-8, 0), (1e8, 0), (3.0, 1e6)])
def test_trees_do_not_depend_on_units(sample, c, d):
    X, y, counts = sample
    _, plain = grow(X, y, counts, name="forest")
    _, moved = grow(X, c * y + d, counts, name="forest")
    assert_allclose(moved.values, c * plain.values + d, rtol=1e-9)


def test_a_monotone_change_of_a_feature_changes_no_value_on_its_rows(sample):
    X, y, counts = sample
    _, plain = grow(X, y, counts, name="forest")
    _, bent = grow(np.exp(X), y, counts, name="forest")
    drawn = counts > 0
    assert_array_equal(plain.values[drawn], bent.values[drawn])


def test_weights_of_observations_act_as_counts(sample):
    X, y, counts = sample
    weights = np.arange(120) % 3 + 1.0
    _, by_weight = grow(X, y, counts, weights=weights, max_depth=3)
    _, by_count = grow(X, y, counts * weights.astype(int), max_depth=3)
    assert_array_equal(by_weight.values, by_count.values)


def test_memory_layouts_and_types_of_features_do_not_matter(sample):
    X, y, counts = sample
    exact = X.astype(np.float32)
    _, plain = grow(exact, y, counts)
    wide = np.repeat(exact, 2, axis=1)
    for other in (np.asfortranarray(exact), wide[:, ::2], exact.astype(float)):
        _, again = grow(other, y, counts)
        assert_array_equal(plain.values, again.values)


def test_one_row_one_column_one_value():
    _, ours = grow([[1.0], [2.0]], [3.0, 5.0], [[0, 1]])
    assert_array_equal(ours.values, [[5.0, 5.0]])
    _, flat = grow(np.ones((6, 2)), np.arange(6.0), np.ones(6))
    assert_array_equal(flat.values, np.full((1, 6), 2.5))


def test_ranks_put_missing_values_last():
    _, order, rank, n_known = rank_columns(np.array([[2.0], [np.nan], [1.0]]))
    assert_array_equal(order, [[2, 0, 1]])
    assert_array_equal(rank, [[1, 2, 0]])
    assert_array_equal(n_known, [2])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_features": 0}, ValueError, "between 1 and 4"),
        ({"max_features": 5}, ValueError, "between 1 and 4"),
        ({"max_features": 1.5}, ValueError, r"lie in \(0, 1\]"),
        ({"max_features": "all"}, TypeError, "'sqrt', 'log2' or None"),
        ({"max_depth": 0}, ValueError, "`max_depth` must be at least 1"),
        ({"min_samples_leaf": 0}, ValueError, "`min_samples_leaf` must be at least 1"),
        ({"min_samples_split": 2.5}, TypeError, "`min_samples_split` must be a whole"),
    ],
)
def test_bad_options_say_what_must_hold(options, error, message):
    with pytest.raises(error, match=message):
        grower_options(options, 4)


def test_feature_counts_are_scikit_learns():
    assert feature_count(0.5, 7) == 3
    assert feature_count(np.int64(2), 7) == 2


def test_honest_leaves_are_estimated_from_the_other_half(rng):
    """A nudge of a response moves its own leaf, or, in the other half, nothing."""
    X, y = rng.normal(size=(41, 2)), rng.normal(size=41)
    once = np.ones((1, 41))
    _, plain = grow(X, y, once, honest=True)
    step = 1e-6  # too small to change a split
    held = []
    for i in range(41):
        nudged = y.copy()
        nudged[i] += step
        _, moved = grow(X, nudged, once, honest=True)
        change = moved.values[0] - plain.values[0]
        if np.abs(change).max() < 1e-12:
            continue
        held.append(i)
        leaf = plain.values[0] == plain.values[0][i]
        assert_allclose(change[~leaf], 0, atol=1e-12)
        assert_allclose(change[leaf], change[i], rtol=1e-6)
        members = step / change[i]
        assert members == pytest.approx(round(members), abs=1e-3)
    assert len(held) == 41 // 2


def test_honest_trees_grow_only_what_is_asked_for_too(sample):
    X, y, counts = sample
    for n_classes in (None, 3):
        response = y if n_classes is None else np.arange(120) % 3
        options = {"honest": True, "name": "forest", "n_classes": n_classes}
        kernel, whole = grow(X, response, counts, at=X[:3], **options)
        _, part = grow(X, response, counts, at=X[:3], keep=False, **options)
        assert_array_equal(whole.values, part.values)
        for tree, value in zip(whole.learners, whole.values, strict=True):
            assert_array_equal(kernel.predict(tree, X[:3]).ravel(), value)


def test_an_honest_tree_of_one_row_uses_it():
    _, ours = grow([[1.0], [2.0]], [3.0, 5.0], [[0, 1]], honest=True)
    assert_array_equal(ours.values, [[5.0, 5.0]])


def test_a_busy_machine_fails_no_example():
    assert settings().deadline is None


@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("tiny", [1e-12, 1e-20, 1e-30, 1e-200, 5e-324])
def test_tiny_weights_count_for_little(tiny, missing, n_classes, rng):
    """Every tree is the one of the rows that weigh something, refined by the others.

    The rows of tiny weight lie beyond all others, where sums cancel.
    """
    n = 60
    X = np.sort(rng.normal(size=(n, 2)), axis=0)
    if missing:
        X[rng.uniform(size=(n, 2)) < 0.2] = np.nan
    y = rng.normal(size=n) if n_classes is None else rng.integers(n_classes, size=n)
    weights = np.ones(n)
    weights[[0, 1, n - 2, n - 1]] = tiny
    once = np.ones(n)
    options = {"n_classes": n_classes, "max_depth": 2}
    _, ours = grow(X, y, once, weights=weights, **options)
    _, heavy = grow(X, y, once * (weights == 1), **options)
    gains = ours.learners[0].gains
    assert np.isfinite(gains).all()
    assert_allclose(gains, heavy.learners[0].gains, rtol=1e-6)
    rows = weights == 1
    values = [one.values.reshape(n, -1)[rows] for one in (ours, heavy)]
    assert_allclose(*values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_uneven_weights_give_the_same_trees(n_classes, rng):
    """One row of tiny weight changes how gains are added up, and nothing else."""
    n = 80
    X = np.round(rng.normal(size=(n, 3)), 1)
    X[rng.uniform(size=X.shape) < 0.15] = np.nan
    y = rng.normal(size=n) if n_classes is None else rng.integers(n_classes, size=n)
    weights = rng.uniform(0.5, 2, size=n)
    far = np.vstack([X, np.full((1, 3), 50.0)])
    response = np.append(y, y[0])
    options = {"n_classes": n_classes, "min_samples_leaf": 3, "max_depth": 3}
    once = np.ones((1, n + 1))
    without = np.append(np.ones(n), 0.0)
    _, even = grow(far, response, without, weights=np.append(weights, 1), **options)
    _, uneven = grow(far, response, once, weights=np.append(weights, 1e-14), **options)
    assert_allclose(
        uneven.values[:, : n * ours_outputs(n_classes)],
        even.values[:, : n * ours_outputs(n_classes)],
        rtol=1e-9,
        atol=1e-9,
    )


def ours_outputs(n_classes):
    return n_classes if n_classes and n_classes > 2 else 1


@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("unit", [1e-290, 1e-150, 1e150, 1e290])
def test_the_unit_of_weights_does_not_matter(unit, n_classes, rng):
    X = rng.normal(size=(50, 2))
    y = rng.normal(size=50) if n_classes is None else rng.integers(n_classes, size=50)
    once = np.ones(50)
    _, plain = grow(X, y, once, n_classes=n_classes, min_samples_leaf=4)
    unit_weights = np.full(50, unit)
    _, moved = grow(
        X, y, once, n_classes=n_classes, min_samples_leaf=4, weights=unit_weights
    )
    assert_allclose(moved.values, plain.values, rtol=1e-9, atol=1e-12)
    gains = moved.learners[0].gains / unit
    assert_allclose(gains, plain.learners[0].gains, rtol=1e-9)


def chain(n):
    """Responses whose best split always parts one row from the others."""
    return np.arange(n, dtype=float)[:, None], np.arange(n) % 2 * 1.0


def test_a_chain_of_splits_is_as_deep_as_its_rows(rng):
    X, y = chain(301)
    for order in (np.arange(301), np.arange(301)[::-1], rng.permutation(301)):
        kernel, ours = grow(X[order], y[order], np.ones(301), oob=False)
        assert_allclose(ours.values[0], y[order], atol=1e-12)
        (tree,) = ours.learners
        assert len(tree.nodes) == 601
        assert_allclose(kernel.predict(tree, X)[:, 0], y, atol=1e-12)


DEEP = """
import sys, threading
import numpy as np
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.streams import learner_keys

n = 6_000
X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2 * 1.0
kernel = tree_kernel("tree", X, y, n_classes={n_classes}, weights=None, options={{}})


def work():
    keys, all_rows = learner_keys(1, 0, 1), UnitDraw(np.ones((1, n)))
    for keep in (True, False):
        grown = kernel.grow(all_rows, keys, X[-3:], keep=keep)
        print(np.allclose(grown.values[0], y[-3:]))
    print(len(kernel.grow(all_rows, keys, X[:0], keep=True).learners[0].nodes))


threading.stack_size(256 * 1024)  # the same crash with fewer rows
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("n_classes", [None, 2])
def test_deep_trees_need_no_deep_stack(n_classes):
    command = [sys.executable, "-c", DEEP.format(n_classes=n_classes)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["True", "True", "11999"], answer


def test_a_set_flag_ends_growing_and_predicting():
    X, y = chain(2_000)
    kernel, ours = grow(X, y, np.ones(2_000))
    parent = _engine.Stop()
    child = _engine.Stop(parent)
    (tree,) = ours.learners
    points = np.asfortranarray(np.repeat(X, 5, axis=0))
    out = np.empty((len(points), 1))

    def predict():
        rows = np.ascontiguousarray(points)
        _engine.predict_tree_at(tree.nodes, tree.shares, 0, rows, out, child)

    def grow_again():
        keys = learner_keys(1, 0, 1)
        results = (np.empty((1, 0)), np.zeros((1, 1)), None)
        options = dict(kernel.options)
        grower = _engine.TreeGrower(
            *(kernel.y, keys, points, 0), *results, options, True, child
        )
        grower.grow_on_counts(*kernel.table, np.ones((1, 2_000)))

    predict()
    grow_again()
    parent.set()
    assert child.is_set()
    for work in (predict, grow_again):
        with pytest.raises(RuntimeError, match="called off"):
            work()


def test_sizes_beyond_the_engines_numbers_are_refused_by_name():
    """Arrays of one number, spread over so many rows: nothing is allocated."""
    y = np.broadcast_to(0.0, MOST_ROWS + 1)
    options = {"n_classes": None, "options": {}, "weights": None}
    with pytest.raises(ValueError, match="number of rows must be at most 536870912"):
        tree_kernel("tree", np.broadcast_to(0.0, (MOST_ROWS + 1, 1)), y, **options)
    with pytest.raises(ValueError, match="number of features must be at most"):
        tree_kernel("tree", np.broadcast_to(0.0, (2, 2**31)), y[:2], **options)
    kernel, ours = grow([[1.0], [2.0]], [3.0, 5.0], [[1, 1]])
    far = np.broadcast_to(0.0, (2**31, 1))
    with pytest.raises(ValueError, match="query points must be at most 2147483647"):
        StoredTreeKernel.predict(kernel, ours.learners[0], far)
    with pytest.raises(ValueError, match="query points and rows to predict must"):
        kernel.grow(
            UnitDraw(np.ones((1, 2))),
            learner_keys(1, 0, 1),
            far[1:],
            oob_rows=np.arange(2),
        )
    with pytest.raises(ValueError, match="number of units must be at most"):
        _engine.count_sparse(np.zeros((1, 1), dtype=np.int64), 2**31)


def lemire(key, bound):
    """A whole number below `bound`, in Python's unbounded integers."""
    while True:
        product = mix(key) * bound
        key = (key + 0x9E3779B97F4A7C15) % 2**64
        if product % 2**64 >= 2**64 % bound:
            return product >> 64, key


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_members_are_drawn_as_the_formula_says(n, replace):
    keys = learner_keys(5, 0, 4)
    k = n if not replace else n + 3
    drawn = _engine.draw_members(keys, n, k, replace)
    for row, start in zip(drawn.tolist(), keys.tolist(), strict=True):
        units, key = list(range(n)), start
        for j, found in enumerate(row):
            pick, key = lemire(key, n if replace else n - j)
            if not replace:
                units[j], units[j + pick] = units[j + pick], units[j]
                pick = units[j]
            assert found == pick


def test_rejected_numbers_are_drawn_again():
    """With a bound of 3 * 2**62 a quarter of the numbers is rejected."""
    bound = 3 * 2**61
    drawn = _engine.draw_members(learner_keys(1, 0, 200), bound, 1, True)[:, 0]
    expected = [lemire(key, bound)[0] for key in learner_keys(1, 0, 200).tolist()]
    assert drawn.tolist() == expected


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_products_and_bits_are_those_of_python(a, b):
    """In the compiler's own spelling, and in the one that every compiler has."""
    assert _engine.upper_products(a, b) == ((a * b) >> 64,) * 2
    if a:
        assert _engine.lowest_bits(a) == ((a & -a).bit_length() - 1,) * 2
    for place in range(64):
        assert _engine.lowest_bits(2**place) == (place, place)


def test_a_point_on_the_threshold_goes_left():
    """Both as a query point of a growing tree and through a stored one."""
    data = {"x": [0.0, 1.0, 0.0, 1.0], "y": [2.0, 4.0, 2.0, 4.0]}
    at = {"x": [0.5, np.nextafter(0.5, 1)]}
    res = vs.fit("y ~ x", data, kernel="tree", k=4, B=20, rng=1, at=at)
    both = [set(tree.nodes["value"]) >= {0.5} for tree in res.predictor.learners]
    assert sum(both) > 10
    assert set(map(tuple, res.values[both])) == {(2.0, 4.0)}
    stored = res.predictor.values(np.array([[0.5], [0.6]]))[both]
    assert set(map(tuple, stored)) == {(2.0, 4.0)}


@pytest.mark.parametrize(
    ("low", "high"), [((1, 2), (7, 14)), ((1, 4), (6, 24)), ((1, 9), (2, 18))]
)
def test_splits_that_gain_nothing_are_made_whatever_rounding_says(low, high):
    """Both sides have the shares of the whole: the gain is zero, written -2e-15."""
    x = np.repeat([0.0, 1.0], [sum(low), sum(high)])
    y = np.concatenate([np.repeat([0, 1], counts) for counts in (low, high)])
    forest = vs.ForestClassifier(1, bootstrap=False, random_state=1)
    (tree,) = forest.fit(x[:, None], y).estimators_
    assert tree.nodes.size == 3
    assert_allclose(forest.feature_importances_, 0, atol=1e-9)
