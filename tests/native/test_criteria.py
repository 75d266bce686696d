"""Criteria, random splits and unordered factors against a literal grower and others."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.tree import DecisionTreeRegressor
from vstatkit.native._engine import LEVELS_FLAG

import vstatkit as vs
from tests.oracles.slow_tree import THRESHOLD, SlowTree, mix, unit_number
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import StoredTreeKernel, tree_kernel
from vstatkit.sampling.streams import learner_keys

UNITS = {"squared_error": 2, "gini": 0, "poisson": 1, "absolute_error": 1}
"""Power of the response's unit that a criterion is measured in."""


def grow(X, y, counts, *, n_classes=None, levels=None, at=None, seed=1, **options):
    """Grow a tree for each row of counts, all features tried by default."""
    oob, keep = options.pop("oob", False), options.pop("keep", True)
    kernel = tree_kernel(
        "tree",
        np.asarray(X, dtype=float),
        np.asarray(y, dtype=float),
        n_classes=n_classes,
        weights=options.pop("weights", None),
        options=options,
        levels=levels,
    )
    counts = np.atleast_2d(counts).astype(float)
    keys = learner_keys(seed, 0, len(counts))
    points = np.asarray(X if at is None else at, dtype=float)
    rows = np.arange(len(kernel.y)) if oob else None
    return kernel, kernel.grow(UnitDraw(counts), keys, points, oob_rows=rows, keep=keep)


def sets_of(nodes):
    """Levels that go left, for every node."""
    masks = nodes["value"].view(np.uint64)
    return [frozenset(j for j in range(64) if int(mask) >> j & 1) for mask in masks]


def leaf_of(kernel, tree, node):
    K = kernel.n_classes
    if K is None:
        return [kernel.centre + kernel.scale * node["value"]]
    return [1 - node["value"], node["value"]]


def assert_same(kernel, fast, slow, criterion):
    assert len(fast.nodes) == len(slow.nodes)
    sets = sets_of(fast.nodes)
    for node, left, expected in zip(fast.nodes, sets, slow.nodes, strict=True):
        if expected[0] == "leaf":
            assert node["feature"] < 0
            leaf = [float(one) for one in expected[1]]
            assert_allclose(leaf_of(kernel, fast, node), leaf, rtol=1e-9, atol=1e-9)
            continue
        feature, cut, *rest = expected
        assert [node["right"] & 1, node["right"] >> 1] == rest
        if isinstance(cut, frozenset):
            assert node["feature"] == feature + LEVELS_FLAG
            assert left == cut
        else:
            assert node["feature"] == feature
            assert_allclose(node["value"], cut, rtol=1e-14)
    gains = [float(slow.gains.get(f, 0)) for f in range(kernel.n_features)]
    unit = kernel.scale ** UNITS[criterion]
    assert_allclose(fast.gains * unit, gains, rtol=1e-8, atol=1e-9)


def example(rng, n_classes, levels):
    """Small data with ties, missing values and rows outside the subsample."""
    n = int(rng.integers(2, 30))
    X = np.column_stack(
        [rng.integers(one or 6, size=n).astype(float) for one in levels]
    )
    if rng.uniform() < 0.4:
        X[rng.uniform(size=X.shape) < 0.25] = np.nan
    y = rng.integers(7, size=n) if rng.uniform() < 0.5 else rng.exponential(size=n)
    if n_classes is not None:
        y = rng.integers(n_classes, size=n)
    weights = rng.integers(0, 3, size=n) * rng.choice([0.5, 1.0, 3.0])
    weights[rng.integers(n)] = 1.0
    return X, y.astype(float), weights


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("levels", [None, [5, 0, 9]])
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("criterion", UNITS)
def test_every_node_is_that_of_the_slow_tree(criterion, splitter, levels, seed):
    rng = np.random.default_rng([seed, list(UNITS).index(criterion)])
    n_classes = 2 if criterion == "gini" else None
    settled_by_rounding = True
    while settled_by_rounding:
        X, y, weights = example(rng, n_classes, levels or [0, 0, 0])
        options = {
            "max_features": int(rng.integers(1, 4)),
            "min_samples_leaf": int(rng.choice([1, 1, 2, 4])),
            "min_samples_split": int(rng.choice([2, 2, 5])),
            "max_depth": [None, None, 3][int(rng.integers(3))],
            "honest": bool(rng.uniform() < 0.4),
            "criterion": criterion,
            "splitter": splitter,
        }
        if criterion == "poisson" and not y.any():
            continue
        kernel, ours = grow(
            X, y, weights, n_classes=n_classes, levels=levels, seed=seed, **options
        )
        exact = [int(one) if n_classes else Fraction(one) for one in y]
        slow = SlowTree(
            *(X.tolist(), exact, [Fraction(w) for w in weights], n_classes),
            levels=levels,
            **options,
        ).grow(int(learner_keys(seed, 0, 1)[0]))
        settled_by_rounding = slow.settled_by_rounding
    assert_same(kernel, ours.learners[0], slow, criterion)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("criterion", ["poisson", "absolute_error"])
