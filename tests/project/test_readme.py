"""The README's example prints the README's table."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[2] / "README.md"


def blocks(language):
    pattern = rf"```{language}\n(.*?)```"
    return re.findall(pattern, README.read_text(encoding="utf-8"), re.DOTALL)


def numbers(text):
    return np.array([float(found) for found in re.findall(r"-?\d+\.\d+", text)])


def words(text):
    return re.sub(r"[-\d.,%\s=]+", " ", text)


def test_the_printed_table_is_real(capsys):
    exec(blocks("python")[0], {})
    printed, shown = capsys.readouterr().out, blocks("text")[0]
    assert words(printed) == words(shown)
    # Rounding of the last bit may move a split of a tree on another machine.
    np.testing.assert_allclose(numbers(printed), numbers(shown), rtol=0.05, atol=0.05)


def test_the_commands_exist():
    commands = blocks("bash")[0]
    assert "vstatkit demo" in commands
    assert (README.parent / "tests" / "run").exists()
