"""Code that the developers' pages show, for tests to run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "adding.md", ROOT / "CONTRIBUTING.md")


def recipe(name):
    """Run the block that begins with `# recipe: NAME`, and give its names."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES if page.exists()]
    pattern = rf"```python\n# recipe: {re.escape(name)}\n(.*?)```"
    (block,) = [one for page in pages for one in re.findall(pattern, page, re.DOTALL)]
    names = {"__name__": f"recipe {name}"}
    exec(compile(block, f"<recipe: {name}>", "exec"), names)
    return names
