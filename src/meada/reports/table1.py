"""Table 1: digits, ours beside the paper's, with spread, n, and how each number was chosen."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from meada.evaluation.selection import KNOWS, RULES
from meada.evaluation.statistics import Summary, standard_errors_apart, summarise
from meada.folder import RunFolder

DOMAINS = ("svhn", "mnist_m", "usps")  # SYN is shown where its file can be had
PAPER: dict[str, dict[str, tuple[float, float]]] = {  # mean and standard deviation of ten runs
    "erm": {"svhn": (31.95, 1.91), "mnist_m": (55.96, 1.39), "syn": (43.85, 1.27),
            "usps": (79.92, 0.98)},
    "par": {"svhn": (36.08, 1.27), "mnist_m": (61.16, 0.21), "syn": (45.48, 0.35),
            "usps": (79.95, 1.18)},
    "ada": {"svhn": (35.70, 2.00), "mnist_m": (58.65, 1.72), "syn": (47.18, 0.61),
            "usps": (80.40, 1.70)},
    "meada": {"svhn": (42.00, 1.74), "mnist_m": (63.98, 1.82), "syn": (49.80, 1.74),
              "usps": (79.10, 1.03)},
    "meada-bnn": {"svhn": (42.56, 1.45), "mnist_m": (63.27, 2.09), "syn": (50.39, 1.29),
                  "usps": (81.04, 0.98)},
}  # fmt: skip

Records = Sequence[Mapping[str, Any]]


def read_records(out: Path) -> list[dict[str, Any]]:
    return [RunFolder(p.parent).load_record() for p in sorted(out.glob("*/record.json"))]


def of_table_1(records: Records) -> dict[str, list[Mapping[str, Any]]]:
    """The records that belong in Table 1, by method: the paper's K, one record a seed."""
    chosen: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        wanted = 3 if record["method"] != "erm" else len(record["rounds"])
        if record["recipe"].startswith("digits/") and len(record["rounds"]) == wanted:
            chosen.setdefault(record["method"], []).append(record)
    return chosen


def summary(records: Records, rule: str, domain: str) -> Summary:
    """``domain`` may be ``mean``: over targets within a run, then over runs."""
    return summarise([_value(record["results"][rule], domain) for record in records])


def _value(results: Mapping[str, Any], domain: str) -> float:
    if domain != "mean":
        return float(results[domain]["accuracy"])
    return sum(results[d]["accuracy"] for d in DOMAINS) / len(DOMAINS)


def paper(method: str, domain: str) -> float | None:
    """The paper's number; its mean over the three domains that are compared here.

    >>> round(paper("meada", "mean"), 2)
    61.69
    """
    if method not in PAPER:
        return None
    if domain == "mean":
        return sum(PAPER[method][d][0] for d in DOMAINS) / len(DOMAINS)
    return PAPER[method][domain][0]


def markdown(records: Records, command: str) -> str:
    """The table for ``results/README.md``."""
    chosen = of_table_1(records)
    order = [m for m in (*PAPER, *sorted(set(chosen) - set(PAPER))) if m in chosen]
    lines = ["| method | checkpoint chosen by | SVHN | MNIST-M | USPS | mean of three | n |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for method in order:
        if method in PAPER:
            cells = [f"{paper(method, d):.2f}" for d in (*DOMAINS, "mean")]
            lines.append(f"| {method} | *paper* (oracle) | {' | '.join(cells)} | 10 |")
        for rule in RULES:
            group = chosen[method]
            cells = [_cell(summary(group, rule, d)) for d in (*DOMAINS, "mean")]
            lines.append(f"| {method} | {rule} | {' | '.join(cells)} | {len(group)} |")
    known = "; ".join(f"*{rule}*: {what}" for rule, what in KNOWS.items())
    return "\n".join([*lines, "", f"{known}.", "", f"Command: `{command}`", ""])


def page(records: Records, command: str) -> str:
    """``results/README.md``: the table, the differences, and what was spent."""
    spent = [
        f"- {r['recipe']}, seed {r['seed']}, K = {len(r['rounds'])}: {r['steps']:,} steps, "
        f"{sum(r['seconds'].values()) / 60:.0f} min on {r['environment']['threads']} threads of "
        f"{r['environment']['processor']}"
        for r in records
    ]
    parts = ["# Digits: Table 1", markdown(records, command)]
    if lines := comparisons(records):
        parts += ["## Differences, last step", *lines]
    parts += ["", "## What was spent", *spent, "", "SYN cannot be had here: means are over three."]
    return "\n".join(parts) + "\n"


def comparisons(records: Records, rule: str = "last") -> list[str]:
    """Which differences between methods are within noise: in standard errors of the difference."""
    chosen = of_table_1(records)
    lines = []
    for better, worse in (("ada", "erm"), ("meada", "erm"), ("meada", "ada")):
        if better not in chosen or worse not in chosen:
            continue
        for domain in (*DOMAINS, "mean"):
            a, b = (summary(chosen[m], rule, domain) for m in (better, worse))
            apart = standard_errors_apart(a, b)
            verdict = (
                "one seed: nothing can be said" if apart is None
                else f"{apart:+.1f} standard errors" + ("" if abs(apart) > 2 else ", within noise")
            )  # fmt: skip
            lines.append(f"- {better} - {worse} on {domain}: {a.mean - b.mean:+.2f} ({verdict})")
    return lines


def _cell(s: Summary) -> str:
    return f"{s.mean:.2f}" + ("" if s.std is None else f" ± {s.std:.2f}")
