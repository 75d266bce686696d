"""Trees grown from their own rows, and other learners by rows, are the same."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LinearRegression

import vstatkit as vs
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.kernels import tree
from vstatkit.kernels.base import UnitDraw, UnitRows, fit_drawn
from vstatkit.kernels.linear import LinearKernel
from vstatkit.kernels.tree import tree_kernel
from vstatkit.kernels.user_defined import EstimatorKernel
from vstatkit.sampling.registry import make_design
from vstatkit.sampling.streams import learner_keys

N = 400


def features(rng, *, ties, missing, levels):
    X = rng.normal(size=(N, 5))
    if ties:
        X[:, :3] = np.round(X[:, :3])
        X[rng.random(X.shape) < 0.05] = -0.0
    if levels:
        X[:, 4] = rng.integers(7, size=N)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def responses(rng, criterion, n_classes):
    if n_classes:
        return rng.integers(n_classes, size=N).astype(float)
    return (
        rng.poisson(3, N).astype(float)
        if criterion == "poisson"
        else rng.normal(size=N)
    )


def both_ways(kernel, drawn, monkeypatch, **how):
    """Grow by counts of all rows, and from the subsamples' own rows."""
    keys = learner_keys(3, 0, drawn.counts.shape[0])
    grown = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(tree, "OWN_ROWS_FROM", 0)
        monkeypatch.setattr(tree, "OWN_ROWS_BELOW", share)
        assert kernel._ranks_own_rows(drawn) == (share > 0)
        grown.append(kernel.grow(drawn, keys, **how))
    return grown


def assert_same(dense, own):
    assert_array_equal(dense.values, own.values)
    for one, other in zip(dense.learners, own.learners, strict=True):
        assert one.nodes.tobytes() == other.nodes.tobytes()
        assert one.shares.tobytes() == other.shares.tobytes()
        assert one.gains.tobytes() == other.gains.tobytes()
    assert (dense.oob is None) == (own.oob is None)
    if dense.oob is not None:
        assert_array_equal(dense.oob.total, own.oob.total)
        assert_array_equal(dense.oob.times, own.oob.times)


CASES = [
    (criterion, n_classes)
    for criterion, n_classes in [
        ("squared_error", None),
        ("absolute_error", None),
        ("poisson", None),
        (None, 2),
        (None, 4),
    ]
]
FLAGS = list(itertools.product([False, True], repeat=4))


@pytest.mark.parametrize(("criterion", "n_classes"), CASES)
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("honest", [False, True])
def test_own_rows_give_the_same_trees(
    criterion, n_classes, splitter, honest, monkeypatch
):
    rng = np.random.default_rng(11)
    for ties, missing, levels, weighted in FLAGS:
        X = features(rng, ties=ties, missing=missing, levels=levels)
        X = np.asfortranarray(X) if weighted else X
        weights = rng.integers(0, 3, N) * rng.random(N) if weighted else None
        kernel = tree_kernel(
            "forest",
            X,
            responses(rng, criterion, n_classes),
            n_classes=n_classes,
            weights=weights,
            options={"criterion": criterion, "splitter": splitter, "honest": honest}
            if n_classes is None
            else {"splitter": splitter, "honest": honest},
            levels=[0, 0, 0, 0, 7] if levels else None,
        )
        design = make_design("iid", N, 35, replace=ties, seed=int(rng.integers(99)))
        rows = np.sort(rng.choice(N, 150, replace=False))
        for keep, oob_rows in [(True, rows), (False, None)]:
            assert_same(
                *both_ways(
                    *(kernel, UnitDraw(design.counts(0, 6)), monkeypatch),
                    **{"at": X[:20], "oob_rows": oob_rows, "keep": keep},
                )
            )


def test_own_rows_of_clusters(monkeypatch):
    rng = np.random.default_rng(5)
    X, codes = rng.normal(size=(N, 3)), rng.integers(60, size=N)
    kernel = tree_kernel(
        "forest", X, rng.normal(size=N), n_classes=None, weights=None, options={}
    )
    design = make_design("iid", 60, 5, replace=True, seed=1)
    drawn = UnitDraw(design.counts(0, 8), codes, UnitRows.of(codes, 60))
    rows = np.arange(N)
    dense, own = both_ways(
        *(kernel, drawn, monkeypatch), at=X[:9], oob_rows=rows, keep=True
    )
    assert_same(dense, own)
    for learner in range(8):
        rows = drawn.rows(learner)
        expected = drawn.row_counts[learner]
        assert_array_equal(rows.rows, np.flatnonzero(expected))
        assert_array_equal(rows.times, expected[rows.rows])


