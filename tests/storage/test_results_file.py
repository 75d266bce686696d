import dataclasses
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge
from vstatkit.native._engine import LEVELS_FLAG

import vstatkit as vs
from vstatkit.ensemble import typical_row_effects
from vstatkit.kernels.base import UnitDraw
from vstatkit.kernels.tree import Tree, tree_kernel
from vstatkit.sampling.streams import learner_keys
from vstatkit.storage.atomic_files import read_archive, write_archive
from vstatkit.storage.results_file import known_arrays


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(60, rng=2)
    return frame.assign(
        g=np.tile(list("abc"), 20), kind=np.where(frame["y"] > 14, "hi", "lo")
    )


CASES = [
    ("y ~ x1 + C(g)", {}),
    ("y ~ center(x1) + bs(x2, df=4)", {"kernel": "tree", "design": "balanced"}),
    ("kind ~ x1 + g", {"replace": False}),
    ("g ~ x1 + x2", {"design": "little-bags"}),
    ("g ~ x1 + x2", {"min_samples_leaf": 5}),
    ("y ~ x1 * g", {"kernel": "ols", "k": 1.0}),
    ("kind ~ x3", {"kernel": "logit"}),
    ("y ~ x1", {"design": "two-level", "n_in": 5}),
]


@pytest.mark.parametrize(("formula", "options"), CASES)
def test_loaded_results_are_the_saved_ones(formula, options, data, tmp_path):
    path = tmp_path / "results.npz"
    saved = vs.fit(formula, data, B=40, rng=1, **options)
    saved.save(path)
    loaded = vs.load(path)
    assert str(loaded.summary()) == str(saved.summary())
    assert loaded.params.index.equals(saved.params.index)
    assert_array_equal(
        loaded.get_prediction(data).summary_frame(),
        saved.get_prediction(data).summary_frame(),
    )
    other = saved.variance if saved.design.has_groups else "ij"
    assert_array_equal(loaded.with_variance(other).bse, saved.with_variance(other).bse)


def test_loaded_results_can_be_saved_again(data, tmp_path):
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    vs.fit("y ~ x1", data, B=20, rng=1).save(first)
    vs.load(first).save(second)
    assert_array_equal(vs.load(first).predict(data), vs.load(second).predict(data))


def test_missing_values_travel(data, tmp_path):
    gaps = data.copy()
    gaps.loc[3:6, "x1"] = np.nan
    saved = vs.fit("y ~ x1 + x2", gaps, missing="pass", B=20, rng=1)
    saved.save(tmp_path / "r.npz")
    assert_array_equal(vs.load(tmp_path / "r.npz").predict(gaps), saved.predict(gaps))


def test_a_missing_directory_is_told_before_anything_is_done(tmp_path):
    path = tmp_path / "nodir" / "x.vs"
    with pytest.raises(FileNotFoundError, match=r"no directory .*nodir to write x\.vs"):
        vs.EnsembleResults.save(None, path)
    assert list(tmp_path.iterdir()) == []


def test_statistics_and_arrays_are_saved(data, tmp_path):
    path = tmp_path / "s.npz"
    for saved in (
        vs.statistic("gini", data["y"], k=2, B="complete"),
        vs.from_arrays(np.eye(4) + 1, np.arange(4.0), replace=True),
    ):
        saved.save(path)
        assert str(vs.load(path).summary()) == str(saved.summary())


def test_files_of_the_oldest_layout_are_read(data, tmp_path):
    path = tmp_path / "r.npz"
    saved = vs.fit("y ~ x1", data, B=40, rng=1, variance="corrected")
    saved.save(path)
    document, arrays = read_archive(path, known_arrays())
    assert document["format"] == 10
    document["format"] = 2
    del document["type"], document["kind"], document["info"]["growth"]["atol"]
    del arrays["reference"], arrays["tails"]
    for name in ("aim", "weights", "groups"):
        del document["info"][name]
    del document["predictor"]["levels"], document["errors"]
    del document["predictor"]["centred_at"]
    of_errors = [name for name in arrays if name.startswith(("errors", "spread_"))]
    for name in of_errors:
        del arrays[name]
    write_archive(path, document, arrays)
    old = vs.load(path)
    assert old.out_of_bag_errors is None
    frame = old.get_prediction(data).summary_frame()
    assert frame.attrs["obs_method"] == "residuals"
    assert str(old.summary()) == str(saved.summary())
    assert old.kind.name == "UNKNOWN"
    assert old.with_variance("auto").bse.iloc[0] > 0


