"""Options of the trees that scikit-learn has, too: its trees are the oracle."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from tests.oracles.ensembles import SAME_ALGEBRA
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.residual_trees import with_stages
from vstatkit.kernels.tree import TreeKernel, balance, tree_kernel
from vstatkit.kernels.tree_options import grower_options
from vstatkit.sampling.streams import learner_keys


def kernel_of(X, y, *, n_classes=None, weights=None, **options):
    response = np.asarray(y, dtype=float)
    how = {"n_classes": n_classes, "weights": weights, "options": options}
    return tree_kernel(options.pop("name", "tree"), X, response, **how)


def grow(kernel, counts, at, **options):
    counts = np.atleast_2d(counts)
    return kernel.grow(UnitDraw(counts), learner_keys(1, 0, len(counts)), at, **options)


def drawn_sample(seed, n_classes=None):
    """Rows, responses, counts, weights and points, without ties between features."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(80, 300)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p)).astype(np.float32).astype(float)
    y = rng.normal(size=n) + 2 * X[:, 0] if n_classes is None else None
    if n_classes is not None:
        y = rng.integers(n_classes, size=n)  # classes that can be parted make ties
    counts = rng.multinomial(n, np.full(n, 1 / n))
    at = rng.normal(size=(150, p)).astype(np.float32).astype(float)
    return X, y, counts, rng.uniform(0.5, 2, size=n), at


def shares_of(tree, at, n_classes):
    full = np.zeros((len(at), n_classes))
    full[:, tree.classes_] = tree.predict_proba(at)
    return full[:, 1:] if n_classes == 2 else full


def peer(n_classes, **options):
    if n_classes is None:
        return DecisionTreeRegressor(random_state=0, **options)
    return DecisionTreeClassifier(random_state=0, **options)


def check_against_peer(seed, n_classes, options):
    X, y, counts, weights, at = drawn_sample(seed, n_classes)
    kernel = kernel_of(X, y, n_classes=n_classes, weights=weights, **options)
    ours = grow(kernel, counts, at, keep=True)
    theirs = peer(n_classes, **options).fit(X, y, sample_weight=counts * weights)
    found = ours.values[0].reshape(len(at), -1)
    if n_classes is None:
        assert_allclose(found[:, 0], theirs.predict(at), **SAME_ALGEBRA)
    else:
        expected = shares_of(theirs, at, n_classes)
        assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    leaves = int((ours.learners[0].nodes["feature"] < 0).sum())
    # By rounding, weighted classes of one kind have an entropy there, and are split.
    more = theirs.get_n_leaves() - leaves
    assert more >= 0 if "criterion" in options else more == 0
    assert_array_equal(kernel.predict(ours.learners[0], at).ravel(), ours.values[0])
    return leaves


@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("seed", range(25))
def test_trees_of_few_leaves_are_scikit_learns(seed, n_classes):
    rng = np.random.default_rng(1000 + seed)
    options = {
        "max_leaf_nodes": int(rng.integers(2, 14)),
        "min_samples_leaf": int(rng.choice([6, 9])),
        "max_depth": [None, 3][int(rng.integers(2))],
    }
    assert check_against_peer(seed, n_classes, options) <= options["max_leaf_nodes"]


