"""Write formulas as MathML, which browsers draw themselves, and refuse pages that load anything from elsewhere."""

import re
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

ELSEWHERE = re.compile(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
FUNCTION = r"<mi>(?:log|exp)</mi>"
SPACE = '<mspace width="0.167em" />'  # TeX's thin space around the name of a function
log = logging.getLogger(__name__)


def mathml(formula: str, display: str = "inline") -> str:
    """MathML of a LaTeX formula; commands that the converter does not know are refused.

    >>> mathml("x_0").count("msub")
    2
    """
    found = convert(formula, display=display)
    if unknown := re.findall(r"\\[a-zA-Z]+", found):
        raise ValueError(f"formulas must use commands that MathML can be made of, got {', '.join(unknown)}")
    found = re.sub(rf"(</mi>|</msub>)({FUNCTION})", rf"\1{SPACE}\2", found)
    return re.sub(rf"({FUNCTION})(?!<mo)", rf"\1{SPACE}", found)


def inline(translator, node):  # type: ignore[no-untyped-def]
    translator.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def block(translator, node):  # type: ignore[no-untyped-def]
    translator.body.append(f'<div class="math" style="overflow-x: auto">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def check_offline(app: Sphinx, error: Exception | None) -> None:
    """Scripts, styles and pictures must be part of the site: it is read on machines without a network too."""
    for page in [] if error or app.builder.name != "html" else sorted(Path(app.outdir).rglob("*.html")):
        for tag in ELSEWHERE.findall(page.read_text(encoding="utf-8")):
            log.warning("%s must load nothing from elsewhere, got %s", page.relative_to(app.outdir), tag)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", check_offline)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