def test_a_file_holds_no_pickles(data, tmp_path):
    path = tmp_path / "r.npz"
    vs.fit("y ~ x1 + C(g)", data, B=10, rng=1).save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive)
    assert zipfile.is_zipfile(path)


def test_learners_that_need_pickling_are_left_out_with_a_warning(data, tmp_path):
    saved = vs.fit("y ~ x1", data, kernel=Ridge(), B=10, rng=1)
    with pytest.warns(vs.VstatkitWarning, match="saved without the learners") as seen:
        saved.save(tmp_path / "r.npz")
    assert seen[0].filename == __file__
    loaded = vs.load(tmp_path / "r.npz")
    assert str(loaded.summary()) == str(saved.summary())
    with pytest.raises(ValueError, match="saved without learners"):
        loaded.predict(data)


def test_names_from_the_environment_are_not_saved(data, tmp_path):
    def twice(x):
        return 2 * x

    saved = vs.fit("y ~ twice(x1)", data, B=10, rng=1)
    with pytest.warns(vs.VstatkitWarning, match="there is no function 'twice'"):
        saved.save(tmp_path / "r.npz")


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(vs.VstatkitError, match="does not hold saved results"):
        vs.load(tmp_path / "other.npz")


def test_dates_intervals_and_tuples_travel(data, tmp_path):
    path = tmp_path / "r.npz"
    cut = data.assign(c=pd.cut(data["x2"], 3))
    saved = vs.fit("y ~ x1 + c", cut, B=10, rng=1)
    saved.save(path)
    loaded = vs.load(path)
    assert_array_equal(loaded.predict(cut), saved.predict(cut))
    at = data.head(2).set_axis(pd.date_range("2020-01-01", periods=2))
    dated = vs.fit("g ~ x1", data, B=10, rng=1, at=at)
    dated.save(path)
    assert vs.load(path).params.index.equals(dated.params.index)


def test_numpy_integers_as_options_are_saved(data, tmp_path):
    options = {"design": "balanced", "block": np.int64(25), "B": np.int64(50)}
    vs.fit("y ~ x1", data, rng=np.int64(3), **options).save(tmp_path / "r.npz")
    assert vs.load(tmp_path / "r.npz").design.block == 25


def test_labels_of_other_kinds_say_that_they_cannot_be_saved(data, tmp_path):
    at = data.head(1).set_axis([frozenset({1})])
    res = vs.fit("y ~ x1", data, B=10, rng=1, at=at)
    with pytest.raises(vs.VstatkitError, match="to be saved; got frozenset"):
        res.save(tmp_path / "r.npz")


def test_a_text_file_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not results")
    with pytest.raises(vs.VstatkitError, match="does not hold saved results"):
        vs.load(path)


def again(results, path):
    results.save(path)
    return vs.load(path)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_order_of_levels_travels(ordered, data, tmp_path):
    levels = pd.Categorical(data["g"], ["c", "a", "b", "none"], ordered=ordered)
    saved = vs.fit("y ~ x1 + k", data.assign(k=levels), B=10, rng=1)
    loaded = again(saved, tmp_path / "r.npz")
    kind = loaded.predictor.coding.recipe.frame["k"].dtype
    assert kind.ordered is ordered
    assert list(kind.categories) == ["c", "a", "b", "none"]
    assert loaded.typical["k"].dtype == saved.typical["k"].dtype


def test_what_has_no_effect_travels(tmp_path):
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 9, size=80)
    frame = pd.DataFrame({"low": low, "high": low + rng.uniform(0.1, 1, size=80)})
    frame = frame.assign(y=rng.normal(size=80), z=rng.normal(size=80))
    with np.errstate(invalid="ignore"):
        saved = vs.fit("y ~ np.log(high - low) + z", frame, B=20, rng=1)
        loaded = again(saved, tmp_path / "r.npz")
    assert loaded.effect_values.left_out == ("high", "low")
    assert_array_equal(loaded.effect_values.values, saved.effect_values.values)
    pd.testing.assert_frame_equal(loaded.effects, saved.effects)


