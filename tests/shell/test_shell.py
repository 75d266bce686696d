"""Tables as they are written in the wild, and answers in every format."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import vstatkit as vs
from vstatkit import cli
from vstatkit.cli import main
from vstatkit.exceptions import DataError
from vstatkit.shell import fit_command, input_tables, outputs
from vstatkit.shell.input_tables import TextFormat, open_table, read_text
from vstatkit.sources.csv_files import CsvSource
from vstatkit.validation import ARGUMENTS

QUICK = ["--B", "20", "--seed", "1"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "Größe": rng.normal(170, 10, 40).round(2),
            "living area": rng.integers(20, 300, 40),
            "zone": rng.choice(["Köln", "a, b"], 40),
        }
    )


def run(arguments, capsys):
    status = main(["fit", *map(str, arguments)])
    return status, *capsys.readouterr()


def printed(res, alpha=0.05):
    """What a shell shows of results: the summary."""
    return f"{res.summary(alpha)}\n"


def summary(frame, formula='Größe ~ Q("living area") + zone', **options):
    return printed(vs.fit(formula, frame, B=20, rng=1, **options))


def comma(frame):
    return frame.to_csv(index=False).encode()


def decimal_comma(frame):
    return frame.to_csv(index=False, sep=";", decimal=",").encode()


GERMAN = ["--sep", ";", "--decimal", ","]

WRITTEN = {
    "plain.csv": (comma, []),
    "tabs.tsv": (lambda d: d.to_csv(index=False, sep="\t").encode(), []),
    "tabs.txt": (lambda d: d.to_csv(index=False, sep="\t").encode(), ["--sep", "tab"]),
    "pipes.csv": (lambda d: d.to_csv(index=False, sep="|").encode(), ["--sep", "|"]),
    "german.csv": (decimal_comma, GERMAN),
    "mark.csv": (lambda d: b"\xef\xbb\xbf" + comma(d), []),
    "wide.csv": (
        lambda d: d.to_csv(index=False).encode("utf-16"),
        ["--encoding", "utf-16"],
    ),
    "old.csv": (
        lambda d: d.to_csv(index=False).encode("cp1252"),
        ["--encoding", "cp1252"],
    ),
    "windows.csv": (lambda d: comma(d).replace(b"\n", b"\r\n"), []),
    "mac.csv": (lambda d: comma(d).replace(b"\n", b"\r"), []),
    "spaced.csv": (lambda d: comma(d).replace(b",l", b", l", 1), []),
    "packed.csv.gz": (lambda d: gzip.compress(comma(d)), []),
    "packed.dat": (lambda d: gzip.compress(comma(d)), []),
    "quoted.csv": (lambda d: d.to_csv(index=False, quoting=1).encode(), []),
    "r.csv": (lambda d: d.to_csv().encode(), []),
    "r.txt": (
        lambda d: (
            '"Größe" "living area" "zone"\n'
            + d.to_csv(header=False, sep=" ", quoting=2)
        ).encode(),
        ["--sep", "space"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_tables_are_read_by_the_options(name, frame, tmp_path, capsys):
    write, options = WRITTEN[name]
    path = tmp_path / name
    path.write_bytes(write(frame))
    status, out, err = run(["Größe ~ .", path, *options, *QUICK], capsys)
    assert (status, out) == (0, summary(frame))
    assert ("the first field of a row" in err) if name[0] == "r" else err == ""


@pytest.mark.parametrize("name", ["tabs.txt", "pipes.csv", "german.csv", "wide.csv"])
def test_tables_are_not_misread_without_the_options(name, frame, tmp_path, capsys):
    write, options = WRITTEN[name]
    path = tmp_path / name
    path.write_bytes(write(frame))
    status, out, err = run(["Größe ~ .", path, *QUICK], capsys)
    assert (status, out) == (2, "")
    assert options[0] in err


@pytest.mark.parametrize("size", [input_tables.STREAMED_BYTES, 10])
def test_text_that_is_not_utf_8_is_refused(frame, tmp_path, capsys, monkeypatch, size):
    monkeypatch.setattr(input_tables, "STREAMED_BYTES", size)
    path = tmp_path / "data.csv"
    path.write_bytes(frame.to_csv(index=False).encode("cp1252"))
    status, out, err = run(["Größe ~ .", path, *QUICK], capsys)
    assert (status, out) == (2, "")
    assert f"{path} must be text in UTF-8; " in err
    assert "byte 0xf6" in err
    assert "--encoding cp1252" in err


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_wide_text_without_a_mark_is_refused(encoding):
    data = "name,x\na,1\n".encode(encoding)
    with pytest.raises(DataError, match=f"--encoding .*{encoding}"):
        read_text("data.csv", data, TextFormat(sep=","))
    table = read_text("data.csv", data, TextFormat(encoding=encoding)).data
    assert table["name"].to_list() == ["a"]


def test_decimal_commas_are_refused_without_the_option(frame, tmp_path, capsys):
    path = tmp_path / "data.csv"
    path.write_bytes(decimal_comma(frame))
    formula = 'Q("living area") ~ Größe'
    status, out, err = run([formula, path, "--sep", ";", *QUICK], capsys)
    assert (status, out) == (2, "")
    assert "'Größe' is text that looks like numbers" in err
    assert "--decimal" in err
    mixed = frame.assign(Größe=frame["Größe"].astype(str))
    mixed.loc[3, "Größe"] = "170,5"
    mixed.to_csv(path, index=False, sep=";")
    for how in ([], ["--decimal", ","]):
        status, out, err = run([formula, path, "--sep", ";", *how, *QUICK], capsys)
        assert (status, out) == (2, "")
        assert "'Größe' is text that looks like numbers" in err


def test_standard_input(frame, tmp_path, capsys, monkeypatch):
    at = tmp_path / "at.csv"
    frame.head(2).to_csv(at, index=False)
    for data in (comma(frame), gzip.compress(comma(frame)), parquet(frame)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        status, out, err = run(["Größe ~ .", "-", *QUICK], capsys)
        assert (status, out, err) == (0, summary(frame), "")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert run(["y ~ x", "-"], capsys)[2] == (
        "vstatkit: error: standard input is empty; it needs a header row and rows of "
        "data.\n"
    )
    assert "cannot both come" in run(["y ~ x", "-", "--at", "-"], capsys)[2]


def parquet(frame):
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def test_parquet_without_pyarrow_says_what_to_install(
    frame, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "data.parquet"
    path.write_bytes(parquet(frame))
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in (path, "-"):
        given = SimpleNamespace(buffer=io.BytesIO(path.read_bytes()))
        monkeypatch.setattr(sys, "stdin", given)
        status, _, err = run(["Größe ~ .", name], capsys)
        assert status == 2
        assert "needs the package pyarrow" in err
        assert "pip install pyarrow" in err


def excel():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return file.getvalue()


def two_files():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", "y,x\n1,2\n")
        archive.writestr("b.csv", "y,x\n1,2\n")
    return file.getvalue()


WRONG = {
    "empty": (b"", "is empty; it needs a header row"),
    "blank": (b" \n\n", "is empty"),
    "header": (b"y,x\n", "has a header row and no rows of data"),
    "excel": (excel(), r'an Excel workbook. Save it as CSV, .* pd.read_excel\("'),
    "old excel": (b"\xd0\xcf\x11\xe0" + bytes(600), "an Excel workbook"),
    "archive": (two_files(), "an archive of 2 files; unpack it"),
    "damaged gz": (gzip.compress(b"y,x\n1,2\n" * 99)[:-9], "cannot be unpacked"),
    "stata": (b"<stata_dta><header>", "a Stata file.*pd.read_stata"),
    "R": (gzip.compress(b"RDX3\nX\n\0\0\0\3"), "saved by R; in R, write.csv"),
    "page": (b"<!DOCTYPE html>\n<html>", "a web page"),
    "json": (b'[{"y": 1}]', "JSON.*pd.read_json"),
    "noise": (bytes(range(256)) * 8, "must be text in UTF-8"),
    "twice": (b"y,x,x\n1,2,3\n", "must be unique; .* has 'x' 2 times"),
    "no name": (b"y,x,\n1,2,3\n", "column 3 of .* has none"),
    "longer": (b"y,x\n1,2,3\n4,5,6\n", "line 2: there are 3 fields for the 2 columns"),
    "short": (
        b"y,x,z\n1,2,3\n\n4,5\n6,7,8\n",
        "line 4: there are 2 fields for the 3 columns of the header. Write NA",
    ),
    "excel line": (b"sep=;\ny;x\n1;2\n", "has one column, 'sep=;'"),
    "ragged": (
        b"y,x\n1,2\n1,2,3\n",
        "Expected 2 fields in line 3, saw 3. Is --sep ','",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_table_is_refused_with_advice(case, tmp_path, capsys):
    data, message = WRONG[case]
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    status, out, err = run(["y ~ x", path], capsys)
    assert (status, out) == (2, "")
    with pytest.raises(DataError, match=message) as caught:
        open_table(str(path), TextFormat())
    assert err == f"vstatkit: error: {caught.value}\n"
    assert str(path) in err
    assert "\n" not in str(caught.value)


def test_short_lines_between_spaces_are_refused(tmp_path):
    path, good = tmp_path / "data.txt", "y  x \tz\n 1 2   3\n4\t5 6\n"
    path.write_text(good)
    spaces = TextFormat(sep=r"\s+")
    assert open_table(str(path), spaces).data.shape == (2, 3)
    path.write_text(f"{good}7  8\n")
    with pytest.raises(DataError, match="line 4: there are 2 fields for the 3"):
        open_table(str(path), spaces)


def test_short_lines_with_names_are_refused():
    data = b"y\tx\nr1\t1\t2\nr2\t3\n"
    with pytest.raises(DataError, match="line 3: there are 2 fields"):
        read_text("data.tsv", data, TextFormat())


def test_spaces_after_separators_do_not_hide_quotes(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('y, x, note\n1, 2, "a, b"\n3, 4, "c"\n')
    table = open_table(str(path), TextFormat())
    assert table.data["note"].to_list() == ["a, b", "c"]


def test_folders_and_files_that_are_not_there(tmp_path, capsys):
    (tmp_path / "data.csv").write_text("y,x\n1,2\n")
    err = run(["y ~ x", tmp_path], capsys)[2]
    assert (
        f"a folder without Parquet files; give the name of a file, such as {tmp_path}"
        in err
    )
    err = run(["y ~ x", tmp_path / "data.txt"], capsys)[2]
    assert (
        f"there is no file {tmp_path}/data.txt; did you mean {tmp_path}/data.csv?"
        in err
    )
    err = run(["y ~ x", tmp_path / "no" / "data.csv"], capsys)[2]
    assert f"there is no folder {tmp_path}/no either" in err


@pytest.mark.parametrize(
    ("texts", "signs", "numbers"),
    [
        (["1,5", "-2", "3e2"], (",", ""), [1.5, -2, 300]),
        (["1.234,5", "12.345.678", "0"], (",", "."), [1234.5, 12345678, 0]),
        (["1,234", "5"], (".", ","), [1234, 5]),
        ([" 7 ", "8"], (".", ""), [7, 8]),
        (["1'234.5", ".5"], (".", "'"), [1234.5, 0.5]),
    ],
)
def test_text_is_converted_to_numbers(texts, signs, numbers):
    text_format = TextFormat(decimal=signs[0], thousands=signs[1])
    assert text_format.convert(pd.Series(texts)).to_list() == numbers


@pytest.mark.parametrize(
    ("texts", "signs"),
    [
        (["01.02.2020", "03.04.2021"], (",", ".")),  # dates stay dates
        (["1.23", "4.56"], (",", ".")),  # no groups of three
        (["1,5", "x"], (",", "")),
        (["1,5,0"], (",", "")),
        ([None], (",", "")),
        (["", "-"], (",", "")),
    ],
)
def test_text_that_is_no_number_stays_text(texts, signs):
    column = pd.Series(texts, dtype=object)
    text_format = TextFormat(decimal=signs[0], thousands=signs[1])
    assert text_format.convert(column) is column


def test_missing_numbers_stay_missing():
    numbers = TextFormat(decimal=",").convert(pd.Series(["1,5", None, "2"]))
    assert np.array_equal(numbers.to_numpy(), [1.5, np.nan, 2], equal_nan=True)


def test_thousands_are_read_by_the_option(capsys, tmp_path):
    path = tmp_path / "data.csv"
    rows = "".join(f"{i}.234,5;{i};01.02.20{i}\n" for i in range(10, 50))
    path.write_text(f"y;x;day\n{rows}")
    how = ["--thousands", ".", "--decimal", ",", "--sep", ";"]
    status, out, err = run(["y ~ x", path, *how, *QUICK], capsys)
    data = pd.DataFrame({"y": np.arange(10, 50) * 1000 + 234.5, "x": range(10, 50)})
    assert (status, out, err) == (0, summary(data, "y ~ x"), "")


def test_the_options_hold_for_query_points(tmp_path, capsys):
    data, at = tmp_path / "data.csv", tmp_path / "at.csv"
    data.write_text("y;x\n" + "".join(f"{i};{i},25\n" for i in range(40)))
    at.write_text("x;z\n1,234;0\n")
    status, out, _ = run(["y ~ x", data, "--at", at, *GERMAN, *QUICK], capsys)
    frame = pd.DataFrame({"y": range(40), "x": np.arange(40) + 0.25})
    wanted = vs.fit("y ~ x", frame, at={"x": [1.234]}, B=20, rng=1)
    assert status == 0
    assert out.startswith(printed(wanted))
    at.write_text("x,z\n1.234,0\n")
    status, out, err = run(["y ~ x", data, "--at", at, *GERMAN, *QUICK], capsys)
    assert (status, out) == (2, "")
    assert f"{at} has one column, 'x,z'" in err


@pytest.mark.parametrize("decimal", [".", ","])
def test_the_query_point_that_is_no_number_is_shown(tmp_path, capsys, decimal):
    frame = vs.datasets.mars(40, rng=1)[["y", "x1", "x2"]].round(4)
    data, at = tmp_path / "data.csv", tmp_path / "at.csv"
    frame.to_csv(data, index=False, sep=";", decimal=decimal)
    at.write_text("x1;x2\n0.5;0.5\n;0.5\noops;0.5\n".replace(".", decimal))
    how = ["--sep", ";", "--decimal", decimal, *QUICK]
    status, out, err = run(["y ~ x1 + x2", data, "--at", at, *how], capsys)
    assert (status, out) == (2, "")
    assert f"and values such as 'oops' in {at}. Write both files alike" in err


def test_the_full_summary_is_shown_on_request(tmp_path, capsys):
    path = tmp_path / "data.csv"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    files = {end: tmp_path / f"table{end}" for end in (".txt", ".html", ".tex", ".md")}
    written = [part for file in files.values() for part in ("--out", file)]
    _, short, _ = run(["y ~ x1", path, *written, *QUICK], capsys)
    texts = {end: file.read_text() for end, file in files.items()}
    assert "full=True) adds" in short
    assert "The Variance table is raw" not in short
    for end, text in texts.items():
        assert "full=True) adds" in text.replace("\\", "")
        assert "MC share" not in text, end
    _, out, _ = run(["y ~ x1", path, "--full", *written, *QUICK], capsys)
    assert out.startswith(short.split("\nTypical row")[0])
    res = vs.fit("y ~ x1", path, B=20, rng=1)
    assert out == f"{res.summary(full=True)}\n"
    for end, file in files.items():
        text = file.read_text()
        assert "full=True) adds" not in text
        assert "MC share" in text, end
        assert "nfluence" in text, end
    markdown = files[".md"].read_text()
    assert "## Variance\n\n|  | zeta_1 |" in markdown
    assert "## Influence\n\n|  |" in markdown


def test_rows_that_lack_a_value_are_left_empty(tmp_path, capsys):
    data = vs.datasets.mars(60, rng=1).assign(g=["a", "b", "c"] * 20)
    path, at, out = (tmp_path / name for name in ("d.csv", "at.csv", "out.json"))
    data.to_csv(path, index=False)
    at.write_text('note,x1,g\n"two\nlines",0.5,a\n\n,,b\n,0.7,\n,0.8,c\n')
    for formula in ("y ~ x1 + g", "g ~ x1"):
        status, _, err = run([formula, path, "--at", at, "--out", out, *QUICK], capsys)
        assert status == 0
        both = formula == "y ~ x1 + g"
        said = ", and 1 more rows lack one" if both else ""
        warned = f"warning: line 5 of {at} has no value in 'x1'{said}: not predicted"
        assert err.splitlines()[0] == f"vstatkit: {warned}"
        found = pd.DataFrame(json.loads(out.read_text())["predictions"])
        read = pd.read_csv(at).iloc[[0, 3] if both else [0, 2, 3]]
        res = vs.fit(formula, pd.read_csv(path), at=read, B=20, rng=1)
        known = found.dropna(subset="mean")
        wanted = res.get_prediction(read).summary_frame()
        assert np.array_equal(known["mean"], wanted["mean"])
        assert list(found["point"].unique()) == [0, 1, 2, 3]
        assert found["mean"].isna().sum() == (2 if both else 3)


def test_query_points_without_a_whole_row_are_refused(tmp_path, capsys):
    path, at = tmp_path / "d.csv", tmp_path / "at.csv"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    at.write_text("x1,x2\n,1\nNA,2\n")
    status, out, err = run(["y ~ x1", path, "--at", at, *QUICK], capsys)
    assert (status, out) == (2, "")
    assert f"no row of {at} can be predicted: line 2 of {at} has no value in" in err
    passed = run(["y ~ x1", path, "--at", at, "--missing", "pass", *QUICK], capsys)
    assert (passed[0], passed[2]) == (0, "")
    pd.read_csv(at).to_parquet(tmp_path / "at.parquet")
    err = run(["y ~ x1", path, "--at", tmp_path / "at.parquet"], capsys)[2]
    assert "predicted: row 1 of" in err


def test_marks_of_missing_values(tmp_path, capsys, monkeypatch):
    data = vs.datasets.mars(60, rng=1)[["y", "x1"]]
    marked = data.astype({"x1": object})
    marked.loc[3, "x1"], marked.loc[5, "x1"] = "-", "k. A."
    path = tmp_path / "data.csv"
    marked.to_csv(path, index=False)
    data.loc[[3, 5], "x1"] = np.nan
    assert "--na, --decimal and --thousands" in run(["y ~ x1", path, *QUICK], capsys)[2]
    how = ["--na", "-", "--na", "k. A.", *QUICK]
    for size in (input_tables.STREAMED_BYTES, 10):
        monkeypatch.setattr(input_tables, "STREAMED_BYTES", size)
        status, out, err = run(["y ~ x1", path, *how], capsys)
        assert (status, out, err) == (0, summary(data, "y ~ x1"), "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "g"], "`weights` must be numbers; got values such as 'a'"),
        (["--missing", "raise"], "1 of 60 are missing. Use missing='drop' to leave"),
        (["--seed", "-1"], "`rng` must be a seed in"),
        (["--k", "90", "--no-replace"], "replace=True"),
        (["--option", "honest=yes"], "`honest` must be True or False; got 'yes'"),
        (["--option", "tool=3"], r"no option 'tool'\. Its options are"),
    ],
)
def test_messages_are_those_of_python_with_a_note(options, message, tmp_path, capsys):
    data = vs.datasets.mars(60, rng=1).assign(g=["a", "b"] * 30, hole=1.0)
    data.loc[3, "hole"] = np.nan
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    formula = "y ~ hole" if "raise" in options else "y ~ x1"
    status, out, err = run([formula, path, "--B", "20", *options], capsys)
    error, *notes = err.splitlines()
    assert (status, out) == (2, "")
    assert error.startswith("vstatkit: error: ")
    assert re.search(message, error)
    expected = [f"vstatkit: note: {cli.PYTHON_NOTE}"] if "`" in error else []
    assert notes == expected


def test_large_files_are_read_in_batches(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(input_tables, "STREAMED_BYTES", 10)
    path = tmp_path / "data.csv"
    path.write_bytes(frame.to_csv(index=False, sep=";", decimal=",").encode("cp1252"))
    text_format = TextFormat(";", "cp1252", ",")
    source = open_table(str(path), text_format).data
    assert source == CsvSource(path, ";", "cp1252", ",")
    res = vs.fit("Größe ~ .", source, B=20, rng=1)
    assert printed(res) == summary(frame)
    with pytest.raises(DataError, match="has one column, 'Größe;living area;zone'"):
        open_table(str(path), TextFormat(encoding="cp1252"))
    with pytest.raises(DataError, match="too large for --thousands"):
        open_table(str(path), TextFormat(decimal=",", thousands="."))


def test_tab_separated_files_are_data_of_fit(frame, tmp_path):
    path = tmp_path / "data.tsv.gz"
    frame.to_csv(path, sep="\t", index=False)
    assert printed(vs.fit("Größe ~ .", path, B=20, rng=1)) == summary(frame)


def test_groups_weights_and_options_reach_the_fit(tmp_path, capsys):
    data = vs.datasets.mars(60, rng=1).assign(clinic=np.arange(60) % 20)
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    options = ["--groups", "clinic", "--weights", "x5", "--no-replace", "--k", "0.5"]
    options += ["--option", "max_features=1", "--option", "honest=true", "--B", "40"]
    options += ["--missing", "raise", "--seed", "1", "--design", "matched"]
    status, out, _ = run(["y ~ .", path, *options], capsys)
    res = vs.fit(
        "y ~ .",
        pd.read_csv(path),
        groups="clinic",
        weights="x5",
        replace=False,
        k=0.5,
        B=40,
        max_features=1,
        honest=True,
        missing="raise",
        design="matched",
        rng=1,
    )
    assert status == 0
    assert out == printed(res)


def test_target_and_observations_reach_the_fit(tmp_path, capsys):
    data = vs.datasets.mars(80, rng=1)
    path, out = tmp_path / "data.csv", tmp_path / "out.json"
    data.to_csv(path, index=False)
    options = ["--target", "truth", "--at", path, "--obs-method", "residuals"]
    assert run(["y ~ x1 + x4", path, *options, "--out", out, *QUICK], capsys)[0] == 0
    read = pd.read_csv(path)
    res = vs.fit("y ~ x1 + x4", read, target="truth", at=read, B=20, rng=1)
    wanted = res.get_prediction(read).summary_frame(obs_method="residuals")
    found = pd.DataFrame(json.loads(out.read_text())["predictions"])
    assert_frame_equal(found.drop(columns="point"), wanted, check_exact=True)


@pytest.fixture
def answer(tmp_path, capsys):
    """Run the command with every format; the results, and the files."""
    data = vs.datasets.mars(60, rng=1).assign(g=["a|b", "c & d"] * 30)
    path, at = tmp_path / "data.csv", tmp_path / "at.csv"
    data.to_csv(path, index=False)
    data.head(3).to_csv(at, index=False)
    files = {end: tmp_path / f"table{end}" for end in outputs.WRITERS}
    wanted = [part for file in files.values() for part in ("--out", file)]
    formula = "y ~ x1 + g"
    status, out, err = run(
        [formula, path, "--at", at, "--alpha", "0.1", *wanted, *QUICK], capsys
    )
    assert status == 0
    notes = [f"vstatkit: note: table written to {file}" for file in files.values()]
    assert err.splitlines() == notes
    data = pd.read_csv(path)
    results = vs.fit(formula, data, at=data.head(3), B=20, rng=1)
    texts = {end: file.read_text(encoding="utf-8") for end, file in files.items()}
    return SimpleNamespace(results=results, data=data, out=out, **{"texts": texts})


def test_json_has_every_number_to_the_last_digit(answer):
    found = json.loads(answer.texts[".json"])
    res = answer.results
    assert_frame_equal(
        pd.DataFrame(found["estimates"]), res.tidy(0.1), check_exact=True
    )
    effects = res.effects_frame(0.1).reset_index()
    wanted = effects.drop(columns=["from", "to"])
    read = pd.DataFrame(found["effects"])
    assert_frame_equal(read.drop(columns=["from", "to"]), wanted, check_exact=True)
    assert list(read["to"]) == list(effects["to"])
    predicted = res.get_prediction(answer.data.head(3)).summary_frame(0.1)
    read = pd.DataFrame(found["predictions"]).set_index("point")
    assert_frame_equal(read, predicted, check_exact=True, check_names=False)
    assert found["fit"]["formula"] == "y ~ x1 + g"
    assert (found["fit"]["B"], found["fit"]["alpha"]) == (20, 0.1)


def test_csv_has_a_row_for_every_estimate_effect_and_prediction(answer):
    found = pd.read_csv(io.StringIO(answer.texts[".csv"])).set_index("table")
    res = answer.results
    columns = ["estimate", "std_error", "conf_low", "conf_high"]
    assert np.array_equal(found.loc["estimates", columns], res.tidy(0.1)[columns])
    effects = res.effects_frame(0.1)
    theirs = ["estimate", "std_error", "ci_lower", "ci_upper"]
    assert np.array_equal(found.loc["effects", columns], effects[theirs])
    assert list(found.loc["effects", "term"]) == list(effects.index)
    assert list(found.loc["effects", "to"].astype(str))[-1] == "c & d"
    predicted = res.get_prediction(answer.data.head(3)).summary_frame(0.1)
    theirs = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    assert np.array_equal(found.loc["predictions", columns], predicted[theirs])
    bounds = ["obs_ci_lower", "obs_ci_upper"]
    assert np.array_equal(found.loc["predictions", bounds], predicted[bounds])


@pytest.mark.parametrize("end", [".md", ".html", ".tex", ".txt"])
def test_every_format_has_effects_and_predictions(answer, end):
    text = answer.texts[end].replace("\\_", "_")
    assert "Effects" in text
    assert "obs_ci_upper" in text
    mark = {".md": "a\\|b", ".html": "c &amp; d", ".tex": "c \\& d", ".txt": "c & d"}
    assert mark[end] in text
    if end == ".txt":
        assert answer.out == text
    if end == ".md":
        lines = [line for line in text.splitlines() if line.startswith("|")]
        widths = {line.replace("\\|", "").count("|") for line in lines}
        assert widths == {3, 9, 12}  # bars of the tables with 2, 8 and 11 columns
        assert "[1]" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "no/table.csv"], "there is no folder no; make it first"),
        (["--out", "table.xlsx"], "must end in one of .csv, .html, .json, .md, .tex"),
        (["--out", "."], "must end in one of"),
        (["--out", "folder.csv"], "is a folder"),
        (["--out", "data.csv"], "would overwrite the data"),
        (["--out", "at.csv", "--at", "at.csv"], "would overwrite the data"),
        (["--plot", "plot.doc"], "--plot must end in one of .png"),
        (["--plot", "no/plot.png"], "there is no folder no"),
        (["--plot-of", "x1"], "need --plot"),
        (["--plot", "p.png", "--plot-kind", "profile"], "needs --plot-of COLUMN"),
        (["--plot", "p.png", "--plot-of", "x1"], "--plot-of is for"),
        (["--save", "no/fit"], "--save no/fit: there is no folder"),
        (["--report", "no/fit.html"], "--report no/fit.html: there is no folder"),
        (["--report", "fit.pdf"], "--report must end in one of .html"),
        (["--n-jobs", "0"], "--n-jobs must be a number of threads, or -1 for all"),
        (
            ["--option", "replace=false"],
            "--option is not for replace: use --no-replace",
        ),
        (["--option", "rng=3"], "--option is not for rng: use --seed"),
        (["--option", "eval_env=0"], "--option is not for eval_env"),
        (["--alpha", "5"], "--alpha must lie between 0 and 1; got 5"),
        (["--sep", "::"], "--sep must be one character, or tab or space"),
        (["--encoding", "klingon"], "one that Python knows.*got 'klingon'"),
        (["--decimal", "x"], "--decimal must be one sign"),
        (["--decimal", ",", "--thousands", ","], "must differ"),
        (["--option", "honest"], "--option must be NAME=VALUE; got 'honest'"),
    ],
)
def test_all_is_checked_before_the_fit(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    for name in ("data.csv", "at.csv"):
        vs.datasets.mars(30, rng=1).to_csv(name, index=False)
    monkeypatch.setattr(
        "vstatkit.shell.fit_command.fit", lambda *a, **b: pytest.fail("fit")
    )
    status, out, err = run(["y ~ x1", "data.csv", *options], capsys)
    assert (status, out) == (2, "")
    assert err.startswith("vstatkit: error: ")
    assert err.count("\n") == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(err)


def test_files_that_may_not_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs.os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="may not be written"):
        outputs.check_output("--out", tmp_path / "a.csv", (".csv",), [])


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ([], ""),
        (["--plot-kind", "estimates"], ""),
        (["--plot-kind", "profile", "--plot-of", "x1"], ""),
    ],
)
@pytest.mark.parametrize("end", ["png", "svg", "pdf"])
def test_pictures(options, title, end, tmp_path, capsys):
    path, picture = tmp_path / "data.csv", tmp_path / f"plot.{end}"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    arguments = ["y ~ x1 + x2", path, "--plot", picture, *options, *QUICK]
    status, out, err = run(arguments, capsys)
    assert (status, err) == (0, f"vstatkit: note: picture written to {picture}\n")
    assert "written" not in out
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[end]
    assert picture.read_bytes().startswith(start)
    assert not plt.get_fignums()


def test_results_are_saved(tmp_path, capsys):
    path, kept = tmp_path / "data.csv", tmp_path / "fit.vs"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    status, out, err = run(["y ~ x1", path, "--save", kept, *QUICK], capsys)
    assert (status, err) == (0, f"vstatkit: note: results saved in {kept}\n")
    assert out == printed(vs.load(kept))


def test_a_report_is_written(tmp_path, capsys):
    path, page = tmp_path / "data.csv", tmp_path / "fit.html"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    options = ["--report", page, "--alpha", "0.1", *QUICK]
    status, out, err = run(["y ~ x1", path, *options], capsys)
    res = vs.fit("y ~ x1", pd.read_csv(path), B=20, rng=1)
    assert (status, out) == (0, printed(res, 0.1))
    assert err == f"vstatkit: note: report written to {page}\n"
    res.report(tmp_path / "other.html", alpha=0.1)
    assert page.read_text("utf-8") == (tmp_path / "other.html").read_text("utf-8")


def test_of_many_predictions_the_first_are_printed(tmp_path, capsys):
    path = tmp_path / "data.csv"
    vs.datasets.mars(60, rng=1).to_csv(path, index=False)
    out = run(["y ~ x1", path, "--at", path, *QUICK], capsys)[1]
    printed = out.split("Predictions:\n\n")[1].splitlines()
    assert len(printed) == 1 + outputs.MOST_PRINTED + 1
    assert printed[-1] == "... and 10 more; --out FILE writes all of them."


def test_a_formula_without_quotes(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fit", "y", "/home/me", "x1", "data.csv"])
    assert caught.value.code == 2
    assert "Put the formula in quotes" in capsys.readouterr().err
    err = run(["data.csv", "y ~ x"], capsys)[2]
    assert "The formula comes first." in err


def test_warnings_are_one_line(tmp_path, capsys, monkeypatch):
    path = tmp_path / "data.csv"
    vs.datasets.mars(40, rng=1).assign(y=1.0).to_csv(path, index=False)
    monkeypatch.setattr("warnings.filters", [("always", None, Warning, None, 0)])
    status, _, err = run(["y ~ x1", path, *QUICK], capsys)
    assert status == 0
    assert err.startswith("vstatkit: warning: the response 'y' is constant")
    assert err.count("\n") == 1


def test_every_argument_of_fit_is_an_option_of_its_own_or_free(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    text = capsys.readouterr().out
    for name in set(ARGUMENTS) - {*fit_command.ONLY_BY_OPTION, "eval_env"}:
        with pytest.raises(ValueError, match=f"not for {name}: use --") as caught:
            fit_command._check_option(name)
        assert f"  {str(caught.value).split()[-1][:-1]}" in text


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fit", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert 'vstatkit fit "price ~ ." houses.csv' in text
    assert "exit status: 0" in text


def test_the_page_names_every_option(capsys):
    page = (Path(__file__).parents[2] / "docs" / "command.md").read_text("utf-8")
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    options = set(
        re.findall(r"^  (?:-h, )?(--[a-zA-Z-]+)", capsys.readouterr().out, re.M)
    )
    assert len(options) > 25
    assert {one for one in options if f"`{one}" not in page} <= {"--help"}
    named = set(re.findall(r"(?<![\w-])(--[a-zA-Z][a-zA-Z-]*)", page))
    assert named <= options | {"--without-replacement", "--help"}


def test_files_are_written_although_nobody_reads_the_text(tmp_path):
    path, page = tmp_path / "data.csv", tmp_path / "fit.html"
    vs.datasets.mars(40, rng=1).to_csv(path, index=False)
    program = [sys.executable, "-m", "vstatkit", "fit", "y ~ x1", str(path)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*program, "--report", str(page), *map(str, QUICK)],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.stderr.decode() == f"vstatkit: note: report written to {page}\n"
    assert page.exists()
