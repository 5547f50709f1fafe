"""The report: one page from the folders of runs, as HTML, Markdown, PNG or on the terminal."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.evaluation.selection import RULES
from meada.files import write_text
from meada.reports.page.accuracy import accuracy, provenance, what_was_run
from meada.reports.page.blocks import Chart, Gallery, Page, Section, Text
from meada.reports.page.cost import chosen, equal_time, spent
from meada.reports.page.groups import Experiment, experiments, once_per_seed
from meada.reports.page.html import to_html
from meada.reports.page.paper import compare_with_paper, rounds_section
from meada.reports.page.robustness import attacked, calibration, corruptions
from meada.reports.page.table1 import table1
from meada.reports.page.table2 import table2
from meada.reports.page.table3 import table3
from meada.reports.page.text import to_markdown
from meada.reports.page.training import galleries, training
from meada.reports.runs import Run

__all__ = ["build", "table", "to_html", "to_markdown", "write"]

Part = Callable[[Experiment], Section | None]


def build(
    runs: Sequence[Run],
    *,
    rule: str = "last",
    title: str = "Robustness report",
    before: Sequence[Section] = (),
    command: str = "",
) -> Page:
    """Every section that ``runs`` have data for; ``before`` comes first."""
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': " + nearest(rule, RULES))
    parts: dict[str, Part] = {  # by what the page says where the section is None
        "accuracy: no run has results": partial(accuracy, rule=rule),
        "": partial(compare_with_paper, rules=(rule, "oracle")),
        "Figure 1: needs a method with several K": partial(rounds_section, rule=rule),
        "severities: the domains are not corruptions, or have no scores": partial(corruptions, rule=rule),
        "calibration: no run has results": partial(calibration, rule=rule),
        "accuracy under attack: run 'meada evaluate RUN --pgd 256'": attacked,
        "training curves: the folders have no log.jsonl": training,
        "pictures: no run has any (gallery.safetensors)": galleries,
        "checkpoint selection: no run has results": chosen,
        "accuracy in equal time: needs finished runs of ERM and of another method, with logs": equal_time,
    }
    runs, repeats = once_per_seed(runs)
    found = experiments(runs)
    sections = [*before, what_was_run(found, repeats)]
    for experiment in found:
        made = {why: part(experiment) for why, part in parts.items()}
        shown = [*(section for section in made.values() if section), spent(experiment)]
        if missing := [Text(f"No {why}.", "missing") for why, section in made.items() if why and not section]:
            shown.append(Section("Not shown", tuple(missing)))
        mark = f": {experiment.title}" if len(found) > 1 else ""
        sections += [Section(f"{section.title}{mark}", section.blocks) for section in shown]
    return Page(title, (*sections, provenance(found, command)))


def table(runs: Sequence[Run], number: int, *, rule: str = "last", command: str = "") -> Page:
    """Table 1, 2 or 3 of the paper and its figures, from finished runs."""
    finished = [run for run in runs if run.finished]
    if not finished:
        raise MeadaError("a table must have a finished run, got folders without a record.json")
    match number:
        case 1:
            return table1(finished, command)
        case 2:
            return table2(finished)
        case 3:
            return table3(finished, rule)
    raise MeadaError(f"--table must be 1, 2 or 3, got {number}")


def write(page: Page, *, out: Path | None = None, markdown: Path | None = None, png: Path | None = None) -> list[Path]:
    """Write the page in each format given; return the files. Pictures of Markdown go to ``figures``."""
    if markdown and png is None and any(isinstance(block, Chart | Gallery) for block in page.blocks()):
        png = markdown.parent / "figures"
    pictures: dict[int, Path] = {}
    if png:
        from meada.reports.page.charts import draw  # matplotlib is an extra

        pictures = draw(page, png)
    if out:
        write_text(out, to_html(page))
    if markdown:
        write_text(markdown, to_markdown(page, pictures, markdown.parent))
    return [*filter(None, (out, markdown)), *pictures.values()]