def test_groups_of_learners_travel(tmp_path):
    rng = np.random.default_rng(1)
    counts = rng.multinomial(5, np.full(9, 1 / 9), size=12)
    groups = np.array([3, 1, 1, 3, 0, 2, 2, 0, 5, 4, 4, 5])
    options = {"variance": "little_bags", "groups": groups}
    saved = vs.from_arrays(counts, rng.normal(size=12), replace=True, **options)
    loaded = again(saved, tmp_path / "r.npz")
    assert_array_equal(loaded.design.labels, pd.factorize(groups)[0])
    assert_array_equal(loaded.design.table, counts)
    assert loaded.bse.item() == saved.bse.item()


def test_hypothesised_values_travel(data, tmp_path):
    saved = vs.fit("y ~ x1 + x2", data, kernel="ols", B=20, rng=1).t_test("x1 = 2")
    loaded = again(saved, tmp_path / "r.npz")
    assert_array_equal(loaded.null, [2.0])
    assert loaded.pvalues.item() == saved.pvalues.item()


def test_the_number_of_predictors_not_moved_travels(data, tmp_path, monkeypatch):
    monkeypatch.setattr(typical_row_effects, "MAX_ENTRIES", 2)
    saved = vs.fit("y ~ x1 + x2 + x3", data, B=10, rng=1)
    assert again(saved, tmp_path / "r.npz").effect_values.n_beyond == 2


def test_everything_in_the_header_travels(data, tmp_path):
    frame = data.assign(x9=np.where(np.arange(60) < 3, np.nan, data["x1"]))
    frame["g"] = pd.Categorical(frame["g"], ["a", "b", "c", "none"])
    saved = vs.fit("g ~ x1 + x9", frame, B=10, rng=1, groups=np.arange(60) // 2)
    loaded = again(saved, tmp_path / "r.npz")
    for name in (f.name for f in dataclasses.fields(saved.info) if f.name != "typical"):
        assert getattr(loaded.info, name) == getattr(saved.info, name), name
    pd.testing.assert_frame_equal(loaded.typical, saved.typical)
    assert loaded.info.unused_levels == ("none",)
    assert loaded.info.n_dropped == 3
    assert loaded.design == saved.design
    assert loaded.units.equals(saved.units)
    assert loaded.predictor.classes == ("a", "b", "c")
    assert loaded.scores.table == saved.scores.table
    assert_array_equal(loaded.scores.residuals, saved.scores.residuals)


def test_formulas_that_take_columns_out_are_saved_with_their_learners(data, tmp_path):
    saved = vs.fit("y ~ . - g - kind", data, B=10, rng=1)
    loaded = again(saved, tmp_path / "r.npz")
    assert_array_equal(loaded.predict(data), saved.predict(data))


@pytest.fixture
def factor_results(data):
    """Results whose trees split an unordered factor, which `x1` has become."""
    saved = vs.fit("y ~ x1 + x2", data.assign(x1=np.arange(60) % 7), B=12, rng=1)
    X = np.column_stack([np.arange(60) % 7, data["x2"]]).astype(float)
    y = data["y"].to_numpy()
    kernel = tree_kernel(
        "tree", X, y, n_classes=None, weights=None, options={}, levels=[7, 0]
    )
    grown = kernel.grow(
        UnitDraw(np.ones((12, 60))), learner_keys(1, 0, 12), X[:0], keep=True
    )
    predictor = dataclasses.replace(
        saved.predictor, kernel=kernel, learners=grown.learners
    )
    return dataclasses.replace(saved, predictor=predictor), X


def test_levels_travel(factor_results, tmp_path):
    saved, X = factor_results
    path = tmp_path / "r.npz"
    saved.save(path)
    loaded = vs.load(path).predictor
    assert loaded.kernel.levels == (7, 0)
    assert_array_equal(loaded.values(X), saved.predictor.values(X))


def _edit(path, change):
    document, arrays = read_archive(path, known_arrays())
    change(document["predictor"], arrays["tree_nodes"])
    write_archive(path, document, arrays)


def _set_first(by_levels, value):
    def change(_, nodes):
        is_split = nodes["feature"] >= 0
        has_flag = (nodes["feature"] & LEVELS_FLAG) > 0
        place = np.flatnonzero(is_split & (has_flag == by_levels))[0]
        nodes["feature"][place] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, _: p.update(levels=None), "a split does not fit its column"),
        (lambda p, _: p.update(levels=[0, 7]), "a split does not fit its column"),
        (lambda p, _: p.update(levels=[7]), "levels and columns differ"),
        (lambda p, _: p.update(levels=[65, 0]), "number of levels that cannot be"),
        (lambda p, _: p.update(levels=[-1, 0]), "number of levels that cannot be"),
        (lambda p, _: p.update(levels=[True, 0]), "number of levels that cannot be"),
        (lambda p, _: p.update(levels="70"), "'levels' is a str"),
        (lambda p, _: p.pop("levels"), "must have the fields"),
        (_set_first(True, 0), "a split does not fit its column"),
        (_set_first(True, LEVELS_FLAG + 1), "a split does not fit its column"),
        (_set_first(True, LEVELS_FLAG + 2), "a split is at no column"),
        (_set_first(False, LEVELS_FLAG), None),
        (_set_first(False, LEVELS_FLAG + 1), "a split does not fit its column"),
        (_set_first(False, 2**31 - 1), "a split is at no column"),
    ],
)
def test_splits_of_levels_are_checked(change, message, factor_results, tmp_path):
    saved, X = factor_results
    path = tmp_path / "r.npz"
    saved.save(path)
    _edit(path, change)
    if message is None:  # any bits are a set of levels
        assert np.isfinite(vs.load(path).predictor.values(X)).all()
        return
    with pytest.raises(vs.FileError, match=message):
        vs.load(path)


