"""docs/theory.md: its numbers are computed, its tests exist, and it leaves out no symbol."""

import doctest
import re
from pathlib import Path

import meada.theory

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_the_examples_on_the_page_run() -> None:
    without_fences = re.sub(r"^ *```.*$", "", PAGE, flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(without_fences, {}, "theory.md", None, 0)
    assert len(examples.examples) >= 12
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_every_test_named_on_the_page_exists() -> None:
    written = {
        name
        for file in HERE.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 40
    assert named <= written


def test_every_function_of_the_package_is_on_the_page() -> None:
    mentioned = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", PAGE))
    public = {name for name, value in vars(meada.theory).items() if callable(value)}
    assert public - mentioned == {"Proposition1"}  # what proposition_1 returns
