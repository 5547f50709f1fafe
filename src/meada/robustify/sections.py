"""Before and after as the first section of the report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meada.reports.page import build, write
from meada.reports.page.blocks import Chart, Section, Series, Table, Text
from meada.reports.page.groups import colours, title
from meada.reports.runs import find_runs
from meada.robustify.robustness import rows, verdict


def write_report(out: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> Path:
    """``report.html`` of both runs."""
    runs = find_runs([out / "erm", out / str(after["method"])])
    page = build(
        runs,
        title=f"Before and after: ERM and {title(str(after['method']))}",
        before=[before_after(before, after)],
        command=f"meada robustify --out {out.name}",
    )
    return write(page, out=out / "report.html")[0]


def before_after(before: Mapping[str, Any], after: Mapping[str, Any]) -> Section:
    method, a, b = title(str(after["method"])), rows(before), rows(after)
    lines = tuple((name.strip(), b[name][1], a[name][0], b[name][0], b[name][0] - a[name][0])
                  for name in b)  # fmt: skip
    names, (_, second) = tuple(line[0] for line in lines), colours(["erm", str(after["method"])])
    bars = Chart(
        "bars", "Accuracy (%) before and after",
        (Series("ERM", tuple(line[2] for line in lines)),
         Series(method, tuple(line[3] for line in lines), colour=second)),
        "pictures", "accuracy (%)", names, y_range=(0, 100),
    )  # fmt: skip
    table = Table("Before and after", ("pictures", "n", "ERM", method, "change"), lines)
    return Section(
        "Before and after",
        (
            Text(
                f"The same network, trained twice for {after['steps']:,} steps on the same "
                f"pictures: plainly (ERM) and with {method}. Corruptions and crafted shifts: "
                f"{after['robustness']['note']}. {after['note']}."
            ),
            Text(verdict(before, after)),
            Text("One seed: a difference of a few points may be chance.", "warning"),
            bars,
            table,
            *(_map(name, record) for name, record in (("ERM", before), (method, after))),
        ),
    )


def _map(name: str, record: Mapping[str, Any]) -> Chart:
    beyond = record["robustness"]
    lines = tuple(
        Series(corruption, tuple(scores["by_severity"]["accuracy"]))
        for corruption, scores in beyond["corruptions"].items()
    )
    return Chart(
        "heat", f"{name}: accuracy (%) by corruption and severity", lines, "severity",
        "corruption", tuple(map(str, beyond["severities"])), y_range=(0, 100), small=True,
    )  # fmt: skip
