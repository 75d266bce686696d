"""R in this process: threads, warnings, output, errors, values both ways."""

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import r_bridge
import vstatkit as vs
from r_bridge.objects import RObject

pytestmark = pytest.mark.r


def in_thread(work):
    """Run in a worker thread; what it returns or raises comes back."""
    box = {}

    def guarded():
        try:
            box["value"] = work()
        except Exception as error:
            box["error"] = error

    worker = threading.Thread(target=guarded)
    worker.start()
    worker.join()
    if "error" in box:
        raise box["error"]
    return box["value"]


def test_calls_work_from_a_worker_thread(session):
    x = np.arange(6.0).reshape(2, 3)
    found = in_thread(lambda: session.call("function(x) x %*% t(x)", x))
    assert_array_equal(found, x @ x.T)


def test_a_whole_comparison_works_from_a_worker_thread(session):
    data = vs.datasets.mars(30, rng=1)
    found = in_thread(lambda: r_bridge.compare_ranger("y ~ x1", data, k=10, B=60))
    assert found.ok


def test_many_threads_take_turns(session):
    found = {}

    def work(j):
        found[j] = session.call("function(x) sum(x)", np.full(1000, float(j)))[0]

    workers = [threading.Thread(target=work, args=(j,)) for j in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == {j: 1000.0 * j for j in range(8)}


def test_r_starts_in_a_worker_thread_without_a_warning(session):
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import threading, os\n"
        "from r_bridge import session\n"
        "before = os.environ.get('LD_LIBRARY_PATH')\n"
        "t = threading.Thread(target=lambda: print(session.call('sum', 1.0, 2.0)[0]))\n"
        "t.start(); t.join()\n"
        "print(os.environ.get('LD_LIBRARY_PATH') == before)\n"
    )
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["3.0", "True"]


def test_all_letters_are_read_in_the_c_locale(session):
    code = "from r_bridge import session; print(ascii(session.call('toupper', 'ö')[0]))"
    answer = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == ascii("Ö")


def test_the_library_path_stays_as_it_was(session):
    session.start()
    assert "/usr/lib/R/lib" not in os.environ.get("LD_LIBRARY_PATH", "")


def test_values_go_and_come_back(session):
    given = {
        "flag": True,
        "whole": 3,
        "number": 2.5,
        "text": "ä b",
        "texts": ["x", None],
        "matrix": np.arange(6).reshape(2, 3),
        "nothing": None,
        "many": [1.0, "two", np.array([3.0, 4.0])],
    }
    back = session.call("identity", given)
    assert back["flag"].tolist() == [True]
    assert back["whole"].tolist() == [3]
    assert back["number"].tolist() == [2.5]
    assert back["text"].tolist() == ["ä b"]
    assert back["texts"].tolist() == ["x", None]
    assert_array_equal(back["matrix"], given["matrix"])
    assert back["nothing"] is None
    assert [one.tolist() for one in back["many"]] == [[1.0], ["two"], [3.0, 4.0]]


def test_missing_values_come_as_missing(session):
    back = session.call("function() list(a = c(1L, NA), b = c(TRUE, NA), c = NA_real_)")
    assert_array_equal(back["a"], [1, np.nan])
    assert_array_equal(back["b"], [1, np.nan])
    assert np.isnan(back["c"]).all()


def test_reading_numbers_loses_no_references(session):
    # rpy2's memoryview loses one to None at a time; Python 3.11 dies of it.
    session.call("function() 1")
    # Garbage of other tests refers to None too: it is collected first, not meanwhile.
    gc.collect()
    gc.disable()
    try:
        before = sys.getrefcount(None)
        for _ in range(300):
            session.call("function() list(1.5, 1L, TRUE, 'a')")
        lost = before - sys.getrefcount(None)
    finally:
        gc.enable()
    assert abs(lost) < 300


def test_what_has_no_place_in_r_is_refused(session):
    with pytest.raises(TypeError, match="no place for complex"):
        session.call("identity", np.complex128(1j))


def test_other_objects_stay_in_r(session):
    found = session.call("function() quote(a + b)")
    assert isinstance(found, RObject)
    assert repr(found) == "<R object of class call>"


def test_warnings_of_r_are_warnings_here(session):
    with pytest.warns(r_bridge.RWarning, match="NaNs produced"):
        assert np.isnan(session.call("sqrt", -1.0)[0])


def test_what_r_prints_or_says_is_a_warning_here(session, capfd):
    with pytest.warns(r_bridge.ROutputWarning, match="(?s)hello.*42"):
        session.call("function() { message('hello'); print(42); invisible(1) }")
    assert capfd.readouterr() == ("", "")


def test_an_error_in_r_shows_its_message_and_r_lives_on(session):
    with pytest.raises(r_bridge.RError, match="R stopped: no such luck"):
        session.call("stop", "no such luck")
    assert session.call("sum", 1.0, 2.0)[0] == 3.0


@pytest.mark.parametrize(
    "code",
    [
        "function() Sys.sleep(30)",
        "function() repeat 1",
        "function() tryCatch(repeat 1, interrupt = function(i) 'went on')",
    ],
)
def test_an_interrupt_stops_r_and_r_lives_on(session, code):
    session.start()
    before = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.call(code)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert session.call("sum", 1.0, 2.0)[0] == 3.0


def test_a_jump_to_rs_top_level_is_an_error(session):
    with pytest.raises(r_bridge.RError, match="R stopped, and gave no reason"):
        session.call("function() invokeRestart('abort')")
    assert session.call("sum", 1.0, 2.0)[0] == 3.0


@pytest.mark.parametrize("code", ["no_such_function", "function( {"])
def test_code_that_r_cannot_read_is_an_error_of_rs(session, code):
    with pytest.raises(r_bridge.RError, match=r"not found|unexpected"):
        session.call(code)


def test_objects_are_found_by_name_by_file_and_by_handle(session, tmp_path):
    session.call("function() { assign('kept_here', 1:3, globalenv()); NULL }")
    path = tmp_path / "größe 1.rds"
    session.call("function(path) saveRDS(4:6, path)", str(path))
    for given, expected in [("kept_here", [1, 2, 3]), (path, [4, 5, 6])]:
        found = session.find(given)
        assert session.call("identity", found).tolist() == expected
        assert session.find(found) is found
        assert session.call("sum", session.find(found.sexp))[0] == sum(expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("not_there", r_bridge.RError, "has no object 'not_there'"),
        ("not_there.rds", FileNotFoundError, "no file not_there.rds"),
        (3, TypeError, "got int"),
    ],
)
def test_objects_that_are_not_there(session, given, error, message):
    with pytest.raises(error, match=message):
        session.find(given)
