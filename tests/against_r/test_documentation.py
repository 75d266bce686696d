"""The page on R: its Python runs here, its R through Rscript and reticulate."""

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import r_bridge
import vstatkit as vs
from r_bridge.reticulate import frame_columns

PAGE = Path(__file__).parents[2] / "docs" / "r_bridge.md"


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.r
def test_the_python_of_the_page_runs(random_forest, capsys):
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["same"].ok
    printed = capsys.readouterr().out
    assert "corrected-U" in printed
    assert re.search("Dep. Variable: +medv", printed)


@pytest.mark.r
def test_the_snippet_for_the_package_runs(reticulate, tmp_path):
    # In a folder of its own: what is called vstatkit here, Python would take for it.
    library = tmp_path / "library"
    library.mkdir()
    installed = subprocess.run(
        ["R", "CMD", "INSTALL", "--no-test-load", "-l", library, r_bridge.r_folder()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    printed = reticulate('.libPaths("library")\n' + blocks("r")[0])
    assert "Ozone by 500 learners (forest) on 45 of 116" in printed
    assert "37 rows with missing values dropped" in printed
    assert "Month (5 -> 6)" in printed
    assert re.search("2 +NA +NA +NA", printed)
    assert "OOB RMSE" in printed


@pytest.mark.r
def test_the_snippet_for_reticulate_runs(reticulate):
    printed = reticulate(blocks("r")[1])
    assert "Forest Results" in printed
    assert "Dep. Variable:" in printed
    assert "'data.frame':\t1 obs. of  5 variables" in printed
    assert "obs_ci_upper" in printed


@pytest.mark.r
def test_r_gets_the_numbers_that_python_gives(reticulate, tmp_path):
    data = vs.datasets.mars(60, rng=1).rename(columns={"x1": "my.x"})
    kinds = pd.Categorical(["a", "b"] * 30, ["a", "b", "unused"])
    data = data.assign(kind=kinds)
    data.to_csv(tmp_path / "data.csv", index=False)
    reticulate(
        """
        library(reticulate)
        vstatkit <- import("vstatkit")
        source(import("r_bridge")$r_file())
        df <- read.csv("data.csv")
        df$kind <- factor(df$kind, levels = c("a", "b", "unused"))
        res <- vstatkit$fit(y ~ I(my.x^2) + x2 + kind, df, B = 100L, rng = 1L)
        frame <- res$get_prediction(df[1:4, ])$summary_frame()
        stopifnot(is.data.frame(frame), nrow(frame) == 4)
        stopifnot(is.numeric(res$params), identical(names(res$bse), "typical"))
        line <- vstatkit$fit(y ~ x2, df, B = 50L, rng = 1L, kernel = "ols")
        stopifnot(identical(names(line$params), c("Intercept", "x2")))
        stopifnot(line$params[["x2"]] == line$summary_frame()["x2", "mean"])
        flat <- res$predict(df[1:3, ])
        stopifnot(is.numeric(flat), length(flat) == 3, is.null(names(flat)))
        write.csv(format(frame, digits = 15), "frame.csv", row.names = FALSE)
        wrong <- try(vstatkit$fit(y ~ rank(x2), df), silent = TRUE)
        stopifnot(grepl("`rank(...)` has no counterpart", wrong, fixed = TRUE))
        wrong <- try(vstatkit$fit(y ~ x22, df), silent = TRUE)
        stopifnot(grepl("did you mean 'x2'", wrong, fixed = TRUE))
        """
    )
    found = pd.read_csv(tmp_path / "frame.csv")
    formula = 'y ~ I(Q("my.x")**2) + x2 + kind'
    expected = vs.fit(formula, data, B=100, rng=1).get_prediction(data.head(4))
    expected = expected.summary_frame().reset_index(drop=True)
    assert_frame_equal(found, expected, rtol=1e-12)


def test_frames_are_taken_apart_for_r():
    frame = pd.DataFrame(
        {"a": [1.5, None], "b": [True, False], "c": ["x", None]}, index=["u", "v"]
    )
    parts = frame_columns(frame)
    assert parts["names"] == ["a", "b", "c"]
    assert parts["values"][0][0] == 1.5
    assert parts["values"][1:] == [[True, False], ["x", None]]
    assert parts["rows"] == ["u", "v"]
    assert frame_columns(frame.reset_index(drop=True))["rows"] is None
    assert frame_columns(frame.set_axis(["u", "u"]))["rows"] is None
