"""What the quickstart ends with: a table, three pictures and one page that holds them all."""

import base64
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from meada.files import write_text
from meada.folder import RunFolder
from meada.recipe import Recipe
from meada.reports import pictures

TITLES = {
    "erm": "ERM: plain training",
    "ada": "ADA: adds images that fool the network",
    "meada": "ME-ADA: adds images that fool it and leave it unsure",
}
INTRO = """Three networks of the same shape learnt to read {train:,} handwritten digits (MNIST), in
the same number of training steps. Then each was shown digits of kinds that none of them had ever
seen. The table gives how many it read rightly, in per cent."""
CAPTIONS = {
    "domains.png": "What was learnt from (top row), and the five kinds of digits never seen.",
    "accuracy.png": "Digits read rightly, in per cent. Guessing would give 10.",
    "adversarial.png": "How ME-ADA makes its extra images: each digit is changed a little, so that "
    "the network errs or becomes unsure, while a person still reads the same digit. The bottom row "
    "of each round shows the change, amplified.",
}
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
    write_text(out / "report.html", _page(records, recipe, out, list(files)))
    console.print(" ".join(FOOTNOTE.format(seed=recipe.seed).split()))
    console.print("Pictures: " + ", ".join(str(out / name) for name in files))
    console.print(f"Report:   {out / 'report.html'}")


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
        table.add_column(name, justify="right")
    for name, line in values.items():
        table.add_row(TITLES[name].split(":")[0], *(f"{v:.1f}" for v in line))
    return table


def _page(
    records: Mapping[str, dict[str, Any]], recipe: Recipe, out: Path, images: list[str]
) -> str:
    domains, values = rows(records)
    head = "".join(f"<th>{html.escape(d)}</th>" for d in ("method", *domains, "mean"))
    body = "".join(
        f"<tr><td>{html.escape(TITLES[n])}</td>" + "".join(f"<td>{v:.1f}</td>" for v in line)
        + "</tr>" for n, line in values.items()
    )  # fmt: skip
    shown = "".join(_figure(out / name, CAPTIONS[name]) for name in images)
    intro = INTRO.format(train=recipe.data["train"])
    return PAGE.format(
        intro=intro, head=head, body=body, shown=shown, foot=FOOTNOTE.format(seed=recipe.seed)
    )


def _figure(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    alt = html.escape(caption)
    return (
        f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">'
        f"<figcaption>{alt}</figcaption></figure>"
    )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>meada quickstart</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem; }}
div {{ overflow-x: auto; }} table {{ border-collapse: collapse; }}
th, td {{ padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #8888; }}
th:first-child, td:first-child {{ text-align: left; }}
figure {{ margin: 2rem 0; }} img {{ max-width: 100%; background: white; }}
figcaption {{ font-size: .9em; opacity: .8; }}
</style></head><body><h1>Reading digits of a kind never seen</h1><p>{intro}</p>
<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{shown}<p>{foot}</p>
</body></html>
"""
