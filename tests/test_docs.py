"""The guide's examples run, one after the other, in one session."""

import re
from pathlib import Path

import pytest

import vstatkit as vs

GUIDE = Path(__file__).parent.parent / "docs" / "guide.md"


@pytest.mark.filterwarnings("ignore::vstatkit.MonteCarloWarning")
def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(block, names)
    assert "Forest Results" in capsys.readouterr().out
    assert str(names["again"].summary()) == str(names["res"].summary())
    assert isinstance(names["few"], vs.EnsembleResults)
