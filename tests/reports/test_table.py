"""What a run prints at its end."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from meada.corruptions import CORRUPTIONS
from meada.evaluation.selection import RULES
from meada.reports.page.terminal import print_record


def printed(domains: dict[str, float]) -> list[str]:
    results = {rule: {name: {"accuracy": value + k} for name, value in domains.items()} for k, rule in enumerate(RULES)}
    seconds = {"minimise": 61.7, "maximise": 0.0}
    record = {"recipe": "r", "seed": 3, "results": results, "seconds": seconds, "steps": 1380}
    screen = StringIO()
    print_record(record, Path("runs/a"), Console(file=screen, width=80))
    return screen.getvalue().splitlines()


def test_fifteen_domains_and_four_rules_fit_a_terminal():
    lines = printed({name: 50.0 + k for k, name in enumerate(CORRUPTIONS)})
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    numbers = {line.split()[1]: line.split()[3::2] for line in lines if line.startswith("│")}
    assert numbers["gaussian_noise"] == ["50.0", "51.0", "52.0", "53.0"]
    assert numbers["mean"] == ["57.0", "58.0", "59.0", "60.0"]
    assert "  oracle      the best on the targets themselves, as the published code does" in lines
    assert "1,380 steps; minimise 62 s, maximise 0 s. Record: runs/a/record.json" in lines


def test_a_run_that_meets_no_domain_prints_too():
    assert any("source_val" in line for line in printed({}))