@pytest.mark.parametrize("criterion", ["poisson", "absolute_error"])
@pytest.mark.parametrize("seed", range(8))
def test_few_leaves_suit_every_criterion(seed, criterion):
    X, y, counts, _, at = drawn_sample(seed)
    y = np.exp(y / 2) if criterion == "poisson" else y
    options = {"criterion": criterion, "max_leaf_nodes": 6, "min_samples_leaf": 7}
    ours = grow(kernel_of(X, y, **options), counts, at)
    theirs = DecisionTreeRegressor(random_state=0, **options)
    theirs.fit(X, y, sample_weight=counts)
    assert_allclose(ours.values[0], theirs.predict(at), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("criterion", ["entropy", "log_loss"])
@pytest.mark.parametrize("seed", range(15))
def test_entropy_trees_are_scikit_learns(seed, criterion, n_classes):
    options = {"criterion": criterion, "min_samples_leaf": 6}
    assert check_against_peer(seed, n_classes, options) > 3


def test_entropy_is_not_gini():
    X, y, counts, _, at = drawn_sample(3, 3)
    found = [
        grow(kernel_of(X, y, n_classes=3, criterion=one, max_depth=4), counts, at)
        for one in ("gini", "entropy")
    ]
    assert not np.array_equal(found[0].values, found[1].values)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_an_entropy_stump_is_the_best_of_all_splits(seed, missing):
    rng = np.random.default_rng(seed)
    x = rng.integers(9, size=40).astype(float)
    x[rng.uniform(size=40) < (0.2 if missing else 0.0)] = np.nan
    y, w = rng.integers(3, size=40), rng.uniform(0.1, 3, size=40)

    def cost(rows):
        sums = np.array([w[rows][y[rows] == c].sum() for c in range(3)])
        known = sums[sums > 0]
        return -(known * np.log(known / known.sum())).sum()

    splits = [
        np.where(np.isnan(x), side, x <= threshold)
        for threshold in np.unique(x[~np.isnan(x)])
        for side in (True, False)
    ]
    best = min(cost(s) + cost(~s) for s in splits if s.any() and not s.all())
    options = {"criterion": "entropy", "max_depth": 1, "n_classes": 3, "weights": w}
    ours = grow(kernel_of(x[:, None], y, **options), np.ones(40), x[:, None])
    _, side = np.unique(ours.values[0].reshape(40, 3), axis=0, return_inverse=True)
    assert_allclose(cost(side == 0) + cost(side == 1), best, rtol=1e-9)


@pytest.mark.parametrize("tiny", [1e-12, 1e-30, 1e-200])
def test_entropy_is_careful_with_tiny_weights(tiny):
    X, y, counts, _, at = drawn_sample(5, 3)
    light = np.where(np.arange(len(y)) % 5 == 0, tiny, 1.0)
    options = {"criterion": "entropy", "n_classes": 3, "max_depth": 2}
    with_light = grow(kernel_of(X, y, weights=light, **options), counts, at)
    without = grow(kernel_of(X, y, **options), counts * (light == 1), at)
    # A threshold lies between neighbours, and light rows are neighbours too.
    alike = np.isclose(with_light.values, without.values, rtol=1e-6, atol=1e-6)
    assert alike.mean() > 0.95


@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_leaves_hold_their_share_of_the_weight_as_scikit_learns_do(
    seed, share, n_classes
):
    options = {"min_weight_fraction_leaf": share, "min_samples_leaf": 5}
    leaves = check_against_peer(seed, n_classes, options)
    assert leaves <= 1 / share


@pytest.mark.parametrize("options", [{}, {"splitter": "random"}, {"honest": True}])
def test_the_share_of_a_leaf_holds_with_missing_values_and_levels(options, rng):
    X = np.column_stack([rng.normal(size=200), rng.integers(6, size=200)])
    X[rng.uniform(size=200) < 0.2, 0] = np.nan
    w, share = rng.uniform(0.1, 2, size=200), 0.15
    how = {"n_classes": None, "weights": w, "levels": [0, 6]}
    given = {"min_weight_fraction_leaf": share, **options}
    kernel = tree_kernel("forest", X, rng.normal(size=200), options=given, **how)
    grown = grow(kernel, np.ones((20, 200)), X, keep=True)
    for tree in grown.learners:
        if "honest" in options:  # the half that splits is not the half that is left
            assert (tree.nodes["feature"] < 0).sum() <= 1 / share
            continue
        _, leaf = np.unique(kernel.leaves(tree, X), return_inverse=True)
        assert np.bincount(leaf, w).min() >= share * w.sum() * (1 - 1e-12)


def test_one_leaf_more_is_one_split_more_where_it_gains_most(rng):
    """The tree of L + 1 leaves splits one leaf of the tree of L leaves."""
    X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
    once = np.ones(150)
    before, gain = None, np.inf
    for leaves in range(2, 12):
        grown = grow(kernel_of(X, y, max_leaf_nodes=leaves), once, X, keep=True)
        places = kernel_of(X, y).leaves(grown.learners[0], X)
        groups = {tuple(np.flatnonzero(places == one)) for one in np.unique(places)}
        assert len(groups) == leaves
        if before is not None:
            (gone,) = before - groups
            new = groups - before
            assert sorted(sum(new, ())) == list(gone)
            fall = sum(((y[list(g)] - y[list(g)].mean()) ** 2).sum() for g in [gone])
            fall -= sum(((y[list(g)] - y[list(g)].mean()) ** 2).sum() for g in new)
            # A split may gain more than the one above it, never more than those
            # that waited beside it and were made first.
            assert fall > 0
            gain = min(gain, fall)
        before = groups


def test_as_many_leaves_as_rows_change_nothing(rng):
    X, y = rng.normal(size=(90, 3)), rng.normal(size=90)
    counts = rng.multinomial(90, np.full(90, 1 / 90), size=15)
    for options in ({}, {"honest": True}, {"name": "forest"}, {"max_depth": 3}):
        how = {"keep": True, "oob_rows": np.arange(90)}
        whole = grow(kernel_of(X, y, **options), counts, X, **how)
        limited = grow(kernel_of(X, y, max_leaf_nodes=90, **options), counts, X, **how)
        for a, b in zip(whole.learners, limited.learners, strict=True):
            assert_array_equal(a.nodes, b.nodes)
            assert_allclose(a.gains, b.gains, **SAME_ALGEBRA)
        assert_array_equal(whole.values, limited.values)
        assert_array_equal(whole.oob.total, limited.oob.total)


@pytest.mark.parametrize("n_classes", [None, 3])
def test_honest_trees_of_few_leaves(n_classes, rng):
    X = rng.normal(size=(200, 3))
    y = rng.normal(size=200) if n_classes is None else np.arange(200) % 3
    counts = rng.multinomial(200, np.full(200, 1 / 200), size=30)
    options = {"honest": True, "max_leaf_nodes": 7, "n_classes": n_classes}
    kernel = kernel_of(X, y, **options)
    whole = grow(kernel, counts, X[:5], keep=True)
    sizes = [int((tree.nodes["feature"] < 0).sum()) for tree in whole.learners]
    assert set(sizes) == {7}  # what is pruned is no leaf, and makes room for another
    part = grow(kernel, counts, X[:5])
    assert_array_equal(whole.values, part.values)


def test_stages_have_few_leaves_too(rng):
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    options = {"max_leaf_nodes": 4, "trend": "linear", "boost": 1}
    kernel = with_stages(kernel_of(X, y, max_leaf_nodes=4), options)
    (learner,) = grow(kernel, np.ones(120), X, keep=True).learners
    assert [int((t.nodes["feature"] < 0).sum()) for t in learner.trees] == [4, 4, 4]
    assert repr(learner) == "<StagedTree: a linear trend and 4 + 4 + 4 leaves>"
    with pytest.raises(ValueError, match="has 3 trees"):
        kernel.leaves(learner, X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_balanced_subsamples_are_scikit_learns(seed, n_classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3)).astype(np.float32).astype(float)
    y = np.minimum(rng.geometric(0.5, size=150) - 1, n_classes - 1)
    rows = rng.integers(150, size=150)
    counts = np.bincount(rows, minlength=150)
    kernel = kernel_of(X, y, n_classes=n_classes, min_samples_leaf=12)
    object.__setattr__(kernel, "balanced", True)
    ours = grow(kernel, counts, X)
    weights = counts * compute_sample_weight("balanced", y, indices=rows)
    theirs = DecisionTreeClassifier(random_state=0, min_samples_leaf=12)
    theirs.fit(X, y, sample_weight=weights)
    found = ours.values[0].reshape(150, -1)
    assert_allclose(found, shares_of(theirs, X, n_classes), rtol=1e-11, atol=1e-11)


def test_balance_is_scikit_learns_and_lacking_classes_count_for_nothing():
    y = np.array([0, 0, 0, 1, 2])
    rows = np.array([0, 1, 1, 3])
    counts = np.bincount(rows, minlength=5)
    expected = compute_sample_weight("balanced", y, indices=rows)
    found = balance(counts[None], y.astype(float))[0, y]
    assert_allclose(found[:4], expected[:4])


def test_balanced_trees_do_not_depend_on_how_counts_are_held(rng, monkeypatch):
    X, y = rng.normal(size=(60, 2)), (rng.uniform(size=60) < 0.2).astype(float)
    counts = rng.multinomial(20, np.full(60, 1 / 60), size=9)
    kernel = kernel_of(X, y, n_classes=2, min_samples_leaf=3)
    object.__setattr__(kernel, "balanced", True)
    keys = learner_keys(1, 0, 9)
    plain = kernel.grow(UnitDraw(counts), keys, X)
    monkeypatch.setattr(TreeKernel, "_ranks_own_rows", lambda kernel, drawn: True)
    drawn = UnitDraw(sparse.csr_array(counts), None, None)
    assert_array_equal(kernel.grow(drawn, keys, X).values, plain.values)


def test_leaves_are_where_predictions_come_from(rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    kernel = kernel_of(X, y, min_samples_leaf=4)
    (tree,) = grow(kernel, np.ones(80), X, keep=True).learners
    leaves = kernel.leaves(tree, X)
    assert (tree.nodes["feature"][leaves] < 0).all()
    read = kernel.centre + kernel.scale * tree.nodes["value"][leaves]
    assert_array_equal(read, kernel.predict(tree, X)[:, 0])
    assert repr(tree) == f"<Tree: {len(np.unique(leaves))} leaves>"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_leaf_nodes": 1}, ValueError, "`max_leaf_nodes` must be at least 2"),
        ({"max_leaf_nodes": 2.0}, TypeError, "`max_leaf_nodes` must be a whole"),
        ({"min_weight_fraction_leaf": 0.6}, ValueError, "between 0 and 0.5; got 0.6"),
        ({"min_weight_fraction_leaf": "x"}, ValueError, "between 0 and 0.5; got 'x'"),
    ],
)
def test_bad_options_say_what_must_hold(options, error, message):
    with pytest.raises(error, match=message):
        grower_options(options, 4)
