"""The site's formulas are MathML; a page that loads something from elsewhere ends the build."""

import io
import sys
from pathlib import Path

import pytest

pytest.importorskip("latex2mathml", reason="the extra 'docs' is not installed")
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from formulas import mathml

FORMULAS = r"""
Site
====

Inline :math:`s = CE + \beta h - \gamma c`.

.. math::

   \phi(x_0, y) = \tau \log \mathbb{E}_{\theta \sim \pi} \exp\left(s(T_\theta x_0) / \tau\right)
"""


def built(folder, page):
    (folder / "index.rst").write_text(page)
    heard = io.StringIO()
    settings = {"extensions": ["formulas"], "html_math_renderer": "mathml", "html_theme": "basic"}
    app = Sphinx(folder, None, folder / "out", folder / "trees", "html", settings, status=None, warning=heard)
    app.build()
    return (folder / "out" / "index.html").read_text(), heard.getvalue()


def test_formulas_need_no_script(tmp_path):
    page, warnings = built(tmp_path, FORMULAS)
    assert page.count("<math") == 2 and 'display="block"' in page
    assert "mathjax" not in page.lower() and not warnings


def test_a_page_that_needs_the_network_is_named(tmp_path):
    line = '.. raw:: html\n\n   <script src="https://example.org/x.js"></script>\n'
    _, warnings = built(tmp_path, f"Site\n====\n\n{line}")
    assert "index.html must load nothing from elsewhere, got <script" in warnings


def test_an_unknown_command_is_refused():
    with pytest.raises(ValueError, match=r"got \\nosuchcommand"):
        mathml(r"x + \nosuchcommand{y}")
