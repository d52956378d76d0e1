"""How Sphinx builds the pages: from this folder, the notebooks and the docstrings; no page asks a host for anything.

`make docs` runs the notebooks first (`-t executed`); without that tag they are shown as they are stored.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]

os.environ["BUDGETKIT_TODAY"] = "2026-11-26"  # as the notebooks are stored; no page changes when a model ends

project = "budgetkit"
author = "budgetkit contributors"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "figures",
    "layers",
    "notebooks",
    "reference",
]
exclude_patterns = ["_build", "extensions"]
html_theme = "furo"
html_title = "budgetkit"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's Parameters say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
templates_path = ["templates"]

myst_heading_anchors = 3
nb_execution_mode = "off"  # extensions/notebooks.py runs them, so that figures and widgets become static pages
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # else every page with a widget asks a host for its scripts
