"""Run the Python blocks of a page, and show what they print and draw.

A page with `run: true` in its front matter is executed: its `python` blocks run in
order, in one namespace and in an empty directory. The output of a block, the value of
its last line and its figures are inserted below it. Errors and warnings fail the build,
and so does a figure without a description in a comment before its block:

    % alt: Effects with their intervals; s5 has the largest.
    ```python
    res.plot()
    ```

HTML files that a page writes are copied to the folder `made` of the site. After
`% hidden` only the output of a block is shown. Blocks in other languages do not run.
"""

import ast
import contextlib
import io
import os
import shutil
import tempfile
import traceback
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util.logging import getLogger

logger = getLogger(__name__)

FRONT = "---\nrun: true\n---\n"
"""First lines of an executed page."""

WIDTH = 5.4
"""Largest width of a figure, in inches."""

COLUMNS = 88
"""Characters in a line of output."""


class RunPage(SphinxTransform):
    """Insert the output and figures of every Python block below it."""

    default_priority = 210
    site = Path()

    def apply(self, **options):
        """Run the page, if its front matter has `run: true`."""
        source = Path(self.env.doc2path(self.env.docname))
        if not source.read_text(encoding="utf-8").startswith(FRONT):
            return
        blocks = [
            block
            for block in self.document.findall(nodes.literal_block)
            if block.get("language") == "python"
        ]
        folder = Path(self.env.doctreedir) / "made" / self.env.docname
        folder.mkdir(parents=True, exist_ok=True)
        names = {"__name__": "__main__"}
        with _as_a_page():
            for number, block in enumerate(blocks):
                try:
                    self._run(block, names, folder / f"{number}.png")
                except Exception:  # whatever a page raises
                    logger.warning(
                        "%s\n\n%s",
                        block.astext(),
                        traceback.format_exc(),
                        location=block,
                    )
                    return
            self._keep_files()

    def _keep_files(self):
        """Copy the HTML files of a page, so that it can link to them."""
        folder = self.site / "made"
        for path in Path().glob("*.html"):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)

    def _run(self, block, names, place):
        printed = _printed(block.astext(), names)
        made = []
        if printed.strip():
            made.append(nodes.literal_block(printed, printed, language="text"))
            made[-1]["classes"].append("output")
        made += [self._picture(block, one, place) for one in plt.get_fignums()]
        plt.close("all")
        spot = block.parent.index(block) + 1
        block.parent.insert(spot, made)
        if _comment(block) == "hidden":
            block.parent.remove(block)

    def _picture(self, block, figure, place):
        """Save a figure; its description is the comment before the block."""
        said = _comment(block)
        if not said.startswith("alt:"):
            raise ValueError(
                'a picture needs a comment "% alt: what it shows" before its block.'
            )
        path = place.with_name(f"{place.stem}-{figure}.png")
        _narrowed(plt.figure(figure)).savefig(path, dpi=160)
        here = (Path(self.env.srcdir) / self.env.docname).parent
        relative = Path(os.path.relpath(path, here)).as_posix()
        text = " ".join(said.removeprefix("alt:").split())
        return nodes.image(uri=relative, alt=text, classes=["drawn"])


def _comment(block):
    """Return the comment before a block, or an empty string."""
    before = block.previous_sibling()
    return before.astext() if isinstance(before, nodes.comment) else ""


def _narrowed(figure):
    """Limit the width of a figure, so that its text is readable on a phone."""
    width, height = figure.get_size_inches()
    share = min(1, WIDTH / width)
    figure.set_size_inches(width * share, height * max(share, 0.85))
    return figure


@contextlib.contextmanager
def _as_a_page():
    """Use an empty directory, and figures and tables that fit a narrow page."""
    options = ("display.width", COLUMNS, "display.max_columns", 20)
    sizes = {"figure.figsize": (WIDTH, 3.4), "figure.constrained_layout.use": True}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        pd.option_context(*options),
        mpl.rc_context(sizes),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        yield


def _printed(code, names):
    """Run a block; return its output and the value of its last line."""
    tree = ast.parse(code)
    last = (
        tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    )
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        exec(compile(tree, "<page>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
            if value is not None and not _is_drawing(value):
                print(repr(value))
    return out.getvalue().rstrip()


def _is_drawing(value):
    """Return whether a value is a matplotlib object, shown as a figure instead."""
    return type(value).__module__.startswith("matplotlib") or (
        isinstance(value, np.ndarray) and value.dtype.kind == "O"
    )


def setup(app):
    """Register the transform with Sphinx."""
    mpl.use("agg")
    RunPage.site = Path(app.outdir)
    app.add_transform(RunPage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
