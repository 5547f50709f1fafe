"""Table 3 and Figure 2 from finished runs: accuracy under fifteen corruptions, beside the paper's.

Only ``record.json`` is read. The paper's number is the plain mean over fifteen corruptions and five
severities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.evaluation.selection import KNOWS, RULES
from meada.folder import RunFolder
from meada.reports.pictures import COLOURS

SETS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
NETWORKS = {
    "allconv": "AllConvNet",
    "densenet": "DenseNet",
    "wideresnet": "WideResNet",
    "resnext": "ResNeXt",
}
COLUMNS = {
    "erm": "Standard",
    "cutout": "Cutout",
    "cutmix": "CutMix",
    "autoaugment": "AutoDA",
    "mixup": "Mixup",
    "advtrain": "AdvTrain",
    "ada": "ADA",
    "meada": "ME-ADA",
}
PAPER = {  # Table 3, in the order of COLUMNS
    ("cifar10", "allconv"): (69.2, 67.1, 68.7, 70.8, 75.4, 71.9, 73.0, 78.2),
    ("cifar10", "densenet"): (69.3, 67.9, 66.5, 73.4, 75.4, 72.4, 69.8, 76.9),
    ("cifar10", "wideresnet"): (73.1, 73.2, 72.9, 76.1, 77.7, 73.8, 79.7, 83.3),
    ("cifar10", "resnext"): (72.5, 71.1, 70.5, 75.8, 77.4, 73.0, 78.0, 83.4),
    ("cifar100", "allconv"): (43.6, 43.2, 44.0, 44.9, 46.6, 44.0, 45.3, 51.2),
    ("cifar100", "densenet"): (40.7, 40.4, 40.8, 46.1, 44.6, 44.8, 45.2, 47.8),
    ("cifar100", "wideresnet"): (46.7, 46.5, 47.1, 50.4, 49.6, 44.9, 50.4, 52.8),
    ("cifar100", "resnext"): (46.6, 45.4, 45.9, 48.7, 48.6, 45.6, 53.4, 57.3),
}
NOTE = """Ours: mean over the fifteen corruptions and five severities, in per cent, and its spread
(standard deviation) over n seeds. In brackets: the paper, whose checkpoints were chosen on the
corruptions themselves, and whose beta and gamma were chosen for each network (oracle)."""


@dataclass(frozen=True)
class Row:
    """What a line of the table has in common: runs that differ in these are never averaged."""

    data: str
    network: str
    scale: float
    corruptions: str  # official or generated, and how


@dataclass(frozen=True)
class Cell:
    """The runs of one method in a row: one a seed."""

    runs: tuple[dict[str, Any], ...]

    def values(self, rule: str, score: str = "accuracy") -> list[float]:
        return [corruption_mean(run["results"][rule], score) for run in self.runs]

    def clean(self, rule: str) -> float:
        return mean(run["clean"][rule]["accuracy"] for run in self.runs)


def corruption_mean(results: Mapping[str, Mapping[str, Any]], score: str = "accuracy") -> float:
    """Over exactly the fifteen: with one more or one less it is another number."""
    extra, missing = results.keys() - set(CORRUPTIONS), set(CORRUPTIONS) - results.keys()
    if extra or missing:
        what = f"also {', '.join(sorted(extra))}" if extra else f"not {', '.join(sorted(missing))}"
        raise MeadaError(
            f"results of {len(results)} corruptions, {what}: the mean is over the fifteen of the "
            "benchmark"
        )
    return mean(float(results[name][score]) for name in CORRUPTIONS)


def gather(folders: Iterable[Path]) -> dict[Row, dict[str, Cell]]:
    """Finished runs on CIFAR by row and method; what cannot stand in one cell is refused."""
    cells: dict[tuple[Row, str], list[tuple[Path, dict[str, Any]]]] = {}
    for folder in folders:
        record = RunFolder(folder).load_record()
        if record.get("data") not in SETS:
            continue
        about = record["provenance"].get("corruptions", "unknown")
        row = Row(record["data"], record["network"], record.get("scale", 1.0), about)
        cells.setdefault((row, _column(record)), []).append((folder, record))
    if not cells:
        raise MeadaError("none of the runs is on cifar10 or cifar100: Table 3 has nothing to show")
    table: dict[Row, dict[str, Cell]] = {}
    for (row, method), runs in cells.items():
        _check_alike(method, runs)
        table.setdefault(row, {})[method] = Cell(tuple(record for _, record in runs))
    return table


def _column(record: Mapping[str, Any]) -> str:
    """The method; where the recipe is a variant of one (advtrain-small), by the recipe's name."""
    named = record["recipe"].rpartition("/")[2].partition("-")[2]
    method = record["method"]
    return named if named.startswith(f"{method}-") else method


