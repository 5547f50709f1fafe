"""Table 3 and Figure 2: CIFAR, accuracy under fifteen corruptions next to the paper's.

The paper's number is the plain mean over fifteen corruptions and five severities.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError, nearest
from meada.evaluation.selection import RULE_TEXTS, RULES
from meada.evaluation.statistics import Summary, summarise
from meada.reports.page.blocks import Cell, Chart, Page, Section, Table, Text
from meada.reports.page.cost import bill, equal_time, records, spread
from meada.reports.page.groups import Experiment, Group, colours, corruptions_of, rank, title, variant
from meada.reports.page.paper import BARS, PAPER, points, printed
from meada.reports.page.table1 import differences
from meada.reports.runs import Run

SETS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
NETWORKS = {
    "allconv": "AllConvNet", "densenet": "DenseNet", "wideresnet": "WideResNet", "resnext": "ResNeXt",
    "wideresnet16_1": "WideResNet-16-1",
}  # fmt: skip
FIFTEEN = tuple(CORRUPTIONS)
RIVALS = ("erm", "augmix")  # the others are compared with these


@dataclass(frozen=True)
class Row:
    """Key of a table row: runs that differ in it are never averaged."""

    data: str
    network: str
    scale: float
    corruptions: str  # official or generated, and how
    differences: str = ""  # settings that are not the shipped recipes'
    mark: str = ""  # what stands for them in the table

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f" at scale {self.scale:g}"
        mark = f" ({self.mark})" if self.mark else ""
        return f"{SETS[self.data]} {NETWORKS.get(self.network, self.network)}{scale}{mark}"

    def paper(self, method: str) -> Summary | None:
        return None if self.differences else printed(self.data, self.network, method, "mean", FIFTEEN)


Rows = dict[Row, dict[str, Group]]  # by the method, or its variant


def table3(runs: Iterable[Run], rule: str = "last") -> Page:
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': {nearest(rule, RULES)}")
    table = gather(runs)
    sections, figures = [_table(table, rule), corruption_errors(table, rule), _scores(table)], []
    compared = [(row, cells) for row, cells in table.items() if "erm" in cells and len(cells) > 1]
    for k, (row, cells) in enumerate(compared, 1):
        figures.append(_figure2(row, cells, rule, k))
        place = Experiment(str(row), row.data, row.network, FIFTEEN, tuple(cells.values()))
        pairs = [(name, rival) for n, rival in enumerate(RIVALS, 1) for name in cells if name not in RIVALS[:n]]
        parts = (differences(cells, ("mean",), pairs), equal_time(place, f"{row.data}-{k}"))
        sections += [Section(f"{part.title}: {row}", part.blocks) for part in parts if part]
    if figures:
        sections.insert(3, Section("Figure 2", tuple(figures)))
    groups = [(row, group) for row, cells in table.items() for group in cells.values()]
    sections.append(bill(replace(group, label=f"{row}, {group.label}") for row, group in groups))
    return Page("CIFAR under corruptions", (*sections, records([run for _, group in groups for run in group.runs])))


def gather(runs: Iterable[Run]) -> Rows:
    """Finished runs on CIFAR by row and method; refuse runs that cannot share a cell."""
    table: dict[Row, dict[str, list[Run]]] = {}
    marks: dict[str, str] = {"": ""}
    runs = [run for run in runs if run.record.get("data") in SETS]
    made = [(run.record["data"], corruptions_of(run) or "unknown") for run in runs]
    usual = {data: Counter(about for name, about in made if name == data).most_common(1)[0][0] for data, _ in made}
    for run, (data, about) in zip(runs, made, strict=True):
        other = "" if about == usual[data] else f"corruptions {about}"
        mark = marks.setdefault(", ".join(filter(None, (run.differences, other))), str(len(marks)))
        row = Row(data, run.record["network"], run.settings.scaled, about, run.differences, mark)
        table.setdefault(row, {}).setdefault(variant(run.record), []).append(run)
    if not table:
        raise MeadaError("Table 3 must have runs on cifar10 or cifar100, got none")
    usual_first = sorted(table.items(), key=lambda item: bool(item[0].mark))
    return {row: _groups(cells) for row, cells in usual_first}


def _groups(cells: Mapping[str, Sequence[Run]]) -> dict[str, Group]:
    for method, found in cells.items():
        _check_alike(method, found)
    names = sorted(cells, key=rank)
    chosen = zip(names, colours(names), strict=True)
    return {name: Group(title(name), tuple(cells[name]), FIFTEEN, colour) for name, colour in chosen}


def _check_alike(method: str, runs: Sequence[Run]) -> None:
    first, network = runs[0], runs[0].record["network"]
    for run in runs:
        check_fifteen(run.results("last"))
        before, after = first.record["steps"], run.record["steps"]
        if before != after:
            raise MeadaError(
                f"{first.folder.path} and {run.folder.path} are both {method} on {network}, with "
                f"{before:,} and {after:,} steps: make separate reports"
            )
    seeds = [run.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        raise MeadaError(f"{method} on {network} must have each seed once, got {sorted(seeds)}")


def check_fifteen(results: Mapping[str, Any]) -> None:
    """Refuse results unless they are of exactly the fifteen corruptions."""
    extra, missing = results.keys() - set(FIFTEEN), set(FIFTEEN) - results.keys()
    if extra or missing:
        what = f"also {', '.join(sorted(extra))}" if extra else f"not {', '.join(sorted(missing))}"
        raise MeadaError(f"results must be of the benchmark's fifteen corruptions, got {len(results)}, {what}")


def _table(table: Rows, rule: str) -> Section:
    """A row per network, a column per method; the paper's number in brackets."""
    known = PAPER["cifar"]["methods"]
    methods = [*known, *sorted({m for row in table.values() for m in row} - {*known})]
    rows: list[tuple[Cell, ...]] = []
    for row, cells in table.items():
        texts: list[Cell] = [str(row)]
        for method in methods:
            ours, paper = cells[method].summary(rule, "mean") if method in cells else None, row.paper(method)
            text = f"{spread(ours, 1)}, n={ours.n}" if ours else "-"
            texts.append(f"{text} ({paper.mean})" if paper else text)
        rows.append(tuple(texts))
    return Section("Table 3", (
        Text(f"Checkpoint: {RULE_TEXTS[rule]}."),
        _figure(table, rule),
        Text(BARS),
        Table("Accuracy (%), mean over fifteen corruptions", ("", *map(title, methods)), tuple(rows)),
        Text("Ours: mean over the fifteen corruptions and five severities ± standard deviation over n seeds. In "
             "brackets: the paper, whose checkpoints were chosen on the corruptions themselves, and whose beta and "
             "gamma were chosen for each network (oracle)."),
        *(Text(f"{row}: corruptions {row.corruptions}.") for row in table),
        *(Text(f"({mark}): {what}.") for mark, what in sorted({(r.mark, r.differences) for r in table}) if what),
    ))  # fmt: skip


