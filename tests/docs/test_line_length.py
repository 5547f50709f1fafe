"""Markdown wraps at 120 columns, so that its differences can be read."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COLUMNS = 120
BUILT = {"_build", "generated", "jupyter_execute"}  # what `make docs` leaves
GENERATED = re.compile(r"<!-- ([\w ]+): begin -->.*?<!-- \1: end -->", re.DOTALL)


def pages():
    yield from ROOT.glob("*.md")
    for folder in ("docs", "benchmarks"):
        yield from (page for page in (ROOT / folder).rglob("*.md") if not BUILT & {*page.parts})


def long_lines(text):
    """Numbers of lines of prose that could be broken and are too long: not tables, code, quotes or pictures."""
    text = GENERATED.sub(lambda found: "\n" * found.group().count("\n"), text)
    fenced, found = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        words = re.sub(r"`[^`]*`|\]\([^)]*\)", "x", line).split()
        if len(line) > COLUMNS and not fenced and len(words) > 1 and not line.startswith(("|", "![", "> ", "    ")):
            found.append(number)
    return found


def test_prose_wraps():
    wrong = {str(page.relative_to(ROOT)): long_lines(page.read_text(encoding="utf-8")) for page in pages()}
    assert not {page: numbers for page, numbers in wrong.items() if numbers}


def test_a_long_line_is_found():
    assert long_lines("short\n" + "word " * 30 + "\n| " + "cell " * 30) == [2]
