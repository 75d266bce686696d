"""The paper's experiments: data, declarations, reports and the command."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, root_mean_squared_error

import vstatkit as vs
from vstatkit.cli import main
from vstatkit.studies import figures, table1, table2
from vstatkit.studies.experiment import Draw, iteration_stream, run_experiment
from vstatkit.studies.registry import DATA_VARIABLE
from vstatkit.studies.report import markdown_table, read_printed
from vstatkit.studies.simulation import QUICK

DATA = Path(__file__).parents[1] / "data"
PICTURES = {
    "table1",
    "table2",
    "bias-k100",
    "bias-k250",
    "bias-k400",
    "corrected-v",
    "corrected-v-on-u",
    "corrected-u",
    "wager-athey",
    "zeta-1",
    "zeta-k",
    "variance-components",
}


def retinopathy_file():
    return DATA / "retinopathy.arff"


@pytest.fixture
def no_r(monkeypatch):
    """Hide R, and the user's own data."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@pytest.fixture
def boston_csv(tmp_path, rng):
    """A file of MASS::Boston's shape, with the response in another place."""
    names = ["medv", *(f"c{j}" for j in range(13))]
    frame = pd.DataFrame(rng.normal(size=(506, 14)), columns=names)
    path = tmp_path / "boston.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_the_whole_paper_in_seconds(tmp_path, capsys):
    arguments = ["reproduce", "all", "--quick", "--iterations", "5"]
    arguments += ["--out", str(tmp_path), "--n-jobs", "2", "--data", str(DATA)]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    for heading in ("# table1", "# table2", "# figures", "# variance-components"):
        assert heading in captured.out
    assert "it/s" in captured.err or "s/it" in captured.err
    assert f"Files written to {tmp_path / 'quick'}" in captured.out
    assert not list(tmp_path.glob("*.*")), "quick results stay apart from full ones"
    tmp_path = tmp_path / "quick"
    assert {path.stem for path in tmp_path.glob("*.png")} == PICTURES
    assert all(path.stat().st_size > 20_000 for path in tmp_path.glob("*.png"))
    table = pd.read_csv(tmp_path / "table2.csv")
    assert len(table) == 36 * (1 + 4 * 2)
    printed = table[(table["quantity"] == "ratio") & (table["method"] == "IJ")]
    assert_allclose(
        np.sort(printed["printed"]), np.sort(read_printed("table2")["ratio_original"])
    )
    assert "corrected printed" in (tmp_path / "table2.md").read_text()
    figures = pd.read_csv(tmp_path / "figures.csv")
    assert len(figures) == 3 * 3 * (4 + 6)
    assert len(pd.read_csv(tmp_path / "variance-components.csv")) == 10
    for name in ("table1", "table2", "figures", "variance-components"):
        assert "Quick" in (tmp_path / f"{name}.md").read_text()


