"""R as a process of its own, with this Python behind reticulate."""

import os
import shutil
import subprocess
import sys

import pytest


def rscript(code, folder):
    """Run R with this Python behind reticulate; give what it prints."""
    file = folder / "script.R"
    file.write_text(code, encoding="utf-8")
    answer = subprocess.run(
        [shutil.which("Rscript"), "--vanilla", str(file)],
        env={**os.environ, "RETICULATE_PYTHON": sys.executable, "LC_ALL": "C.UTF-8"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture
def reticulate(session, tmp_path):
    """Run scripts in R with reticulate."""
    code = "function() requireNamespace('reticulate', quietly = TRUE)"
    if not session.call(code)[0]:
        pytest.skip("not installed: reticulate")
    return lambda code: rscript(code, tmp_path)
