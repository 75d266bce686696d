"""Files are written whole, or not at all."""

import os
import signal
import stat
import threading

import pytest

import vstatkit as vs
from vstatkit.cli import main
from vstatkit.storage.atomic_files import write_text_whole, write_whole


def fail(file):
    file.write(b"half")
    raise OSError(28, "No space left on device")


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.txt"]


def test_permissions_stay_and_new_files_follow_the_umask(tmp_path):
    path, new = tmp_path / "a", tmp_path / "b"
    path.write_text("old")
    path.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_text_whole(path, "néw")
        write_text_whole(new, "new")
    finally:
        os.umask(before)
    assert path.read_text(encoding="utf-8") == "néw"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    path.chmod(0o600)
    write_text_whole(path, "again")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text_whole(pipe, "through")
    reader.join(10)
    assert read == ["through"]


def test_ctrl_c_waits_until_the_file_is_whole(tmp_path):
    path = tmp_path / "a"

    def press(file):
        os.kill(os.getpid(), signal.SIGINT)
        file.write(b"whole")

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, press)
    assert path.read_text() == "whole"


def test_the_file_is_synced_before_it_is_moved(tmp_path, monkeypatch):
    done = []
    sync, move = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (done.append("sync"), sync(f)))
    monkeypatch.setattr(os, "replace", lambda *a: (done.append("move"), move(*a)))
    write_text_whole(tmp_path / "a", "x")
    assert done == ["sync", "move", "sync"]


@pytest.mark.parametrize("ending", ["csv", "html", "tex", "txt"])
def test_the_command_keeps_the_old_table_when_the_disk_is_full(
    ending, tmp_path, monkeypatch, capsys
):
    data, out = tmp_path / "d.csv", tmp_path / f"t.{ending}"
    vs.datasets.mars(30, rng=1).to_csv(data, index=False)
    command = ["fit", "y ~ x1", str(data), "--B", "10", "--seed", "1"]
    assert main([*command, "--out", str(out)]) == 0
    first = out.read_bytes()
    assert first

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main([*command, "--alpha", "0.5", "--out", str(out)]) == 2
    assert out.read_bytes() == first
    assert sorted(os.listdir(tmp_path)) == ["d.csv", out.name]
    assert "No space left" in capsys.readouterr().err


def test_saving_on_a_full_disk_keeps_the_old_results(tmp_path, monkeypatch):
    path = tmp_path / "r.npz"
    data = vs.datasets.mars(30, rng=1)
    vs.fit("y ~ x1", data, B=10, rng=1).save(path)
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        vs.fit("y ~ x2", data, B=10, rng=2).save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["r.npz"]
