"""Results as a table on the terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from meada.evaluation.selection import KNOWS


def print_record(record: Mapping[str, Any], out: Path, console: Console | None = None) -> None:
    """Accuracy of each rule's choice on each domain, with the mean over domains."""
    console = console or Console()
    domains = list(record["results"]["last"])
    table = Table(title=f"{record['recipe']}, seed {record['seed']}: accuracy (%)")
    for name in ("checkpoint chosen by", *domains, "mean"):
        table.add_column(name, justify="left" if name.startswith("check") else "right")
    for rule, results in record["results"].items():
        values = [results[d]["accuracy"] for d in domains]
        mean = sum(values) / len(values) if values else float("nan")
        cells = [f"{v:.1f}" for v in (*values, mean)]
        table.add_row(f"{rule} ({KNOWS[rule]})", *cells)
    console.print(table)
    spent = ", ".join(f"{k} {v:.0f} s" for k, v in record["seconds"].items())
    told = f"{record['steps']:,} steps; {spent}. Record: {out / 'record.json'}"
    console.print(told, soft_wrap=True)  # a path that is cut in two cannot be copied


def print_scores(scores: Mapping[str, Mapping[str, float]], *, title: str) -> None:
    table = Table(title=title)
    for name in ("domain", "n", "accuracy (%)", "ECE", "NLL", "Brier"):
        table.add_column(name, justify="left" if name == "domain" else "right")
    for domain, s in scores.items():
        numbers = [f"{s['accuracy']:.2f}", *(f"{s[k]:.4f}" for k in ("ece", "nll", "brier"))]
        table.add_row(domain, f"{s['n']:,}", *numbers)
    Console().print(table)
