"""Trends and boosts inside the subsample, against literal versions of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import vstatkit as vs
from tests.oracles import slow_stages
from vstatkit.ensemble import memory
from vstatkit.ensemble.retention import spill_to_disk
from vstatkit.exceptions import FileError
from vstatkit.kernels.base import UnitDraw, UnitRows
from vstatkit.kernels.residual_trees import Stages, with_stages
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.streams import learner_keys
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays

ALL = [
    {"trend": "linear"},
    {"boost": 1},
    {"trend": "linear", "boost": 1},
]
WITH_OPTIONS = [
    *ALL,
    {"trend": "linear", "boost": 1, "honest": True},
    {"trend": "linear", "boost": 1, "max_features": 2, "min_samples_leaf": 2},
]


def named(options):
    return "+".join(options)


def draw(rng, n=40, p=4, L=4, k=28):
    """Data of every kind of row: absent, once, several times."""
    X = rng.uniform(size=(n, p))
    y = 4 * X[:, 0] - 2 * X[:, 1] + np.sin(7 * X[:, 2]) + rng.normal(size=n)
    return X, y, rng.multinomial(k, np.full(n, 1 / n), size=L).astype(np.float64)


def staged(X, y, weights=None, **options):
    how = {"n_classes": None, "weights": weights, "options": options}
    return with_stages(tree_kernel("tree", X, y, **how), options)


def literal(X, y, counts, keys, at, options, *, units=None):  # noqa: PLR0917
    stages = {**options, **Stages.of(options)._asdict()}
    found = [
        slow_stages.learner(X, y, row, key, units=units, **stages)(at)
        for row, key in zip(counts, keys, strict=True)
    ]
    return np.stack(found)


@pytest.mark.parametrize("options", WITH_OPTIONS, ids=named)
def test_learners_are_those_of_the_literal_version(rng, options):
    X, y, counts = draw(rng)
    keys = learner_keys(3, 0, len(counts))
    at = rng.uniform(-0.5, 1.5, size=(25, 4))
    rows = np.arange(len(y))
    found = staged(X, y, **options).grow(
        UnitDraw(counts), keys, at, oob_rows=rows, keep=True
    )
    expected = literal(X, y, counts, keys, at, options)
    assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)
    outside = np.where(counts == 0, literal(X, y, counts, keys, X, options), 0)
    assert_allclose(found.oob.total[:, 0], outside.sum(axis=0), atol=1e-8)
    assert_array_equal(found.oob.times, (counts == 0).sum(axis=0))
    kernel = staged(X, y, **options)
    again = [kernel.predict(one, at)[:, 0] for one in found.learners]
    assert_allclose(again, found.values, rtol=1e-12)


@pytest.mark.parametrize("options", ALL, ids=named)
def test_weights_count(rng, options):
    X, y, counts = draw(rng)
    weights = rng.uniform(0.2, 3, size=len(y))
    keys = learner_keys(4, 0, len(counts))
    found = staged(X, y, weights, **options).grow(UnitDraw(counts), keys, X)
    expected = literal(X, y, counts * weights, keys, X, options)
    assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", ALL, ids=named)
def test_own_rows_give_the_learners_of_the_ranked_table(rng, options, monkeypatch):
    X, y, counts = draw(rng)
    keys = learner_keys(5, 0, len(counts))
    kernel = staged(X, y, **options)
    rows = np.array([1, 7, 20, 39])
    ranked = kernel.grow(UnitDraw(counts), keys, X[:9], oob_rows=rows, keep=True)
    monkeypatch.setattr(type(kernel), "_ranks_own_rows", lambda self, drawn: True)
    own = kernel.grow(UnitDraw(counts), keys, X[:9], oob_rows=rows, keep=True)
    assert_array_equal(own.values, ranked.values)
    assert_array_equal(own.oob.total, ranked.oob.total)
    for one, other in zip(own.learners, ranked.learners, strict=True):
        assert_array_equal(one.nodes, other.nodes)
        assert_array_equal(one.line, other.line)


@pytest.mark.parametrize("few", [False, True])
def test_halves_hold_whole_clusters(rng, few, monkeypatch):
    X, y, _ = draw(rng)
    codes = np.repeat(np.arange(10), 4)
    counts = rng.multinomial(7, np.full(10, 1 / 10), size=3).astype(np.float64)
    keys = learner_keys(6, 0, 3)
    kernel = staged(X, y, boost=1)
    monkeypatch.setattr(type(kernel), "_ranks_own_rows", lambda self, drawn: few)
    drawn = UnitDraw(counts, codes, UnitRows.of(codes, 10))
    found = kernel.grow(drawn, keys, X, oob_rows=None, keep=False)
    options = {"boost": 1}
    expected = literal(X, y, counts[:, codes], keys, X, options, units=codes)
    assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)
    by_rows = literal(X, y, counts[:, codes], keys, X, options)
    assert abs(found.values - by_rows).max() > 0.1


def test_a_trend_takes_missing_values_as_the_mean(rng):
    X, y, counts = draw(rng)
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    keys = learner_keys(7, 0, len(counts))
    options = {"trend": "linear"}
    found = staged(X, y, **options).grow(UnitDraw(counts), keys, X)
    expected = literal(X, y, counts, keys, X, options)
    assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)


def ridge_of(kernel, learner, X):
    """What a learner's trend predicts, in the unit of the response."""
    p = X.shape[1]
    at = np.where(np.isnan(X), 0, X - learner.line[1 : p + 1])
    found = learner.line[0] + at @ learner.line[p + 1 :]
    return kernel.centre + kernel.scale * found


