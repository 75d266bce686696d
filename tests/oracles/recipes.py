"""Code that CONTRIBUTING.md shows, for tests to run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"


def recipe(name):
    """Run the block that begins with `# recipe: NAME`, and give its names."""
    pattern = rf"```python\n# recipe: {re.escape(name)}\n(.*?)```"
    (block,) = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {"__name__": f"recipe {name}"}
    exec(compile(block, f"<recipe: {name}>", "exec"), names)
    return names