def _figure(table: Rows, rule: str) -> Chart:
    """The table as a chart: a panel per network, a row per method."""
    series = []
    names = sorted({name for cells in table.values() for name in cells}, key=rank)
    for name, colour in zip(names, colours(names), strict=True):
        places = [(cells.get(name, Group("", (), FIFTEEN)), "mean") for cells in table.values()]
        papers = [row.paper(name) for row in table]
        series.append(points(title(name), rule, places, papers, counted=True, colour=colour))
    shown = tuple(one for one in series if any(y is not None for y in one.y))
    values = [v for one in shown for side in (one.y, one.low, one.high, one.paper) for v in side if v is not None]
    return Chart("panels", f"Mean accuracy under fifteen corruptions; checkpoint: {rule}", shown, "network",
                 "accuracy (%)", tuple(map(str, table)), name="table3",
                 y_range=(min(values) - 2, max(values) + 2) if values else None)  # fmt: skip


def corruption_errors(table: Rows, rule: str) -> Section:
    """Mean error, and mean corruption error relative to our ERM of the same row."""
    cell = lambda values: spread(summarise(values), 1) if values and None not in values else None
    rows: list[tuple[Cell, ...]] = []
    for row, cells in table.items():
        plain = cells["erm"].scored(rule) if "erm" in cells else []
        for name, group in cells.items():
            runs, paper = group.scored(rule), row.paper(name)
            errors = [100 - run.score(rule, "mean", FIFTEEN) for run in runs]
            ratios = [[_relative(run, plain, rule, rise) for run in runs] for rise in (False, True)]
            theirs = 100 - paper.mean if paper else None
            rows.append((str(row), group.label, cell(errors), theirs, *map(cell, ratios), len(runs)))
    columns = ("", "method", "mean error (%)", "paper", "mCE to ERM (%)", "relative mCE to ERM (%)", "n")
    return Section("Corruption error", (
        Text("Hendrycks and Dietterich divide a corruption's error, summed over severities, by AlexNet's and average "
             "over corruptions: the mean corruption error, mCE. AlexNet's errors exist for ImageNet-C, not for CIFAR. "
             "Published CIFAR-C tables (AugMix and later) print the plain mean error and often call it mCE: that is "
             "'mean error', 100 less the accuracy above. 'mCE to ERM' is the formula with our own ERM of the same row "
             "in AlexNet's place (its mean over seeds; ERM is 100), and 'relative mCE' takes the rise over the clean "
             f"error in place of the error. Checkpoint: {RULE_TEXTS[rule]}."),
        Table("", columns, tuple(rows)),
    ))  # fmt: skip


