"""Finished runs on CIFAR, and which of them may stand in one cell of Table 3.

Only ``record.json`` is read. The paper's number is the plain mean over fifteen corruptions and five
severities.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.folder import RunFolder

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

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f" at scale {self.scale:g}"
        return f"{SETS[self.data]} {NETWORKS.get(self.network, self.network)}{scale}"


@dataclass(frozen=True)
class Cell:
    """The runs of one method in a row: one a seed."""

    runs: tuple[dict[str, Any], ...]

    def values(self, rule: str, score: str = "accuracy") -> list[float]:
        return [corruption_mean(run["results"][rule], score) for run in self.runs]

    def clean(self, rule: str) -> float:
        return mean(run["clean"][rule]["accuracy"] for run in self.runs)


def title(method: str) -> str:
    return COLUMNS.get(method, method)


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
    """The method; a variant of one (wideresnet-advtrain-small, erm-epochs) by its recipe's name."""
    name, method = record["recipe"].rpartition("/")[2], record["method"]
    variants = (name, name.partition("-")[2])  # with the network before it, or without
    return next((part for part in variants if part.startswith(f"{method}-")), method)


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
