"""Parts of the data that are read and coded side by side come to the same as one."""

import gc
import itertools
import pickle
import tempfile
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_index_equal

import vstatkit as vs
from tests.sources.test_sources import (
    FORMULAS,
    ROWS,
    assert_same,
    assert_same_fit,
    by_folder,
    by_parquet,
    parquet_of,
)
from tests.sources.test_sources import data as _data
from vstatkit.exceptions import DataError, FormulaError
from vstatkit.formula.parse import parse
from vstatkit.formula.patsy_engine import environment_of
from vstatkit.formula.streaming import encode, scan
from vstatkit.formula.streaming.parse import parse_source
from vstatkit.scratch import LOCK
from vstatkit.sources import arrow, disk_arrays, source
from vstatkit.sources.disk_arrays import GrowingArray, PlacedArray
from vstatkit.sources.recognition import find_source
from vstatkit.sources.source import parts_of

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")

data = _data
NAMES = {"np": np, "doubled": lambda x: 2 * x, "edges": [-0.5, 0.5]}
ONE = 10**9
PARTS = 150


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Batches of 64 rows, and files of which no process writes half a block."""
    for module in (arrow, source):
        monkeypatch.setattr(module, "BATCH_ROWS", 64)
    monkeypatch.setattr(disk_arrays, "BLOCK_BYTES", 256)


def only_file(room):
    """Find the one temporary file, apart from the lock of its folder."""
    files = [path for path in room.rglob("*") if path.is_file()]
    (file,) = [path for path in files if path.name != LOCK]
    return file


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Where temporary files are made."""
    folder = tmp_path / "room"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def path(data, tmp_path):
    """A Parquet file of seven row groups."""
    return by_parquet(data, tmp_path)[0]


class Crew:
    """Counts who codes the parts: tasks, or the one that waits for them."""

    def __init__(self, monkeypatch):
        self.tasks, self.here, self.taken = [], [], 0
        main = threading.current_thread()
        read, take = encode.RowWriter.read, encode.RowWriter.take

        def note_read(writer, part, first):
            where = self.here if threading.current_thread() is main else self.tasks
            where.append(first)
            return read(writer, part, first)

        def note_take(writer, part):
            self.taken += 1
            return take(writer, part)

        monkeypatch.setattr(encode.RowWriter, "read", note_read)
        monkeypatch.setattr(encode.RowWriter, "take", note_take)


@pytest.fixture
def crew(monkeypatch):
    return Crew(monkeypatch)


def parsed(formula, given, monkeypatch, part_rows, n_jobs=None, **options):
    options = {"environment": environment_of(NAMES), "intercept": True, **options}
    with monkeypatch.context() as patch:
        patch.setattr(arrow, "PART_ROWS", part_rows)
        found = find_source(given)
        return parse_source(formula, found, n_jobs=n_jobs, **options)


def both(formula, given, monkeypatch, **options):
    """Parse as one part, and as many that two threads code."""
    one, beside_one = parsed(formula, given, monkeypatch, ONE, **options)
    many, beside_many = parsed(formula, given, monkeypatch, PARTS, 2, **options)
    assert one.n_dropped == many.n_dropped
    assert_same(many, one)
    assert many.X.tobytes() == one.X.tobytes()
    assert many.y.tobytes() == one.y.tobytes()
    recipes = [two.coding.recipe.frame for two in (many, one)]
    assert_frame_equal(*recipes)
    for ours, theirs in [(many.data, one.data), (beside_many, beside_one)]:
        assert_frame_equal(ours.to_frame(), theirs.to_frame())
        assert_index_equal(ours.index, theirs.index, exact=True)
        for name, column in ours.columns.items():
            assert column.levels == theirs.columns[name].levels
    return many


@pytest.mark.parametrize("formula", [*FORMULAS, "y ~ x + z + count + word"])
def test_parts_give_what_one_part_gives(formula, path, monkeypatch, crew):
    both(formula, path, monkeypatch, beside=("pet", "count"))
    assert crew.here == [0]  # as one part
    assert sorted(crew.tasks) == list(range(0, ROWS, 100))
    assert crew.taken == 7


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("y ~ gap + x + flag", {"missing": "pass"}),
        ("pet ~ np.exp(gap) + late", {"missing": "pass"}),
        ("y ~ x + word + level + late", {"factors": "splits", "intercept": False}),
        ("y ~ x + flag", {"missing": "raise"}),
    ],
)
def test_options_give_the_same_by_parts(formula, options, path, monkeypatch, crew):
    both(formula, path, monkeypatch, beside=("word",), **options)
    assert crew.taken == 7


