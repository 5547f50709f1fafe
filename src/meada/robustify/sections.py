"""The report page of ``robustify``: the answer first, then the evidence."""

from collections.abc import Iterator

from meada.reports.page import write
from meada.reports.page.blocks import Block, Chart, Page, Section, Series, Table, Text
from meada.robustify.outcome import Outcome


def write_report(outcome: Outcome) -> None:
    """``report.html``."""
    page = Page(f"Delivered: {outcome.delivered}", tuple(_sections(outcome)))
    write(page, out=outcome.out / "report.html")


def _sections(outcome: Outcome) -> Iterator[Section]:
    held = outcome.content
    yield Section("Is it better?", (Text(outcome.verdict), _bars(outcome), Text(held["about"], "warning")))
    head, *lines = outcome.rows()
    numbers: tuple[tuple[str | float, ...], ...] = tuple((line[0], *map(float, line[1:])) for line in lines)
    rule = (Table("All candidates, accuracy (%)", head, numbers), Text(f"{outcome.counts()}. {held['rule']}"))
    yield Section("Candidates", rule)
    yield Section("Each corruption and shift", (_each(outcome),))
    spent = tuple((name, round(value, 1)) for name, value in held["seconds"].items())
    yield Section("Time", (Table("Seconds by stage", ("stage", "seconds"), spent),))


def _bars(outcome: Outcome) -> Block:
    head, *lines = outcome.rows()
    shown = [line for line in lines if line[0].split()[0] in ("plain", outcome.delivered)]
    series = tuple(Series(line[0], tuple(map(float, line[1:]))) for line in shown)
    return Chart("bars", "Accuracy (%)", series, "pictures", "accuracy (%)", tuple(head[1:]), y_range=(0, 100))


def _each(outcome: Outcome) -> Block:
    of = outcome.content["candidates"]
    rows = lambda one: {**one["corruptions"]["by_name"], **one["validation_shifts"]["by_name"]}
    lines = tuple((name, *(rows(one)[name]["accuracy"] for one in of.values())) for name in rows(of["plain"]))
    return Table("Accuracy (%)", ("pictures", *of), lines)
