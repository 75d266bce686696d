"""Sphinx configuration: `sphinx-build -W docs docs/_build`."""

import sys
from pathlib import Path

import vstatkit

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "vstatkit"
author = "The vstatkit developers"
release = vstatkit.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_design",
    "mathml",
    "running",
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "_ext",
    "certificate.md",
    "paper/*.md",
    "peers.md",
]
numpydoc_show_class_members = False
autodoc_typehints = "none"
default_role = "code"  # as single backticks of docstrings are meant

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"vstatkit {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