def odd_tables(rng):
    """Row groups of 100 rows with what comes late, not at all, or differently."""
    words = [["b", "a"], ["c", None], ["a", "d"], ["b", "e"], ["f", "a"]]
    kept = [["no", "yes"], ["yes", "no"], ["yes", "perhaps"]]
    for number in range(5):
        numbers = pa.array(rng.normal(size=100))
        absent = pa.nulls(100, pa.float64())
        yield pa.table(
            {
                "y": rng.normal(size=100),
                "x": numbers,
                "first": absent if number == 0 else numbers,
                "count": pa.array(
                    [None if number == 1 else j % 3 for j in range(100)], pa.int64()
                ),
                "word": pa.array(words[number] * 50, pa.string()),
                "factor": pa.array(words[number] * 50).dictionary_encode(),
                "flag": pa.array(
                    [None if j % 37 == number else j % 2 == 0 for j in range(100)]
                ),
                "unseen": pa.array(kept[max(0, number - 2)] * 50, pa.string()),
                "gap": pa.array(
                    [None if number in (0, 4) else 1.0] * 100, pa.float64()
                ),
            }
        )


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x + first",
        "y ~ x + count",
        "y ~ C(count) + x",
        "y ~ word + x",
        "y ~ factor + flag",
        "word ~ x",
        "factor ~ x + first",
        "flag ~ x",
        "unseen ~ x + gap",
        "unseen ~ x + np.log(gap)",
        "y ~ np.exp(first) + word:x",
    ],
)
def test_what_comes_late_or_not_at_all(formula, tmp_path, monkeypatch, rng, crew):
    path = parquet_of(list(odd_tables(rng)), tmp_path / "odd.parquet")
    found = both(formula, path, monkeypatch, beside=("flag", "factor"))
    assert crew.taken == 5
    options = {"environment": environment_of(NAMES), "intercept": True}
    assert_same(found, parse(formula, pd.read_parquet(path), **options))


def test_levels_that_no_row_keeps_are_unused(tmp_path, monkeypatch, rng):
    path = parquet_of(list(odd_tables(rng)), tmp_path / "odd.parquet")
    found = both("unseen ~ gap", path, monkeypatch)
    assert found.unused_levels == ("perhaps",)
    assert set(found.y.tolist()) == {0.0, 1.0}


def test_a_folder_with_keys(tmp_path, monkeypatch, rng, crew):
    for year in (2023, 2024):
        for number in range(3):
            place = tmp_path / "parts" / f"year={year}" / f"{number}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            frame = pd.DataFrame({"y": rng.normal(size=90), "x": rng.normal(size=90)})
            frame.to_parquet(place, row_group_size=40)
    found = both("y ~ x + C(year)", tmp_path / "parts", monkeypatch)
    assert found.names[1] == "C(year)[T.2024]"
    assert crew.taken == 4  # of 130, 140, 130 and 140 rows: parts hold several files


def test_parts_are_of_whole_row_groups_and_have_the_batches_of_all(
    data, tmp_path, monkeypatch
):
    monkeypatch.setattr(arrow, "PART_ROWS", 230)
    given = find_source(by_folder(data, tmp_path)[0])
    parts = [pickle.loads(pickle.dumps(part)) for part in parts_of(given)]
    columns = ["word", "x"]
    sizes = [sum(map(len, part.batches(columns))) for part in parts]
    assert sizes == [250, 250, 200]  # a row group, though longer, is never divided
    batches = [batch for part in parts for batch in part.batches(columns)]
    for ours, theirs in zip(batches, given.batches(columns), strict=True):
        assert_frame_equal(ours, theirs)
    assert_frame_equal(
        pd.concat(batches, ignore_index=True), data[columns], check_dtype=False
    )


def test_workers_with_another_working_directory_find_the_file(
    data, tmp_path, monkeypatch
):
    path, _ = by_parquet(data, tmp_path)
    monkeypatch.chdir(tmp_path)
    (part, *_) = parts_of(find_source(path.name))
    monkeypatch.chdir(tmp_path.parent)
    assert len(next(part.batches(["x"]))) == 64


def test_what_cannot_be_divided_is_one_part(data, tmp_path):
    path, _ = by_parquet(data, tmp_path)
    data.to_csv(tmp_path / "data.csv", index=False)
    for given in (
        ds.dataset(path).filter(ds.field("z") < 1),
        ds.dataset(pa.table({"a": [1, 2]})),
        tmp_path / "data.csv",
    ):
        found = find_source(given)
        assert list(parts_of(found)) == [found]


