"""Variances without a table of units times values equal those with one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import vstatkit as vs
from vstatkit.ensemble import prediction
from vstatkit.inference import estimates as estimating
from vstatkit.inference.normality import influence_normality, moment_tests
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.registry import make_design
from vstatkit.sampling.streams import learner_keys
from vstatkit.variance import higher_orders, large_moments
from vstatkit.variance.higher_orders import pair_chances, sum_pairs
from vstatkit.variance.large_moments import sum_powers
from vstatkit.variance.moments import moments_of, presence_of
from vstatkit.variance.registry import ESTIMATORS
from vstatkit.workers import in_parallel


@pytest.fixture
def case():
    """More values than a block of columns holds, and not a multiple of it."""
    rng = np.random.default_rng(3)
    design = make_design("iid", 40, 12, replace=True, seed=5)
    values = 100 + rng.gamma(1.0, size=(60, 75)) * rng.choice([1e-3, 1, 1e3], 75)
    return design, values


def without_table(monkeypatch):
    monkeypatch.setattr(large_moments, "WIDE_FROM", 0)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("presence", [False, True])
def test_powers_equal_those_of_the_table(case, presence, single, monkeypatch):
    design, values = case
    monkeypatch.setattr(large_moments, "SINGLE_FROM", 0 if single else np.inf)
    N = np.asarray(design.counts(0, 60), dtype=float)
    N = (N > 0).astype(float) if presence else N
    seen = N.sum(axis=0)
    found = sum_powers(
        design, values, lambda a: (1 / (1 + a), a + 0.5), presence=presence
    )
    h = values - values.mean(axis=0)
    t = (N.T @ h) / (1 + seen)[:, None]
    a = (seen + 0.5)[:, None]
    tables = (t**2, t**3, t**4, a * t, (a * t) ** 2, a * t**2)
    for power, table in zip(found.powers, tables, strict=True):
        scale = np.abs(table).sum(axis=0)
        error = np.abs(power - table.sum(axis=0)) / scale
        assert error.max() < (1e-6 if single else 1e-9)
    assert_array_equal(found.appearances, seen)
    assert found.count_squares == (N**2).sum()
    assert_allclose(found.squares, (h**2).sum(axis=0), rtol=1e-12)
    assert_allclose(found.origin, values.mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("k", [3, 45])
def test_units_in_parts_and_units_never_drawn(k, monkeypatch):
    """Three draws of four by few learners leave units out; parts add up."""
    design = make_design("iid", 90, k, replace=False, seed=2)
    values = np.random.default_rng(1).normal(size=(9, 5))
    whole = sum_powers(design, values, large_moments.equal_weights, presence=False)
    assert (whole.appearances == 0).any() == (k == 3)
    monkeypatch.setattr(large_moments, "MOST_DRAWS", 10)
    monkeypatch.setattr(large_moments, "DRAWN_AT_ONCE", 2 * k)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.setattr(large_moments, "COLUMNS_PER_CALL", 2)
    parts = sum_powers(design, values, large_moments.equal_weights, presence=False)
    assert_array_equal(whole.appearances, parts.appearances)
    assert whole.count_squares == parts.count_squares
    assert_allclose(
        np.stack(whole.powers), np.stack(parts.powers), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("replace", [False, True])
def test_every_estimator_gives_the_same(replace, monkeypatch):
    rng = np.random.default_rng(8)
    values = rng.normal(size=(80, 7)) ** 3
    design = make_design("iid", 50, 20, replace=replace, seed=5)
    names = [
        name
        for name, one in ESTIMATORS.items()
        if isinstance(one, estimating.TABLELESS) and one.replace in (None, replace)
    ]
    assert len(names) >= 6
    rho = higher_orders.expected_orders(design, vs.kernels.base.KernelKind.TREES)
    for name in names:
        given = rho if ESTIMATORS[name].beyond else None
        monkeypatch.setattr(large_moments, "WIDE_FROM", 10**9)
        table = estimating.estimate(design, values, name, orders=given)
        without_table(monkeypatch)
        none = estimating.estimate(design, values, name, orders=given)
        held = large_moments.CachedDesign(
            50, 20, replace, 5, sparse.csr_array(design.counts(0, 80))
        )
        again = estimating.estimate(held, values, name, orders=given)
        for one in (none, again):
            assert_allclose(one.bse, table.bse, rtol=1e-9)
            assert_allclose(one.df, table.df, rtol=1e-8)
            assert_allclose(one.components.total, table.components.total, rtol=1e-9)
            assert_allclose(
                one.scaled.concentration, table.scaled.concentration, rtol=1e-8
            )


def test_moments_of_all_fields(case, monkeypatch):
    design, values = case
    for function in (moments_of, presence_of):
        table = function(design, values)
        monkeypatch.setattr(large_moments, "WIDE_FROM", 0)
        none = function(design, values)
        monkeypatch.undo()
        for name in table.__slots__:
            # Cubes cancel: their sum is compared with what it could be.
            scale = table.quartic**0.75 if name == "cubic" else 1.0
            assert_allclose(
                *(getattr(none, name) / scale, getattr(table, name) / scale),
                rtol=1e-9,
                atol=1e-9 if name == "cubic" else 0.0,
                err_msg=name,
            )


def test_designs_with_weights_keep_the_table(monkeypatch):
    without_table(monkeypatch)
    data = np.array([1.0, 2.0, 4.0, 8.0])
    u = vs.statistic("mean", data, k=2, B="complete", replace=True)
    assert u.design.weights(0, u.B) is not None
    assert not large_moments.is_wide(u.design, u.B, 10**9)
    assert u.bse.item() == pytest.approx(np.sqrt(data.var(ddof=1) / 4))


def test_predictions_in_chunks_have_the_same_errors(monkeypatch):
    data = vs.datasets.mars(80, rng=1)
    res = vs.fit("y ~ .", data, k=20, B=60, rng=2)
    forest = vs.ForestRegressor(500, max_samples=20, random_state=1)
    forest.fit(data.drop(columns="y"), data["y"])
    X = data.drop(columns="y")
    table = res.get_prediction(data).summary_frame()
    std = forest.predict(X, return_std=True)[1]
    without_table(monkeypatch)
    monkeypatch.setattr("vstatkit.ensemble.prediction.CHUNK_ENTRIES", 3000)
    monkeypatch.setattr(estimating, "WIDE_VALUES", 600)
    monkeypatch.setattr(estimating, "CHUNK_ENTRIES", 100)
    none = res.get_prediction(data).summary_frame()
    pd.testing.assert_frame_equal(table, none, rtol=1e-9)
    assert_allclose(forest.predict(X, return_std=True)[1], std, rtol=1e-9)


def test_growing_enough_without_a_table(monkeypatch):
    data = vs.datasets.mars(60, rng=1)
    table = vs.fit("y ~ x1 + x4", data, k=10, rng=2)
    without_table(monkeypatch)
    none = vs.fit("y ~ x1 + x4", data, k=10, rng=2)
    assert none.B == table.B
    pd.testing.assert_series_equal(none.bse, table.bse, rtol=1e-9)


@pytest.mark.parametrize("n", [8, 30, 1000])
def test_normality_from_moments(n):
    rng = np.random.default_rng(n)
    x = np.column_stack([rng.normal(size=n), rng.gamma(0.5, size=n), np.ones(n)])
    z = x - x.mean(axis=0)
    found = moment_tests(n, *((z**power).sum(axis=0) for power in (2, 3, 4)))
    for column in range(2):
        omnibus, bera = stats.normaltest(x[:, column]), stats.jarque_bera(x[:, column])
        expected = [
            stats.skew(x[:, column]),
            stats.kurtosis(x[:, column], fisher=False),
            *(omnibus.statistic, omnibus.pvalue, bera.statistic, bera.pvalue),
        ]
        assert_allclose(found.iloc[column], expected, rtol=1e-8)
    assert_array_equal(found.iloc[2], [0, 0, 0, 1, 0, 1])


def test_normality_of_influences_without_a_table(case, monkeypatch):
    design, values = case
    values[:, 3] = 7.0
    table = influence_normality(design, values)
    without_table(monkeypatch)
    pd.testing.assert_frame_equal(influence_normality(design, values), table, rtol=1e-7)


def test_pairs_of_sparse_subsamples(monkeypatch):
    design = make_design("iid", 200, 12, replace=True, seed=5)
    values = np.random.default_rng(1).normal(size=(30, 4))
    chances = pair_chances(200, 12, replace=True)
    counts = design.counts(0, 30)
    dense = higher_orders._indicators(counts)
    monkeypatch.setattr(higher_orders, "DENSE_ENTRIES", 0)
    thin = higher_orders._indicators(counts)
    assert sparse.issparse(thin)
    assert not sparse.issparse(dense)
    for one, other in zip(
        sum_pairs(thin, values, chances), sum_pairs(dense, values, chances), strict=True
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("size", [64, 67, 300])
def test_many_points_are_predicted_as_few(n_classes, size):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 3))
    y = (
        X[:, 0]
        if n_classes is None
        else rng.integers(n_classes, size=150).astype(float)
    )
    kernel = tree_kernel("forest", X, y, n_classes=n_classes, weights=None, options={})
    (tree,) = kernel.grow(
        UnitDraw(np.ones((1, 150))), learner_keys(1, 0, 1), X[:0], keep=True
    ).learners
    points = rng.normal(size=(size, 3))
    points[5] = [np.inf, -np.inf, 0.0]
    few = np.concatenate([kernel.predict(tree, points[[q]]) for q in range(size)])
    assert_array_equal(kernel.predict(tree, points), few)
    points[7, 1] = np.nan
    few = np.concatenate([kernel.predict(tree, points[[q]]) for q in range(size)])
    assert_array_equal(kernel.predict(tree, points), few)


@pytest.fixture
def in_pieces(monkeypatch):
    """Points are predicted and estimated a few at a time."""
    monkeypatch.setattr(prediction, "MANY_ROWS", 100)
    monkeypatch.setattr(prediction, "ROWS_PER_TASK", 7)
    monkeypatch.setattr(prediction, "VALUES_PER_TASK", 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("design", ["iid", "shards"])
def test_pieces_of_points_have_the_same_bits(design, n_jobs, in_pieces):
    data = vs.datasets.mars(120, rng=1)
    options = {"n_shards": 4} if design == "shards" else {"variance": "jackknife"}
    res = vs.fit(
        "y ~ .", data, k=20, B=60, rng=2, design=design, n_jobs=n_jobs, **options
    )
    pieces = res.get_prediction(data)
    # As many values as one call has: all points at once.
    whole = estimating.estimate(
        estimating.cache_counts(res.design, 60, 120),
        res.predictor.values(pieces.X),
        res.variance,
        orders=res.orders,
    )
    assert_array_equal(pieces.estimates.bse, whole.bse)
    assert_array_equal(pieces.estimates.df, whole.df)
    assert_array_equal(pieces.predicted_mean, whole.estimate)


def test_several_outputs_in_pieces(in_pieces, monkeypatch):
    iris = vs.datasets.iris()
    res = vs.fit("species ~ .", iris, k=20, B=60, rng=2, n_jobs=2)
    pieces = res.get_prediction(iris)
    monkeypatch.undo()
    whole = res.get_prediction(iris)
    assert_array_equal(pieces.labels, whole.labels)
    assert_allclose(pieces.se_mean, whole.se_mean, rtol=1e-9)
    assert_array_equal(pieces.predicted_mean, whole.predicted_mean)


@pytest.mark.parametrize(
    ("rows", "most"), [(100, 7), (33, 2), (2048, 2048), (2049, 2048), (100_001, 1000)]
)
def test_pieces_are_of_even_size(rows, most):
    size = prediction.even_size(rows, most)
    pieces = list(prediction.split_rows(rows, size))
    assert [stop for _, stop in pieces[:-1]] == [start for start, _ in pieces[1:]]
    assert pieces[0][0] == 0
    assert pieces[-1][1] == rows
    assert size <= most
    assert len(pieces) >= prediction.TASKS
    assert len(pieces) % 4 in (0, 3)  # rows do not always divide
    assert all(stop - start > 1 for start, stop in pieces)


def test_calls_among_others_take_one_thread(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    allowed = large_moments.threads_allowed

    def within(n_jobs):
        (found,) = in_parallel(lambda: list(alone()), [()], n_jobs=n_jobs)
        return found

    def alone():
        return in_parallel(allowed, [()], n_jobs=1)

    assert allowed() == 3
    assert list(alone()) == [3]
    assert list(in_parallel(allowed, [(), ()], n_jobs=2)) == [1, 1]
    assert within(1) == [3]
    assert within(2) == [1]
