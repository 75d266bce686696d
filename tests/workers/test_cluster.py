"""Clusters and processes: the same numbers, little traffic, workers that die."""

import contextlib
import functools
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.comm.tcp import TCP
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import vstatkit as vs
from vstatkit import workers
from vstatkit.ensemble import evaluation, prediction
from vstatkit.ensemble.evaluation import Task, evaluate
from vstatkit.formula.patsy_engine import environment_of
from vstatkit.formula.streaming.encode import RowWriter
from vstatkit.formula.streaming.parse import parse_source
from vstatkit.kernels.tree import tree_kernel
from vstatkit.sampling.registry import make_design
from vstatkit.sources import arrow
from vstatkit.sources.arrow import ParquetPart
from vstatkit.sources.disk_arrays import BLOCK_BYTES, GrowingArray
from vstatkit.sources.recognition import find_source
from vstatkit.workers import parallel
from vstatkit.workers.shared_data import Parcel, pack, sent

N_WORKERS = 2
REVIVAL = 10
"""Seconds in which a worker that was killed is replaced, or never."""

PATIENCE = 60
"""Seconds to wait for something that must happen, on a busy machine."""


@contextlib.contextmanager
def two_workers():
    """Two worker processes, and a client that is active."""
    with (
        LocalCluster(
            n_workers=N_WORKERS,
            processes=True,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Crew:
    """A cluster that is replaced where killed workers did not come back to life."""

    def __init__(self):
        self.stack, self.client = contextlib.ExitStack(), None

    def ready(self):
        if self.client is not None:
            with contextlib.suppress(TimeoutError):
                self.client.wait_for_workers(N_WORKERS, timeout=REVIVAL)
                return self.client
            self.stack.close()
        self.client = self.stack.enter_context(two_workers())
        return self.client


@pytest.fixture(scope="module")
def crew():
    crew = Crew()
    with crew.stack:
        yield crew


@pytest.fixture
def client(crew):
    """Return an active client of two workers."""
    return crew.ready()


DATA = vs.datasets.mars(80, rng=1)
AT = DATA.iloc[:5]


def spread(rows):
    return {"mean": rows["y"].mean(), "sd": rows["y"].std()}


CASES = {
    "forest": {"kernel": "forest", "B": 512},
    "ols": {"kernel": "ols", "B": 256},
    "function": {"kernel": lambda rows: spread(rows), "B": 256},  # noqa: PLW0108
    "estimator": {"kernel": Ridge(alpha=0.5), "B": 256},
}


def fit(case, **options):
    return vs.fit("y ~ x1 + x2", DATA, k=30, rng=3, **CASES[case], **options)


def fitted(case, **options):
    res = fit(case, **options)
    found = {"values": res.values, "bse": res.bse.to_numpy()}
    if res.predictor is not None:
        # Learners that come back predict like those that never left.
        found["later"] = res.predictor.first(res.B).values(res.predictor.rows(AT)[0])
    if res.scores is not None:
        found["oob"] = res.scores.residuals
    return found


def predicted(case, **options):
    res = fit(case, n_jobs=1)
    if "n_jobs" not in options:
        object.__setattr__(res.predictor, "n_jobs", None)
    found = res.get_prediction(DATA)
    return {"frame": found.summary_frame().to_numpy(), "mean": res.predict(DATA)}


def covered(case, **options):
    half = 0.5  # noqa: F841 what a formula names travels with it
    table = vs.studies.coverage(
        lambda rng: vs.datasets.mars(40, rng=rng),
        "y ~ x1 + I(half * x2)",
        at=None if case in ("ols", "function") else AT,
        **{**CASES[case], "B": 64},
        k=20,
        iterations=8,
        rng=1,
        **options,
    )
    return {"table": table.select_dtypes("number").to_numpy()}


FILE_ROWS = 40_000

CODED = {
    "plain": ("y ~ x1 + x2 + x3 + word + gap", {"beside": ("word", "x4")}),
    "classes": ("word ~ x1 + gap", {"missing": "pass"}),
    "engine": ("y ~ np.log(x1) + x2:word + gap", {}),
}


@functools.cache
def parquet_file():
    """A file of twenty row groups; more than a block of every column goes to a part."""
    folder = tempfile.TemporaryDirectory()
    rng = np.random.default_rng(3)
    frame = vs.datasets.mars(FILE_ROWS, rng=2)
    places = np.arange(FILE_ROWS)
    frame["word"] = np.where(places < 25_000, "late", rng.choice(["a", "b"], FILE_ROWS))
    frame.loc[rng.integers(0, FILE_ROWS, 99), "word"] = None
    frame["gap"] = np.where(rng.random(FILE_ROWS) < 0.1, np.nan, places)
    path = Path(folder.name) / "data.parquet"
    frame.to_parquet(path, row_group_size=FILE_ROWS // 20)
    return path, folder  # which goes with the last who has it


def coded(case, **options):
    """What a Parquet file is coded to."""
    formula, more = CODED[case]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "PART_ROWS", FILE_ROWS // 4)
        one, beside = parse_source(
            formula,
            find_source(parquet_file()[0]),
            environment=environment_of({"np": np}),
            intercept=True,
            **more,
            **options,
        )
    tables = {"data": one.data, "beside": beside}
    return {
        "X": one.X,
        "y": one.y,
        "rows": one.rows,
        "names": one.names,
        "classes": np.array(one.classes),
        "examples": one.coding.recipe.frame.map(repr).to_numpy(),
        **{name: two.to_frame().map(repr).to_numpy() for name, two in tables.items()},
    }


JOBS = [
    (coded, "plain"),
    (coded, "classes"),
    (coded, "engine"),
    (fitted, "forest"),
    (fitted, "ols"),
    (fitted, "function"),
    (fitted, "estimator"),
    (predicted, "forest"),
    (predicted, "ols"),
    (predicted, "estimator"),
    (covered, "forest"),
    (covered, "ols"),
    (covered, "function"),
    (covered, "estimator"),
]


@functools.cache
def here(job, case):
    """Numbers of one thread."""
    return job(case, n_jobs=1)


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        assert_array_equal(found[name], numbers)


@pytest.fixture
def submitted(client, monkeypatch):
    """Keys of the calls that reach the cluster."""
    keys = []
    submit = client.submit

    def note(*arguments, key=None, **options):
        if key is not None:  # joblib's own calls have none
            keys.append(key)
        return submit(*arguments, key=key, **options)

    monkeypatch.setattr(client, "submit", note)
    return keys


@pytest.mark.parametrize(("job", "case"), JOBS)
def test_a_cluster_gives_the_numbers_of_one_thread(submitted, job, case):
    """The active client is used without being told."""
    found = job(case)
    assert len(submitted) >= 4
    same(found, here(job, case))


@pytest.mark.parametrize("case", ["plain", "classes"])
def test_workers_read_and_code_the_row_groups(client, case, monkeypatch):
    """This process neither reads the file nor writes the matrix, edges apart."""
    expected = here(coded, case)
    monkeypatch.setattr(ParquetPart, "batches", lambda *_: pytest.fail("read here"))
    monkeypatch.setattr(RowWriter, "add", lambda *_: pytest.fail("coded here"))
    edges, sizes = [], []
    take = GrowingArray.take

    def note(array, block):
        edges.append(sum(len(edge) for _, edge in block.edges))
        sizes.append(array._bytes(block.n_rows))
        assert block.first == array._n_rows, "moved"
        return take(array, block)

    monkeypatch.setattr(GrowingArray, "take", note)
    same(coded(case), expected)
    assert max(edges) < 2 * BLOCK_BYTES
    assert sum(edges) < 0.7 * sum(sizes)


def test_a_fit_of_a_file_is_that_of_one_thread(submitted):
    def both(**options):
        path = parquet_file()[0]
        res = vs.fit("y ~ x1 + word + gap", path, k=50, B=64, rng=1, **options)
        return {"values": res.values, "bse": res.bse.to_numpy()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "PART_ROWS", FILE_ROWS // 4)
        same(both(), both(n_jobs=1))


def deadly(folder, victims, *arguments):
    """Make a call; when the third has begun, kill this worker and others, for once."""
    (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
    begun = len(list(folder.glob("*-*")))
    answer = parallel.perform(*arguments)
    if begun >= 3:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return answer
        for one in set(victims) - {os.getpid()}:
            os.kill(one, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


@pytest.fixture
def death(client, monkeypatch, tmp_path):
    """A worker that dies of the calls; whether it did."""
    monkeypatch.setattr(parallel, "perform", functools.partial(deadly, tmp_path, ()))
    return tmp_path / "killed"


@pytest.mark.parametrize(("job", "case"), JOBS)
def test_a_worker_that_is_killed_changes_no_number(death, job, case):
    found = job(case)
    assert death.exists()
    same(found, here(job, case))


def test_data_that_are_lost_with_all_workers_are_sent_again(
    client, death, submitted, monkeypatch
):
    everybody = tuple(client.run(os.getpid).values())
    monkeypatch.setattr(
        parallel, "perform", functools.partial(deadly, death.parent, everybody)
    )
    found = fitted("forest")
    assert death.exists()
    assert any(key.endswith("-2") for key in submitted)
    same(found, here(fitted, "forest"))


@pytest.mark.parametrize("error", [KeyError, OSError])
@pytest.mark.parametrize("times", [1, parallel.ATTEMPTS])
def test_data_lost_on_their_way_are_sent_again(client, monkeypatch, error, times):
    """As they are when a worker dies while they are sent."""
    scatter, failures = client.scatter, []

    def fail(*arguments, **options):
        if len(failures) < times:
            failures.append(1)
            raise error("a worker that is gone")
        return scatter(*arguments, **options)

    monkeypatch.setattr(client, "scatter", fail)
    monkeypatch.setattr(parallel, "SECONDS_BETWEEN_COUNTS", 0.01)
    if times < parallel.ATTEMPTS:
        same(fitted("ols"), here(fitted, "ols"))
    else:
        with pytest.raises(vs.WorkerError, match="while data were sent"):
            fit("ols")
    assert len(failures) == times


class Lost:
    """An answer that is lost with its worker."""

    def result(self):
        raise CancelledError


def test_what_is_lost_again_waits_until_the_scheduler_has_noticed(monkeypatch):
    waited = []
    monkeypatch.setattr(parallel.time, "sleep", waited.append)
    cluster = object.__new__(parallel.Dask)
    cluster._numbers, cluster._attempts = {}, Counter()
    for _ in range(parallel.ATTEMPTS):
        lost = Lost()
        cluster._numbers[lost] = 7
        cluster._attempts[7] += 1
        last = cluster._attempts[7] == parallel.ATTEMPTS
        with pytest.raises(vs.WorkerError if last else parallel.LostError):
            cluster.take(lost)
    assert waited == [0.0, 1.0, 2.0]


def test_work_that_is_lost_too_often_is_given_up(client, death, monkeypatch):
    everybody = tuple(client.run(os.getpid).values())
    monkeypatch.setattr(
        parallel, "perform", functools.partial(deadly, death.parent, everybody)
    )
    monkeypatch.setattr(parallel, "ATTEMPTS", 1)
    with pytest.raises(vs.WorkerError, match="were lost 1 times"):
        fit("forest")


def test_one_job_is_this_process(submitted):
    fit("ols", n_jobs=1)
    with joblib.parallel_config("dask", n_jobs=1):
        fit("ols")
    with joblib.parallel_config("threading", n_jobs=2):
        fit("ols")
    assert not submitted


def test_joblibs_backend_is_the_same_cluster(submitted):
    with joblib.parallel_config("dask"):
        found = fitted("forest")
    assert submitted
    same(found, here(fitted, "forest"))


def test_a_fit_within_a_task_stays_in_its_worker(client):
    """It would wait for workers that wait for it."""
    found = client.submit(fitted, "ols", pure=False).result(timeout=PATIENCE)
    same(found, here(fitted, "ols"))


def test_learners_do_not_go_back_to_the_scheduler(client):
    """Nearest neighbours run joblib calls of their own in `fit` and `predict`."""
    learner = KNeighborsRegressor(3, n_jobs=2)

    def both(**options):
        res = vs.fit("y ~ x1", DATA, kernel=learner, k=30, B=64, rng=1, **options)
        return res.get_prediction(AT).summary_frame()

    with joblib.parallel_config("dask"):
        found = both()
    assert_array_equal(found, both(n_jobs=1))
    prefixes = client.run_on_scheduler(
        lambda dask_scheduler: sorted(dask_scheduler.task_prefixes)
    )
    assert {"Parcel", "vstatkit"} <= set(prefixes)
    assert not [one for one in prefixes if "batch" in one.lower()]


def wait_or_fail(folder, number):
    if number == 0:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        raise ValueError("no")
    (folder / "begun").touch()
    while True:
        time.sleep(0.01)
        try:
            workers.go_on()
        except workers.CalledOffError:
            (folder / "ended").touch()
            raise


def test_an_error_calls_off_the_other_workers(client, tmp_path):
    calls = ((number,) for number in range(2))
    with pytest.raises(ValueError, match="no"):
        list(workers.in_parallel(wait_or_fail, calls, n_jobs=None, shared=(tmp_path,)))
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "ended").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "ended").exists()


def test_no_more_calls_are_handed_out_than_jobs(client, submitted):
    answers = workers.in_parallel(abs, ((-j,) for j in range(20)), n_jobs=3)
    assert next(answers) == 0
    assert len(submitted) <= 3
    assert list(answers) == list(range(1, 20))


# What travels


@pytest.fixture
def scattered(client, monkeypatch):
    """Parcels that are sent to the workers."""
    parcels = []
    scatter = client.scatter

    def note(parcel, **options):
        parcels.append(parcel)
        return scatter(parcel, **options)

    monkeypatch.setattr(client, "scatter", note)
    return parcels


@pytest.fixture
def written(client, monkeypatch):
    """Bytes that the client and the scheduler have written so far."""
    total = [0]
    write = TCP.write

    async def note(self, *arguments, **options):
        size = await write(self, *arguments, **options)
        total[0] += size
        return size

    monkeypatch.setattr(TCP, "write", note)
    return total


def test_bytes_sent_hardly_grow_with_the_number_of_learners(client, written):
    """Less than 20 % beyond what comes back, from 320 learners to 1280."""
    n = 20_000
    X = np.random.default_rng(1).normal(size=(n, 5))

    def sent_bytes(B):
        kernel = tree_kernel(
            "forest", X, X[:, 0] ** 2, n_classes=None, weights=None, options={}
        )
        design = make_design("iid", n, 50, replace=True, seed=1)
        before = written[0]
        found = evaluate(Task(kernel, design, X[:9], None, keep=True), 0, B)
        came_back = len(pickle.dumps((found.values, found.learners), 5))
        batches = -(-B // 25)
        came_back += batches * (found.oob.total.nbytes + found.oob.times.nbytes)
        return written[0] - before - came_back

    few, many = sent_bytes(320), sent_bytes(1280)
    assert X.nbytes < few
    assert many < 1.2 * few


@pytest.mark.parametrize("B", [100, 128, 400, 1000])
def test_few_tasks_send_out_of_bag_sums_back(B, monkeypatch):
    """And the sums hardly depend on it."""
    X = DATA[["x1", "x2"]].to_numpy()
    kernel = tree_kernel("forest", X, X[:, 0], n_classes=None, weights=None, options={})
    design = make_design("iid", len(X), 30, replace=True, seed=1)
    task = Task(kernel, design, X[:1], None, keep=True)
    ranges = []

    def note(function, arguments, **options):
        ranges.extend(arguments)
        return workers.in_parallel(function, ranges, **options)

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "in_parallel", note)
        found = evaluate(task, 0, B, n_jobs=1, batch_size=1)
    assert min(B, 64) <= len(ranges) <= 128
    assert [stop for _, stop, _ in ranges[:-1]] == [start for start, *_ in ranges[1:]]
    assert (ranges[0][0], ranges[-1][1]) == (0, B)
    whole = evaluate(task, 0, B, n_jobs=1, batch_size=B)
    assert_array_equal(found.values, whole.values)
    assert_array_equal(found.oob.times, whole.oob.times)
    assert_allclose(found.oob.total, whole.oob.total, rtol=1e-12)
    assert len(found.learners) == B


def test_data_and_learners_travel_once(client, scattered):
    """Whatever is asked of them afterwards, on a cluster that loses no worker."""
    res = fit("forest").more(600)
    keys = {"kernel": sent(res.predictor.kernel).key}
    res.predict(DATA)
    res.get_prediction(DATA)
    keys["learners"] = sent(res.predictor._kept).key
    times = [parcel.key for parcel in scattered]
    assert {name: times.count(key) for name, key in keys.items()} == {
        "kernel": 1,
        "learners": 1,
    }
    assert b"patsy" not in b"".join(bytes(parcel.body) for parcel in scattered)


def test_means_of_many_rows_are_taken_where_they_are_made(client, written):
    res = fit("ols")
    many = vs.datasets.mars(20_000, rng=5)
    with joblib.parallel_config("threading"):
        expected = res.get_prediction(many).predicted_mean
        threads = res.predict(many)
    before = written[0]
    assert_array_equal(res.predict(many), expected)
    assert_array_equal(threads, expected)
    X, _ = res.predictor.rows(many)
    assert written[0] - before < 3 * N_WORKERS * X.nbytes < X.nbytes * len(res.values)


def test_errors_of_many_points_are_estimated_where_values_are_made(client, written):
    """The values of B learners stay with the workers; estimates come back."""
    X = DATA[["x1", "x2"]]
    forest = vs.ForestRegressor(400, max_samples=30, random_state=1, n_jobs=1)
    forest.fit(X, DATA["y"])
    many = vs.datasets.mars(20_000, rng=5)[["x1", "x2"]]
    here = forest.predict(many, return_std=True)
    forest.set_params(n_jobs=None)
    before = written[0]
    found = forest.predict(many, return_std=True)
    assert_array_equal(found, here)
    learners = len(pickle.dumps(forest.estimators_, 5))
    estimates = 200 * len(many)  # a few numbers for each point
    sent_once = N_WORKERS * (learners + many.size * 8)
    assert written[0] - before < 2 * sent_once + estimates < 8 * 400 * len(many)


@pytest.mark.parametrize("rows", [1, 2, 256, 257, 258, 513, 600])
@pytest.mark.parametrize("kernel", ["forest", "ols"])
def test_means_do_not_depend_on_how_rows_are_divided(rows, kernel, monkeypatch):
    new = vs.datasets.mars(600, rng=5)[:rows]
    res = vs.fit("y ~ x1 + x2", DATA, kernel=kernel, k=30, B=40, rng=3, n_jobs=1)
    X, _ = res.predictor.rows(new)
    expected = res.get_prediction(new).predicted_mean
    assert_array_equal(res.predict(new), expected)
    mean = res.predictor.mean(X)
    monkeypatch.setattr(prediction, "ROWS_PER_TASK", 10_000)
    assert_array_equal(res.predict(new), expected)
    assert_array_equal(res.predictor.mean(X), mean)


def test_a_finished_object_leaves_no_parcel_behind():
    class Value:
        pass

    value = Value()
    known = sent(value)
    assert sent(value) is known
    del value
    fresh = Value()
    assert sent(fresh) is not known
    assert sent([]) is None  # its end cannot be heard of


def there_and_back(value):
    parcel = pack(value)
    return parcel, pickle.loads(pickle.dumps(parcel, 5)).open()


def test_parcels_keep_values_and_memory_order(rng):
    wide = rng.normal(size=(40, 30))
    for array in (wide, wide.T, wide[::2, ::3], wide[::2, ::3].T, wide[:0], wide[0]):
        _, found = there_and_back({"array": array, "function": lambda x: x + 1})
        assert_array_equal(found["array"], array)
        assert found["function"](1) == 2
        assert found["array"].flags.f_contiguous == (
            array.copy(order="K").flags.f_contiguous
        )


def test_a_parcel_in_a_file_is_mapped(tmp_path, rng):
    value = [rng.normal(size=1000), "text", np.arange(3), np.array([None])]
    parcel = pack(value)
    parcel.write(tmp_path / "parcel")
    found = Parcel.read(parcel.key, tmp_path / "parcel").open()
    for one, other in zip(found, value, strict=True):
        assert_array_equal(one, other)
    assert not found[0].flags.writeable
    assert found[0].ctypes.data % 64 == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_files_travel_by_name(tmp_path, order):
    path = tmp_path / "numbers"
    whole = np.memmap(path, np.float64, "w+", offset=24, shape=(500, 40), order=order)
    whole[:] = np.arange(20_000.0).reshape(500, 40)
    for array in (whole, np.asarray(whole), whole[7:, 3:9], whole.T, whole[::3, 5]):
        parcel, found = there_and_back(array)
        assert sys.getsizeof(parcel) < 1000
        assert_array_equal(found, array)
        assert found.strides == array.strides
    own = np.memmap(path, np.float64, "c", offset=24, shape=(500, 40), order=order)
    own[0, 0] = -1.0
    for array in (own, whole[::-1], whole[:0]):
        assert_array_equal(there_and_back(array)[1], array)
    parcel = pack(whole)
    path.unlink()
    assert_array_equal(there_and_back(whole)[1], whole)
    with pytest.raises(FileNotFoundError, match="all workers see"):
        parcel.open()


def test_a_file_that_differs_is_refused(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(800))
    parcel = pack(np.memmap(path, np.float64, "r"))
    path.write_bytes(bytes(1600))
    with pytest.raises(ValueError, match=r"800 bytes .* 1600 bytes"):
        parcel.open()


def test_data_in_a_file_are_read_by_the_workers(client, scattered, tmp_path):
    path = tmp_path / "numbers"
    np.random.default_rng(1).normal(size=200_000).tofile(path)
    data = np.memmap(path, np.float64, "r")
    found = vs.statistic(np.mean, data, k=20, B=128, rng=1)
    assert sum(map(sys.getsizeof, scattered)) < 20_000
    expected = vs.statistic(np.mean, data, k=20, B=128, rng=1, n_jobs=1)
    assert_array_equal(found.values, expected.values)


def test_what_cannot_travel_is_refused_with_a_way_out(client):
    lock = threading.Lock()

    def kernel(x):
        with lock:
            return x.mean()

    with pytest.raises(TypeError, match=r"cannot be sent .*n_jobs=1"):
        vs.statistic(kernel, np.arange(20.0), k=5, B=64, rng=1)
    vs.statistic(kernel, np.arange(20.0), k=5, B=64, rng=1, n_jobs=1)


# Processes of one machine, and Ray: in a process of their own, which has no threads.

PROCESSES = """
import sys, joblib, warnings
import numpy as np
import vstatkit as vs

data = vs.datasets.mars(60, rng=1)


def numbers(kernel, **options):
    res = vs.fit("y ~ x1 + x2", data, k=20, B=256, rng=2, kernel=kernel, **options)
    yield res.values
    if res.predictor is not None:
        yield res.get_prediction(data).summary_frame().to_numpy()
        yield res.predict(data).to_numpy()
    table = vs.studies.coverage(
        lambda rng: vs.datasets.mars(30, rng=rng), "y ~ x1 + x2", k=10, B=64, rng=1,
        kernel=kernel, iterations=4, at=data[:2] if kernel == "forest" else None,
        **options,
    )
    yield table.select_dtypes("number").to_numpy()


if __name__ == "__main__":
    backend = sys.argv[1]
    if backend == "ray":
        from ray.util.joblib import register_ray
        register_ray()
    for kernel in ("forest", "ols", lambda rows: rows["y"].median()):
        one = list(numbers(kernel, n_jobs=1))
        with joblib.parallel_config(backend, n_jobs=2):
            two = list(numbers(kernel))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    assert "distributed" not in sys.modules
    print("identical")
"""


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "ray"])
def test_processes_give_the_numbers_of_one_thread(backend, tmp_path):
    if backend == "ray":
        pytest.importorskip("ray", exc_type=ImportError)
    script = tmp_path / "script.py"
    script.write_text(PROCESSES, encoding="utf-8")
    spare = tmp_path / "temporary"
    spare.mkdir()
    root = str(Path(__file__).parents[2])
    paths = [root, os.environ.get("PYTHONPATH", "")]
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "JOBLIB_TEMP_FOLDER": str(spare),
        "HOME": str(tmp_path),  # where Ray leaves files
    }
    done = subprocess.run(
        [sys.executable, str(script), backend],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "identical"
    assert not list(spare.glob("vstatkit-*"))
