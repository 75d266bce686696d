"""A study from outside the package: the registry, `reproduce`, the command line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import vstatkit as vs
from tests.oracles.recipes import recipe
from vstatkit.cli import main
from vstatkit.studies import registry
from vstatkit.studies.registry import STUDIES, parts, studies_of

SMALL = {"iterations": 2, "quick": True, "n_jobs": 1, "progress": False}


@pytest.fixture
def toy(monkeypatch):
    """Register the study of CONTRIBUTING.md for one test."""
    monkeypatch.setattr(registry, "STUDIES", dict(STUDIES))
    return recipe("study")


@pytest.fixture
def study(toy):
    return toy["STUDY"]


def test_the_studies_that_come_with_the_package():
    assert parts() == ["table1", "table2", "figures", "all", "validity"]
    names = {part: [one.name for one in studies_of(part)] for part in parts()}
    assert names["figures"] == ["bias", "transition"]
    assert names["all"] == ["table1", "table2", "bias", "transition"]
    assert names["validity"] == ["validity"]


def test_a_study_from_outside_runs_through_the_command_line(toy, tmp_path, capsys):
    arguments = ["reproduce", "median", "--iterations", "12", "--seed", "3"]
    arguments += ["--n-jobs", "1", "--sizes", "20,40", "--out", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# median\n\nn = 20: ")
    table = pd.read_csv(tmp_path / "median.csv")
    assert table["n"].tolist() == [20, 40]
    assert table["data_sets"].tolist() == [12, 12]
    experiment = toy["Median"](40)
    alone = [experiment.run(3, iteration) for iteration in range(12)]
    means = np.concatenate([one["mean"] for one in alone])
    assert_allclose(table["true"][1], np.var(means, ddof=1))
    variances = np.concatenate([one["variance"] for one in alone])
    assert_allclose(table["estimated"][1], variances.mean())
    kept = tmp_path / "checkpoints"
    assert {path.name for path in kept.iterdir()} == {"median-20", "median-40"}


def test_its_own_number_of_data_sets_is_the_default(toy, tmp_path):
    (report,) = vs.studies.reproduce(
        "median", tmp_path, n_jobs=1, progress=False, sizes=["30"]
    )
    assert report.tables["median"]["data_sets"].tolist() == [toy["DATA_SETS"]]


def test_quick_runs_say_so_and_stay_apart(study, tmp_path):
    (report,) = vs.studies.reproduce(
        "median", tmp_path, iterations=2, quick=True, n_jobs=1, progress=False
    )
    assert report.markdown.startswith("*Quick: a small study of the same layout.")
    assert (tmp_path / "quick" / "median.md").exists()
    assert not (tmp_path / "median.md").exists()


def test_help_lists_every_study(study, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "--help"])
    text = capsys.readouterr().out
    for one in registry.STUDIES.values():
        assert one.description in text
        assert f"({one.iterations} {one.unit})" in text
    assert "--sizes NAMES" in text
    assert "median: numbers of rows" in text


def test_a_study_of_the_paper_from_outside_is_part_of_all(study):
    more = vs.studies.register(
        replace(study, name="more", part="more", in_all=True, options={})
    )
    assert studies_of("all")[-1] is more
    assert parts()[3:] == ["more", "all", "validity", "median"]


def test_options_belong_to_one_study(study, tmp_path):
    with pytest.raises(ValueError, match="`sizes` is an option of 'median' only"):
        next(vs.studies.reproduce("table2", tmp_path, **SMALL, sizes=["20"]))
    with pytest.raises(
        TypeError, match="no study has the option 'size'; available options: des"
    ):
        next(vs.studies.reproduce("median", tmp_path, **SMALL, size=["20"]))


def test_aliases_stand_for_their_options(study, tmp_path, capsys):
    registry.STUDIES["median"] = replace(study, aliases={"rows": "sizes"})
    given = ["reproduce", "median", "--quick", "--iterations", "2", "--n-jobs", "1"]
    assert main([*given, "--rows", "20", "--out", str(tmp_path / "alias")]) == 0
    assert main([*given, "--sizes", "20", "--out", str(tmp_path / "name")]) == 0
    one, two = (tmp_path / way / "quick" / "median.csv" for way in ("alias", "name"))
    assert one.read_bytes() == two.read_bytes()
    both = {"rows": ["20"], "sizes": ["20"]}
    with pytest.raises(ValueError, match="one of 'sizes' and its alias, not both"):
        next(vs.studies.reproduce("median", tmp_path, **SMALL, **both))
    other = replace(study, name="other", part="other", options={"rows": "rows"})
    with pytest.raises(ValueError, match="'rows' belongs to the study 'median'"):
        vs.studies.register(other)


@pytest.mark.parametrize("name", ["all", "bias", "figures", "median"])
def test_names_are_taken_once(study, name):
    with pytest.raises(ValueError, match=f"must be new; '{name}'"):
        vs.studies.register(replace(study, name=name, part=name, options={}))


def test_an_option_is_taken_once(study):
    with pytest.raises(ValueError, match="'sizes' belongs to the study 'median'"):
        vs.studies.register(replace(study, name="other", part="other"))
