"""Finished runs on digits, and which of them may stand in Table 1 or on Figure 1."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from meada.errors import MeadaError
from meada.evaluation.statistics import Summary, summarise
from meada.folder import RunFolder
from meada.recipe import Recipe, load_recipe
from meada.reproduce.item import alike, held_recipe
from meada.reproduce.sets import with_rounds

DOMAINS = ("svhn", "mnist_m", "usps")  # SYN is shown where its file can be had
TITLES = {"svhn": "SVHN", "mnist_m": "MNIST-M", "usps": "USPS", "mean": "mean of three"}


@dataclass(frozen=True)
class Run:
    """What a run's folder says of it."""

    folder: Path
    recipe: Recipe
    record: Mapping[str, Any]

    @property
    def method(self) -> str:
        return str(self.record["method"])

    @property
    def seed(self) -> int:
        return self.recipe.seed

    @property
    def rounds(self) -> int:
        return self.recipe.plan.rounds

    def value(self, rule: str, domain: str, score: str = "accuracy") -> float:
        """``domain`` may be ``mean``: over the targets within the run."""
        results = self.record["results"][rule]
        if domain != "mean":
            return float(results[domain][score])
        return sum(float(results[d][score]) for d in DOMAINS) / len(DOMAINS)

    def candidates(self) -> dict[int, float]:
        """Step -> mean accuracy on the targets' subsets, for each candidate in the log."""
        path = RunFolder(self.folder).log
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        told = [json.loads(line) for line in lines]
        return {line["step"]: line["scores"]["oracle"] for line in told if "scores" in line}


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """Finished runs on digits among ``folders``; others are passed over."""
    runs = []
    for folder in map(RunFolder, folders):
        record = folder.load_record()
        if (
            record.get("data", "digits") == "digits"
            and set(DOMAINS) <= record["results"]["last"].keys()
        ):
            runs.append(Run(folder.path, held_recipe(folder), record))
    return runs


@cache
def shipped(name: str, seed: int) -> Recipe | None:
    try:
        return load_recipe(name, seed=seed)
    except MeadaError:
        return None


def in_table_1(run: Run) -> bool:
    """Whether its recipe is the shipped one, to the last setting; only the seed is its own."""
    return in_figure_1(run) and run.rounds == 3


def in_figure_1(run: Run) -> bool:
    """The same, at any K."""
    recipe = shipped(run.recipe.name, run.seed) if run.recipe.name.startswith("digits/") else None
    return recipe is not None and alike(with_rounds(recipe, run.rounds), run.recipe)


def by_method(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """One run a seed, in the order of the seeds."""
    chosen: dict[str, dict[int, Run]] = {}
    for run in runs:
        chosen.setdefault(run.method, {}).setdefault(run.seed, run)
    return {method: [group[s] for s in sorted(group)] for method, group in chosen.items()}


def summary(runs: Sequence[Run], rule: str, domain: str, score: str = "accuracy") -> Summary:
    """Over runs; the mean over targets is taken within each run first."""
    return summarise([run.value(rule, domain, score) for run in runs])
