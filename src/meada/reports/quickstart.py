"""What the quickstart ends with: a table, three pictures, and the report with a word before it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from meada.reports import pictures
from meada.reports.page import build, write
from meada.reports.page.blocks import Figure, Section, Text
from meada.reports.runs import find_runs
from meada.runs.run_folder import RunFolder

TITLES = {
    "erm": "ERM: plain training",
    "ada": "ADA: adds images that fool the network",
    "meada": "ME-ADA: adds images that fool it and leave it unsure",
}
TITLE = "Reading digits of a kind never seen"
INTRO = """Three networks of the same shape learnt to read {train:,} handwritten digits (MNIST), in
the same number of training steps. Then each was shown digits of kinds that none of them had ever
seen, and asked to read them."""
SHOWN = "What was learnt from (top row), and the five kinds of digits never seen."
FOOTNOTE = """One seed: differences of a point or two are within chance. The checkpoint is the last
step; no unseen image had a part in any choice. Command: meada quickstart --seed {seed}"""


def show(folders: Mapping[str, Path], out: Path) -> None:
    """Print the table, draw the pictures, write the page, and say where it is."""
    records = {name: RunFolder(path).load_record() for name, path in folders.items()}
    recipe = RunFolder(folders["meada"]).load_recipe()
    console = Console()
    console.print(_table(records))
    for title in TITLES.values():
        console.print(title)
    files = {
        "domains.png": pictures.domains(recipe.data),
        "accuracy.png": pictures.accuracy(records, TITLES),
        "adversarial.png": pictures.adversarial(RunFolder(folders["meada"]).gallery),
    }
    for name, content in files.items():
        pictures.save(content, out / name)
    foot = " ".join(FOOTNOTE.format(seed=recipe.seed).split())
    intro = " ".join(INTRO.format(train=recipe.data["train"]).split())
    shown = Figure(SHOWN, (out / "domains.png").read_bytes())
    first = Section("What this is", (Text(intro), shown, Text(foot)))
    page = build(find_runs(list(folders.values())), title=TITLE, before=[first])
    write(page, out=out / "report.html")
    console.print(foot)
    console.print("Pictures: " + ", ".join(str(out / name) for name in files), soft_wrap=True)
    console.print(f"Report:   {out / 'report.html'}", soft_wrap=True)


def rows(records: Mapping[str, dict[str, Any]]) -> tuple[list[str], dict[str, list[float]]]:
    """Domains, and each method's accuracy on them with the mean at the end."""
    domains = list(next(iter(records.values()))["results"]["last"])
    table = {}
    for name, record in records.items():
        values = [record["results"]["last"][d]["accuracy"] for d in domains]
        table[name] = [*values, sum(values) / len(values)]
    return domains, table


def _table(records: Mapping[str, dict[str, Any]]) -> Table:
    domains, values = rows(records)
    table = Table(title="Digits read rightly (%), by networks that never saw such digits")
    table.add_column("method")
    for name in (*domains, "mean"):
        table.add_column(name.replace("_", " "), justify="right")
    for name, line in values.items():
        table.add_row(TITLES[name].split(":")[0], *(f"{v:.1f}" for v in line))
    return table
