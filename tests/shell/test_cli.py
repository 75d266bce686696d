import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import vstatkit as vs
from vstatkit.cli import main


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "data.csv"
    vs.datasets.mars(60, rng=1).to_csv(path, index=False)
    return str(path)


def test_demo_prints_and_draws(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert main(["demo", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "Forest Results" in text
    assert "mean_ci_lower" in text
    assert f"Picture written to {picture}" in text
    assert picture.stat().st_size > 10_000


def test_fit_prints_the_summary(csv, capsys):
    arguments = ["fit", "y ~ x1 + x2", csv, "--B", "50", "--seed", "1"]
    assert main(arguments) == 0
    expected = vs.fit("y ~ x1 + x2", pd.read_csv(csv), B=50, rng=1)
    assert capsys.readouterr().out == f"{expected.summary()}\n"


def test_fit_takes_all_its_options(csv, tmp_path, capsys):
    at = tmp_path / "at.csv"
    pd.DataFrame({"x1": [0.2, 0.8], "x2": [0.5, 0.5]}).to_csv(at, index=False)
    out = tmp_path / "table.csv"
    options = ["--at", str(at), "--k", "0.3", "--B", "40", "--without-replacement"]
    options += ["--variance", "ij_u", "--out", str(out), "--seed", "1"]
    status = main(["fit", "y ~ x1 + x2", csv, *options])
    assert status == 0
    text = capsys.readouterr().out
    assert "U (without replacement)" in text
    assert "IJ-U" in text
    whole = pd.read_csv(out).set_index("table")
    known = whole.drop(index="predictions")
    ratio = known["estimate"] / known["std_error"]
    np.testing.assert_allclose(known["statistic"], ratio)
    assert "t" not in whole
    table = whole.loc["predictions"]
    expected = vs.fit(
        "y ~ x1 + x2",
        pd.read_csv(csv),
        k=0.3,
        B=40,
        replace=False,
        variance="ij_u",
        rng=1,
    ).get_prediction(pd.read_csv(at))
    columns = ["estimate", "std_error", "obs_ci_lower", "obs_ci_upper"]
    theirs = ["mean", "mean_se", "obs_ci_lower", "obs_ci_upper"]
    assert np.array_equal(table[columns], expected.summary_frame()[theirs])


@pytest.mark.parametrize(
    ("suffix", "marker"),
    [
        ("html", "<table"),
        ("tex", r"\begin{tabular}"),
        ("txt", "Notes:"),
        ("csv", "term"),
    ],
)
def test_tables_are_written_in_four_formats(csv, tmp_path, suffix, marker):
    out = tmp_path / f"table.{suffix}"
    main(["fit", "y ~ x1", csv, "--kernel", "ols", "--B", "30", "--out", str(out)])
    assert marker in out.read_text(encoding="utf-8")


def test_coefficients_predict_at_given_points(csv, tmp_path, capsys):
    at = tmp_path / "at.csv"
    pd.DataFrame({"x1": [0.2]}).to_csv(at, index=False)
    main(["fit", "y ~ x1", csv, "--kernel", "ols", "--B", "30", "--at", str(at)])
    assert "Predictions:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["y ~ x9"], "'x9' is not a column"),
        (["y ~ __import__('os').getcwd()"], "not allowed"),
        (["y ~ x1", "--out", "table.doc"], "--out must end in one of"),
        (["y ~ x1", "--B", "many"], "--B must be a number"),
        (["y ~ x1", "--k", "some"], "expected a number; got 'some'"),
        (["y ~ x1", "--k", "90", "--without-replacement"], "at most n = 60"),
    ],
)
def test_errors_are_one_line_without_a_traceback(csv, capsys, arguments, message):
    formula, *options = arguments
    assert main(["fit", formula, csv, *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("vstatkit: error: ")
    assert message in captured.err
    assert captured.out == ""


def test_a_missing_file_is_named(capsys):
    assert main(["fit", "y ~ x", "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_early_is_no_error(csv, unbuffered):
    """`vstatkit fit ... | head`: as other programs, end without a word."""
    code = "import sys; from vstatkit.cli import main; sys.exit(main(sys.argv[1:]))"
    given = ["fit", "y ~ x1", csv, "--B", "20", "--seed", "1"]
    command = [sys.executable, "-W", "ignore", "-c", code, *given]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert said == ""
    assert process.returncode == 128 + 13