def test_own_rows_on_disk_and_in_steps(monkeypatch, tmp_path):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(N, 4)), rng.normal(size=N)
    path = tmp_path / "X.npy"
    np.save(path, X)
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    design = make_design("iid", N, 20, replace=True, seed=1)
    monkeypatch.setattr(tree, "OWN_ROWS_FROM", 0)
    monkeypatch.setattr(tree, "OWN_ROWS_BELOW", 1.0)
    found = []
    for table in (X, np.load(path, mmap_mode="r"), wide[::2, ::3]):
        kernel = tree_kernel(
            "forest", table, y, n_classes=None, weights=None, options={}
        )
        assert np.shares_memory(kernel.X, table)  # no copy is made
        drawn = UnitDraw(design.counts(0, 4))
        found.append(kernel.grow(drawn, learner_keys(1, 0, 4), X[:5], keep=True))
        assert "_table" not in vars(kernel)  # nor is it ranked
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def test_a_table_on_disk_is_never_ranked(tmp_path):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(N, 4)), rng.normal(size=N)
    np.save(tmp_path / "X.npy", X)
    counts = make_design("iid", N, N // 2, replace=True, seed=1).counts(0, 4)
    assert not sparse.issparse(counts)
    found = []
    for table in (X, np.load(tmp_path / "X.npy", mmap_mode="r")):
        kernel = tree_kernel(
            "forest", table, y, n_classes=None, weights=None, options={}
        )
        keys = learner_keys(1, 0, 4)
        found.append(kernel.grow(UnitDraw(counts), keys, X[:5], keep=True))
    assert_same(*found)
    assert "_table" not in vars(kernel)


def test_values_that_differ_in_their_last_bits_are_ranked(monkeypatch):
    """Upper halves of the bits agree: the lower halves must tell."""
    rng = np.random.default_rng(7)
    steps = rng.permutation(N)
    X = np.column_stack(
        [1 + steps * 2.0**-52, -1 - steps * 2.0**-52, steps * 5e-324, steps // 9]
    )
    X[:40, 2] *= -1
    kernel = tree_kernel(
        "tree", X, rng.normal(size=N), n_classes=None, weights=None, options={}
    )
    design = make_design("iid", N, 40, replace=False, seed=1)
    assert_same(
        *both_ways(kernel, UnitDraw(design.counts(0, 5)), monkeypatch, at=X, keep=True)
    )


def test_subsamples_without_weight_are_refused(monkeypatch):
    X, y = np.arange(N, dtype=float)[:, None], np.arange(N, dtype=float)
    kernel = tree_kernel(
        "tree", X, y, n_classes=None, weights=np.r_[0.0, np.ones(N - 1)], options={}
    )
    counts = sparse.csr_array(([3.0], [0], [0, 1]), shape=(1, N))
    monkeypatch.setattr(tree, "OWN_ROWS_FROM", 0)
    with pytest.raises(ValueError, match="no row of positive weight"):
        kernel.grow(UnitDraw(counts), learner_keys(1, 0, 1), X[:1])


@pytest.mark.parametrize("groups", [False, True])
def test_kernels_by_rows_equal_kernels_by_counts(groups):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    codes = rng.integers(20, size=60) if groups else None
    n = 20 if groups else 60
    design = make_design("iid", n, 12, replace=True, seed=4)
    index = None if codes is None else UnitRows.of(codes, n)
    drawn = UnitDraw(design.counts(0, 4), codes, index)
    kernels = [
        LinearKernel(X, y, False, rng.random(60)),
        EstimatorKernel(LinearRegression(), X, y, None, None),
    ]
    for kernel, learner in itertools.product(kernels, range(4)):
        one = drawn.rows(learner)
        by_rows = fit_drawn(kernel, one, np.random.default_rng(1))
        by_counts = kernel.fit(
            drawn.row_counts[learner].astype(int), np.random.default_rng(1)
        )
        assert_array_equal(kernel.predict(by_rows, X), kernel.predict(by_counts, X))
        assert_array_equal(one.counts, drawn.row_counts[learner])
        assert_array_equal(one.holds(np.arange(60)), one.counts > 0)


@pytest.mark.parametrize(
    "kernel", ["forest", LinearRegression()], ids=["forest", "scikit"]
)
def test_out_of_bag_rows_are_bounded_and_those_of_all(kernel):
    """The rows that are scored have the sums that all rows would have."""
    data = vs.datasets.mars(200, rng=1)
    res = vs.fit("y ~ .", data, kernel=kernel, k=20, B=30, rng=5)
    task = res.recipe.task
    some = Task(*(task.kernel, task.design, task.at, None), keep=False, most_oob=50)
    whole, part = evaluate(task, 0, 30).oob, evaluate(some, 0, 30).oob
    assert whole.rows is None
    assert part.rows.size == 50
    assert (np.diff(part.rows) > 0).all()
    assert_array_equal(part.total, whole.total[part.rows])
    assert_array_equal(part.times, whole.times[part.rows])
    y = data["y"].to_numpy()
    assert_array_equal(part.of(y), y[part.rows])
    assert_array_equal(some.oob_rows(200), part.rows)
    again = Task(*(task.kernel, task.design, task.at, None), keep=False, most_oob=200)
    assert again.oob_rows(200) is None


def test_scores_of_some_rows_and_none(monkeypatch):
    monkeypatch.setattr("vstatkit.ensemble.evaluation.OOB_ROWS", 40)
    monkeypatch.setattr("vstatkit.results.summary_notes.OOB_ROWS", 40)
    monkeypatch.setattr(Task.__init__, "__defaults__", (True, 40, None))
    data = vs.datasets.mars(90, rng=1)
    res = vs.fit("y ~ .", data, B=60, rng=5)
    assert res.scores.n_scored == 40
    note = (
        "Out-of-bag scores rest on 40 of 90 observations; the others were not scored."
    )
    assert any(note in one for one in res.summary().notes)
    grown, whole = res.more(90), vs.fit("y ~ .", data, B=90, rng=5)
    assert grown.scores.n_scored == 40
    assert grown.scores.table == pytest.approx(whole.scores.table)
    residual = data["y"].to_numpy()[res.recipe.oob.rows] - res.recipe.oob.mean[:, 0]
    assert res.scores.table["OOB RMSE"] == pytest.approx(np.sqrt((residual**2).mean()))
    assert_array_equal(res.resid, residual)
    assert_array_equal(res.resid.index, res.recipe.oob.rows)
    none = vs.fit("y ~ .", data, B=60, rng=5, oob=False)
    assert none.scores is None
    assert "OOB" not in str(none.summary())
    pd.testing.assert_series_equal(none.bse, res.bse)
    assert none.more(90).scores is None
    assert "obs_ci_lower" not in none.get_prediction(data.head(2)).summary_frame()