OLD = Path(__file__).parents[1] / "data" / "layout_3.npz"
"""Written by the version before layout 4: `vs.fit("g ~ x1 + x2", data, B=8, rng=1,
min_samples_leaf=8)` with `data = vs.datasets.mars(30, rng=2)` and `g` from "abc"."""


def test_a_file_of_layout_3_is_read():
    document, arrays = read_archive(OLD, known_arrays())
    assert document["format"] == 3
    old = vs.load(OLD)
    frame = vs.datasets.mars(30, rng=2).assign(g=np.tile(list("abc"), 10))
    new = vs.fit("g ~ x1 + x2", frame, B=8, rng=1, min_samples_leaf=8)
    assert old.predictor.kernel.levels is None
    trees = [tree.forget_leaf_rows() for tree in new.predictor.learners]
    assert_array_equal(arrays["tree_nodes"], Tree.stack(trees)["tree_nodes"])
    assert_array_equal(
        old.get_prediction(frame).summary_frame(),
        new.get_prediction(frame).summary_frame(),
    )


def test_a_logit_of_zeros_and_ones_is_loaded(tmp_path):
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.normal(size=80), "y": 1.0 * (rng.random(80) < 0.5)})
    res = vs.fit("y ~ x", data, kernel="logit", B=30, rng=1)
    res.save(tmp_path / "logit.vst")
    loaded = vs.load(tmp_path / "logit.vst")
    np.testing.assert_array_equal(loaded.predict(data), res.predict(data))
    assert str(loaded.summary()) == str(res.summary())


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["lo", "hi"]),
        np.array([False, True]),
        np.array([0, 1]),
        np.array([1, 2]),
        pd.Categorical(["lo", "hi"], categories=["lo", "hi"]),
        np.array(["a", "b", "c"]),
    ],
    ids=["text", "bool", "0/1", "1/2", "category", "three"],
)
def test_classes_that_a_forest_names_are_loaded(labels, data, tmp_path):
    X = data[["x1", "x2"]]
    y = pd.Series(labels[np.digitize(data["y"], [12, 16][: len(labels) - 1])])
    res = vs.ForestClassifier(n_estimators=40, random_state=0).fit(X, y).results_
    res.save(tmp_path / "c.vs")
    loaded = vs.load(tmp_path / "c.vs")
    assert loaded.predictor.classes == res.predictor.classes
    assert str(loaded.summary()) == str(res.summary())
    assert_array_equal(loaded.predict(X), res.predict(X))
