"""Sphinx configuration: `sphinx-build -W docs docs/_build`."""

import vstatkit

project = "vstatkit"
author = "The vstatkit developers"
release = vstatkit.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "certificate.md", "paper/*.md", "peers.md"]
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "alabaster"