def test_trees_are_scikit_learns_where_nothing_ties(criterion, seed):
    """Large leaves and uneven weights: no two splits gain the same."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(60, 250)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    y = rng.exponential(size=n) * np.exp(X[:, 0])
    weights = rng.uniform(0.5, 2, size=n)
    counts = rng.multinomial(n, np.full(n, 1 / n))
    at = rng.normal(size=(100, p)).astype(np.float32).astype(float)
    options = {
        "criterion": criterion,
        "min_samples_leaf": int(rng.choice([6, 9])),
        "max_depth": [None, 3][int(rng.integers(2))],
    }
    _, ours = grow(X, y, counts, at=at, weights=weights, **options)
    theirs = DecisionTreeRegressor(random_state=0, **options)
    rows = counts > 0
    theirs.fit(X[rows], y[rows], sample_weight=(counts * weights)[rows])
    assert_allclose(ours.values[0], theirs.predict(at), rtol=1e-9)


def deviance(y, mean, w):
    w, y, mean = w[w > 0], y[w > 0], mean[w > 0]
    return float((w * (y * np.log(y / mean) - y + mean)).sum())


def absolute(y, middle, w):
    return float((w * np.abs(y - middle)).sum())


@pytest.mark.parametrize(("criterion", "loss"), [("poisson", deviance)])
def test_gains_add_up_to_the_fall_of_the_deviance(criterion, loss):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 3)), rng.exponential(size=80)
    w = rng.uniform(0.5, 2, size=80)
    kernel, ours = grow(X, y, w, criterion=criterion, min_samples_leaf=4)
    before = loss(y, np.full(80, np.average(y, weights=w)), w)
    fall = before - loss(y, ours.values[0], w)
    assert_allclose(ours.learners[0].gains.sum() * kernel.scale, fall, rtol=1e-9)


def test_gains_add_up_to_the_fall_of_the_absolute_error():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(81, 3)), rng.standard_cauchy(size=81)
    kernel, ours = grow(X, y, np.ones(81), criterion="absolute_error", max_depth=4)
    fall = absolute(y, np.median(y), np.ones(81)) - absolute(
        y, ours.values[0], np.ones(81)
    )
    assert_allclose(ours.learners[0].gains.sum() * kernel.scale, fall, rtol=1e-9)


@pytest.mark.parametrize("criterion", ["poisson", "absolute_error"])
def test_one_row_may_outweigh_all_others(criterion):
    """The light rows are split as they would be without it."""
    rng = np.random.default_rng(6)
    x, y = np.arange(40.0), np.repeat([1.0, 3.0, 6.0, 2.0], 10)
    y += rng.uniform(0, 0.1, size=40)
    weights = np.ones(40)
    weights[-1] = 1e14
    options = {"criterion": criterion, "max_depth": 3, "min_samples_leaf": 5}
    _, ours = grow(x[:, None], y, weights, **options)
    expected = np.repeat([y[s : s + 10].mean() for s in (0, 10, 20, 30)], 10)
    assert_allclose(ours.values[0][:30], expected[:30], atol=0.1)


def test_poisson_leaves_always_have_events():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, 2)), (rng.uniform(size=60) < 0.2) * 1.0
    _, ours = grow(X, y, np.ones(60), criterion="poisson")
    assert ours.values.min() > 0
    assert len(ours.learners[0].nodes) > 3


@pytest.mark.parametrize("y", [[-1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
def test_poisson_needs_counts(y):
    with pytest.raises(ValueError, match="never negative and not always zero"):
        grow(np.arange(3.0)[:, None], y, np.ones(3), criterion="poisson")


@pytest.mark.parametrize(
    ("n_classes", "options", "message"),
    [
        (None, {"criterion": "gini"}, "'absolute_error' for a numeric response"),
        (
            2,
            {"criterion": "poisson"},
            "one of 'gini', 'entropy', 'log_loss' for classes; got 'poisson'",
        ),
        (None, {"criterion": 3}, "got 3"),
        (None, {"splitter": "worst"}, "must be 'best' or 'random'; got 'worst'"),
    ],
)
def test_other_names_are_refused(n_classes, options, message):
    with pytest.raises(ValueError, match=message):
        grow([[0.0], [1.0]], [0, 1], np.ones(2), n_classes=n_classes, **options)


def test_medians_stay_in_the_range_of_the_response():
    rng = np.random.default_rng(8)
    y = rng.standard_cauchy(size=200)
    kernel, ours = grow(
        rng.normal(size=(200, 2)), y, np.ones(200), criterion="absolute_error"
    )
    assert y.min() <= ours.values.min() <= ours.values.max() <= y.max()
    assert_allclose(kernel.limit, np.ptp(y) / 2, rtol=1e-12)


# Random splits.


def test_random_thresholds_are_uniform():
    x = np.array([-1.0, 0.0, 0.5, 3.0])[:, None]
    y = np.array([0.0, 1.0, 5.0, 2.0])
    _, ours = grow(x, y, np.ones((4000, 4)), splitter="random", max_depth=1)
    cuts = np.array([tree.nodes["value"][0] for tree in ours.learners])
    assert cuts.min() >= -1
    assert cuts.max() < 3
    # The seed is fixed: this p-value is a number, not a draw.
    assert stats.kstest(cuts, stats.uniform(-1, 4).cdf).pvalue > 0.01
    keys = [mix(mix(int(key))) for key in learner_keys(1, 0, 4000)]
    u = np.array([unit_number(mix(key ^ THRESHOLD)) for key in keys])
    assert_allclose(cuts, -(1 - u) + 3 * u, rtol=1e-13)


def test_the_best_of_the_random_splits_is_taken():
    """All features are tried: the informative one wins whatever its threshold."""
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(300, 5))
    y = 100 * X[:, 3]
    _, ours = grow(X, y, np.ones((20, 300)), splitter="random", max_depth=1)
    taken = [tree.nodes["feature"][0] for tree in ours.learners]
    assert np.mean(np.array(taken) == 3) > 0.9


@pytest.mark.parametrize("x", [[1.0, 1.0, np.nan], [np.nan, 2.0, np.nan]])
def test_random_splits_part_missing_rows_from_equal_ones(x):
    _, ours = grow(
        np.array(x)[:, None], np.isnan(x) * 1.0, np.ones(3), splitter="random"
    )
    assert ours.learners[0].nodes["value"][0] == np.inf
    assert_allclose(ours.values[0], np.isnan(x) * 1.0, atol=1e-12)


# Unordered factors.


def within(y, w, left):
    return sum(
        float((w[s] * (y[s] - np.average(y[s], weights=w[s])) ** 2).sum())
        for s in (left, ~left)
    )


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("two_classes", [False, True])
def test_a_factor_is_split_in_the_best_of_all_ways(two_classes, seed):
    rng = np.random.default_rng(seed)
    L = int(rng.integers(2, 9))
    x = np.concatenate([np.arange(L), rng.integers(L, size=60)]).astype(float)
    y = rng.integers(2, size=x.size) * 1.0 if two_classes else rng.normal(size=x.size)
    w = rng.uniform(0.5, 2, size=x.size)
    options = {"n_classes": 2 if two_classes else None, "max_depth": 1}
    _, ours = grow(x[:, None], y, w, levels=[L], **options)
    best = min(
        within(y, w, np.isin(x, chosen))
        for size in range(1, L)
        for chosen in itertools.combinations(range(L), size)
    )
    left = np.isin(x, list(sets_of(ours.learners[0].nodes)[0]))
    assert_allclose(within(y, w, left), best, rtol=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_several_classes_are_split_along_their_first_component(seed):
    rng = np.random.default_rng(seed)
    L, K, n = 7, 4, 300
    x = np.concatenate([np.arange(L), rng.integers(L, size=n - L)])
    chances = rng.dirichlet(np.full(K, 0.7), size=L)
    y = np.array([rng.choice(K, p=chances[group]) for group in x])
    w = rng.uniform(0.5, 2, size=n)
    _, ours = grow(x[:, None], y, w, levels=[L], n_classes=K, max_depth=1)
    table = np.zeros((L, K))
    np.add.at(table, (x, y), w)
    shares = table / table.sum(axis=1, keepdims=True)
    centred = shares - table.sum(axis=0) / table.sum()
    cov = (centred * table.sum(axis=1, keepdims=True)).T @ centred
    score = centred @ np.linalg.eigh(cov)[1][:, -1]
    order = np.argsort(score)

    def impurity(side):
        total = table[side].sum(axis=0)
        return total.sum() - (total**2).sum() / total.sum()

    cuts = [(order[:j], order[j:]) for j in range(1, L)]
    best = min(impurity(one) + impurity(other) for one, other in cuts)
    chosen = list(sets_of(ours.learners[0].nodes)[0] & set(range(L)))
    rest = [level for level in range(L) if level not in chosen]
    assert_allclose(impurity(chosen) + impurity(rest), best, rtol=1e-9)


@pytest.mark.parametrize("L", [2, 63, 64])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_the_last_levels_have_their_bits(splitter, L):
    x = np.repeat(np.arange(L), 2)
    y = np.where(x == L - 1, 5.0, np.arange(2 * L) % 2)
    options = {"splitter": splitter, "min_samples_leaf": 1}
    kernel, ours = grow(x[:, None], y, np.ones(2 * L), levels=[L], **options)
    own = y.reshape(L, 2).mean(axis=1)
    assert_allclose(ours.values[0], np.repeat(own, 2), atol=1e-12)
    again = kernel.predict(ours.learners[0], x[:, None].astype(float))
    assert_array_equal(again[:, 0], ours.values[0])


def test_levels_that_were_not_seen_follow_the_majority():
    x = np.array([0, 0, 0, 2, 2, 5, 5, 5, 5])
    y = np.where(x == 2, 4.0, 1.0)
    at = np.array([1, 3, 63, 64, -1, np.nan, 1e300, 2])[:, None]
    kernel, ours = grow(x[:, None], y, np.ones(9), levels=[6], at=at)
    assert_allclose(ours.values[0], [1.0] * 7 + [4.0], atol=1e-12)
    stored = StoredTreeKernel(1, None, kernel.centre, kernel.scale, levels=(6,))
    assert_array_equal(stored.predict(ours.learners[0], at)[:, 0], ours.values[0])


@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("honest", [False, True])
def test_paths_trees_and_out_of_bag_rows_agree(honest, splitter, n_classes):
    rng = np.random.default_rng(10)
    X = np.column_stack([rng.integers(20, size=150), rng.normal(size=150)]).astype(
        float
    )
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y = rng.normal(size=150) if n_classes is None else rng.integers(n_classes, size=150)
    counts = rng.multinomial(150, np.full(150, 1 / 150), size=6)
    options = {"honest": honest, "splitter": splitter, "n_classes": n_classes}
    options |= {"levels": [20, 0], "at": X[:9]}
    kernel, whole = grow(X, y, counts, oob=True, **options)
    _, paths = grow(X, y, counts, keep=False, **options)
    assert_array_equal(whole.values, paths.values)
    values = np.stack([kernel.predict(tree, X) for tree in whole.learners])
    assert_array_equal(values[:, :9].reshape(6, -1), whole.values)
    out = counts == 0
    assert_array_equal(whole.oob.times, out.sum(axis=0))
    total = (values * out[:, :, None]).sum(axis=0)
    assert_allclose(whole.oob.total, total, rtol=1e-10, atol=1e-12)
    assert all(tree.gains[0] > 0 for tree in whole.learners)


@pytest.mark.parametrize(
    ("levels", "column", "message"),
    [
        ([65], [0, 1, 2], "whole number from 0 to 64 for each of the 1 columns"),
        ([-1], [0, 1, 2], "whole number from 0 to 64"),
        ([2.0], [0, 1, 2], "whole number from 0 to 64"),
        ([3, 0], [0, 1, 2], "for each of the 1 columns"),
        ([2], [0, 1, 2], "column 0 is a factor .* from 0 to 1, .* got 2"),
        ([3], [0, 0.5, 2], "got 0.5"),
        ([3], [0, -1, 2], "got -1"),
        ([3], [0, np.inf, 2], "got inf"),
    ],
)
def test_columns_that_are_no_factors_are_refused(levels, column, message):
    with pytest.raises(ValueError, match=message):
        grow(np.array(column)[:, None], [1, 2, 3], np.ones(3), levels=levels)


def test_a_column_of_numbers_needs_no_levels():
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    kernel, one = grow(X, y, np.ones(40), levels=[0, 0])
    _, other = grow(X, y, np.ones(40))
    assert kernel.levels is None
    assert_array_equal(one.learners[0].nodes, other.learners[0].nodes)


@pytest.mark.parametrize(
    "options", [{"splitter": "random"}, {"criterion": "absolute_error"}]
)
def test_fit_takes_the_options(options):
    data = vs.datasets.mars(60, rng=2)
    given = vs.fit("y ~ x1 + x2", data, B=60, rng=1, **options)
    default = vs.fit("y ~ x1 + x2", data, B=60, rng=1)
    assert given.predictor is not None
    assert not np.array_equal(given.values, default.values)
    assert (given.bse > 0).all()
