"""R in a process of its own: exact values, faults, and the bridge inside R."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import r_bridge
from r_bridge import session as bridge_session
from r_bridge.host import inside_r
from r_bridge.objects import RObject
from r_bridge.serial import dumps, loads
from r_bridge.worker import Worker

pytestmark = pytest.mark.r


@pytest.fixture
def apart(session, monkeypatch):
    """The bridge with R in a process of its own."""
    running = []
    monkeypatch.setattr(bridge_session, "_RUNNING", running)
    monkeypatch.setattr(bridge_session, "inside_r", lambda: True)
    yield session
    for one in running:
        one.close()


def test_this_python_is_not_inside_r_though_rpy2_has_started_one(session):
    session.call("sum", 1.0)
    assert not inside_r()


def test_every_double_crosses_bit_by_bit(apart):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, 5000, dtype=np.uint64).view(np.float64)
    numbers = np.r_[bits[np.isfinite(bits)], 0.0, -0.0, 5e-324, np.inf, -np.inf]
    back = apart.call("identity", numbers)
    assert_array_equal(back.view(np.uint64), numbers.view(np.uint64))
    # R itself must see the same numbers: it writes them in hexadecimal.
    seen = apart.call("function(x) sprintf('%a', x)", numbers[:50])
    assert [float.fromhex(one) for one in seen] == numbers[:50].tolist()


def same(a, b):
    """Compare values with arrays anywhere in them."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        kinds = (a.dtype, a.shape) == (b.dtype, b.shape)
        return kinds and a.tolist() == b.tolist()
    return a is None and b is None


def test_values_are_those_that_rpy2_gives(apart, monkeypatch):
    given = {
        "flag": True,
        "whole": 3,
        "text": "ä b",
        "texts": ["x", None],
        "matrix": np.arange(6).reshape(2, 3),
        "cube": np.arange(24.0).reshape(2, 3, 4),
        "nothing": None,
        "many": [1.0, "two", np.array([3.0, 4.0])],
    }
    codes = ["identity", "function(x) factor(c('u', 'v', 'u'))", "function(x) x$cube"]
    codes += ["function(x) data.frame(a = 1:2, b = c(0.5, 1))", "function(x) NULL"]
    codes += ["function(x) matrix(c('a', NA, 'ö', 'd'), 2)", "function(x) list(1, 'a')"]
    ours = [apart.call(code, given) for code in codes]
    monkeypatch.undo()
    theirs = [bridge_session.call(code, given) for code in codes]
    assert all(map(same, ours, theirs))
    assert loads(dumps({"a": [1.5, None]}))["a"][0].tolist() == [1.5]


def test_missing_values_and_long_text_cross(apart):
    back = apart.call("function() list(a = c(1L, NA), b = c(TRUE, NA), c = NA_real_)")
    assert_array_equal(back["a"], [1, np.nan])
    assert_array_equal(back["b"], [1, np.nan])
    assert np.isnan(back["c"]).all()
    assert apart.call("nchar", "ö" * 100_000)[0] == 100_000


def test_whole_numbers_that_r_cannot_hold_are_refused(apart):
    with pytest.raises(TypeError, match="32 bits"):
        apart.call("identity", np.array([2**31]))
    with pytest.raises(TypeError, match="no place for complex"):
        apart.call("identity", np.complex128(1j))


def test_objects_stay_in_r_until_nobody_needs_them(apart):
    kept = apart.keep("function() quote(a + b)")
    assert kept.classes == ("call",)
    assert apart.call("function(x) deparse(x)", kept)[0] == "a + b"
    assert isinstance(apart.call("function() list(1, quote(z))")[1], RObject)
    worker = apart.start()
    number = kept.sexp.number
    del kept
    assert number in worker.gone
    apart.call("sum", 1.0)
    assert number not in worker.gone


def test_what_r_says_reaches_python(apart):
    with pytest.warns(r_bridge.RWarning, match="NaNs produced"):
        assert np.isnan(apart.call("sqrt", -1.0)[0])
    with pytest.warns(r_bridge.ROutputWarning, match="(?s)hello.*42"):
        apart.call("function() { message('hello'); print(42); invisible(1) }")
    with pytest.warns(r_bridge.ROutputWarning, match="from a child"):
        apart.call("function() invisible(system('echo from a child'))")
    with pytest.raises(r_bridge.RError, match="R stopped: no such luck"):
        apart.call("stop", "no such luck")