@pytest.mark.parametrize("p", [1, 2, 3, 30, 70])
@pytest.mark.parametrize("noise", [0.1, 1, 30])
def test_ridge_of_few_and_of_many_columns(rng, p, noise):
    X = rng.normal(size=(50, p))
    X[:, p // 2] = 0.1  # says nothing, and 0.1 is no binary fraction
    y = X @ rng.normal(size=p) + noise * rng.normal(size=50)
    counts = rng.multinomial(50, np.full(50, 0.02), size=8).astype(np.float64)
    kernel = staged(X, y, trend="linear")
    found = kernel.grow(UnitDraw(counts), learner_keys(8, 0, 8), X, keep=True)
    for row, learner in zip(counts, found.learners, strict=True):
        kept = np.flatnonzero(row)
        expected = slow_stages.ridge(X[kept], y[kept], row[kept])(X)
        assert_allclose(ridge_of(kernel, learner, X), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("options", ALL, ids=named)
def test_tiny_subsamples(rng, options, k):
    X, y, _ = draw(rng)
    counts = rng.multinomial(k, np.full(40, 1 / 40), size=8).astype(np.float64)
    keys = learner_keys(9, 0, 8)
    found = staged(X, y, **options).grow(UnitDraw(counts), keys, X)
    expected = literal(X, y, counts, keys, X, options)
    assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(120, rng=5)
    frame["cluster"] = np.repeat(np.arange(30), 4)
    frame["w"] = np.random.default_rng(3).uniform(0.5, 2, size=120)
    return frame


FORMULA = "y ~ x1 + x2 + x4"


def frames(results, at):
    return results.get_prediction(at).summary_frame()


@pytest.mark.filterwarnings("ignore::vstatkit.FewUnitsWarning")
@pytest.mark.parametrize("options", ALL, ids=named)
@pytest.mark.parametrize(
    "how",
    [{}, {"groups": "cluster"}, {"weights": "w"}, {"replace": False, "k": 30}],
    ids=["plain", "groups", "weights", "without replacement"],
)
def test_any_number_of_workers_any_batch_and_more_give_the_same(data, options, how):
    at = data.iloc[:5]
    fit = {"rng": 2, "at": at, **options, **how}
    one = vs.fit(FORMULA, data, B=300, n_jobs=1, **fit)
    two = vs.fit(FORMULA, data, B=300, n_jobs=2, **fit)
    grown = vs.fit(FORMULA, data, B=130, n_jobs=1, **fit).more(300)
    for other in (two, grown):
        assert_array_equal(one.values, other.values)
        assert_array_equal(one.bse, other.bse)
        assert one.scores.table == pytest.approx(other.scores.table, rel=1e-12)
    pd.testing.assert_frame_equal(frames(one, at), frames(two, at))
    assert_allclose(frames(one, at)["mean"], one.params, rtol=1e-12)
    assert_allclose(frames(one, at)["mean_se"], one.bse, rtol=1e-9)


@pytest.mark.parametrize("options", ALL, ids=named)
def test_results_come_back_from_a_file_and_a_pickle(data, options, tmp_path):
    res = vs.fit(FORMULA, data, B=60, rng=2, **options)
    res.save(tmp_path / "res.npz")
    loaded, pickled = vs.load(tmp_path / "res.npz"), pickle.loads(pickle.dumps(res))
    at = data.iloc[:7]
    for other in (loaded, pickled):
        pd.testing.assert_frame_equal(frames(other, at), frames(res, at))
    assert str(loaded.summary()) == str(res.summary())


@pytest.mark.parametrize("options", ALL, ids=named)
def test_learners_that_are_not_kept(data, options):
    fit = {"B": 200, "rng": 2, "at": data.iloc[:3], **options}
    kept = vs.fit(FORMULA, data, **fit)
    without = vs.fit(FORMULA, data, keep_learners=False, oob=False, **fit)
    assert_array_equal(kept.values, without.values)


@pytest.mark.parametrize("options", ALL, ids=named)
def test_units_of_measurement_do_not_matter(data, options):
    """Nothing but rounding, which an offset of 1e8 does to the response itself."""
    fit = {"B": 40, "rng": 2, "kernel": "tree", **options}
    at = data.iloc[:6]
    res = vs.fit(FORMULA, data, at=at, **fit)
    larger = data.assign(y=1e150 * data["y"])
    values = vs.fit(FORMULA, larger, at=at, **fit).values
    assert_allclose(values, 1e150 * res.values, rtol=1e-10)
    shifted = data.assign(y=data["y"] + 1e8)
    values = vs.fit(FORMULA, shifted, at=at, **fit).values
    assert_allclose(values - 1e8, res.values, atol=2e-6)
    odd = data.assign(x1=1e180 * data["x1"], x2=2.0**-600 * data["x2"])
    odd["x4"] += 2.0**20
    moved = vs.fit(FORMULA, odd, at=odd.iloc[:6], **fit).values
    assert_allclose(moved, res.values, atol=1e-7)


@pytest.mark.filterwarnings("ignore::vstatkit.ExtrapolationWarning")
def test_a_line_is_found(rng):
    x = rng.uniform(size=(80, 3))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["y"] = 3 + 2 * frame["a"] - 5 * frame["b"]
    at = pd.DataFrame({"a": [0.5, 2.0], "b": [0.5, -1.0], "c": [0.1, 0.9]})
    res = vs.fit("y ~ a + b + c", frame, at=at, trend="linear", B=50, rng=1)
    assert_allclose(res.params, [1.5, 12.0], atol=1e-3)


REFUSED = {
    "classes": ({"formula": "C(x1 > 0.5) ~ x2 + x4", "boost": 1}, "numeric response"),
    "criterion": ({"trend": "linear", "criterion": "absolute_error"}, "squared_error"),
    "trend": ({"trend": "cubic"}, "must be 'linear' or None"),
    "boost": ({"boost": 2}, "`boost` must be 0 or 1; got 2"),
    "kernel": ({"kernel": "ols", "trend": "linear"}, "trend"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(data, case):
    options, message = REFUSED[case]
    options = {"formula": FORMULA, "B": 10, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        vs.fit(data=data, **options)


def test_levels_have_no_slope(data):
    frame = data.assign(g=pd.Categorical(data["cluster"] % 5))
    with pytest.raises(ValueError, match="columns of numbers"):
        vs.fit("y ~ x1 + g", frame, B=5, trend="linear", categorical_splits=True)
    res = vs.fit("y ~ x1 + g", frame, B=30, boost=1, categorical_splits=True, rng=1)
    assert np.isfinite(frames(res, frame.iloc[:4])["mean"]).all()


@pytest.mark.parametrize("options", ALL, ids=named)
def test_the_forest_of_scikit_learns_kind(data, options):
    X, y = data[["x1", "x2", "x4"]], data["y"]
    forest = vs.ForestRegressor(
        400,
        max_samples=47,
        max_features=2,
        random_state=1,
        oob_score=True,
        **options,
    )
    mean, std = forest.fit(X, y).predict(X.head(3), return_std=True)
    res = vs.fit(
        FORMULA,
        data,
        at=data.head(3),
        kernel="tree",
        max_features=2,
        k=47,
        B=400,
        rng=forest.design_.seed,
        **options,
    )
    assert_allclose(mean, res.params, rtol=1e-12)
    assert_allclose(std, res.bse, rtol=1e-9)
    assert forest.oob_score_ == pytest.approx(res.scores.table["OOB R-squared"])
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert forest.get_params()["boost"] == options.get("boost", 0)
    copied = pickle.loads(pickle.dumps(forest))
    assert_array_equal(copied.predict(X), forest.predict(X))


def test_classes_have_no_stages():
    assert not {"trend", "boost"} & set(vs.ForestClassifier().get_params())


@pytest.mark.parametrize("options", ALL, ids=named)
def test_kernels_and_learners_travel(rng, options):
    X, y, counts = draw(rng)
    keys = learner_keys(3, 0, len(counts))
    kernel = staged(X, y, **options)
    sent = pickle.loads(pickle.dumps(kernel))
    here, there = (
        one.grow(UnitDraw(counts), keys, X, keep=True) for one in (kernel, sent)
    )
    assert_array_equal(here.values, there.values)
    moved = spill_to_disk(here.learners)
    for one, other in zip(moved, there.learners, strict=True):
        assert not one.nodes.flags.owndata  # a part of a file
        assert_array_equal(kernel.predict(one, X), sent.predict(other, X))


@pytest.mark.parametrize("options", [{}, *ALL], ids=named)
def test_memory_is_foreseen(options):
    frame = vs.datasets.mars(300, rng=1)
    res = vs.fit("y ~ .", frame, B=40, rng=1, **options)
    kernel = res.recipe.task.kernel
    sizes = [one.nbytes for one in res.predictor.learners]
    expected = memory.learner_bytes(kernel, res.design, 300) - memory.OBJECT_BYTES
    assert expected == pytest.approx(np.mean(sizes), rel=0.05)
    lines = {getattr(one, "line", np.empty(0)).size for one in res.predictor.learners}
    assert lines == {kernel.n_line}


def test_gains_come_back_from_a_file(data, tmp_path):
    res = vs.fit(FORMULA, data, B=10, rng=2, boost=1)
    res.save(tmp_path / "res.npz")
    loaded = vs.load(tmp_path / "res.npz").predictor.learners
    for one, other in zip(loaded, res.predictor.learners, strict=True):
        assert_array_equal(one.gains, other.gains)
        assert_array_equal(one.sizes, other.sizes)


DAMAGES = {
    "lines": lambda arrays: arrays.update(stage_lines=arrays["stage_lines"][:, 1:]),
    "not finite": lambda arrays: arrays["stage_lines"].fill(np.nan),
    "no trees": lambda arrays: arrays["stage_trees"].fill(0),
    "more trees": lambda arrays: arrays["stage_trees"].fill(4),
    "fewer": lambda arrays: arrays.update(stage_trees=arrays["stage_trees"][1:]),
    "sizes": lambda arrays: arrays["tree_sizes"].__iadd__(1),
    "none": lambda arrays: arrays.pop("stage_trees"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_learners_are_refused(data, tmp_path, damage):
    path = tmp_path / "res.npz"
    vs.fit(FORMULA, data, B=5, rng=2, boost=1, trend="linear").save(path)
    document, arrays = read_archive(path, known_arrays())
    arrays = {name: one.copy() for name, one in arrays.items()}
    DAMAGES[damage](arrays)
    write_archive(path, document, arrays)
    with pytest.raises(FileError):
        vs.load(path)
