"""Table 3 and Figure 2: CIFAR, accuracy under fifteen corruptions next to the paper's.

The paper's number is the plain mean over fifteen corruptions and five severities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError, nearest
from meada.evaluation.selection import RULE_TEXTS, RULES
from meada.evaluation.statistics import summarise
from meada.reports.page.blocks import Block, Cell, Chart, Page, Section, Series, Table, Text
from meada.reports.page.cost import bill, equal_time, records, spread
from meada.reports.page.groups import Experiment, Group, colours, rank, title
from meada.reports.page.paper import BARS, PAPER, points, printed
from meada.reports.runs import Run

SETS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
NETWORKS = {"allconv": "AllConvNet", "densenet": "DenseNet", "wideresnet": "WideResNet", "resnext": "ResNeXt"}
FIFTEEN = tuple(CORRUPTIONS)


@dataclass(frozen=True)
class Row:
    """What a line of the table has in common: runs that differ in these are never averaged."""

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


Rows = dict[Row, dict[str, Group]]  # by the method, or its variant


def table3(runs: Iterable[Run], rule: str = "last") -> Page:
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': {nearest(rule, RULES)}")
    table = gather(runs)
    sections = [_table(table, rule), corruption_errors(table, rule), _scores(table)]
    if figures := [_figure2(row, cells, rule, k) for k, (row, cells) in enumerate(_compared(table), 1)]:
        sections.append(Section("Figure 2", tuple(figures)))
    for k, (row, cells) in enumerate(_compared(table), 1):
        place = Experiment(str(row), row.data, row.network, FIFTEEN, tuple(cells.values()))
        if timed := equal_time(place, f"{row.data}-{k}"):
            sections.append(Section(f"{timed.title}: {row}", timed.blocks))
    sections.append(bill(replace(g, label=f"{row}, {g.label}") for row, of in table.items() for g in of.values()))
    used = [run for cells in table.values() for group in cells.values() for run in group.runs]
    return Page("CIFAR under corruptions", (*sections, records(used)))


def gather(runs: Iterable[Run]) -> Rows:
    """Finished runs on CIFAR by row and method; what cannot stand in one cell is refused."""
    cells: dict[tuple[Row, str], list[Run]] = {}
    marks: dict[str, str] = {"": ""}
    for run in runs:
        if (data := run.record.get("data")) not in SETS:
            continue
        about = run.record["provenance"].get("corruptions", "unknown")
        mark = marks.setdefault(run.differences, str(len(marks)))
        row = Row(data, run.record["network"], run.settings.scaled, about, run.differences, mark)
        cells.setdefault((row, _variant(run.record)), []).append(run)
    if not cells:
        raise MeadaError("Table 3 must have runs on cifar10 or cifar100, got none")
    table: dict[Row, dict[str, list[Run]]] = {}
    for (row, method), found in cells.items():
        _check_alike(method, found)
        table.setdefault(row, {})[method] = found
    return {row: _groups(of) for row, of in table.items()}


def _groups(cells: Mapping[str, Sequence[Run]]) -> dict[str, Group]:
    cells = dict(sorted(cells.items(), key=lambda item: rank(item[0])))
    chosen = zip(cells.items(), colours([*cells]), strict=True)
    return {name: Group(title(name), tuple(found), FIFTEEN, colour) for (name, found), colour in chosen}


def _variant(record: Mapping[str, Any]) -> str:
    """The method; a variant of one (wideresnet-advtrain-small, erm-epochs) by its recipe's name."""
    name, method = record["recipe"].rpartition("/")[2], record["method"]
    variants = (name, name.partition("-")[2])  # with the network before it, or without
    return next((part for part in variants if part.startswith(f"{method}-")), method)


