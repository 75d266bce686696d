"""Learners that are kept, and those that are let go."""

import gc
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from vstatkit.ensemble import evaluation, retention
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.ensemble.retention import Collector, keep_budget, learner_bytes
from vstatkit.sampling.design import CompleteDesign
from vstatkit.variance import higher_orders

NOTE = "The learners were not kept"


@pytest.fixture
def data():
    return vs.datasets.mars(60, rng=3)


def fitted(data, **how):
    return vs.fit("y ~ x1 + x4", data, **{"k": 15, "B": 120, "rng": 4, **how})


def few_compared(monkeypatch, count=30):
    """Only so many learners are compared beyond the first order."""
    monkeypatch.setattr(higher_orders, "MOST_LEARNERS", count)


@pytest.mark.parametrize("kernel", ["forest", "ols", KNeighborsRegressor(2)])
def test_the_numbers_do_not_depend_on_what_is_kept(data, kernel, monkeypatch):
    few_compared(monkeypatch)
    kept = fitted(data, kernel=kernel, keep_learners=True)
    gone = fitted(data, kernel=kernel, keep_learners=False)
    auto = fitted(data, kernel=kernel)
    assert NOTE not in str(kept.summary())
    assert str(auto.summary()) == str(kept.summary())
    assert [len(one.predictor.learners) for one in (kept, auto, gone)] == [120, 120, 30]
    pd.testing.assert_frame_equal(kept.summary_frame(), gone.summary_frame())
    assert kept.orders == gone.orders
    assert kept.scores.table == gone.scores.table
    assert any(NOTE in one for one in gone.summary().notes)
    other = [one.with_variance("jackknife").bse for one in (kept, gone)]
    pd.testing.assert_series_equal(*other)
    for ask in (gone.predict, gone.get_prediction):
        remedy = r"only 30 were kept.*keep_learners=True \(about [\d.]+ [kM]B in all\)"
        with pytest.raises(ValueError, match=remedy):
            ask(data)


@pytest.mark.parametrize("kernel", ["forest", "ols", KNeighborsRegressor(2)])
def test_averages_fit_learners_again_that_were_not_kept(data, kernel, monkeypatch):
    few_compared(monkeypatch)
    kept = fitted(data, kernel=kernel, keep_learners=True)
    gone = fitted(data, kernel=kernel, keep_learners=False)
    names = ["x1", "x4"]
    for se in ("sample", "population"):
        for ask in (
            lambda res, se=se: res.avg_predictions(se=se),
            lambda res, se=se: res.avg_effects(names, se=se),
            lambda res, se=se: res.avg_slopes(names, data=data.head(9) + 0.01, se=se),
            lambda res, se=se: res.partial_dependence(names[0], points=4, se=se),
        ):
            pd.testing.assert_frame_equal(ask(gone).frame, ask(kept).frame)
    lines = [res.accumulated_effects(names[0]).frame for res in (kept, gone)]
    pd.testing.assert_frame_equal(*lines)
    assert len(gone.predictor.learners) == 30


def test_averages_fit_missing_learners_once(data, monkeypatch):
    few_compared(monkeypatch)
    gone = fitted(data, keep_learners=False, progress=False)
    numbers, fit = [], evaluation.fit_learner

    def recorded(task, number):
        numbers.append(number)
        return fit(task, number)

    monkeypatch.setattr(evaluation, "fit_learner", recorded)
    monkeypatch.setattr("vstatkit.ensemble.marginal_averages.STACKED_ROWS", 10)
    gone.avg_effects(se="population")
    assert sorted(numbers) == list(range(30, 120))


def test_auto_lets_go_beyond_its_budget(data, monkeypatch):
    few_compared(monkeypatch)
    whole = fitted(data)
    size = learner_bytes(whole.predictor.learners)
    monkeypatch.setattr(retention, "KEEP_SHARE", 0.0)
    monkeypatch.setattr(retention, "KEEP_BYTES", size)
    assert len(fitted(data).predictor.learners) == 120
    monkeypatch.setattr(retention, "KEEP_BYTES", size - 1)
    said = (
        r"of 120 learners only 30 are kept.*averages over rows refit the learners"
        r".*keep_learners=True, or with at most 1[01]\d learners"
    )
    with pytest.warns(vs.VstatkitWarning, match=said) as seen:
        less = vs.fit("y ~ x1 + x4", data, k=15, B=120, rng=4)
    assert [one.filename for one in seen] == [__file__]
    assert len(less.predictor.learners) == 30
    pd.testing.assert_series_equal(less.bse, whole.bse)
    assert len(fitted(data, keep_learners=True).predictor.learners) == 120


