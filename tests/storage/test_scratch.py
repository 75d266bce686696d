"""Temporary files do not outlive their process, however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import vstatkit as vs
from vstatkit import scratch

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ends by signals")

PROJECT = Path(__file__).parents[2]

SIGNALS = scratch.ENDINGS

FIT = """
import os, signal, sys, time
import vstatkit as vs
res = vs.fit("y ~ x1 + x2", "data.csv", B=20, rng=1)
print("ready", flush=True)
time.sleep(60)
"""

PREDICT = """
import sys, time
import vstatkit as vs
from vstatkit.results import ensemble_results
res = vs.fit("y ~ x1 + x2", "data.csv", B=20, rng=1)
def slow(results, batch):
    print("ready", flush=True)
    time.sleep(60)
ensemble_results.predict_means = slow
res.predict("data.csv", out="out.csv")
"""

OWN_HANDLER = """
import signal, sys
def mine(number, frame):
    sys.exit(7)
signal.signal(signal.SIGTERM, mine)
"""


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A directory for temporary files, and data to read batch after batch."""
    vs.datasets.mars(80, rng=1).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    # Results of other tests may still have files, and the handlers of signals.
    monkeypatch.setattr(scratch, "_FOLDERS", {})
    monkeypatch.setattr(scratch, "_BESIDE", set())
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield tmp_path / "room"
    for number, handler in handlers.items():
        signal.signal(number, handler)


def start(code, room):
    """Run code until it says that it is ready."""
    path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=room.parent,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(room), "PYTHONPATH": path},
    )
    assert run.stdout.readline() == "ready\n"
    return run


def end(run, number):
    run.send_signal(number)
    code = run.wait(timeout=60)
    run.stdout.close()
    return code


def held(room):
    return [path for path in room.rglob("*") if path.is_file()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_program_leaves_no_files(number, room):
    run = start(FIT, room)
    assert sum(path.stat().st_size for path in held(room)) > 80 * 8
    assert end(run, number) == -number  # as if the signal had not been handled
    assert not list(room.iterdir())


def test_a_handler_of_the_program_is_its_own(room):
    assert end(start(OWN_HANDLER + FIT, room), signal.SIGTERM) == 7
    assert not list(room.iterdir())


def test_files_of_killed_programs_are_removed_by_the_next(room):
    killed, alive = start(FIT, room), start(FIT, room)
    before = set(room.iterdir())
    assert len(before) == 2
    end(killed, signal.SIGKILL)
    assert set(room.iterdir()) == before
    res = vs.fit("y ~ x1", room.parent / "data.csv", B=20, rng=1)
    mine = next(iter(scratch._FOLDERS.values())).path
    left = set(room.iterdir()) - {mine}
    assert len(left) == 1  # the live program's
    assert left < before
    assert any(path.name != scratch.LOCK for path in held(left.pop()))
    assert res.nobs == 80
    end(alive, signal.SIGTERM)


def test_folders_of_others_are_left_alone(room):
    (room / "vstatkit-other").mkdir()
    (room / "vstatkit-other" / "rows").write_text("without a lock")
    (room / "elsewhere").mkdir()
    (room / "elsewhere" / scratch.LOCK).touch()
    (room / "vstatkit-link").symlink_to(room / "elsewhere")
    (room / "vstatkit-file").touch()
    before = sorted(room.rglob("*"))
    scratch.remove_abandoned(room)
    assert sorted(room.rglob("*")) == before
    scratch.remove_abandoned(room / "missing")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_half_written_predictions_are_removed(number, room):
    end(start(PREDICT, room), number)
    parts = list(room.parent.glob(".out.csv*"))
    assert len(parts) == (number == signal.SIGKILL)
    res = vs.fit("y ~ x1", room.parent / "data.csv", B=20, rng=1)
    res.predict(room.parent / "data.csv", out=room.parent / "out.csv")
    assert not list(room.parent.glob(".out.csv*"))


def test_signals_are_the_systems_again_without_files(room):
    before = signal.getsignal(signal.SIGTERM)
    assert before == signal.SIG_DFL
    owner = threading.Event()
    scratch.remove_with(owner, scratch.scratch_file(".rows"))
    assert signal.getsignal(signal.SIGTERM) == scratch._end
    with scratch.removed_if_ended(room / "some"):
        del owner
        assert signal.getsignal(signal.SIGTERM) == scratch._end
    assert signal.getsignal(signal.SIGTERM) == before
    assert not list(room.iterdir())


def test_a_new_handler_is_not_replaced(room):
    def mine(number, frame):
        """Do nothing."""

    before = signal.getsignal(signal.SIGTERM)
    try:
        owner = threading.Event()
        scratch.remove_with(owner, scratch.scratch_file(".rows"))
        signal.signal(signal.SIGTERM, mine)
        other = threading.Event()
        scratch.remove_with(other, scratch.scratch_file(".rows"))
        assert signal.getsignal(signal.SIGTERM) == mine
        del owner, other
        assert signal.getsignal(signal.SIGTERM) == mine
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(room.iterdir())


def test_threads_and_forked_processes_may_use_files(room):
    made = []
    thread = threading.Thread(target=lambda: made.append(scratch.scratch_file(".a")))
    thread.start()
    thread.join()
    owner = threading.Event()
    scratch.remove_with(owner, made[0])
    assert made[0].exists()
    # Another process's file: its finalizer here must not remove it.
    scratch._remove(made[0], None, os.getpid() + 1)
    assert made[0].exists()
    del owner
    assert not list(room.iterdir())


FORKS = """
import os, signal, threading
from vstatkit import scratch
owner = threading.Event()
scratch.remove_with(owner, scratch.scratch_file(".rows"))
assert signal.getsignal(signal.SIGTERM) == scratch._end
child = os.fork()
if child == 0:
    os._exit(0 if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL else 1)
assert os.waitpid(child, 0)[1] == 0
print("ready", flush=True)
"""


def test_forked_workers_have_the_systems_signals(room):
    """Otherwise a pool could wait forever for a worker that it has terminated."""
    with start(FORKS, room) as run:
        assert run.wait(timeout=60) == 0
