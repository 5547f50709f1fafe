"""The report: one page from what runs left on disk, as HTML, as Markdown and as pictures."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.evaluation.selection import RULES
from meada.files import write_text
from meada.reports.page.about import provenance, what_was_run
from meada.reports.page.accuracy import accuracy
from meada.reports.page.blocks import Page, Section, Text
from meada.reports.page.budget import chosen, spent
from meada.reports.page.corruptions import corruptions
from meada.reports.page.gallery import galleries
from meada.reports.page.groups import Experiment, experiments, left_out
from meada.reports.page.markdown import to_markdown
from meada.reports.page.paper import beside_the_paper, sweep
from meada.reports.page.plots import draw
from meada.reports.page.render import to_html
from meada.reports.page.training import training
from meada.reports.page.trust import attacked, calibration
from meada.reports.runs import Run

__all__ = ["build", "draw", "to_html", "to_markdown", "write"]

Part = Callable[[Experiment], Section | None]


def build(
    runs: Sequence[Run],
    *,
    rule: str = "last",
    title: str = "Robustness report",
    before: Sequence[Section] = (),
    command: str = "",
) -> Page:
    """All that can be said of ``runs``; ``before`` comes first."""
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': " + nearest(rule, RULES))
    found = experiments(runs)
    sections = [*before, what_was_run(found, left_out(runs))]
    for experiment in found:
        mark = f": {experiment.title}" if len(found) > 1 else ""
        sections += [Section(f"{section.title}{mark}", section.blocks) for section in _about(experiment, rule)]
    return Page(title, (*sections, provenance(found, command)))


def _about(experiment: Experiment, rule: str) -> Iterator[Section]:
    parts: dict[str, Part] = {
        "accuracy: no run has results yet": partial(accuracy, rule=rule),
        "": partial(beside_the_paper, rule=rule),
        "Figure 1: it takes one method with several K": partial(sweep, rule=rule),
        "severities: the domains are no corruptions, or none is scored": partial(corruptions, rule=rule),
        "calibration: no run has results yet": partial(calibration, rule=rule),
        "accuracy under attack: 'meada evaluate RUN --pgd 256' measures one": attacked,
        "training curves: the folders hold no log.jsonl": training,
        "pictures: no round of these runs kept any (gallery.safetensors)": galleries,
        "the choice of checkpoints: no run has results yet": chosen,
    }
    missing = []
    for reason, part in parts.items():
        section = part(experiment)
        if section is not None:
            yield section
        elif reason:
            missing.append(reason)
    yield spent(experiment)
    if missing:
        yield Section("Not shown", tuple(Text(f"No {why}.", "missing") for why in missing))


def write(page: Page, *, out: Path | None = None, markdown: Path | None = None, png: Path | None = None) -> list[Path]:
    """The page in each form that is asked for; gives back the files."""
    written = []
    pictures = draw(page, png) if png else {}
    if out:
        write_text(out, to_html(page))
        written.append(out)
    if markdown:
        write_text(markdown, to_markdown(page, pictures, markdown.parent))
        written.append(markdown)
    return [*written, *pictures.values()]
