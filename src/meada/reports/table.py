"""Results as a table on the terminal."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from meada.evaluation.selection import KNOWS


def print_record(record: Mapping[str, Any], out: Path, console: Console | None = None) -> None:
    """Accuracy of each rule's choice on each domain, with the mean over domains."""
    console = console or Console()
    results: Mapping[str, Mapping[str, Any]] = record["results"]
    table = Table("", title=f"{record['recipe']}, seed {record['seed']}: accuracy (%)")
    for rule in results:
        table.add_column(rule, justify="right")
    for domain in results["last"]:
        table.add_row(domain, *(f"{each[domain]['accuracy']:.1f}" for each in results.values()))
    means = [fmean(s["accuracy"] for s in each.values()) for each in results.values() if each]
    table.add_row("mean", *(f"{mean:.1f}" for mean in means))
    console.print(table)
    console.print("What each checkpoint was chosen by:")
    for rule in results:
        console.print(f"  {rule:<10}  {KNOWS[rule]}")
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