def _check_alike(method: str, runs: Sequence[Run]) -> None:
    first, network = runs[0], runs[0].record["network"]
    for run in runs:
        check_fifteen(run.results("last"))
    for other in runs[1:]:
        before, after = first.record["steps"], other.record["steps"]
        if before != after:
            raise MeadaError(
                f"{first.folder.path} and {other.folder.path} are both {method} on {network}, with "
                f"{before:,} and {after:,} steps: give them to reports of their own"
            )
    seeds = [run.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        raise MeadaError(f"{method} on {network} must have each seed once, got {sorted(seeds)}")


def check_fifteen(results: Mapping[str, Any]) -> None:
    """With one corruption more or fewer the mean is another number."""
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
            ours = cells[method].summary(rule, "mean") if method in cells else None
            paper = None if row.differences else printed(row.data, row.network, method, "mean", FIFTEEN)
            text = f"{spread(ours, 1)}, n={ours.n}" if ours else "-"
            texts.append(f"{text} ({paper.mean})" if paper else text)
        rows.append(tuple(texts))
    blocks: list[Block] = [
        Text(f"Checkpoint: {RULE_TEXTS[rule]}."),
        _figure(table, rule),
        Text(BARS),
        Table("Accuracy (%), mean over fifteen corruptions", ("", *map(title, methods)), tuple(rows)),
        Text("Ours: mean over the fifteen corruptions and five severities ± standard deviation over n seeds. In "
             "brackets: the paper, whose checkpoints were chosen on the corruptions themselves, and whose beta and "
             "gamma were chosen for each network (oracle)."),
        *(Text(f"{row}: corruptions {row.corruptions}.") for row in table),
        *(Text(f"({mark}): {what}.") for mark, what in sorted({(r.mark, r.differences) for r in table}) if mark),
    ]  # fmt: skip
    return Section("Table 3", tuple(blocks))


def _figure(table: Rows, rule: str) -> Chart:
    """The table as points: a panel a network, a row a method."""
    series = []
    labels = {name: group.label for cells in table.values() for name, group in cells.items()}
    for name, colour in zip(sorted(labels, key=rank), colours(sorted(labels, key=rank)), strict=True):
        groups = [cells.get(name) for cells in table.values()]
        found = [g.summary(rule, "mean") if g else None for g in groups]
        spans = [g.interval(rule, "mean") if g and g.scored(rule) else None for g in groups]
        papers = [None if r.differences else printed(r.data, r.network, name, "mean", FIFTEEN) for r in table]
        seeds = sorted({s.n for s in found if s})
        if seeds:
            series.append(Series(
                f"{labels[name]} (n={' or '.join(map(str, seeds))})", tuple(s.mean if s else None for s in found),
                low=tuple(i.low if i else None for i in spans), high=tuple(i.high if i else None for i in spans),
                paper=tuple(p.mean if p else None for p in papers) if any(papers) else (), colour=colour,
            ))  # fmt: skip
    return Chart("panels", f"Mean accuracy under fifteen corruptions; checkpoint: {rule}", tuple(series), "network",
                 "accuracy (%)", tuple(map(str, table)), name="table3")  # fmt: skip


def corruption_errors(table: Rows, rule: str) -> Section:
    """Mean error, and mean corruption error relative to our ERM of the same row."""
    rows: list[tuple[Cell, ...]] = []
    for row, cells in table.items():
        plain = cells["erm"].scored(rule) if "erm" in cells else []
        for name, group in cells.items():
            runs = group.scored(rule)
            paper = None if row.differences else printed(row.data, row.network, name, "mean", FIFTEEN)
            cell = lambda values: spread(summarise(values), 1) if values and None not in values else None
            errors = [100 - run.score(rule, "mean", FIFTEEN) for run in runs]
            ratios = [[_relative(run, plain, rule, rise) for run in runs] for rise in (False, True)]
            rows.append((
                str(row), group.label, cell(errors), 100 - paper.mean if paper else None, *map(cell, ratios), len(runs),
            ))  # fmt: skip
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
    ratios = []
    for name in FIFTEEN:
        ours, *theirs = (_error(one, rule, name, rise) for one in (run, *plain))
        if not theirs or mean(theirs) <= 0:  # no reference, or corruptions that cost it nothing
            return None
        ratios.append(100 * ours / mean(theirs))
    return mean(ratios)


def _error(run: Run, rule: str, name: str, rise: bool) -> float:
    clean = 100 - float(run.record["clean"][rule]["accuracy"]) if rise else 0.0
    return 100 - float(run.results(rule)[name]["accuracy"]) - clean


def _scores(table: Rows) -> Section:
    """A line per cell and rule: clean accuracy, then means over the fifteen corruptions."""
    rows: list[tuple[Cell, ...]] = []
    for row, cells in table.items():
        for group in cells.values():
            for rule in (rule for rule in RULES if group.scored(rule)):
                clean = mean(float(run.record["clean"][rule]["accuracy"]) for run in group.runs)
                scores = [mean(group.values(rule, "mean", s)) for s in ("accuracy", "ece", "nll", "brier")]
                rows.append((str(row), group.label, rule, clean, *scores))
    columns = ("", "method", "checkpoint", "clean (%)", "corrupted (%)", "ECE", "NLL (nats)", "Brier")
    digits = {"ECE": 3, "NLL (nats)": 3, "Brier": 3}
    return Section("Clean, corrupted, calibrated", (Table("", columns, tuple(rows), digits),))


def _compared(table: Rows) -> list[tuple[Row, dict[str, Group]]]:
    """Rows with ERM and another method."""
    return [(row, cells) for row, cells in table.items() if "erm" in cells and len(cells) > 1]


def _figure2(row: Row, cells: Mapping[str, Group], rule: str, number: int) -> Chart:
    """Figure 2: each corruption, ERM and the others, with 95 % intervals where they are known."""
    named = {
        f"{g.label} (mean {summarise(g.values(rule, 'mean')).mean:.1f} %, n={len(g.runs)})": g for g in cells.values()
    }
    series = tuple(
        points(Group(label, g.runs, FIFTEEN, g.colour), rule, FIFTEEN) for label, g in named.items() if g.scored(rule)
    )
    return Chart("points", f"{row}; checkpoint: {rule}", series, "corruption", "accuracy (%)", FIFTEEN,
                 name=f"figure2-{number}")  # fmt: skip
