"""`res.more(B)`: the same learners as a fit of B, none grown twice."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from vstatkit.ensemble import evaluation as ensemble
from vstatkit.ensemble import growth


@pytest.fixture(scope="module")
def data():
    frame = vs.datasets.mars(90, rng=4)
    kinds = np.array(["a", "b", "c"])[np.arange(90) % 3]
    return frame.assign(kind=kinds, clinic=np.arange(90) % 30)


def median(frame):
    return {"y": frame["y"].median(), "x1": frame["x1"].median()}


CASES = {
    "forest": (lambda d, B: vs.fit("y ~ x1 + x4", d, B=B, rng=1)),
    "without replacement": (
        lambda d, B: vs.fit("y ~ x1 + x4", d, B=B, rng=1, replace=False, at=d.head(3))
    ),
    "three classes": (lambda d, B: vs.fit("kind ~ x1 + x4", d, B=B, rng=1)),
    "clusters and weights": (
        lambda d, B: vs.fit("y ~ x1", d, B=B, rng=1, groups="clinic", weights="x2")
    ),
    "OLS": (lambda d, B: vs.fit("y ~ x1", d, kernel="ols", B=B, rng=1)),
    "logit": (lambda d, B: vs.fit("y > 14 ~ x1", d, kernel="logit", B=B, rng=1)),
    "scikit-learn": (
        lambda d, B: vs.fit("y ~ x1", d, kernel=KNeighborsRegressor(3), B=B, rng=1)
    ),
    "function": (lambda d, B: vs.fit("y ~ x1", d, kernel=median, B=B, rng=1)),
    "balanced": (
        lambda d, B: vs.fit("y ~ x1", d, B=B, rng=1, design="balanced", block=60)
    ),
    "two-level": (lambda d, B: vs.fit("y ~ x1", d, B=B, rng=1, design="two-level")),
    "little bags": (lambda d, B: vs.fit("y ~ x1", d, B=B, rng=1, design="little-bags")),
    "matched": (
        lambda d, B: vs.fit(
            "y ~ x1", d, B=B, rng=1, design="matched", replace=False, k=20
        )
    ),
    "classical statistic": (
        lambda d, B: vs.statistic("gini", d["y"].to_numpy(), k=5, B=B, rng=1)
    ),
    "own statistic": (lambda d, B: vs.statistic(median, d, k=20, B=B, rng=1)),
}


@pytest.mark.parametrize("case", CASES)
def test_more_is_a_fit_of_that_size(data, case):
    make = CASES[case]
    grown, fitted = make(data, 120).more(200), make(data, 200)
    assert grown.B == 200
    assert_array_equal(grown.values, fitted.values)
    assert_array_equal(grown.bse, fitted.bse)
    assert_array_equal(grown.conf_int(), fitted.conf_int())
    assert grown.design == fitted.design
    assert grown.info.growth == fitted.info.growth
    assert str(grown.summary()) == str(fitted.summary())
    if fitted.effects is not None:
        assert_array_equal(grown.effect_values.values, fitted.effect_values.values)
    if fitted.predictor is not None:
        assert_array_equal(grown.predict(data), fitted.predict(data))
    if fitted.scores is not None:
        # Batches end at other learners, so sums round otherwise.
        assert_allclose(grown.scores.residuals, fitted.scores.residuals, rtol=1e-11)
        for name, value in fitted.scores.table.items():
            assert grown.scores.table[name] == pytest.approx(value, rel=1e-11)


def test_continuing_twice_and_other_workers_change_nothing(data):
    first = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    twice = first.more(150, n_jobs=2).more(260)
    at_once = vs.fit("y ~ x1 + x4", data, B=260, rng=1)
    assert_array_equal(twice.values, at_once.values)
    assert_allclose(twice.scores.residuals, at_once.scores.residuals, rtol=1e-11)
    assert first.B == 100
    assert len(first.predictor.learners) == 100


def test_no_learner_is_grown_twice(data, monkeypatch):
    first = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    ranges = []
    original = ensemble.evaluate

    def watched(task, start, stop, **options):
        ranges.append((start, stop))
        return original(task, start, stop, **options)

    monkeypatch.setattr(growth, "evaluate", watched)
    more = first.more("auto", tol=0.15)
    edges = [start for start, _ in ranges] + [more.B]
    assert edges[0] == 100
    assert ranges == list(itertools.pairwise(edges))


def test_auto_continues_to_the_tolerance(data):
    few = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    enough = few.more("auto", tol=0.15)
    assert enough.B > 100
    assert enough.estimates.relative_mc_error.max() <= 0.15
    fitted = vs.fit("y ~ x1 + x4", data, B=enough.B, rng=1)
    assert_array_equal(enough.values, fitted.values)
    assert "was grown until" in " ".join(str(enough.summary()).split())
    assert enough.more("auto").info.growth.tol == 0.15


def test_giving_up_points_at_the_caller(data):
    few = vs.fit("y ~ x1 + x4", data, B=100, rng=1)
    with pytest.warns(vs.MonteCarloWarning, match="stopped at 150 learners") as seen:
        few.more("auto", tol=0.01, max_B=150)
    assert seen[0].filename == __file__


def test_the_variance_in_use_stays(data):
    few = vs.fit("y ~ x1", data, B=100, rng=1).with_variance("jackknife")
    assert few.more(120).variance == "jackknife"


@pytest.mark.parametrize(
    ("B", "options", "message"),
    [
        (
            100,
            {},
            "must exceed the present 100; got 100",
        ),
        (2, {}, "`B` is the total number"),
        ("auto", {"max_B": 100}, "`max_B` is the total number"),
        ("complete", {}, "has every subsample once"),
        ("auto", {"tol": 2.0}, "`tol` must lie strictly between"),
        ("auto", {"atol": -1.0}, "`atol` must be a number of at least 0"),
    ],
)
def test_what_cannot_be_asked(data, B, options, message):
    res = vs.fit("y ~ x1", data, B=100, rng=1)
    with pytest.raises(ValueError, match=message):
        res.more(B, **options)


def test_ensembles_that_cannot_continue(data):
    complete = vs.statistic(
        "gini", data["y"].to_numpy()[:8], k=2, B="complete", replace=False
    )
    with pytest.raises(ValueError, match="has every subsample once"):
        complete.more(100)
    uneven = vs.fit("y ~ x1", data, B=100, rng=1, design="balanced", block=60)
    with pytest.raises(ValueError, match="whole blocks of 60 learners; this one has"):
        uneven.more(180)
    with pytest.raises(ValueError, match="`B` must be"):
        CASES["two-level"](data, 120).more(130)


def test_results_without_training_data_say_so(data, tmp_path):
    res = vs.fit("y ~ x1", data, B=100, rng=17)
    res.save(tmp_path / "r.npz")
    with pytest.raises(ValueError, match=r"no training data.*rng=17"):
        vs.load(tmp_path / "r.npz").more(200)
    counts = np.asarray(res.design.counts(0, 100))
    given = vs.from_arrays(counts, res.values, replace=True)
    with pytest.raises(ValueError, match="fitted elsewhere"):
        given.more(200)


def test_results_of_a_function_can_be_pickled():
    x = np.arange(20.0)
    res = vs.statistic(lambda d: d.mean(), x, k=5, B=50, rng=1)
    again = pickle.loads(pickle.dumps(res))
    assert_array_equal(again.values, res.values)
    with pytest.raises(ValueError, match="a file or a pickle"):
        again.more(100)


def test_the_data_are_held_once(data):
    res = vs.fit("y ~ x1 + x4", data, B=50, rng=1)
    assert res.recipe.task.kernel is res.predictor.kernel
    grown = res.more(80)
    assert grown.predictor.kernel is res.predictor.kernel
    assert all(
        a is b
        for a, b in zip(res.predictor.learners, grown.predictor.learners, strict=False)
    )
