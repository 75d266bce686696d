"""Killed while saving, the old or the new file is there, and it can be read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KILLS = 200
PROJECT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")
def test_the_old_or_the_new_file_is_always_there(tmp_path):
    path = tmp_path / "results.npz"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.kill_while_saving",
            str(path),
            str(KILLS),
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = np.array(json.loads(run.stdout))
    assert found.shape == (KILLS, 2)
    assert (found.sum(axis=1) == 1).all()
    # The kills came at all times: after a first save, and between the two.
    assert found.any(axis=0).all()