FAULTS = [
    ("y ~ x", {"x": ([500, 20, 320], np.inf), "z": (2, np.inf)}, {}),
    ("y ~ np.log(gap) + x", {"gap": (430, 0.0)}, {}),
    ("np.log(z) ~ word", {"z": (430, 0.0)}, {}),
    ("y ~ np.log(z) + word", {"z": (640, 0.0), "x": (3, 1.0)}, {}),
    ("y ~ gap", {}, {"missing": "raise"}),
    ("y ~ word", {}, {"missing": "pass"}),
    ("y ~ np.log(word)", {}, {}),
    ("pet ~ x", {"pet": (slice(None), "cat")}, {}),
    ("y ~ x", {"x": (slice(None), np.nan)}, {}),
    ("y + z ~ x", {}, {}),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_messages_are_those_of_one_part(fault, data, tmp_path, monkeypatch, room):
    formula, changes, options = fault
    made = data.copy()
    for name, (rows, value) in changes.items():
        made.loc[rows, name] = value
    path, _ = by_parquet(made, tmp_path)
    said = []
    for part_rows, n_jobs in [(ONE, 1), (PARTS, 1), (PARTS, 2)]:
        with (
            np.errstate(all="ignore"),
            pytest.raises((FormulaError, DataError)) as caught,
        ):
            parsed(formula, path, monkeypatch, part_rows, n_jobs, **options)
        said.append(str(caught.value))
    del caught
    assert said[0] == said[1] == said[2]
    gc.collect()
    assert not list(room.iterdir())


def test_too_many_levels_are_refused_where_one_part_refuses_them(
    tmp_path, monkeypatch, room
):
    """Neither part has too many, but both together; `second` has them first."""
    monkeypatch.setattr(scan, "MAX_VALUES", 150)
    table = {
        "y": np.arange(200.0),
        "first": [str(j) for j in range(200)],
        "second": [str(j) if j < 190 else "0" for j in range(200)],
    }
    table["second"][100:140] = [f"more {j}" for j in range(40)]
    path = tmp_path / "data.parquet"
    pd.DataFrame(table).to_parquet(path, row_group_size=100)
    said = []
    for part_rows, n_jobs in [(ONE, 1), (100, 2)]:
        with pytest.raises(DataError, match="may have 150 levels") as caught:
            parsed("y ~ first + second", path, monkeypatch, part_rows, n_jobs)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_what_a_worker_cannot_do_is_done_here(path, monkeypatch, crew, room):
    coded, summarised = encode._code_part, scan._summarise

    def blind(function, *broken):
        def call(*arguments):
            function(*arguments)  # after it has written
            if threading.current_thread() is not main and next(failures) in broken:
                raise OSError("no such file")
            return function(*arguments)

        failures = iter(range(100))
        return call

    main = threading.current_thread()
    monkeypatch.setattr(encode, "_code_part", blind(coded, 1, 2, 6))
    monkeypatch.setattr(scan, "_summarise", blind(summarised, 0, 3))
    found = both("y ~ x + word + gap", path, monkeypatch)
    assert len(crew.here) == 4  # one part, and three that failed
    assert crew.taken == 4
    del found
    gc.collect()
    assert not list(room.iterdir())


@pytest.mark.parametrize("stage", ["survey", "coding"])
def test_after_an_error_nobody_works_on(stage, data, tmp_path, monkeypatch):
    made = data.assign(word=data.word.mask(data.index == 3, "odd"))
    path, _ = by_parquet(made, tmp_path)
    module, name, fault = {
        "survey": (scan, "_summarise", (scan.RowSummary, "add")),
        "coding": (encode, "_code_part", (encode.RowWriter, "add")),
    }[stage]
    function, under_way = getattr(module, name), []

    def slow(*arguments):
        under_way.append(1)
        time.sleep(0.1)
        try:
            return function(*arguments)
        finally:
            under_way.pop()

    def faulty(writer, batch):
        if "odd" in set(batch["word"]):
            raise FormulaError("odd")
        return add(writer, batch)

    add = getattr(*fault)
    monkeypatch.setattr(module, name, slow)
    monkeypatch.setattr(*fault, faulty)
    with pytest.raises(FormulaError, match="odd") as caught:
        parsed("y ~ word", path, monkeypatch, PARTS, 2)
    begun = list(under_way)
    assert caught.traceback  # holds whatever has not been ended
    assert not begun


def test_files_that_change_between_the_passes_are_refused(
    data, tmp_path, monkeypatch, room
):
    path, _ = by_parquet(data, tmp_path)
    write_rows = encode.write_rows

    def changed(*arguments):
        by_parquet(data.assign(x=data.x.where(data.index != 30)), tmp_path)
        return write_rows(*arguments)

    monkeypatch.setattr("vstatkit.formula.streaming.parse.write_rows", changed)
    with pytest.raises(DataError, match=r"counted 100 complete rows, the second 99"):
        parsed("y ~ x", path, monkeypatch, PARTS, 2)
    gc.collect()
    assert not list(room.iterdir())


@pytest.mark.parametrize("kernel", ["forest", "ols"])
def test_a_fit_has_the_same_numbers(kernel, data, tmp_path, monkeypatch, crew):
    path, held = by_parquet(data, tmp_path)
    monkeypatch.setattr(arrow, "PART_ROWS", PARTS)
    options = {"kernel": kernel, "B": 24, "rng": 5, "groups": "small", "k": 6}
    found = vs.fit("y ~ x + flag + gap", path, n_jobs=2, **options)
    assert crew.taken == 7
    assert_same_fit(found, vs.fit("y ~ x + flag + gap", held, **options))


JOBS = [
    (None, 1, 0),
    (1, 2, 0),
    (None, 2, 7),
    (2, 1, 7),
    (-1, 1, 7),
]


@pytest.mark.parametrize(("n_jobs", "configured", "taken"), JOBS)
def test_jobs_are_counted_as_elsewhere(n_jobs, configured, taken, path, crew):
    patch = pytest.MonkeyPatch()
    with joblib.parallel_config("threading", n_jobs=configured):
        parsed("y ~ x", path, patch, PARTS, n_jobs)
    assert crew.taken == taken
    assert len(crew.here) == 7 - taken


def test_without_workers_parts_are_coded_here(path, monkeypatch, crew):
    parsed("y ~ x", path, monkeypatch, PARTS)
    assert crew.here == list(range(0, ROWS, 100))


def test_nothing_as_long_as_the_data_is_held(path, monkeypatch):
    for formula, dropped in [("y ~ x", False), ("y ~ gap", True)]:
        for part_rows, n_jobs in [(ONE, 1), (PARTS, 2)]:
            found, _ = parsed(formula, path, monkeypatch, part_rows, n_jobs)
            assert isinstance(found.y.base, np.memmap)
            assert isinstance(found.data.index, pd.RangeIndex) == (not dropped)
            if dropped:
                assert isinstance(found.rows.base, np.memmap)
                assert np.shares_memory(found.data.index.to_numpy(), found.rows)
            else:
                assert isinstance(found.rows, pd.RangeIndex)


# Places in a file


@pytest.mark.parametrize("width", [None, 1, 3, 70])
@pytest.mark.parametrize("seed", range(4))
def test_rows_written_side_by_side_are_those_written_in_turn(width, seed, room):
    rng = np.random.default_rng(seed)
    shape = () if width is None else (width,)
    blocks = [rng.normal(size=(n, *shape)) for n in rng.integers(0, 60, 30)]
    wanted = np.concatenate(blocks)
    array = GrowingArray(np.float64, width)
    bounds = [0, *sorted(rng.integers(0, 30, 5)), 30]
    room_between = int(rng.integers(0, 2)) * 17  # moved up, where there is some
    found, first = [], 0
    for start, stop in itertools.pairwise(bounds):
        placed = PlacedArray(array.place(first))
        found.append((placed, blocks[start:stop]))
        first += sum(map(len, blocks[start:stop])) + room_between
    for placed, mine in reversed(found):
        for block in mine:
            placed.append(block)
    for number, (placed, mine) in enumerate(found):
        if number == 2:  # written by the one who made the file
            for block in mine:
                array.append(block)
        else:
            array.take(placed.handed_over())
    held = array.map_array()
    assert_array_equal(held, wanted)
    file = only_file(room)
    assert file.stat().st_size == wanted.nbytes


def test_only_whole_blocks_are_written_by_others(room):
    array = GrowingArray(np.int8)
    array.append(np.full(2000, 7, np.int8))
    array._file.flush()
    file = only_file(room)
    placed = PlacedArray(array.place(300))
    for size in (100, 1, 300, 511, 88):
        placed.append(np.zeros(size, np.int8))
    there = np.fromfile(file, np.int8)
    assert_array_equal(np.flatnonzero(there == 0), np.arange(512, 1280))
    block = placed.handed_over()
    assert (block.first, block.n_rows) == (300, 1000)
    assert [(at, len(edge)) for at, edge in block.edges] == [(300, 212), (1280, 20)]


def test_one_part_needs_no_workers(path, monkeypatch):
    monkeypatch.setattr(scan, "in_parallel", lambda *_, **__: pytest.fail("sent"))
    parsed("y ~ x", path, monkeypatch, ONE, 2)