def _check_alike(method: str, runs: Sequence[tuple[Path, dict[str, Any]]]) -> None:
    first, one = runs[0]
    for folder, other in runs[1:]:
        if other["steps"] != one["steps"]:
            raise MeadaError(
                f"{first} and {folder} are both {method} on {one['network']}, with "
                f"{one['steps']:,} and {other['steps']:,} steps: give them to reports of their own"
            )
    seeds = [record["seed"] for _, record in runs]
    if len(set(seeds)) < len(seeds):
        raise MeadaError(f"{method} on {one['network']} has the same seed twice: {sorted(seeds)}")


def table3(folders: Iterable[Path], rule: str = "last") -> str:
    """Table 3 in Markdown, then clean accuracy and calibration of the same runs."""
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': {', '.join(RULES)} are known")
    table = gather(folders)
    methods = [*COLUMNS, *sorted({m for row in table.values() for m in row} - COLUMNS.keys())]
    parts = [f"Checkpoint: {rule}, which knows {KNOWS[rule]}.", _line("", *map(_title, methods))]
    parts.append(_line("---", *["---:"] * len(methods)))
    parts += [
        _line(_name(row), *_values(row, cells, methods, rule)) for row, cells in table.items()
    ]
    notes = [NOTE, *(f"{_name(row)}: corruptions {row.corruptions}." for row in table)]
    return "\n".join([parts[0], "", *parts[1:], "", *notes, "", *_calibration(table, rule)]) + "\n"


def _values(row: Row, cells: Mapping[str, Cell], methods: list[str], rule: str) -> list[str]:
    paper = dict(zip(COLUMNS, PAPER.get((row.data, row.network), ()), strict=False))
    texts = []
    for method in methods:
        ours = _spread(cells[method].values(rule)) if method in cells else "-"
        texts.append(f"{ours} ({paper[method]})" if method in paper else ours)
    return texts


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}, n=1"
    return f"{mean(values):.1f} ± {stdev(values):.1f}, n={len(values)}"


def _calibration(table: Mapping[Row, Mapping[str, Cell]], rule: str) -> list[str]:
    """A line a cell: clean accuracy, then means over the fifteen corruptions."""
    lines = [
        _line("", "method", "clean (%)", "corrupted (%)", "ECE", "NLL (nats)", "Brier"),
        _line("---", "---", *["---:"] * 5),
    ]
    for row, cells in table.items():
        for method, cell in cells.items():
            scores = [f"{mean(cell.values(rule, s)):.3f}" for s in ("ece", "nll", "brier")]
            accuracy = (cell.clean(rule), mean(cell.values(rule)))
            numbers = [*(f"{a:.1f}" for a in accuracy), *scores]
            lines.append(_line(_name(row), _title(method), *numbers))
    return lines


def figure2(
    folders: Iterable[Path],
    rule: str = "last",
    *,
    data: str = "cifar10",
    network: str = "wideresnet",
    methods: Sequence[str] = ("erm", "meada"),
) -> Figure:
    """Bars of accuracy for each corruption, over all its severities: ERM against ME-ADA."""
    rows = {
        row: cells
        for row, cells in gather(folders).items()
        if (row.data, row.network) == (data, network) and set(methods) <= cells.keys()
    }
    if len(rows) != 1:
        raise MeadaError(
            f"Figure 2 needs runs of {' and '.join(methods)} with {network} on {data}, alike in "
            f"scale and corruptions: {len(rows)} such sets are there"
        )
    ((row, cells),) = rows.items()
    figure = Figure(figsize=(11, 4))
    axes = figure.add_subplot()
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        runs = [run["results"][rule] for run in cells[method].runs]
        each = np.array([[run[name]["accuracy"] for name in CORRUPTIONS] for run in runs])
        where = np.arange(len(CORRUPTIONS)) + (place - (len(methods) - 1) / 2) * width
        spread = each.std(0, ddof=1) if len(runs) > 1 else None
        label = f"{_title(method)} (mean {each.mean():.1f} %, n={len(runs)})"
        axes.bar(where, each.mean(0), width, yerr=spread, label=label, color=COLOURS.get(method))
    names = [name.replace("_", "\n") for name in CORRUPTIONS]
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set_ylabel("accuracy (%)")
    axes.set_title(f"{_name(row)}; checkpoint: {rule}", fontsize=9)
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _name(row: Row) -> str:
    scale = "" if row.scale == 1 else f" at scale {row.scale:g}"
    return f"{SETS[row.data]} {NETWORKS.get(row.network, row.network)}{scale}"


def _title(method: str) -> str:
    return COLUMNS.get(method, method)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
