"""The tables: the record's numbers where a reader looks for them."""

from io import StringIO

import pytest
from benchmarks.report import (
    BEGIN,
    END,
    alike_rows,
    block_rows,
    markdown,
    print_record,
    rows,
    update,
)
from rich.console import Console

from meada.errors import MeadaError


def spread(median):
    return {"median": median, "low": median / 2, "high": median * 2}


@pytest.fixture
def record():
    def case(unit, sides, ratios, facts=None):
        return {
            "about": f"about {unit}", "unit": unit, "rounds": 3, "facts": facts or {},
            "sides": {k: spread(v) for k, v in sides.items()},
            "ratios": {k: spread(v) for k, v in ratios.items()},
        }  # fmt: skip

    return {
        "environment": {
            "processor": "Abacus", "cores": 2, "threads": 1, "cpu_capability": "WOOD",
            "torch": "9.9", "meada": "0.0",
        },
        "quick": True,
        "seconds": 1.0,
        "cases": {
            "maximise-lenet": case(
                "ms/image", {"published": 40.0, "meada": 16.0, "peak": 12.0},
                {"published": 2.5, "peak": 0.75},
                {"agreement": 0.99987, "agreement_float64": 1.0, "published_with_itself": 0.9,
                 "compared": 32},
            ),
            "data": case(
                "us/image", {"published": 80.0, "published, 2 loaders": 44.0, "meada": 4.0},
                {"published": 20.0, "loaders": 11.0},
            ),
            "run": case(
                "minutes", {"published": 60.0, "meada": 12.0},
                {"published": 5.0, "without evaluation": 2.2},
                {"seconds": {"meada train minimise": 412.34}},
            ),
            "blocks-lenet": case(
                "ms/image", {"16": 3.0, "128": 2.0}, {"16": 0.7, "128": 1.0},
                {"fastest": 128, "recipe": 64},
            ),
        },
    }  # fmt: skip


def test_rows_hold_medians_with_their_spread(record):
    lines = {line[0]: line[1:] for line in rows(record)}
    assert lines["maximise-lenet"] == [
        "ms/image", "40 (20-80)", "16 (8-32)", "12 (6-24)", "2.5 (1.25-5)", "75 % (38-150)",
    ]  # fmt: skip
    assert lines["data, 2 loaders"][1] == "44 (22-88)" and lines["data, 2 loaders"][4][:2] == "11"
    assert lines["run, without evaluation"][4] == "2.2 (1.1-4.4)"
    assert "blocks-lenet" not in lines


def test_block_rows_name_the_fastest_and_the_recipe_s(record):
    head, (line,) = block_rows(record)
    assert head == ["network", "16", "128", "fastest", "recipe"]
    assert line == ["lenet", "3 (1.5-6)", "2 (1-4)", "128", "64"]


def test_agreement_has_a_table_of_its_own(record):
    head, (line,) = alike_rows(record)
    assert head[2:] == ["as both run", "in float64", "published in two layouts"]
    assert line == ["maximise-lenet", "32", "99.987 %", "100.000 %", "90.000 %"]


def test_terminal_and_page_name_the_machine(record):
    screen = StringIO()
    print_record(record, Console(file=screen))
    for text in (screen.getvalue(), markdown(record, "meada bench")):
        assert "Abacus, 2 cores, 1 threads, WOOD, torch 9.9" in text and "quick sizes" in text
        assert "2.5 (1.25-5)" in text and "99.987 %" in text


def test_the_page_says_how_it_was_made(record):
    page = markdown(record, "meada bench --case data")
    assert page.startswith("`meada bench --case data` on Abacus")
    assert "| meada train minimise | 412.3 |" in page and "- `data`: about us/image" in page


def test_only_what_lies_between_the_markers_changes(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    update(path, "new")
    update(path, "newer")
    assert path.read_text() == f"before\n{BEGIN}\n\nnewer\n\n{END}\nafter\n"


def test_a_page_without_markers_is_left_alone(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("no markers")
    with pytest.raises(MeadaError, match="README.md"):
        update(path, "new")
    assert path.read_text() == "no markers"
