"""Habits that are easily lost: checks before a commit, formulas in docstrings."""

import inspect
import re
from pathlib import Path

import pytest

from vstatkit.variance import formulas

ROOT = Path(__file__).parents[2]

ESTIMATORS = [
    name
    for name, function in inspect.getmembers(formulas, inspect.isfunction)
    if function.__module__ == formulas.__name__
    and (
        name.startswith("zeta_1_")
        or name in ("jackknife_after_bootstrap", "little_bags", "matched_pairs")
    )
]


def commands_of_the_hooks():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    return re.findall(r"^ +entry: (.+)$", text, re.MULTILINE)


def commands_of_the_test_run():
    """List the tools that tests/run calls, apart from the tests themselves."""
    text = (ROOT / "tests" / "run").read_text(encoding="utf-8")
    return re.findall(r"^(\.venv/bin/(?!python\b).+)$", text, re.MULTILINE)


def test_hooks_run_what_the_test_command_runs():
    assert len(commands_of_the_hooks()) == 3
    assert commands_of_the_hooks() == commands_of_the_test_run()


def test_hooks_see_the_whole_project():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    hooks = text.count("- id:")
    assert hooks == len(commands_of_the_hooks())
    assert text.count("language: system") == hooks
    assert text.count("pass_filenames: false") == hooks


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_have_their_formula_and_their_source(name):
    text = inspect.getdoc(getattr(formulas, name))
    assert ".. math::" in text
    assert re.search(r"doi:10\.\d{4,}/\S+", text)


def test_all_estimators_are_seen():
    assert len(ESTIMATORS) == 10
