"""Ends, levels and grids are those of the training data, after loading too."""

import pickle

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import vstatkit as vs

pytestmark = pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")

FORMULA = "wage ~ educ + female + tenure + region + age"
NOT_HELD = "The training data are not available"


@pytest.fixture(scope="module")
def wages():
    """Wages with integers, a 0/1 column, a factor, and rows that are dropped."""
    rng = np.random.default_rng(3)
    n = 240
    frame = pd.DataFrame(
        {
            "educ": rng.integers(6, 18, n),
            "female": rng.integers(0, 2, n),
            "tenure": rng.exponential(5, n),
            "age": rng.integers(18, 65, n),
            "region": rng.choice(["ne", "nc", "s", "w"], n),
        }
    )
    frame["wage"] = 0.5 * frame["educ"] - frame["female"] + rng.normal(size=n)
    frame["wage"] += 0.1 * frame["tenure"] + 2 * (frame["region"] == "w")
    frame.loc[frame["tenure"] > 20, "tenure"] = np.nan
    return frame


@pytest.fixture(scope="module")
def res(wages):
    return vs.fit(FORMULA, wages, B=200, rng=1, n_jobs=1)


@pytest.fixture(scope="module", params=["pickle", "file"])
def again(res, request, tmp_path_factory):
    if request.param == "pickle":
        return pickle.loads(pickle.dumps(res))
    path = tmp_path_factory.mktemp("kept") / "kept.zip"
    res.save(path)
    return vs.load(path)


@pytest.fixture(scope="module")
def new(wages):
    """Rows without a level and half of the range, in which `female` is constant."""
    rows = wages[(wages["region"] != "nc") & (wages["educ"] >= 12)].dropna()
    return rows[rows["female"] == 1]


@pytest.mark.parametrize("ask", ["avg_effects", "avg_slopes"])
def test_averages_are_the_same_after_loading(res, again, new, ask):
    before, after = getattr(res, ask)(data=new), getattr(again, ask)(data=new)
    assert_frame_equal(after.frame, before.frame, rtol=1e-9)
    assert after.constant == before.constant == ()
    assert NOT_HELD not in str(after.summary())


def test_ends_are_those_of_the_training_rows(again, wages, new):
    used = wages.dropna()
    found = again.avg_effects(data=new).frame
    ends = used["tenure"].quantile([0.1, 0.9])
    assert np.allclose(found.loc["tenure", ["from", "to"]].astype(float), ends)
    assert found.loc["region", "from"].to_list() == ["nc"] * 3
    assert found.loc["region", "to"].to_list() == ["ne", "s", "w"]
    steps = again.avg_slopes(data=new).frame["step"]
    assert np.isclose(steps["tenure"], used["tenure"].std())


@pytest.mark.parametrize("name", ["tenure", "educ", "region"])
def test_curves_have_the_same_grid_after_loading(res, again, new, name):
    before, after = (one.partial_dependence(name, data=new) for one in (res, again))
    assert_frame_equal(after.grid, before.grid)
    assert np.allclose(after.params, before.params, rtol=1e-9)


def twice(x):
    return 2 * x


@pytest.mark.parametrize("right", ["twice(tenure) + region", "bs(tenure, df=4) + age"])
def test_pickles_of_transformed_predictors_have_the_same_ends(wages, new, right):
    """`tenure` is missing in rows that were dropped."""
    before = vs.fit(f"wage ~ {right}", wages, B=60, rng=1, n_jobs=1)
    assert before.info.n_dropped > 0
    after = pickle.loads(pickle.dumps(before))
    for ask in ("avg_effects", "avg_slopes"):
        one, other = (getattr(each, ask)(data=new).frame for each in (before, after))
        assert_frame_equal(other, one, rtol=1e-9)


@pytest.mark.parametrize("missing", ["drop", "pass"])
def test_missing_responses_and_predictors_are_left_out_alike(wages, missing, tmp_path):
    data = wages.assign(wage=wages["wage"].where(wages["educ"] < 17))
    before = vs.fit(FORMULA, data, B=60, rng=1, n_jobs=1, missing=missing)
    before.save(tmp_path / "kept.zip")
    after, rows = vs.load(tmp_path / "kept.zip"), data[data["age"] > 40].dropna()
    for ask in ("avg_effects", "avg_slopes"):
        one, other = (getattr(each, ask)(data=rows).frame for each in (before, after))
        assert_frame_equal(other, one, rtol=1e-9)


def test_forests_of_arrays_have_the_same_ends_after_pickling(wages):
    used = wages.dropna()
    X = used[["educ", "female", "tenure"]]
    forest = vs.ForestRegressor(60, random_state=1).fit(X, used["wage"])
    before = forest.results_
    after = pickle.loads(pickle.dumps(before))
    new = X[X["educ"] >= 12]
    for ask in ("avg_effects", "avg_slopes"):
        one, other = (getattr(each, ask)(data=new).frame for each in (before, after))
        assert_frame_equal(other, one, rtol=1e-9)


def test_fits_to_data_on_disk_have_the_ends_of_their_effects(wages, new, tmp_path):
    path = tmp_path / "wages.csv"
    wages.to_csv(path, index=False)
    res = vs.fit(FORMULA, path, B=60, rng=1, n_jobs=1)
    moves = res.effects[["from", "to"]]
    found = res.avg_effects(data=new)
    assert found.frame[["from", "to"]].to_numpy().tolist() == moves.to_numpy().tolist()
    assert NOT_HELD not in str(found.summary())
    slopes = res.avg_slopes(data=new)
    text = " ".join(str(slopes.summary()).split())
    assert f"{NOT_HELD}: the steps and ends of slopes are those of the rows" in text
    assert slopes.frame.loc["region", "from"].to_list() == ["nc"] * 3
    curve = res.partial_dependence("region", data=new)
    assert curve.grid["region"].to_list() == ["nc", "ne", "s", "w"]
    assert curve.notes == ()
    assert NOT_HELD in res.partial_dependence("tenure", data=new).notes[0]
