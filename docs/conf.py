"""Sphinx settings of the documentation site: ``make docs`` builds it into docs/_build/html."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "scripts")]

from draw_rooms import svg  # noqa: E402
from reference_pages import link_to_repository, write_pages  # noqa: E402

import meada  # noqa: E402

project = "meada"
author = "The meada developers"
copyright = "2026, the meada authors"
release = version = meada.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "formulas",  # formulas.py, in this folder
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_in_temp = True  # what tutorials write does not stay in docs/
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["myst-nb.lexer"]  # cells of pages that were not executed
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # shapes are in the signature's own words, in the docstring
smartquotes = False  # --set is not a dash
copybutton_prompt_text = "$ "

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"meada {release}"
html_static_path: list[str] = []
linkcheck_ignore = [r"https://doi\.org/.*"]  # publishers refuse robots


def generate(app):  # type: ignore[no-untyped-def]
    write_pages(HERE / "reference" / "generated")
    (HERE / "rooms.svg").write_text(svg(), encoding="utf-8")


def setup(app):  # type: ignore[no-untyped-def]
    app.connect("builder-inited", generate)
    app.connect("source-read", link_to_repository)
