"""Results of the quickstart: a table on the terminal, pictures, and a report with an introduction."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from torch import Tensor

from meada.reports.page import build, write
from meada.reports.page.accuracy import overview
from meada.reports.page.blocks import Page, Section, Text
from meada.reports.page.charts import draw
from meada.reports.page.groups import described, experiments
from meada.reports.page.paper import comparison
from meada.reports.page.text import print_blocks
from meada.reports.page.training import examples, rounds, stacked
from meada.reports.runs import find_runs

TITLE = "Classifying digits of a style not seen in training"
INTRO = """Three networks of the same shape were trained on {train:,} handwritten digits (MNIST) for the same number of
steps, then tested on five styles of digits that none of them had seen."""
SHOWN = "The training digits (top row) and the five styles not seen in training"
HARD = "Training digits (top row) and hard views of them chosen by tilted augmentation"
FOOTNOTE = """One seed: differences of a point or two are within chance. Checkpoint: the last training step; no choice
used test images. Command: meada quickstart --seed {seed}"""


def show(folders: Mapping[str, Path], out: Path, shown: Mapping[str, Tensor], views: Mapping[str, Tensor]) -> None:
    """Print the table, draw the pictures, write the page and print its path.

    ``shown``: some images of every domain, the training domain first, the same classes of each; ``views``: training
    images and hard views of them.
    """
    runs, console = find_runs(list(folders.values())), Console()
    (found,) = experiments(runs)
    meada = next(run for run in runs if run.method == "meada")
    foot = " ".join(FOOTNOTE.format(seed=meada.seed).split())
    intro = " ".join(INTRO.format(train=int(meada.recipe["data"]["train"])).split())
    domains, hard = examples(SHOWN, shown, name="domains"), examples(HARD, views, name="views")
    kept = rounds("", meada.folder.load_gallery(), meada.classes)
    made = stacked("Samples of each round of ME-ADA", kept, name="adversarial")
    table = overview(found, found.groups, "last", "Accuracy (%) on digit styles not seen in training")
    about = [Text(f"{g.label}: {d.about}") for g in found.groups if (d := described(g.method)) and d.about]
    print_blocks([table, *about], console)
    figures = Page("", (Section("", (domains, comparison(found, "last", name="accuracy"), made, hard)),))
    files = draw(figures, out).values()
    page = build(runs, title=TITLE, before=[Section("What this is", (Text(intro), domains, hard, Text(foot)))])
    write(page, out=out / "report.html")
    console.print(foot)
    console.print("Pictures: " + ", ".join(map(str, files)), soft_wrap=True)
    console.print(f"Report:   {out / 'report.html'}", soft_wrap=True)