def _relative(run: Run, plain: Sequence[Run], rule: str, rise: bool) -> float | None:
    """Mean over the corruptions of this run's error by the plain runs' mean error, in per cent."""

    def error(one: Run, name: str) -> float:
        clean = 100 - one.clean(rule) if rise else 0.0
        return 100 - float(one.results(rule)[name]["accuracy"]) - clean

    ratios = []
    for name in FIFTEEN:
        theirs = [error(one, name) for one in plain]
        if not theirs or mean(theirs) <= 0:  # no reference, or corruptions that cost it nothing
            return None
        ratios.append(100 * error(run, name) / mean(theirs))
    return mean(ratios)


def _scores(table: Rows) -> Section:
    """A row per cell and rule: clean accuracy, then means over the fifteen corruptions."""
    rows: list[tuple[Cell, ...]] = []
    for row, cells in table.items():
        for group in cells.values():
            for rule in (rule for rule in RULES if group.scored(rule)):
                clean = mean(run.clean(rule) for run in group.scored(rule))
                scores = [mean(group.values(rule, "mean", s)) for s in ("accuracy", "ece", "nll", "brier")]
                rows.append((str(row), group.label, rule, clean, *scores))
    columns = ("", "method", "checkpoint", "clean (%)", "corrupted (%)", "ECE", "NLL (nats)", "Brier")
    digits = {"ECE": 3, "NLL (nats)": 3, "Brier": 3}
    return Section("Clean, corrupted, calibrated", (Table("", columns, tuple(rows), digits),))


def _figure2(row: Row, cells: Mapping[str, Group], rule: str, number: int) -> Chart:
    """Figure 2: each corruption, ERM and the others, with 95 % intervals if known."""
    series = []
    for group in cells.values():
        if s := group.summary(rule, "mean"):
            name = f"{group.label} (mean {s.mean:.1f} %, n={len(group.runs)})"
            series.append(points(name, rule, [(group, corruption) for corruption in FIFTEEN], colour=group.colour))
    return Chart("points", f"{row}; checkpoint: {rule}", tuple(series), "corruption", "accuracy (%)", FIFTEEN,
                 name=f"figure2-{number}")  # fmt: skip