def test_other_settings_in_the_same_place_are_an_error_of_one_line(tmp_path, capsys):
    arguments = ["reproduce", "table2", "--quick", "--iterations", "2"]
    arguments += ["--out", str(tmp_path)]
    assert main([*arguments, "--seed", "1"]) == 0
    capsys.readouterr()
    assert main([*arguments, "--seed", "2"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("vstatkit: error: the checkpoints in")
    assert "seed (was 1, now 2)" in error


def test_with_several_parts_iterations_are_only_lowered(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "TRANSITION_ITERATIONS", 3)
    monkeypatch.setattr(figures, "BIAS_ITERATIONS", 2)
    reports = vs.studies.reproduce(
        "figures", tmp_path, iterations=50, quick=True, n_jobs=1, progress=False
    )
    texts = [report.markdown for report in reports]
    assert "2 data sets" in texts[0]
    assert "3 data sets" in texts[1]


def test_unknown_parts_are_named():
    with pytest.raises(ValueError, match="`part` must be one of table1, table2"):
        next(vs.studies.reproduce("table3", "nowhere"))


def test_missing_data_are_named_and_the_rest_runs(tmp_path, monkeypatch, no_r):
    small = {name: table1.SOURCES[name] for name in ("boston", "iris", "retinopathy")}
    monkeypatch.setattr(table1, "SOURCES", small)
    (report,) = vs.studies.reproduce(
        "table1", tmp_path, iterations=2, quick=True, n_jobs=1, progress=False
    )
    assert set(report.tables["table1"]["dataset"]) == {"iris"}
    assert "Left out: boston is not there: install R" in report.markdown
    assert "Left out: retinopathy is not there: download" in report.markdown
    assert "VSTATKIT_DATA" in report.markdown


@pytest.mark.parametrize("way", ["directory", "file", "environment"])
def test_boston_is_read_from_a_path(boston_csv, monkeypatch, no_r, way):
    path, frame = boston_csv
    if way == "environment":
        monkeypatch.setenv(DATA_VARIABLE, str(path.parent))
    given = {"directory": path.parent, "file": path, "environment": None}[way]
    source = table1.load_dataset("boston", given)
    assert_allclose(source.y, frame["medv"])
    assert_allclose(source.X, frame.drop(columns="medv"))
    assert source.n_classes is None


def test_boston_of_another_shape_is_refused(boston_csv, no_r):
    path, frame = boston_csv
    frame.head(10).to_csv(path, index=False)
    with pytest.raises(table1.MissingDataError, match="506 rows and 14 columns"):
        table1.load_dataset("boston", path)
    frame.rename(columns={"medv": "price"}).to_csv(path, index=False)
    with pytest.raises(table1.MissingDataError, match="the columns price, c0"):
        table1.load_dataset("boston", path)


def test_boston_may_have_names_in_capitals(boston_csv, no_r):
    path, frame = boston_csv
    frame.rename(columns=str.upper).to_csv(path, index=False)
    assert_allclose(table1.load_dataset("boston", path).y, frame["medv"])


def test_missing_values_are_refused(boston_csv, no_r):
    path, frame = boston_csv
    frame.assign(c3=frame["c3"].where(frame.index != 7)).to_csv(path, index=False)
    with pytest.raises(table1.MissingDataError, match="column 'c3' has some"):
        table1.load_dataset("boston", path)


@pytest.mark.parametrize("text", ["", "garbage", "@relation r\n@data\nfoo\n"])
def test_a_broken_arff_file_is_named(tmp_path, text):
    path = tmp_path / "retinopathy.arff"
    path.write_text(text)
    with pytest.raises(table1.MissingDataError, match=r"retinopathy\.arff"):
        table1.load_dataset("retinopathy", path)


def test_a_path_to_nowhere_is_an_error(tmp_path, monkeypatch):
    nowhere = tmp_path / "nowhere"
    with pytest.raises(ValueError, match="`data` must name a directory"):
        next(vs.studies.reproduce("table1", tmp_path, data=nowhere))
    monkeypatch.setenv(DATA_VARIABLE, str(nowhere))
    with pytest.raises(ValueError, match="VSTATKIT_DATA in the environment"):
        next(vs.studies.reproduce("table1", tmp_path))


def test_boston_from_r(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not there")
    try:
        source = table1.load_dataset("boston")
    except table1.MissingDataError:
        pytest.skip("R's MASS is not there")
    assert source.X.shape == (506, 13)
    assert source.y.mean() == pytest.approx(22.53, abs=0.01)


def test_retinopathy_is_ucis():
    source = table1.load_dataset("retinopathy", retinopathy_file())
    assert source.X.shape == (1151, 19)
    assert source.n_classes == 2
    assert source.y.sum() == 611


@pytest.mark.parametrize(
    "name", ["diabetes", "MARS", "iris", "digits", "breast_cancer"]
)
def test_data_have_the_printed_shape(name):
    printed = read_printed("table1")
    row = printed[printed["dataset"] == name].iloc[0]
    source = table1.load_dataset(name)
    X, y = source.draw(np.random.default_rng(1))
    assert X.shape == (row["n"], row["p"])
    assert len(y) == row["n"]
    assert (source.n_classes is None) is not table1.larger_is_better(name)


def test_another_table_has_another_fingerprint(boston_csv):
    path, frame = boston_csv
    before = table1.load_dataset("boston", path).fingerprint()
    frame.iloc[3, 3] += 1e-9
    frame.to_csv(path, index=False)
    assert table1.load_dataset("boston", path).fingerprint() != before


def test_scores_are_scikit_learns(rng):
    y, shares = rng.integers(3, size=30).astype(float), rng.uniform(size=(30, 3))
    assert table1.score(y, shares, 3) == accuracy_score(y, shares.argmax(axis=1))
    two = (y > 0).astype(float)
    assert table1.score(two, shares[:, :1], 2) == accuracy_score(
        two, shares[:, 0] > 0.5
    )
    expected = root_mean_squared_error(y, shares[:, 0])
    assert table1.score(y, shares[:, :1], None) == pytest.approx(expected)


@pytest.mark.parametrize(("name", "letter"), [("diabetes", "V"), ("iris", "U")])
def test_forests_of_table_1_are_those_of_fit(name, letter):
    experiment = table1.Prediction(name, table1.load_dataset(name), forests=1, trees=12)
    record = experiment.run(5, 2)
    rng = iteration_stream(5, experiment.name, 2, Draw.DATA)
    X, y = experiment.source.draw(rng)
    order = rng.permutation(len(y))
    n_test = int(np.ceil(0.2 * len(y)))
    test, train = order[:n_test], order[n_test:]
    draws = iteration_stream(5, experiment.name, 2, Draw.ENSEMBLE)
    seeds = dict(zip("UV", draws.integers(2**62, size=(2, 5)).tolist(), strict=True))
    frame = pd.DataFrame(X).add_prefix("x")
    classes = experiment.source.n_classes
    frame["y"] = y if classes is None else pd.Categorical(y)
    fitted = vs.fit(
        "y ~ .",
        frame.iloc[train],
        k=0.4,
        B=12,
        replace=letter == "V",
        variance="ij",
        rng=seeds[letter][1],
        at=frame.iloc[test],
    )
    mean = fitted.params.to_numpy().reshape(n_test, -1)
    expected = table1.score(y[test], mean, classes)
    assert record[letter][1, 0] == pytest.approx(expected, rel=1e-12)


def scores(u, v):
    """Scores of four splits, two equal forests each, around given means."""
    noise = np.array([-0.02, 0.0, 0.01, 0.01])[:, None, None]
    shape = (4, 5, 2)
    return {
        "U": np.broadcast_to(np.array(u)[None, :, None] + noise, shape),
        "V": np.broadcast_to(np.array(v)[None, :, None], shape).copy(),
    }


def test_print_is_held_against_split_deviations():
    printed = read_printed("table1")
    chosen = printed[printed["dataset"] == "MARS"]
    u = chosen[chosen["statistic"] == "U"]["score"].to_numpy() + 0.03
    v = chosen[chosen["statistic"] == "V"]["score"].to_numpy()
    u[0] += 1
    record = scores(u, v)
    record["V"][0] += 0.5
    table = table1.compare("MARS", record)
    assert list(table["within"]) == [False, *[True] * 9]
    assert table["deviations"].iloc[1] == pytest.approx(
        0.03 / np.std([-2, 0, 1, 1], ddof=1) * 100
    )
    report = table1.report(({"MARS": record}, {}))
    assert "in 9 of 10 cells; not in MARS U 0.2." in report.markdown


def test_the_papers_observations_are_tested():
    record = scores([3, 2, 1, 2, 3], [2, 2.5, 2, 2.5, 1.9])
    best = table1.best_fractions("MARS", record).set_index("statistic")
    assert list(best["best"]) == [0.6, 1.0]
    assert list(best["beats"]) == [4, 4]
    assert list(best["declines"]) == [True, False]
    row = table1.discrepancies("MARS", record)
    assert row["U"] == pytest.approx(2)
    assert row["V"] == pytest.approx(0.6)
    assert row["gain"] > 2
    accuracy = table1.best_fractions("iris", record).set_index("statistic")
    assert accuracy.loc["V", "best"] in (0.4, 0.8)


def test_flags_mark_what_is_beyond_its_bound():
    study = table2.simulation(1, QUICK)
    record = run_experiment(study, 4, seed=1)
    table = table2.compare(record, study)
    known = table[table["printed"].notna()]
    beyond = (known["measured"] - known["printed"]).abs() > known["bound"]
    assert_allclose(known["difference"], known["measured"] - known["printed"])
    assert (known["beyond"] == beyond).all()
    text = table2.report((record, study)).markdown
    flagged = known[known["beyond"] & (known["quantity"] == "ratio")].iloc[0]
    assert f"{flagged['measured']:.2f} ± {flagged['bound']:.2f}*" in text


def test_cells_of_the_figures_add_the_monte_carlo_part():
    study = figures.bias_simulation(QUICK)
    record = run_experiment(study, 3, seed=1)
    cells = figures.split_cells(record, study)
    assert len(cells) == 90
    for cell in cells[::7]:
        k, n, B = cell.k // 5, 100, 100
        assert_allclose(cell.variance, k**2 / n * cell.zeta_1 + cell.zeta_k / B)
    pinned = [cell for cell in cells if cell.method == "im"]
    assert len(pinned) == 18
    assert all((cell.zeta_1 > 0).all() for cell in pinned)
    balanced = {(c.statistic, c.k, c.B): c for c in cells if c.method == "bm"}
    for cell in cells:
        if cell.method == "ij" and cell.B == 10000:
            # Theorem 4.2 holds about, where subsamples are not balanced: each
            # mean of 200 or more values is off by its share of draws, some 7 %.
            bm = balanced[cell.statistic, cell.k, cell.B]
            assert_allclose(bm.zeta_1.mean(), cell.zeta_1.mean(), rtol=0.15)


def test_claims_are_counted_by_their_bounds():
    """Cells in which all holds, but for one of each kind."""
    ratios = {
        "V": {"IM": 9, "BM": 3, "IJ": 3, "corrected-V": 1.1},
        "U": {
            "IM": 9,
            "BM": 3,
            "IJ": 3,
            "corrected-IJ": 4,
            "corrected-V": 0.2,
            "corrected-U": 0.9,
        },
    }
    rows = [
        {"statistic": letter, "k": k, "B": B, "method": method, "ratio": ratio}
        for letter, methods in ratios.items()
        for k in figures.SUBSAMPLES
        for B in figures.SIZES
        for method, ratio in methods.items()
    ]
    table = pd.DataFrame(rows).assign(ratio_bound=0.3)
    raw = table["method"].isin(["BM", "IJ"])
    table.loc[raw, "ratio"] /= table.loc[raw, "B"].map({100: 1, 1000: 2, 10000: 6})
    odd = (table["k"] == 250) & (table["B"] == 10000) & (table["statistic"] == "U")
    table.loc[odd & (table["method"] == "IM"), "ratio"] = 0.1
    table.loc[odd & (table["method"] == "BM"), "ratio"] *= 1.2
    table.loc[odd & (table["method"] == "corrected-U"), "ratio"] = 2
    found = figures.check_claims(table).set_index("claim")["holds"].to_dict()
    assert list(found.values()) == [17, 11, 12, 3, 2, 9, 3, 9, 8]


def test_the_empirical_variance_is_taken_over_groups():
    study = figures.transition_simulation(QUICK)
    record = run_experiment(study, 3, seed=1)
    doubled = {
        name: np.tile(a, (67,) + (1,) * (a.ndim - 1)) for name, a in record.items()
    }
    table = figures.tabulate_components(doubled, study)
    mean = doubled["V/mean"][:, :, 0]
    halves = np.array_split(mean, 2)
    expected = np.mean([half.var(axis=0, ddof=1) for half in halves], axis=0)
    assert_allclose(table["empirical"], expected)
    assert_allclose(table["total"], table["sampling"] + table["monte_carlo"])
    assert table["error"].notna().all()
    assert figures.tabulate_components(record, study)["error"].isna().all()


@pytest.mark.parametrize("seed", [1, 2, 3, 38])
def test_quick_components_do_not_depend_on_luck(seed):
    """The smallest ensembles may draw no row twice: corrected-V is then NaN."""
    study = figures.transition_simulation(QUICK)
    record = run_experiment(study, 3, seed=seed)
    undefined = np.isnan(record["V/sampling"][:, :, 0, 0])
    assert undefined[:, 0].any() == (seed != 1)
    assert not undefined[:, 2:].any()
    assert figures.tabulate_components(record, study)["total"].notna().all()


def test_quick_figures_with_three_data_sets(tmp_path, capsys):
    arguments = ["reproduce", "figures", "--quick", "--iterations", "3", "--seed", "2"]
    assert main([*arguments, "--n-jobs", "1", "--out", str(tmp_path)]) == 0
    assert "# variance-components" in capsys.readouterr().out
    assert (tmp_path / "quick" / "variance-components.png").exists()


def test_tables_are_markdown():
    frame = pd.DataFrame({"name": ["a", "bb"], "value": [1.5, 10.0]})
    lines = markdown_table(frame).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "|:-----|------:|"
    assert lines[3] == "| bb   |  10.0 |"