def test_the_budget_follows_the_memory_of_the_machine(data, monkeypatch):
    """Ten thousand trees of 6,100 rows take 2 GB: kept where there are 8 or more."""
    few_compared(monkeypatch)
    disk = SimpleNamespace(free=2**50)
    monkeypatch.setattr(retention.shutil, "disk_usage", lambda _: disk)
    for memory, budget in ((None, 1), (2, 1), (8, 2), (24, 6)):
        there = None if memory is None else memory * 2**30
        monkeypatch.setattr(retention, "available_memory", lambda there=there: there)
        assert keep_budget("auto") == budget * 2**30
    assert keep_budget("auto", 16 * 2**30) == 4 * 2**30
    disk.free = 8 * 2**30  # large trees are moved to a temporary file
    assert keep_budget("auto") == 2 * 2**30
    assert (keep_budget(True), keep_budget(False)) == (None, 0)
    monkeypatch.setattr(retention, "KEEP_BYTES", 1)
    assert len(fitted(data).predictor.learners) == 120


@pytest.mark.parametrize("B", ["auto", 200])
def test_learners_let_go_in_several_steps(data, B, monkeypatch):
    """What a first step kept and what a later one exceeds is let go at the end."""
    few_compared(monkeypatch, 300)
    first = fitted(data, keep_learners=False, B=40)
    assert len(first.predictor.learners) == 40  # all of them are compared
    few_compared(monkeypatch)
    first = fitted(data, keep_learners=False, B=40)
    more = first.more(B)
    assert len(more.predictor.learners) == 30
    whole = fitted(data, B=more.B)
    pd.testing.assert_series_equal(more.bse, whole.bse)
    for one, other in zip(
        more.predictor.learners, whole.predictor.learners, strict=False
    ):
        assert one.nodes.tobytes() == other.nodes.tobytes()


def test_saved_without_learners(data, tmp_path, monkeypatch):
    few_compared(monkeypatch)
    gone = fitted(data, keep_learners=False)
    gone.save(tmp_path / "gone.vsk")
    loaded = vs.load(tmp_path / "gone.vsk")
    assert loaded.predictor is None
    pd.testing.assert_frame_equal(loaded.summary_frame(), gone.summary_frame())
    with pytest.raises(ValueError, match="saved without learners"):
        loaded.predict(data)


def test_workers_do_not_make_what_is_let_go(data, monkeypatch):
    few_compared(monkeypatch, 10)
    task = fitted(data).recipe.task
    task = Task(*(task.kernel, task.design, task.at, None), keep=True, keep_bytes=0)
    assert task.keeps(9)
    assert not task.keeps(10)
    assert evaluate(task, 0, 40, batch_size=7).learners != []
    assert len(evaluate(task, 0, 40, batch_size=7).learners) == 10
    assert evaluate(task, 12, 40, batch_size=7).learners == []


def test_a_complete_design_keeps_all():
    keeper = Collector(0, CompleteDesign(5, 2, replace=False, seed=0), 0)
    keeper.add([np.ones(3)] * 10)
    assert len(keeper.learners) == 10


def test_sizes_of_learners():
    assert learner_bytes([np.ones(3), np.ones(4)]) == 56
    assert learner_bytes([]) == 0
    assert learner_bytes([{"a": 1}] * 3) % 3 == 0
    assert learner_bytes([{"a": 1}]) > 0
    assert learner_bytes([lambda: 0]) == 0


def test_other_answers_are_refused(data):
    with pytest.raises(ValueError, match="'auto', True or False; got 'yes'"):
        fitted(data, keep_learners="yes")


def test_rows_of_reference_are_unchanged(data):
    assert_array_equal(
        fitted(data).reference, fitted(data, keep_learners=False).reference
    )


def in_files(results):
    return [
        isinstance(base(tree.nodes), np.memmap) for tree in results.predictor.learners
    ]


def base(array):
    """The array that the memory belongs to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_trees_that_would_fill_the_memory_are_in_a_file(data, monkeypatch, tmp_path):
    whole = fitted(data)
    size = learner_bytes(whole.predictor.learners)
    monkeypatch.setattr(retention, "RESIDENT_BYTES", size // 3)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    filed = fitted(data)
    assert any(in_files(filed))
    assert not any(in_files(whole))
    new = data.head(7)
    expected = whole.get_prediction(new).summary_frame()
    pd.testing.assert_frame_equal(filed.get_prediction(new).summary_frame(), expected)
    read = pickle.loads(pickle.dumps(filed))
    pd.testing.assert_frame_equal(read.get_prediction(new).summary_frame(), expected)
    filed.save(tmp_path / "filed.vst")
    read = vs.load(tmp_path / "filed.vst")
    pd.testing.assert_frame_equal(read.get_prediction(new).summary_frame(), expected)
    assert list(tmp_path.glob("vstatkit-*"))
    del filed
    gc.collect()
    assert not list(tmp_path.glob("vstatkit-*"))
