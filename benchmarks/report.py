"""Show a benchmark record as tables: on the terminal and, between two markers, in a README."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from meada.errors import MeadaError
from meada.files import write_text

BEGIN, END = "<!-- meada bench: begin -->", "<!-- meada bench: end -->"
HEAD = ["case", "unit", "published", "meada", "peak", "times as fast", "of peak"]
ALIKE = {  # what the maximisation cases found of their pixels, and what a reader calls it
    "agreement": "as both run",
    "agreement_float64": "in float64",
    "published_with_itself": "published in two layouts",
}
Cells = list[str]


def rows(record: Mapping[str, Any]) -> list[Cells]:
    """Table rows: one per comparison; a case may have two."""
    lines = []
    for name, case in record["cases"].items():
        if name.startswith("blocks-"):
            continue
        sides, ratios = case["sides"], case["ratios"]
        lines.append([
            name, case["unit"], *(_spread(sides.get(s)) for s in ("published", "meada", "peak")),
            _spread(ratios.get("published")), _per_cent(ratios.get("peak")),
        ])  # fmt: skip
        if "loaders" in ratios:
            lines.append(_second(name, "2 loaders", sides["published, 2 loaders"], case, "loaders"))
        if "without evaluation" in ratios:
            lines.append(_second(name, "without evaluation", None, case, "without evaluation"))
    return lines


def block_rows(record: Mapping[str, Any]) -> tuple[Cells, list[Cells]]:
    """Milliseconds per image by ascent block size: header and one row per network."""
    swept = {n: c for n, c in record["cases"].items() if n.startswith("blocks-")}
    sizes = sorted({int(size) for case in swept.values() for size in case["sides"]})
    lines = [
        [name.removeprefix("blocks-"), *(_spread(case["sides"].get(str(size))) for size in sizes)]
        + [str(case["facts"]["fastest"]), str(case["facts"]["recipe"])]
        for name, case in swept.items()
    ]
    return ["network", *map(str, sizes), "fastest", "recipe"], lines


def alike_rows(record: Mapping[str, Any]) -> tuple[Cells, list[Cells]]:
    """Share of perturbed pixels that agree to 1e-5: header and one row per network."""
    lines = [
        [name, str(case["facts"]["compared"])] + [f"{100 * case['facts'][kind]:.3f} %" for kind in ALIKE]
        for name, case in record["cases"].items()
        if "agreement" in case["facts"]
    ]
    return ["case", "images", *ALIKE.values()], lines


def print_record(record: Mapping[str, Any], console: Console | None = None) -> None:
    console = console or Console()
    if not console.is_terminal:
        console.width = 140  # a file has no edge to wrap at
    console.print(machine(record))
    for title, columns, lines in _tables(record):
        _print(console, title, columns, lines)


def markdown(record: Mapping[str, Any], command: str) -> str:
    """Markdown of the README: tables, machine and command."""
    tables = [f"{title}:\n\n{markdown_table(columns, lines)}" for title, columns, lines in _tables(record)]
    about = "\n".join(f"- `{name}`: {case['about']}" for name, case in record["cases"].items())
    return "\n\n".join([f"`{command}` on {machine(record)}.", *tables, about])


def machine(record: Mapping[str, Any]) -> str:
    e = record["environment"]
    quick = ", quick sizes" if record["quick"] else ""
    return (
        f"{e['processor']}, {e['cores']} cores, {e['threads']} threads, {e['cpu_capability']}, "
        f"torch {e['torch']}, meada {e['meada']}{quick}"
    )


def update(path: Path, text: str) -> None:
    """Replace the text between the markers of a file."""
    content = path.read_text(encoding="utf-8")
    if content.count(BEGIN) != 1 or content.count(END) != 1:
        raise MeadaError(f"{path} must hold '{BEGIN}' and '{END}' once each")
    before, after = content.split(BEGIN)[0], content.split(END)[1]
    write_text(path, f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _second(name: str, what: str, published: Any, case: Mapping[str, Any], ratio: str) -> Cells:
    return [f"{name}, {what}", case["unit"], _spread(published), "", "",
            _spread(case["ratios"][ratio]), ""]  # fmt: skip


def _tables(record: Mapping[str, Any]) -> list[tuple[str, Cells, list[Cells]]]:
    """Titles and tables that have rows."""
    spent = record["cases"].get("run", {}).get("facts", {}).get("seconds", {})
    tables = [
        ("Median (lowest-highest) of the rounds", HEAD, rows(record)),
        ("Perturbed pixels that agree to 1e-5", *alike_rows(record)),
        ("Ascent by block size, ms/image", *block_rows(record)),
        ("Parts of the whole digits run", ["part", "seconds"],
         [[name, f"{seconds:,.1f}"] for name, seconds in spent.items()]),
    ]  # fmt: skip
    return [table for table in tables if table[2]]


def _spread(value: Mapping[str, float] | None) -> str:
    """``median (low-high)`` in three figures."""
    if value is None:
        return ""
    return f"{value['median']:.3g} ({value['low']:.3g}-{value['high']:.3g})"


def _per_cent(value: Mapping[str, float] | None) -> str:
    if value is None:
        return ""
    low, high = 100 * value["low"], 100 * value["high"]
    return f"{100 * value['median']:.0f} % ({low:.0f}-{high:.0f})"


def _print(console: Console, title: str, columns: Cells, lines: list[Cells]) -> None:
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for line in lines:
        table.add_row(*line)
    console.print(table)


def markdown_table(columns: Sequence[str], lines: Sequence[Cells]) -> str:
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [columns, rule, *lines])
