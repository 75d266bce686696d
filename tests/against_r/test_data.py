"""Data frames between pandas and R."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

import r_bridge
from r_bridge.convert import from_r_frame, to_r_frame

pytestmark = pytest.mark.r

FRAME = pd.DataFrame(
    {
        "my x": [1.5, np.nan, 3.0],
        "größe": pd.Categorical(["a", "b", None], ["b", "a", "unused"], ordered=True),
        "plain": pd.Categorical(["u", "v", "u"]),
        "day": pd.to_datetime(["2020-01-01", None, "1950-03-04"]),
        "text": ["ä", None, "c"],
        "flag": [True, False, True],
        "maybe": pd.array([True, None, False], "boolean"),
        "when": pd.to_datetime(
            ["2020-07-01 12:00:01.5", None, "1950-03-04 00:00:00.0"]
        ).tz_localize("Europe/Berlin"),
    }
)


def test_a_frame_goes_to_r_and_comes_back(session):
    back = from_r_frame(to_r_frame(FRAME))
    assert_frame_equal(back, FRAME, check_dtype=False)
    assert back["größe"].cat.ordered
    assert list(back["größe"].cat.categories) == ["b", "a", "unused"]
    assert not back["plain"].cat.ordered
    assert back["flag"].dtype == bool
    assert str(back["when"].dt.tz) == "Europe/Berlin"


def test_r_sees_its_own_kinds_of_columns(session):
    frame = to_r_frame(FRAME)
    kinds = session.call("function(d) sapply(d, function(x) class(x)[1])", frame)
    expected = "numeric ordered factor Date character logical logical POSIXct"
    assert " ".join(kinds) == expected
    missing = session.call("function(d) sapply(d, function(x) sum(is.na(x)))", frame)
    assert_array_equal(missing, [1, 1, 0, 1, 1, 0, 1, 1])
    assert not session.call("function(d) is.nan(d[['my x']][2])", frame)[0]


def test_a_frame_without_rows_keeps_its_columns(session):
    back = from_r_frame(to_r_frame(FRAME.iloc[:0]))
    assert list(back.columns) == list(FRAME.columns)
    assert len(back) == 0


def test_boston(random_forest):
    boston = r_bridge.dataset("MASS", "Boston")
    assert boston.shape == (506, 14)
    assert boston.loc[0, "medv"] == 24.0
    assert boston["chas"].dtype == np.int64
    assert isinstance(boston.index, pd.RangeIndex)


def test_factors_names_and_missing_values_of_rs_data_sets(session):
    iris = r_bridge.dataset("datasets", "iris")
    assert list(iris["Species"].cat.categories) == ["setosa", "versicolor", "virginica"]
    cars = r_bridge.dataset("datasets", "mtcars")
    assert cars.loc["Mazda RX4", "mpg"] == 21.0
    air = r_bridge.dataset("datasets", "airquality")
    assert air["Ozone"].isna().sum() == 37
    assert r_bridge.dataset("datasets", "esoph")["agegp"].cat.ordered


def test_data_sets_that_are_not_there(session):
    with pytest.raises(r_bridge.RError, match="did you mean 'iris'"):
        r_bridge.dataset("datasets", "irris")
    with pytest.raises(r_bridge.RError, match=r"install\.packages\('nosuch'\)"):
        r_bridge.dataset("nosuch", "x")


@pytest.mark.parametrize(
    ("name", "shape", "column"),
    [
        ("beaver1", (114, 4), "temp"),
        ("state.x77", (50, 8), "Income"),
        ("state.abb", (50, 1), "state.abb"),
        ("state.region", (50, 1), "state.region"),
        ("AirPassengers", (144, 1), "AirPassengers"),
    ],
)
def test_data_sets_that_share_a_file(session, name, shape, column):
    data = r_bridge.dataset("datasets", name)
    assert data.shape == shape
    assert column in data.columns


def test_data_sets_of_survival_share_a_file(session):
    if not session.call("function() nzchar(system.file(package = 'survival'))")[0]:
        pytest.skip("not installed: survival")
    assert r_bridge.dataset("survival", "lung").shape == (228, 10)
    assert r_bridge.dataset("survival", "bladder1")["id"].notna().all()


def test_names_of_data_sets_are_text(session):
    with pytest.raises(TypeError, match="`name` must be text; got 3"):
        r_bridge.dataset("MASS", 3)
    with pytest.raises(TypeError, match="`package` must be text; got None"):
        r_bridge.dataset(None, "Boston")


def test_columns_that_have_no_place_here(session):
    frame = session.keep(
        "function() { d <- data.frame(a = 1:2); d$b <- list(1, 2); d }"
    )
    with pytest.raises(TypeError, match="column 'b' has R's class 'list'"):
        from_r_frame(frame)


def test_rs_own_data_sets_need_no_package(session):
    cars = r_bridge.dataset("mtcars")
    assert_frame_equal(cars, r_bridge.dataset("datasets", "mtcars"))
    assert cars.loc["Fiat 128", "mpg"] == 32.4
    whole = r_bridge.dataset("MASS::Boston")
    assert_frame_equal(whole, r_bridge.dataset("MASS", "Boston"))
    with pytest.raises(
        r_bridge.RError, match=r"did you mean 'mtcars'.*dataset\('MASS'"
    ):
        r_bridge.dataset("mtcar")
    with pytest.raises(TypeError, match="`package` must be text; got 3"):
        r_bridge.dataset(3)
    with pytest.raises(TypeError, match="`name` must be text; got 3"):
        r_bridge.dataset("MASS", 3)
