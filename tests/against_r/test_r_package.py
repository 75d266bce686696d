"""The R package: R's own check of it, which runs its examples and its tests."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import r_bridge
import vstatkit as vs
from r_bridge import r_package
from vstatkit.kernels.base import OutOfBag


def run(folder, *arguments):
    """Run R, with this Python behind reticulate; the package's tests must not skip."""
    environment = {
        "RETICULATE_PYTHON": sys.executable,
        "VSTATKIT_REQUIRED": "yes",
        "LC_ALL": "C.UTF-8",
        # Packages that are only suggested may be missing.
        "_R_CHECK_FORCE_SUGGESTS_": "false",
    }
    command = [shutil.which("R"), "CMD", *arguments]
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the processes that R started, too
            raise
    return subprocess.CompletedProcess(command, process.returncode, *output)


def reports(folder):
    """What R wrote about the check and the tests."""
    files = [folder / "00check.log", *sorted(folder.rglob("*.Rout.fail"))]
    return "\n".join(file.read_text("utf-8")[-4000:] for file in files)


@pytest.mark.r
def test_r_checks_the_package_without_errors_or_warnings(reticulate, tmp_path):
    built = run(tmp_path, "build", r_bridge.r_folder())
    assert built.returncode == 0, built.stdout + built.stderr
    (archive,) = tmp_path.glob("vstatkit_*.tar.gz")
    checked = run(tmp_path, "check", "--no-manual", archive.name)
    report = reports(tmp_path / "vstatkit.Rcheck")
    assert checked.returncode == 0, report
    (status,) = re.findall("^Status: (.*)$", report, re.MULTILINE)
    assert "WARNING" not in status, report
    assert "ERROR" not in status, report
    for name in ("fits", "formulas", "conditions", "forests", "habits", "predictions"):
        assert f"Running ‘{name}.R’" in report


def test_the_r_package_has_the_version_of_the_python_package():
    folder = r_bridge.r_folder()
    with open(os.path.join(folder, "DESCRIPTION"), encoding="utf-8") as file:
        (version,) = re.findall("^Version: (.*)$", file.read(), re.MULTILINE)
    assert version == vs.__version__


def few(**options):
    data = vs.datasets.mars(80, rng=1).assign(g=["a", "b"] * 40)
    return data, vs.fit("y ~ x1 + g", data, B=60, rng=1, **options)


def test_errors_and_warnings_are_answers():
    data, _ = few()
    answer = r_package.ask("fit", "y ~ x9", data, {"B": 20})
    assert answer.value is None
    assert answer.kind == "FormulaError"
    assert answer.failed.startswith("'x9' is not a column of the data")
    answer = r_package.ask("fit", "y ~ I(x1^2)", data, {"B": 20, "k": 1, "rng": 1})
    assert answer.failed is None
    assert answer.warned == [
        "k=1 is one observation a subsample; k=1.0, the fraction, is all of them."
    ]
    assert answer.value.B == 20


def test_an_interrupt_within_an_interrupt_is_an_interrupt(monkeypatch):
    """reticulate's handler of signals raises what R's callback made of the second."""
    names = {"__name__": "rpytools.signals"}
    exec("def handle(): raise RuntimeError('(Unknown exception occurred)')", names)
    monkeypatch.setitem(r_package._FUNCTIONS, "fit", names["handle"])
    with pytest.raises(KeyboardInterrupt):
        r_package.ask("fit")


def test_formulas_see_no_names_of_the_bridge():
    data, _ = few()
    assert (
        "'texts' is not a column" in r_package.ask("fit", "y ~ texts", data, {}).failed
    )


def test_out_of_bag_predictions_are_named_as_in_r():
    data, res = few()
    found = r_package.out_of_bag(res)
    assert found["rows"][:2] == ["1", "2"]
    fitted = np.array(found["fitted"][0])
    known = np.isfinite(fitted)
    assert_allclose(np.array(found["y"]), data["y"])
    assert_allclose(
        np.sqrt(np.mean((data["y"] - fitted)[known] ** 2)), res.scores.table["OOB RMSE"]
    )
    with pytest.raises(ValueError, match="oob = FALSE"):
        r_package.out_of_bag(few(oob=False)[1])


def test_influences_have_the_row_names_of_r():
    data, _ = few()
    data.loc[2, "x1"] = np.nan
    res = r_package.ask("fit", "y ~ x1", data, {"B": 60, "rng": 1}).value
    assert res.influence().index[:3].tolist() == ["1", "2", "4"]
    assert r_package.out_of_bag(res)["rows"][:3] == ["1", "2", "4"]
    assert "80" in res.more(80).units
    assert "training rows" in str(res.avg_predictions(data.drop(2)).rows)
    data["pair"] = np.arange(80) // 2
    options = {"B": 60, "rng": 1, "groups": "pair"}
    clusters = r_package.ask("fit", "y ~ g", data, options).value
    assert clusters.units[:3].tolist() == [0, 1, 2]


def test_rows_that_were_not_scored_are_missing():
    """Of many observations only some are scored."""
    _, res = few()
    oob, rows = res.recipe.oob, np.array([3, 5])
    few_rows = OutOfBag(oob.total[rows], oob.times[rows], rows)
    some = replace(res.recipe, oob=few_rows)
    fitted = np.array(r_package.out_of_bag(replace(res, recipe=some))["fitted"][0])
    assert np.flatnonzero(np.isfinite(fitted)).tolist() == [3, 5]
    assert_allclose(fitted[[3, 5]], res.recipe.oob.mean[[3, 5], 0])


def test_rows_with_names_keep_them_and_classes_count_from_one():
    data = vs.datasets.iris().set_index(pd.Index([f"r{j}" for j in range(150)]))
    res = vs.fit("species ~ petal_length", data, B=60, rng=1)
    found = r_package.out_of_bag(res)
    assert found["rows"][-1] == "r149"
    assert len(found["fitted"]) == 3
    assert set(found["y"]) == {1, 2, 3}
    assert found["classes"] == ["setosa", "versicolor", "virginica"]


def test_every_effect_has_a_name_of_its_own():
    data, res = few()
    table = r_package.effects(res, 0.1)
    assert table["term"].tolist() == ["x1", "g (a -> b)"]
    assert_allclose(table["ci_lower"], res.effects_frame(0.1)["ci_lower"])
    data["step"] = [4, 6, 8, 6] * 20
    numbers = vs.fit("y ~ C(step)", data, B=60, rng=1)
    found = r_package.effects(numbers, 0.1)["term"].tolist()
    assert found == ["step (4 -> 6)", "step (4 -> 8)"]
    line = vs.fit("y ~ x1", data, kernel="ols", B=60, rng=1)
    assert r_package.effects(line, 0.1) is None
