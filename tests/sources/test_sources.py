"""Data that are read batch after batch give what the same data in memory give."""

import gc
import gzip
import json
import pickle
import re
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal, assert_index_equal, assert_series_equal
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import vstatkit as vs
from vstatkit.cli import main
from vstatkit.ensemble.typical_row_effects import effect_settings
from vstatkit.exceptions import (
    DataError,
    FileError,
    FormulaError,
    MissingPackageError,
    VstatkitWarning,
)
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import environment_of
from vstatkit.formula.streaming import stored_frame
from vstatkit.formula.streaming.parse import parse_source
from vstatkit.json_values import pack_index, unpack_index
from vstatkit.shell import input_tables
from vstatkit.sources import arrow, csv_files, disk_arrays, recognition, source
from vstatkit.sources.recognition import find_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
pl = pytest.importorskip("polars")

ROWS = 700
READ_CSV = pd.read_csv
SUMMATION_ORDER = {"rtol": 1e-12, "atol": 1e-12}  # a mean of batches, not of all rows


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    """Read batches of 64 rows, so that small data have many."""
    for module in (arrow, source, csv_files):
        monkeypatch.setattr(module, "BATCH_ROWS", 64)


@pytest.fixture(scope="module")
def data():
    """Columns of all kinds; what is rare comes late, and some values are missing."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=ROWS)
    frame = pd.DataFrame(
        {
            "y": rng.normal(size=ROWS) + x,
            "x": x,
            "z": rng.exponential(size=ROWS),
            "count": rng.integers(0, 6, ROWS),
            "small": rng.integers(-3, 4, ROWS).astype(np.int8),
            "single": rng.normal(size=ROWS).astype(np.float32),
            "word": rng.choice(["beta", "alpha", "delta"], ROWS).astype(object),
            "flag": rng.random(ROWS) < 0.4,
            "level": pd.Categorical(
                rng.choice(["low", "high"], ROWS), ["low", "middle", "high"]
            ),
            "grade": pd.Categorical(
                rng.choice(["a", "b", "c"], ROWS), list("cba"), ordered=True
            ),
            "gap": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(size=ROWS)),
            "late": 1.0,
            "pet": rng.choice(["cat", "dog"], ROWS).astype(object),
            "day": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 3, ROWS), unit="D"),
            "not read": "x",
        }
    )
    frame.loc[650, "word"] = "aaa"
    frame.loc[651, ["word", "gap"]] = ["only where a number is missing", np.nan]
    frame.loc[[5, 600], "word"] = None
    frame.loc[640:, "late"] = np.nan
    frame.loc[690, "pet"] = None
    frame["whole"] = (
        frame["count"].astype(float).where(frame.index != 333).astype(object)
    )
    frame["whole"] = pd.array(frame["whole"], dtype="Int64")
    frame["date"] = frame["day"].where(frame.index % 97 != 3)
    return frame


def by_parquet(frame, folder):
    path = folder / "data.parquet"
    frame.to_parquet(path, row_group_size=100)
    return path, pd.read_parquet(path)


def by_folder(frame, folder):
    place = folder / "parts"
    place.mkdir()
    for number, first in enumerate(range(0, len(frame), 250)):
        part = frame.iloc[first : first + 250]
        part.to_parquet(place / f"part-{number}.parquet", index=False)
    return str(place), pd.read_parquet(place)


def by_dataset(frame, folder):
    path, held = by_parquet(frame, folder)
    return ds.dataset(path), held


def by_csv(frame, folder):
    path = folder / "data.csv"
    frame.to_csv(path, index=False)
    return path, pd.read_csv(path)


def by_zipped_csv(frame, folder):
    path = folder / "data.csv.gz"
    frame.to_csv(path, index=False)
    return path, pd.read_csv(path)


def by_dask(frame, folder):
    dask = pytest.importorskip("dask.dataframe")
    made = dask.from_pandas(frame, npartitions=5)
    return made, made.compute()


def by_polars(frame, folder):
    path, _ = by_parquet(frame.drop(columns=["grade"]), folder)
    made = pl.scan_parquet(path)
    return made, made.collect()


SOURCES = [
    by_parquet,
    by_folder,
    by_dataset,
    by_csv,
    by_zipped_csv,
    by_dask,
    by_polars,
]


def both(formula, data, folder, how=by_parquet, **options):
    """Parse the data in memory, and batch after batch."""
    given, held = how(data, folder)
    names = environment_of({"np": np, "doubled": lambda x: 2 * x, "edges": [-0.5, 0.5]})
    options = {"environment": names, "intercept": True, **options}
    wanted = parse(formula, held, **options)
    return wanted, parse_source(formula, find_source(given), **options)[0]


def assert_same(found, wanted, exact=True):
    assert found.names == wanted.names
    assert found.classes == wanted.classes
    assert found.unused_levels == wanted.unused_levels
    assert found.n_dropped == wanted.n_dropped
    assert found.response == wanted.response
    assert_array_equal(found.rows, wanted.rows)
    assert_array_equal(found.levels, wanted.levels)
    assert_array_equal(found.y, wanted.y)
    if exact:
        assert_array_equal(found.X, wanted.X)
    else:
        assert_allclose(found.X, wanted.X, **SUMMATION_ORDER)
    assert found.coding.variables == wanted.coding.variables
    assert found.coding.categorical == wanted.coding.categorical
    assert_frame_equal(found.typical_row, wanted.typical_row)
    assert found.coding.ranges(found.frame) == wanted.coding.ranges(wanted.frame)
    ours, theirs = (
        effect_settings(one.coding, one.frame, one.typical_row)
        for one in (found, wanted)
    )
    assert (ours is None) == (theirs is None)
    if ours is not None and exact:
        assert_frame_equal(ours.frame, theirs.frame)
        assert_array_equal(ours.start, theirs.start)
        assert_array_equal(ours.end, theirs.end)
        assert ours.left_out == theirs.left_out


FORMULAS = [
    "y ~ x",
    "y ~ x + z + count + small + single",
    "y ~ word",
    "y ~ 0 + word + flag + level + grade + x",
    "y ~ x + flag + level + late",
    "y ~ word + gap",
    "y ~ word:x + level*flag",
    "y ~ C(count) + C(word, Sum)",
    "y ~ C(small) + C(whole) + x",
    "y ~ C(level, Treatment('high')) + C(day)",
    "y ~ C(date) + x",
    "y ~ np.log(z) + I(x > 1) + doubled(x)",
    "y ~ np.where(x > 2, 'far', 'near')",
    "np.exp(y) ~ x + whole",
    "level ~ x + word",
    "flag ~ x",
    "pet ~ x + gap",
    "C(count) ~ x",
    "y ~ bs(x, df=5) + word",
    "y ~ bs(x, knots=edges)",
    "y ~ standardize(gap) + x",
    "y ~ poly(z, 3)",
    "y ~ cr(x, df=4)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_design_is_that_of_the_data_in_memory(formula, data, tmp_path):
    wanted, found = both(formula, data, tmp_path)
    assert_same(found, wanted)
    new = data.iloc[10:20]
    assert_array_equal(found.coding.raw_matrix(new), wanted.coding.raw_matrix(new))


@pytest.mark.parametrize("formula", ["y ~ center(gap) + word", "y ~ center(x):flag"])
def test_a_mean_differs_by_the_order_of_summation_alone(formula, data, tmp_path):
    wanted, found = both(formula, data, tmp_path)
    assert_same(found, wanted, exact=False)


@pytest.mark.parametrize("how", SOURCES)
@pytest.mark.parametrize(
    "formula",
    ["y ~ x + count + word + flag + gap", "word ~ C(count) + small + single + late"],
)
def test_every_kind_of_source_gives_the_same_design(how, formula, data, tmp_path):
    wanted, found = both(formula, data, tmp_path, how)
    assert_same(found, wanted)


@pytest.mark.parametrize("formula", ["y ~ gap + x + flag", "pet ~ np.exp(gap) + late"])
def test_missing_numbers_may_pass(formula, data, tmp_path):
    wanted, found = both(formula, data, tmp_path, missing="pass")
    assert_same(found, wanted)
    assert np.isnan(found.X).any()


def test_missing_values_are_refused_alike(data, tmp_path):
    path, held = by_parquet(data, tmp_path)
    for formula, missing in [("y ~ gap", "raise"), ("y ~ word", "pass")]:
        said = []
        for given in (path, held):
            with pytest.raises(FormulaError) as caught:
                vs.fit(formula, given, missing=missing, B=10)
            said.append(str(caught.value))
        assert said[0] == said[1]


@pytest.mark.parametrize(
    "formula", ["y ~ word + x + level + grade", "level ~ . - day - date"]
)
def test_factors_may_stay_whole(formula, data, tmp_path):
    wanted, found = both(formula, data, tmp_path, factors="splits", intercept=False)
    assert found.levels.any()
    assert_same(found, wanted)


FITS = {
    "forest": ("y ~ x + word + flag + gap", {"kernel": "forest"}),
    "classes": ("word ~ x + z + level", {"kernel": "tree"}),
    "splits": ("y ~ x + word + level", {"categorical_splits": True}),
    "ols": ("y ~ x + flag + C(count)", {"kernel": "ols"}),
    "logit": ("flag ~ x + z", {"kernel": "logit", "k": 300}),
    "estimator": ("y ~ x + word", {"kernel": DecisionTreeRegressor(max_depth=3)}),
    "classifier": ("flag ~ x + z", {"kernel": LogisticRegression()}),
}


def assert_same_fit(found, wanted):
    assert_series_equal(found.params, wanted.params, rtol=0)
    assert_series_equal(found.bse, wanted.bse, rtol=0)
    assert_frame_equal(found.typical, wanted.typical)
    assert (found.effects is None) == (wanted.effects is None)
    if found.effects is not None:
        assert_frame_equal(found.effects, wanted.effects, rtol=0)
    assert str(found.summary()) == str(wanted.summary())
    assert_index_equal(found.units, wanted.units, exact=False)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_has_the_same_numbers(name, data, tmp_path):
    formula, options = FITS[name]
    path, held = by_parquet(data, tmp_path)
    found, wanted = (
        vs.fit(formula, one, B=24, rng=5, **options) for one in (path, held)
    )
    assert_same_fit(found, wanted)
    new = data.iloc[10:40].dropna(subset=["gap"])
    assert_frame_equal(
        found.get_prediction(new).summary_frame(),
        wanted.get_prediction(new).summary_frame(),
        rtol=0,
    )


@pytest.mark.parametrize("how", SOURCES)
def test_a_fit_has_the_same_numbers_from_every_source(how, data, tmp_path):
    given, held = how(data, tmp_path)
    found, wanted = (
        vs.fit("y ~ x + word + count", one, B=24, rng=5) for one in (given, held)
    )
    assert_same_fit(found, wanted)
    assert_same_fit(found.more(30), wanted.more(30))


def test_a_dot_is_all_columns_but_those_beside(data, tmp_path):
    some = data[["y", "x", "z", "count", "small"]]
    # The index becomes a column of the file, which is none of the data.
    path, held = by_parquet(some.set_axis(pd.Index(some.index[::-1] ** 2)), tmp_path)
    assert "__index_level_0__" in pq.read_schema(path).names
    held = held.reset_index(drop=True)
    options = {"groups": "count", "weights": "z", "B": 20, "rng": 2, "k": 4}
    found, wanted = (vs.fit("y ~ .", one, **options) for one in (path, held))
    assert list(found.effects.index) == ["x", "small"]
    assert_same_fit(found, wanted)


@pytest.mark.parametrize("groups", ["word", "grade", "small"])
def test_clusters_and_weights_by_name_or_as_arrays(groups, data, tmp_path):
    some = data.dropna(subset=["word"]).reset_index(drop=True)
    path, held = by_parquet(some, tmp_path)
    options = {"B": 20, "rng": 2, "k": 3, "kernel": "tree"}
    wanted = vs.fit("y ~ x + gap", held, groups=groups, weights="z", **options)
    named = vs.fit("y ~ x + gap", path, groups=groups, weights="z", **options)
    arrays = {"groups": held[groups], "weights": held["z"].to_numpy()}
    given = [vs.fit("y ~ x + gap", one, **arrays, **options) for one in (path, held)]
    assert_same_fit(named, wanted)
    assert_same_fit(*given)


def test_columns_beside_are_checked(data, tmp_path):
    path, _ = by_parquet(data, tmp_path)
    with pytest.raises(ValueError, match=r"`groups` names no column.*did you mean"):
        vs.fit("y ~ x", path, groups="wrod", B=10)
    with pytest.raises(ValueError, match=r"for each of the 700 rows"):
        vs.fit("y ~ x", path, weights=np.ones(699), B=10)
    with pytest.raises(ValueError, match=r"`groups` must not have missing"):
        vs.fit("y ~ x", path, groups="word", B=10)


def mean_difference(frame):
    return frame.y[frame.word == "alpha"].mean() - frame.y.mean()


def slope(y, X):
    return np.polyfit(X["x"], y, 1)[0]


@pytest.mark.parametrize("function", [mean_difference, slope])
def test_functions_are_given_the_rows_that_were_drawn(function, data, tmp_path):
    path, held = by_parquet(data, tmp_path)
    found, wanted = (
        vs.fit("y ~ x + word", one, kernel=function, B=20, rng=3)
        for one in (path, held)
    )
    assert_same_fit(found, wanted)


def test_rows_of_a_stored_frame_are_those_of_the_data(data, tmp_path):
    _, found = both("y ~ x + word + flag + level + single + C(day)", data, tmp_path)
    rows = np.array([600, 3, 3, 0])
    names = list(found.data.columns)
    wanted = data.iloc[found.rows[rows]][names]
    assert_frame_equal(found.data.iloc[rows], wanted, check_dtype=False)


class Recorded:
    """A source that notes which columns are asked for."""

    def __init__(self, frame):
        self.frame, self.asked = frame, []
        self.columns, self.n_rows = tuple(frame.columns), len(frame)

    def batches(self, columns):
        self.asked.append(tuple(columns))
        return source.split_batches(self.frame[list(columns)])


@pytest.mark.parametrize(
    ("formula", "passes"),
    [("y ~ x + word", 2), ("y ~ C(word) + x", 3), ("y ~ center(x) + word", 4)],
)
def test_only_named_columns_are_read_and_only_so_often(formula, passes, data):
    recorded = Recorded(data)
    parse_source(formula, recorded, environment=None, intercept=True, beside=("small",))
    assert {frozenset(asked) for asked in recorded.asked} == {
        frozenset(["y", "x", "word", "small"])
    }
    assert len(recorded.asked) == passes


def test_a_column_that_is_taken_out_again_is_not_read(data):
    recorded = Recorded(data[["y", "x", "z", "not read"]])
    parse_source("y ~ . - Q('not read')", recorded, environment=None, intercept=True)
    assert {frozenset(asked) for asked in recorded.asked} == {frozenset("yxz")}


def test_files_are_removed_with_the_results(data, tmp_path, monkeypatch):
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    path, _ = by_parquet(data, tmp_path)
    results = vs.fit("y ~ x + flag", path, kernel="ols", B=20, rng=1)
    assert isinstance(results.recipe.task.kernel.X.base, np.memmap)
    assert list(room.iterdir())
    results.more(25)
    del results
    gc.collect()
    assert not list(room.iterdir())
    with pytest.raises(FormulaError, match="finite"):
        vs.fit("y ~ I(1 / (x - x))", path, B=20)
    gc.collect()
    assert not list(room.iterdir())


def test_a_disk_without_room_is_refused_before_anything_is_written(
    data, tmp_path, monkeypatch
):
    path, _ = by_parquet(data, tmp_path)
    usage = type("Usage", (), {"free": 700 * 3 * 8})
    monkeypatch.setattr(disk_arrays.shutil, "disk_usage", lambda place: usage)
    with pytest.raises(DataError, match=r"take 0\.0 GB on disk.*TMPDIR"):
        vs.fit("y ~ x", path, kernel="ols", B=10)


def parquet_of(tables, path):
    with pq.ParquetWriter(path, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def test_categories_that_differ_between_row_groups_are_joined(tmp_path, rng):
    parts = [["b", "a"] * 30, ["e", "c"] * 30, ["b", "d"] * 30]
    tables = [
        pa.table({"y": rng.normal(size=60), "f": pa.array(part).dictionary_encode()})
        for part in parts
    ]
    path = parquet_of(tables, tmp_path / "parts.parquet")
    options = {"environment": None, "intercept": True}
    found, _ = parse_source("y ~ f", find_source(path), **options)
    wanted = parse("y ~ f", pd.read_parquet(path), **options)
    assert wanted.names[1:] == ("f[T.a]", "f[T.e]", "f[T.c]", "f[T.d]")
    assert_same(found, wanted)


def test_numbers_and_text_in_one_column_of_a_csv_are_refused(tmp_path):
    path = tmp_path / "mixed.csv"
    values = [str(j) for j in range(100)] + ["many"] * 100
    pd.DataFrame({"y": range(200), "x": values}).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"'x' of .*mixed\.csv must have one dtype"):
        vs.fit("y ~ x", path, B=10)


def test_yes_no_and_nothing_in_a_csv(tmp_path, rng):
    path = tmp_path / "answers.csv"
    answers = rng.choice(["True", "False"], 300)
    answers[64:128] = ""  # a whole batch; the others are true and false alone
    frame = pd.DataFrame({"y": rng.normal(size=300), "said": answers})
    frame.to_csv(path, index=False)
    options = {"environment": None, "intercept": True}
    wanted = parse("y ~ said", pd.read_csv(path), **options)
    found, _ = parse_source("y ~ said", find_source(path), **options)
    assert wanted.n_dropped == 64
    assert_same(found, wanted)


def test_infinite_values_are_refused_by_their_row(data, tmp_path):
    there = data.index == 500
    made = data.assign(x=data.x.mask(there, np.inf), z=data.z.mask(there, 2000.0))
    path, held = by_parquet(made, tmp_path)
    for formula, row in [("y ~ x", "first in row 500"), ("y ~ exp(z)", "row 500 has")]:
        for given in (path, held):
            with (
                np.errstate(all="ignore"),
                pytest.raises(FormulaError, match=f"must be finite.*{row}"),
            ):
                vs.fit(formula, given, B=10)


def test_paths_that_cannot_be_read_are_refused(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere\.parquet"):
        vs.fit("y ~ x", tmp_path / "nowhere.parquet")
    other = tmp_path / "data.xlsx"
    other.write_text("no table")
    with pytest.raises(DataError, match=r"ends in \.parquet.*got .*data\.xlsx"):
        vs.fit("y ~ x", str(other))
    broken = tmp_path / "broken.parquet"
    broken.write_text("no table")
    with pytest.raises(DataError, match=r"broken\.parquet cannot be read as a Parquet"):
        vs.fit("y ~ x", broken)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="no Parquet files"):
        vs.fit("y ~ x", empty)
    torn = tmp_path / "torn.csv"
    torn.write_text('y,x\n1,2\n1,"2\n')
    with pytest.raises(DataError, match=r"torn\.csv cannot be read as CSV"):
        vs.fit("y ~ x", torn)
    data.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(FormulaError, match="no rows"):
        vs.fit("y ~ x", tmp_path / "none.parquet")


def test_names_are_checked_before_the_data_are_read(data):
    recorded = Recorded(data)
    with pytest.raises(FormulaError, match=r"'wrod' is not a column.*'word'"):
        parse_source("y ~ wrod", recorded, environment=None, intercept=True)
    assert recorded.asked == []
    outside = np.ones(ROWS)
    with pytest.raises(FormulaError, match="make it a column"):
        parse_source(
            "y ~ outside",
            recorded,
            environment=environment_of({"outside": outside}),
            intercept=True,
        )


def test_formulas_of_strangers_are_bounded(data, tmp_path):
    many = pd.DataFrame({"y": np.arange(1500.0), "x": np.arange(1500.0) % 1200})
    path = tmp_path / "many.parquet"
    many.to_parquet(path)
    with pytest.raises(FormulaError, match=r"1,200 levels"):
        vs.fit("y ~ C(x)", path, eval_env="restricted", B=10)
    with pytest.raises(FormulaError, match="not allowed"):
        vs.fit("y ~ x.mean()", path, eval_env="restricted", B=10)
    found = vs.fit("y ~ I(x * 2)", path, eval_env="restricted", B=10, rng=1)
    assert list(found.effects.index) == ["x"]


def test_data_without_a_complete_row_are_refused(data, tmp_path):
    path, _ = by_parquet(data.assign(x=np.nan), tmp_path)
    for formula in ("y ~ x", "y ~ center(x)", "y ~ np.exp(x)"):
        with pytest.raises(FormulaError, match="column 'x' has no value: all 700"):
            vs.fit(formula, path, B=10)


def test_beyond_a_bound_summaries_are_those_of_a_sample(data, tmp_path, monkeypatch):
    n = data["word"].notna().sum()
    drawn = np.random.default_rng(0).integers(n, size=400)
    place = np.setdiff1d(np.arange(n), drawn)[-1]
    row = np.flatnonzero(data["word"].notna())[place]
    once = data.assign(count=data["count"].mask(data.index == row, 99))
    wanted, found = both("y ~ x + C(count) + word", once, tmp_path)
    monkeypatch.setattr(stored_frame, "ORDERED_ROWS", 500)
    monkeypatch.setattr(stored_frame, "SAMPLED_ROWS", 400)
    monkeypatch.setattr(stored_frame, "CHUNK_ROWS", 90)
    assert found.frame.median(["x"]) != {"x": wanted.frame["x"].median()}
    assert abs(found.frame.median(["x"])["x"] - wanted.frame["x"].median()) < 0.2
    assert found.coding.ranges(found.frame) == wanted.coding.ranges(wanted.frame)
    for name in ("count", "word"):
        assert found.frame.levels(name) == sorted(wanted.frame[name].unique())
    assert found.frame.mode("word") == wanted.frame["word"].mode()[0]


def test_results_are_saved_and_pickled(data, tmp_path):
    path, held = by_parquet(data, tmp_path)
    formula = "y ~ x + word + C(count) + np.exp(gap) + level"
    found, wanted = (vs.fit(formula, one, B=20, rng=1) for one in (path, held))
    new = data.iloc[10:40].dropna()
    frame = wanted.get_prediction(new).summary_frame()
    found.save(tmp_path / "results.vs")
    for again in (
        vs.load(tmp_path / "results.vs"),
        pickle.loads(pickle.dumps(found)),
    ):
        assert_frame_equal(again.get_prediction(new).summary_frame(), frame, rtol=0)
    assert (tmp_path / "results.vs").stat().st_size < 500_000


@pytest.mark.parametrize("term", ["center(gap)", "bs(x, df=5)", "standardize(z)"])
def test_what_transforms_have_learnt_is_pickled_but_not_saved(term, data, tmp_path):
    path, _ = by_parquet(data, tmp_path)
    found = vs.fit(f"y ~ {term} + word", path, B=20, rng=1)
    new = data.iloc[10:40].dropna()
    again = pickle.loads(pickle.dumps(found))
    assert_series_equal(again.predict(new), found.predict(new), rtol=0)
    with pytest.warns(VstatkitWarning, match="batch after batch"):
        found.save(tmp_path / "results.vs")
    assert vs.load(tmp_path / "results.vs").predictor is None


def test_ordinary_data_are_no_source(data):
    frames = [data, dict(data), pl.DataFrame({"a": [1]}), pa.table({"a": [1]}), 3, None]
    assert all(find_source(one) is None for one in frames)


@pytest.fixture(scope="module")
def forest(data):
    return vs.fit("y ~ x + z + flag", data, B=40, rng=4)


SAME_ALGEBRA = {"rtol": 1e-9, "atol": 1e-12}  # chunks of points differ


@pytest.mark.parametrize("how", SOURCES)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_predictions_of_a_file_are_those_of_the_data(
    how, ending, forest, data, tmp_path
):
    given, _ = how(data, tmp_path)
    out = tmp_path / f"predicted.{ending}"
    assert forest.get_prediction(given, out=out, alpha=0.1) == out
    found = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out)
    wanted = forest.get_prediction(data).summary_frame(0.1)
    assert list(found.columns) == list(wanted.columns)
    assert {"obs_ci_lower", "mean_se"} < set(found.columns)
    assert_allclose(found, wanted, **SAME_ALGEBRA)
    assert forest.predict(given, out=str(out)) == out
    again = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out)
    assert_allclose(again["y"], forest.predict(data), **SAME_ALGEBRA)
    assert sorted(one.suffix for one in tmp_path.glob(".*")) == []


def test_predictions_of_classes_have_a_row_for_each(data, tmp_path):
    three = data[~data.word.isin(["aaa", "only where a number is missing"])]
    results = vs.fit("word ~ x + z", three, kernel="tree", B=20, rng=4)
    path, held = by_parquet(data, tmp_path)
    out = results.get_prediction(path, out=tmp_path / "out.parquet")
    found, wanted = pd.read_parquet(out), results.get_prediction(held).summary_frame()
    assert found["point"].tolist() == list(np.repeat(np.arange(ROWS), 3))
    assert found["class"].tolist() == ["alpha", "beta", "delta"] * ROWS
    assert_allclose(found[wanted.columns], wanted, **SAME_ALGEBRA)
    means = pd.read_parquet(results.predict(path, out=out))
    assert_frame_equal(means, results.predict(held), **SAME_ALGEBRA)


def test_data_in_memory_are_predicted_to_a_file_too(forest, data, tmp_path):
    out = forest.predict(data.iloc[100:300], out=tmp_path / "out.csv")
    assert_allclose(pd.read_csv(out)["y"], forest.predict(data.iloc[100:300]))


def test_a_short_file_is_read_as_data(forest, data, tmp_path, monkeypatch):
    path, held = by_parquet(data, tmp_path)
    assert_series_equal(forest.predict(path), forest.predict(held))
    assert_frame_equal(
        forest.get_prediction(str(path)).summary_frame(),
        forest.get_prediction(held).summary_frame(),
    )
    monkeypatch.setattr(recognition, "READ_ROWS", ROWS - 1)
    with pytest.raises(DataError, match=r"more than 699 rows.*Give `out`"):
        forest.predict(path)
    csv, _ = by_csv(data, tmp_path)
    with pytest.raises(DataError, match=r"more than 699 rows.*Give `out`"):
        forest.get_prediction(csv)


def test_query_points_may_be_a_file(data, tmp_path):
    path, held = by_parquet(data.iloc[:15], tmp_path)
    found, wanted = (
        vs.fit("y ~ x + z", data, at=one, B=20, rng=1) for one in (path, held)
    )
    assert_same_fit(found, wanted)


def test_a_file_that_cannot_be_predicted_leaves_nothing(forest, data, tmp_path):
    path, _ = by_parquet(data.assign(x=data.x.where(data.index != 200)), tmp_path)
    out = tmp_path / "out.parquet"
    out.write_text("as before")
    with pytest.raises(
        FormulaError, match=r"missing in row 200 .*starts at row 192 of the data"
    ):
        forest.get_prediction(path, out=out)
    assert out.read_text() == "as before"
    with pytest.raises(FormulaError, match=r"lacks the column 'z'"):
        forest.get_prediction(by_csv(data[["x", "flag"]], tmp_path)[0], out=out)
    with pytest.raises(DataError, match=r"`out` must end in \.parquet"):
        forest.predict(data, out=tmp_path / "out.xlsx")
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "data.csv",
        "data.parquet",
        "out.parquet",
    ]


def test_a_folder_with_keys_in_its_names(tmp_path, rng):
    frame = pd.DataFrame({"y": rng.normal(size=90), "x": rng.normal(size=90)})
    for year in (2023, 2024):
        place = tmp_path / "parts" / f"year={year}"
        place.mkdir(parents=True)
        frame.to_parquet(place / "part.parquet")
    given = find_source(tmp_path / "parts")
    assert given.columns == ("y", "x", "year")
    assert given.n_rows == 180
    found = pd.concat(given.batches(["year", "y"]))
    assert found["year"].tolist() == [2023] * 90 + [2024] * 90
    assert found["y"].tolist() == frame["y"].tolist() * 2


def test_a_filtered_dataset_keeps_its_filter(data, tmp_path):
    path, held = by_parquet(data, tmp_path)
    some = ds.dataset(path).filter(ds.field("z") < 1)
    found = vs.fit("y ~ x", some, B=20, rng=1)
    wanted = vs.fit("y ~ x", held[held.z < 1].reset_index(drop=True), B=20, rng=1)
    assert_same_fit(found, wanted)


@pytest.mark.parametrize("how", [by_parquet, by_folder])
def test_the_command_reads_parquet(how, data, tmp_path, capsys):
    given, held = how(data[["y", "x", "z"]], tmp_path)
    at = tmp_path / "at.parquet"
    data.iloc[:3].to_parquet(at)
    options = ["--at", str(at), "--B", "20", "--seed", "1"]
    assert main(["fit", "y ~ .", str(given), *options]) == 0
    wanted = vs.fit("y ~ .", held, at=data.iloc[:3], B=20, rng=1)
    assert capsys.readouterr().out.startswith(f"{wanted.summary()}\n")


def test_the_command_reads_large_csv_files_in_batches(
    data, tmp_path, capsys, monkeypatch
):
    path, held = by_csv(data, tmp_path)
    monkeypatch.setattr(input_tables, "STREAMED_BYTES", 1000)
    monkeypatch.setattr(
        input_tables.pd, "read_csv", lambda *a, **b: pytest.fail("all at once")
    )
    monkeypatch.setattr(csv_files, "pd", SimpleNamespace(read_csv=READ_CSV))
    assert main(["fit", "y ~ x + z", str(path), "--B", "20", "--seed", "1"]) == 0
    wanted = vs.fit("y ~ x + z", held, B=20, rng=1)
    assert capsys.readouterr().out == f"{wanted.summary()}\n"


def test_a_package_that_is_missing_is_named(data, tmp_path, monkeypatch, capsys):
    path, _ = by_parquet(data, tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(MissingPackageError, match=r"needs the package pyarrow.*pip"):
        vs.fit("y ~ x", path)
    assert main(["fit", "y ~ x", str(path)]) == 2
    assert "needs the package pyarrow" in capsys.readouterr().err


def test_the_labels_of_many_rows_take_no_room(tmp_path):
    labels = pd.RangeIndex(3, 3 + 2 * 5_000_000, 2, name="row")
    packed = json.loads(json.dumps(pack_index(labels)))
    assert len(json.dumps(packed)) < 200
    assert_index_equal(unpack_index(packed, 5_000_000), labels, exact=True)
    for wrong in ([3, 3, 2], [3, 10_000_003, 0], [3, 2**70, 2**43], [3, 1.5, 2], []):
        with pytest.raises(FileError, match="an index has"):
            unpack_index({**packed, "range": wrong}, 5_000_000)
    assert "items" in pack_index(pd.RangeIndex(1000))


def test_values_of_columns_within_functions_are_not_collected(data, monkeypatch):
    monkeypatch.setattr("vstatkit.formula.streaming.scan.MAX_VALUES", 10)
    many = data.assign(
        name=[f"no. {j}" for j in range(ROWS)],
        time=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(ROWS), unit="h"),
    )
    names = {"long": lambda name: name.str.len(), "hour": lambda time: time.dt.hour}
    options = {"environment": environment_of(names), "intercept": True}
    formula = "y ~ x + long(name) + hour(time)"
    found, _ = parse_source(formula, Recorded(many), beside=("name",), **options)
    assert_same(found, parse(formula, many, **options))
    assert len(found.coding.recipe.frame) < 30
    with pytest.raises(DataError, match=r"may have 10 levels; 'name' has more"):
        parse_source("y ~ name", Recorded(many), **options)


def test_whole_numbers_of_which_a_whole_batch_is_missing(tmp_path, rng):
    counts = pa.array([None if 64 <= j < 128 else j % 3 for j in range(200)])
    table = pa.table({"y": rng.normal(size=200), "count": counts})
    path = parquet_of([table], tmp_path / "counts.parquet")
    options = {"environment": None, "intercept": True}
    wanted = parse("y ~ C(count)", pd.read_parquet(path), **options)
    assert wanted.names[1] == "C(count)[T.1.0]"
    found, _ = parse_source("y ~ C(count)", find_source(path), **options)
    assert_same(found, wanted)


RARE = [
    ("y ~ late_x", {}),
    ("y ~ x + C(rare)", {}),
    ("answer ~ x + gap", {}),
    ("C(rare) ~ x + gap", {}),
    ("pet ~ C(rare) + gap", {"missing": "pass"}),
]


@pytest.mark.parametrize(("formula", "options"), RARE)
def test_a_few_rows_are_enough_to_code_again(formula, options, data, tmp_path):
    places = np.arange(ROWS)
    made = data.assign(
        late_x=data.x.where(places >= 100),
        rare=np.select([places == 690, places % 300 == 299], [9, 7], 1),
        answer=np.where(places < 300, "no", "yes"),
        gap=data.gap.where(places != 300),
    )
    wanted, found = both(formula, made, tmp_path, **options)
    assert_same(found, wanted)
    again = found.coding.recipe.parse_again()
    assert again.names == found.names
    assert again.classes == found.classes
    assert len(found.coding.recipe.frame) < 40
    new = made.iloc[305:320]
    assert_array_equal(again.coding.raw_matrix(new), found.coding.raw_matrix(new))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["low", "middle", "high"])])
def test_categories_of_polars_are_read_as_text(kind, data):
    columns = {"y": data["y"].to_list(), "level": data["level"].tolist()}
    frame = pl.DataFrame(columns).with_columns(pl.col("level").cast(kind))
    options = {"environment": None, "intercept": True}
    wanted = parse("y ~ level", frame, **options)
    assert wanted.names[1] == "level[T.low]"
    found, _ = parse_source("y ~ level", find_source(frame.lazy()), **options)
    assert_same(found, wanted)


def write_csv(path, lines, header="y,x,z"):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


LINES = [f"{i % 7}.5,{i % 5},{i % 3}" for i in range(60)]


@pytest.mark.parametrize("columns", ["x", "x + z", "."])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_lines_with_too_many_fields_are_refused(columns, packed, tmp_path):
    lines = [*LINES[:7], "1,5,2,5,3", *LINES[7:]]
    path = write_csv(tmp_path / "data.csv", lines)
    if packed:
        path = tmp_path / "data.csv.gz"
        path.write_bytes(gzip.compress((tmp_path / "data.csv").read_bytes()))
    message = re.escape(f"{path}, line 9: there are 5 fields for the 3 columns")
    with pytest.raises(DataError, match=message):
        vs.fit(f"y ~ {columns}", path, B=10, rng=1)


def test_new_data_with_too_many_fields_are_refused(tmp_path):
    res = vs.fit("y ~ x", write_csv(tmp_path / "good.csv", LINES), B=10, rng=1)
    bad = write_csv(tmp_path / "bad.csv", ["1,2,3", "1,5,2,5"])
    for options in ({}, {"out": tmp_path / "out.csv"}):
        with pytest.raises(DataError, match=r"bad\.csv, line 3: there are 4"):
            res.predict(bad, **options)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("columns", ["x", "x + z"])
@pytest.mark.parametrize(
    ("line", "number"), [("1,5", "are 2 fields"), ("7", "is 1 field")]
)
def test_lines_with_too_few_fields_are_refused(columns, line, number, tmp_path):
    """pandas fills them at the end: values move to other columns."""
    path = write_csv(tmp_path / "data.csv", [*LINES[:7], line, *LINES[7:]])
    message = re.escape(f"{path}, line 9: there {number} for the 3 columns")
    with pytest.raises(DataError, match=f"{message}.*Write NA where a value is miss"):
        vs.fit(f"y ~ {columns}", path, B=10, rng=1)
    res = vs.fit("y ~ x", write_csv(tmp_path / "good.csv", LINES), B=10, rng=1)
    with pytest.raises(DataError, match=message):
        res.predict(path)


def test_blank_lines_and_empty_fields_are_not_short(tmp_path):
    lines = [*LINES[:7], "", "  ", "1,,2", "1,2,", *LINES[7:], ""]
    path = write_csv(tmp_path / "data.csv", lines)
    res = vs.fit("y ~ x + z", path, B=10, rng=1)
    assert (res.nobs, res.info.n_dropped) == (60, 2)


@pytest.mark.parametrize(
    "change", [lambda line: f"r,{line}", lambda line: f"{line},"], ids=["named", "ends"]
)
def test_lines_that_are_all_longer_than_the_header_are_refused(change, tmp_path):
    """pandas takes the first column for labels then, or shifts the others."""
    path = write_csv(tmp_path / "data.csv", map(change, LINES))
    with pytest.raises(DataError, match="line 2: there are 4 fields for the 3"):
        vs.fit("y ~ x", path, B=10, rng=1)


def test_separators_in_quotes_are_no_fields(tmp_path):
    lines = [f'{line},"a, ""b""\nand, c"' for line in LINES]
    path = write_csv(tmp_path / "data.csv", lines, "y,x,z,note")
    wanted = vs.fit("y ~ x + z", pd.read_csv(path), B=10, rng=1)
    assert vs.fit("y ~ x + z", path, B=10, rng=1).params.equals(wanted.params)
    long = write_csv(tmp_path / "long.csv", [*lines, "1,2,3,4,5"], "y,x,z,note")
    with pytest.raises(DataError, match="line 122: there are 5"):
        vs.fit("y ~ x + z", long, B=10, rng=1)


def folder_of(tmp_path, **frames):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, frame in frames.items():
        frame.to_parquet(folder / f"{name}.parquet")
    return folder


def parts(rng):
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["y", "x", "z"])
    return frame.iloc[:40], frame.iloc[40:]


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ x + z", "y ~ ."])
@pytest.mark.parametrize("lacking", [0, 1])
def test_part_files_with_other_columns_are_refused(formula, lacking, tmp_path, rng):
    both = list(parts(rng))
    both[lacking] = both[lacking].drop(columns="z")
    folder = folder_of(tmp_path, a=both[0], b=both[1])
    message = (
        rf"{'ba'[lacking]}\.parquet has a column 'z', and .*{'ab'[lacking]}\.parquet"
    )
    with pytest.raises(DataError, match=message):
        vs.fit(formula, folder, B=10, rng=1)


def test_datasets_whose_files_lack_a_column_are_refused(tmp_path, rng):
    first, second = parts(rng)
    folder = folder_of(tmp_path, a=first, b=second.drop(columns="z"))
    dataset = ds.dataset(folder)
    with pytest.raises(DataError, match=r"b\.parquet has no column 'z'"):
        vs.fit("y ~ x + z", dataset, B=10, rng=1)
    assert vs.fit("y ~ x", dataset, B=10, rng=1).nobs == 80


def test_kinds_of_part_files_are_joined_or_refused(tmp_path, rng):
    first, second = parts(rng)
    whole = first.assign(x=np.arange(40))
    frame = pd.concat([whole, second], ignore_index=True)
    folder = folder_of(tmp_path, a=whole, b=second)
    wanted = vs.fit("y ~ x", frame, B=10, rng=1).params
    assert vs.fit("y ~ x", folder, B=10, rng=1).params.equals(wanted)
    second.assign(x="1.5").to_parquet(folder / "c.parquet")
    message = r"column 'x' must be of one kind .* int64 in .*a\.parquet and .*string in"
    with pytest.raises(DataError, match=message):
        vs.fit("y ~ x", folder, B=10, rng=1)


def test_an_index_in_some_part_files_is_no_column(tmp_path, rng):
    first, second = parts(rng)
    named = second.set_axis(pd.Index([f"r{i}" for i in range(40)]))
    folder = folder_of(tmp_path, a=first.reset_index(drop=True), b=named)
    wanted = vs.fit("y ~ .", pd.concat([first, second]), B=10, rng=1).params
    assert vs.fit("y ~ .", folder, B=10, rng=1).params.equals(wanted)
