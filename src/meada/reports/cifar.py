"""Finished runs on CIFAR, and which of them may stand in one cell of Table 3.

The paper's number is the plain mean over fifteen corruptions and five severities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.reports.runs import Run

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


@dataclass(frozen=True)
class Row:
    """What a line of the table has in common: runs that differ in these are never averaged."""

    data: str
    network: str
    scale: float
    corruptions: str  # official or generated, and how
    otherwise: str = ""  # settings that are not the shipped recipes'
    mark: str = ""  # what stands for them in the table

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f" at scale {self.scale:g}"
        mark = f" ({self.mark})" if self.mark else ""
        return f"{SETS[self.data]} {NETWORKS.get(self.network, self.network)}{scale}{mark}"


@dataclass(frozen=True)
class Cell:
    """The runs of one method in a row: one a seed."""

    runs: tuple[Run, ...]

    def values(self, rule: str, score: str = "accuracy") -> list[float]:
        return [corruption_mean(run.results(rule), score) for run in self.runs]

    def clean(self, rule: str) -> float:
        return mean(run.record["clean"][rule]["accuracy"] for run in self.runs)


def title(method: str) -> str:
    return COLUMNS.get(method, method)


def corruption_mean(results: Mapping[str, Mapping[str, Any]], score: str = "accuracy") -> float:
    """Over exactly the fifteen: with one more or one less it is another number."""
    extra, missing = results.keys() - set(CORRUPTIONS), set(CORRUPTIONS) - results.keys()
    if extra or missing:
        what = f"also {', '.join(sorted(extra))}" if extra else f"not {', '.join(sorted(missing))}"
        raise MeadaError(
            f"results of {len(results)} corruptions, {what}: the mean is over the fifteen of the benchmark"
        )
    return mean(float(results[name][score]) for name in CORRUPTIONS)


def gather(found: Iterable[Run]) -> dict[Row, dict[str, Cell]]:
    """Finished runs on CIFAR by row and method; what cannot stand in one cell is refused."""
    cells: dict[tuple[Row, str], list[Run]] = {}
    marks: dict[str, str] = {"": ""}
    for run in found:
        if (data := run.record.get("data")) not in SETS:
            continue
        about = run.record["provenance"].get("corruptions", "unknown")
        mark = marks.setdefault(run.otherwise, str(len(marks)))
        row = Row(data, run.record["network"], run.settings.scaled, about, run.otherwise, mark)
        cells.setdefault((row, _column(run.record)), []).append(run)
    if not cells:
        raise MeadaError("none of the runs is on cifar10 or cifar100: Table 3 has nothing to show")
    table: dict[Row, dict[str, Cell]] = {}
    for (row, method), runs in cells.items():
        _check_alike(method, runs)
        table.setdefault(row, {})[method] = Cell(tuple(runs))
    return table


def _column(record: Mapping[str, Any]) -> str:
    """The method; a variant of one (wideresnet-advtrain-small, erm-epochs) by its recipe's name."""
    name, method = record["recipe"].rpartition("/")[2], record["method"]
    variants = (name, name.partition("-")[2])  # with the network before it, or without
    return next((part for part in variants if part.startswith(f"{method}-")), method)


def _check_alike(method: str, runs: Sequence[Run]) -> None:
    first, network = runs[0], runs[0].record["network"]
    for other in runs[1:]:
        before, after = first.record["steps"], other.record["steps"]
        if before != after:
            raise MeadaError(
                f"{first.folder.path} and {other.folder.path} are both {method} on {network}, with "
                f"{before:,} and {after:,} steps: give them to reports of their own"
            )
    seeds = [run.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        raise MeadaError(f"{method} on {network} has the same seed twice: {sorted(seeds)}")
