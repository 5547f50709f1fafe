"""Every name in docs/paper-map.md exists: symbols import, tests are there."""

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line.strip("|").split("|")
    for line in (ROOT / "docs" / "paper-map.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| paper")
]
SYMBOLS = sorted({s for row in ROWS for s in re.findall(r"`(meada\.[\w.]+)`", row[1])})
TESTS = sorted({t for row in ROWS for t in re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", row[2])})


def exists(symbol: str) -> bool:
    module, _, name = symbol.rpartition(".")
    return hasattr(importlib.import_module(module), name)


def written(test: str) -> bool:
    path, _, name = test.partition("::")
    return f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file()


def complete(row: list[str]) -> bool:
    built = "`meada." in row[1]
    return ("`tests/" in row[2]) == built and (built or "*not yet*" in row[1] or "none:" in row[1])


def test_every_symbol_exists():
    assert len(SYMBOLS) > 40 and not [symbol for symbol in SYMBOLS if not exists(symbol)]


def test_every_test_exists():
    assert len(TESTS) > 20 and not [test for test in TESTS if not written(test)]


def test_every_row_has_a_symbol_and_a_test_or_says_why_not():
    assert not [row[0].strip() for row in ROWS if not complete(row)]


def test_the_map_covers_the_paper():
    text = " ".join(row[0] for row in ROWS)
    for what in ("Algorithm 1", "Table 1", "Table 2", "Table 3", "Figure 1", "Figure 2",
                 "Proposition 1", "Proposition 2", "Proposition 3", "Corollary 1"):  # fmt: skip
        assert what in text
    assert {f"eq. {n}" for n in range(1, 10)} <= set(re.findall(r"eq\. \d+", text))