def test_threads_take_turns(apart):
    found = {}

    def work(j):
        found[j] = apart.call("function(x) sum(x)", np.full(1000, float(j)))[0]

    workers = [threading.Thread(target=work, args=(j,)) for j in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert found == {j: 1000.0 * j for j in range(6)}


def test_an_r_that_ends_is_an_error_and_another_one_starts(apart):
    with pytest.raises(r_bridge.RError, match="the process of R ended with code"):
        apart.call("function() tools::pskill(Sys.getpid(), tools::SIGKILL)")
    assert apart.call("sum", 1.0, 2.0)[0] == 3.0
    assert isinstance(apart.start(), Worker)


QUITS = ["quit()", "q('no')", "base::quit(status = 3)", "quit('no', 0, FALSE)"]


@pytest.mark.parametrize("apart_or_not", ["apart", "session"])
def test_quit_is_an_error_and_r_lives_on(request, apart_or_not):
    request.getfixturevalue(apart_or_not)
    code = "\n".join(
        [
            "import r_bridge",
            "from r_bridge import session",
            f"if {apart_or_not == 'apart'}: session.inside_r = lambda: True",
            f"for code in {QUITS!r}:",
            "    try: session.call('function() ' + code)",
            "    except r_bridge.RError as error: print(error)",
            "print(session.call('function() body(quit)').classes)",
            "print(session.call('sum', 1.0, 2.0)[0], 'alive')",
        ]
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("quit() was called") == len(QUITS)
    assert answer.stdout.endswith("3.0 alive\n")


def test_quit_is_rs_own_again_after_a_call(session):
    session.call("sum", 1.0)
    r = session.start()
    with r.lock:
        body = "paste(deparse(body(base::quit)), collapse = '')"
        assert ".Internal(quit(" in r.ri.evalr(body)[0]
        assert r.ri.evalr("bindingIsLocked('quit', baseenv())")[0]


def test_objects_are_found_in_images(session, tmp_path):
    one, two, none = (tmp_path / f"{name}.RData" for name in ("one", "two", "none"))
    session.call(
        "function(one, two, none) { a <- 1:3; b <- 4:6; save(a, file = one); "
        "save(a, b, file = two); save(list = character(), file = none); NULL }",
        *map(str, (one, two, none)),
    )
    assert session.call("sum", session.find(one))[0] == 6
    assert session.call("sum", session.find(f"{two}::b"))[0] == 15
    with pytest.raises(r_bridge.RError, match=r"holds a, b; name one.*RData::a"):
        session.find(str(two))
    with pytest.raises(r_bridge.RError, match="holds a, b"):
        session.find(f"{two}::c")
    with pytest.raises(r_bridge.RError, match="holds nothing"):
        session.find(none)
    with pytest.raises(FileNotFoundError, match=r"no file missing\.rda"):
        session.find("missing.rda::x")


INSIDE = """
library(reticulate)
bridge <- import("r_bridge")
set.seed(1)
df <- data.frame(x1 = runif(60), kind = factor(rep(c("a", "b"), 30)))
df$y <- 3 * df$x1 + rnorm(60)
model <- ranger::ranger(y ~ ., df, num.trees = 60, keep.inbag = TRUE, num.threads = 1)
saveRDS(model, "m.rds")
save(model, file = "m.RData")
forest <- function(x) ranger:::predict.ranger(model, x, num.threads = 1)$predictions
"""


def test_forests_are_read_inside_r_from_files_by_name_and_as_they_are(reticulate):
    printed = reticulate(
        INSIDE
        + """
        given <- list("m.rds", "m.RData", "model", model)
        for (one in given) {
          res <- bridge$from_ranger(one, df, df[1:3, ], variance = "ij_u")
          stopifnot(all.equal(as.numeric(res$params), forest(df[1:3, ]),
                              tolerance = 1e-14))
          stopifnot(all.equal(res$predict(df[4:6, ]),
                              setNames(forest(df[4:6, ]), 4:6), tolerance = 1e-14))
        }
        all <- predict(model, df[1:3, ], predict.all = TRUE, num.threads = 1)
        counts <- simplify2array(model$inbag.counts)
        jack <- ranger:::rInfJack(all$predictions, counts, calibrate = FALSE)
        ours <- as.numeric(res$components$sampling)
        stopifnot(all.equal(ours, jack$var.hat, tolerance = 1e-10))
        wrong <- try(bridge$from_ranger("nobody", df, df[1:3, ]), silent = TRUE)
        stopifnot(grepl("has no object 'nobody'", wrong))
        stopifnot(bridge$compare_ranger(y ~ x1 + kind, df, k = 20L)$ok)
        cat("R lives on\\n")
        """
    )
    assert printed.endswith("R lives on\n")


def test_an_image_of_several_and_a_wrong_class_are_explained_inside_r(reticulate):
    printed = reticulate(
        INSIDE
        + """
        line <- lm(y ~ x1, df)
        save(line, model, file = "two.RData")
        wrong <- try(bridge$from_ranger("two.RData", df, df), silent = TRUE)
        stopifnot(grepl("holds line, model", wrong))
        wrong <- try(bridge$from_ranger(line, df, df), silent = TRUE)
        stopifnot(grepl("must be a forest of ranger::ranger", wrong))
        res <- bridge$from_ranger("two.RData::model", df, df[1:2, ])
        stopifnot(length(res$params) == 2)
        cat("R lives on\\n")
        """
    )
    assert printed.endswith("R lives on\n")


ABANDONED = """
import os
from r_bridge import session
session.inside_r = lambda: True
session.call("sum", 1.0)
print(session.start().path, flush=True)
os._exit(0)
"""


def test_the_folder_of_a_process_that_ended_abruptly_is_removed(session):
    """Inside R, Python ends without running what it has noted for its end."""
    answer = subprocess.run(
        [sys.executable, "-c", ABANDONED], capture_output=True, text=True, check=True
    )
    folder = Path(answer.stdout.split()[-1])
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert folder.name.startswith("r_bridge")
    assert not folder.exists()
