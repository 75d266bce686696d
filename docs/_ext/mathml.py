"""Render formulas as MathML, which browsers display without scripts."""

from docutils.nodes import SkipNode
from docutils.utils.math import latex2mathml


def _inline(translator, node):
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def _block(translator, node):
    text = latex2mathml.tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math">{text}</div>\n')
    raise SkipNode


def setup(app):
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
