"""Read a run's folder, finished or not, and check the entries that reports need."""

import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from meada.errors import MeadaError
from meada.evaluation.predictions import Predictions, load_predictions
from meada.runs.identity import experiment_settings, recipe_in
from meada.runs.recipe import Recipe, load_recipe, parse_toml
from meada.runs.run_folder import RunFolder, read_json

# Keep a processor with wider vectors to the instructions of the record's own: LeNet's records repeat to the bit.
NARROWER = {"AVX2": "ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 "}

# A type or several, a list of one shape, or a table: its known keys (with "!" those that must be there), under "*" all
# others.
Shape = Any
NUMBER = (int, float)
MAYBE = (int, float, type(None))
SCORES: Shape = {
    "accuracy!": NUMBER, "n!": int, "ece": MAYBE, "nll": MAYBE, "brier": MAYBE, "by_severity": {"accuracy!": [NUMBER]},
}  # fmt: skip
ROUND: Shape = {
    "round": int, "pool": int, "ce": [NUMBER], "entropy": [NUMBER], "plug_in_entropy": [MAYBE], "information": [MAYBE],
    "rise": {"*": MAYBE}, "bound": {"*": MAYBE}, "levels": {"*": MAYBE}, "spectrum": {"*": [MAYBE]}, "warnings": [str],
    "cost": MAYBE, "linf": MAYBE, "linf_max": MAYBE, "linf_median": MAYBE, "looked_at": int, "seconds": NUMBER,
}  # fmt: skip
RECORD: Shape = {
    "recipe": str, "note": str, "method": str, "network": str, "data": str, "seed": int, "scale": NUMBER, "steps": int,
    "passes": {"*": NUMBER}, "environment": {"threads": int, "processor": str}, "provenance": {},
    "weights": (dict, type(None)), "rounds": [ROUND], "seconds": {"*": NUMBER},
    "selected": {"*": {"step": int}}, "source": {"*": SCORES}, "clean": {"*": SCORES}, "results": {"*": {"*": SCORES}},
}  # fmt: skip
FINISHED: Shape = RECORD | {
    "steps!": int, "seconds!": {"*": NUMBER}, "environment!": {"threads!": int, "processor!": str},
}  # fmt: skip
LINE: Shape = {**ROUND, "step": int, "loss": NUMBER, "scores": {"*": NUMBER}}
PAIRS = ("ce", "entropy", "plug_in_entropy", "information")  # before and after


@dataclass(frozen=True)
class Run:
    """The files of a run's folder; nothing in it is built, called or trained."""

    folder: RunFolder
    record: dict[str, Any]  # of an unfinished run: what its recipe and log say so far
    recipe: dict[str, Any]
    log: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def finished(self) -> bool:
        return self.folder.finished

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    @property
    def method(self) -> str:
        return str(self.record["method"])

    @cached_property
    def settings(self) -> Recipe:
        """The complete, validated recipe; ``recipe`` is the content of the file."""
        return recipe_in(self.folder)

    @cached_property
    def experiment_settings(self) -> dict[str, Any]:
        """The settings that define the experiment, without the seed; those missing in an older recipe have defaults."""
        names = [table.get("name") for table in self.recipe.values() if isinstance(table, dict)]
        if not any(":" in str(name) for name in names):  # somebody's own file: not run for a report
            with suppress(MeadaError, OSError):
                return experiment_settings(self.settings, seed=False)
        return experiment_settings(self.recipe, seed=False)

    @cached_property
    def changed(self) -> dict[str, Any] | None:
        """Settings that differ from the shipped recipe of this name, scale and seed; None if there is none.

        What makes no other experiment (a note, the device) does not count.
        """
        held = self.settings
        try:
            asked = load_recipe(held.name, seed=held.seed, scale=held.scaled)
        except MeadaError:
            return None
        ours, theirs = experiment_settings(held), experiment_settings(asked)
        return {k: ours[k] for k in sorted(ours) if theirs.get(k) != ours[k]}

    @property
    def differences(self) -> str:
        """For tables: empty for a shipped recipe, else the settings that differ from it."""
        if self.changed is None:
            return f"recipe {self.settings.name}"
        return ", ".join(f"{key} = {value}" for key, value in self.changed.items())

    @property
    def command(self) -> str:
        """The command that repeats the training, with the same number of threads and the same vector instructions."""
        if self.changed is None:
            recipe = f"{self.folder.recipe}"
        else:
            values = {k: v if isinstance(v, str) else json.dumps(v) for k, v in self.changed.items()}
            sets = (f"--set {shlex.quote(f'{k}={v}')}" for k, v in values.items())
            scale = [f"--scale {self.settings.scaled:g}"] if self.settings.scaled != 1 else []
            recipe = " ".join([self.settings.name, f"--seed {self.seed}", *sets, *scale])
        where = self.record["environment"]
        narrower = NARROWER.get(where.get("cpu_capability", ""), "")
        return f"{narrower}OMP_NUM_THREADS={where['threads']} meada train {recipe} --out NEW"

    @property
    def round_steps(self) -> dict[int, int]:
        """The step after which each maximisation round began, from the log: a plan may be in epochs."""
        return {line["round"]: line["step"] for line in self.log if "round" in line}

    def results(self, rule: str) -> dict[str, dict[str, Any]]:
        return self.record["results"].get(rule, {})

    def score(self, rule: str, domain: str, domains: Sequence[str], score: str = "accuracy") -> float:
        """The score on one domain, or the ``mean`` over ``domains``."""
        results, names = self.results(rule), domains if domain == "mean" else (domain,)
        values = [self._number(results.get(name, {}), score, f"{name} under '{rule}'") for name in names]
        if not values:
            raise MeadaError(f"{self.folder.record} must have results of at least one domain, got none")
        return sum(values) / len(values)

    def clean(self, rule: str) -> float:
        """Accuracy (%) on the source's own test images."""
        return self._number(self.record.get("clean", {}).get(rule, {}), "accuracy", f"clean images under '{rule}'")

    def _number(self, scores: dict[str, Any], name: str, of: str) -> float:
        if (value := scores.get(name)) is None:
            raise MeadaError(f"{self.folder.record} must have '{name}' of {of}, got none")
        return float(value)

    @property
    def minutes(self) -> float:
        return sum(self.record["seconds"].values()) / 60

    @property
    def machine(self) -> str:
        """The kind of machine of the run: ``1 thread of some CPU, AVX512``."""
        where = self.record["environment"]
        threads, widest = where["threads"], where.get("cpu_capability")
        return f"{threads} thread{'s' * (threads != 1)} of {where['processor']}" + (f", {widest}" if widest else "")

    @cached_property
    def _predictions(self) -> tuple[dict[str, Predictions], tuple[str, ...]]:
        path = self.folder.predictions
        return load_predictions(path) if path.exists() else ({}, ())

    @property
    def classes(self) -> tuple[str, ...]:
        return self._predictions[1]

    def predictions(self, rule: str) -> Predictions:
        """Predictions by domain; empty for runs that wrote none."""
        return self._predictions[0].get(rule, {})

    def attack(self) -> dict[str, Any]:
        return read_json(self.folder.attack) if self.folder.attack.exists() else {}


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """All runs in ``paths`` and their subfolders, without repetitions, sorted by name."""
    found: dict[Path, Run] = {}
    for path in paths:
        below = {file.parent for name in ("record.json", "log.jsonl") for file in path.rglob(name)}
        homes = [path] if _is_run(path) else sorted(filter(_is_run, below))
        if not homes:
            if (path / "outcome.json").is_file():
                raise MeadaError(f"{path} is a folder of meada robustify, with a page of its own: {path}/report.html")
            raise MeadaError(f"{path} must hold a run, got neither record.json nor log.jsonl")
        found |= {home.resolve(): read_run(home) for home in homes}
    return list(found.values())


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.finished or (folder.recipe.exists() and folder.log.exists())


def read_run(path: Path) -> Run:
    folder = RunFolder(path)
    recipe, log = _recipe(folder.recipe), folder.read_log()
    if folder.finished:
        record = folder.load_record()
    else:
        record = {key: recipe.get(key, empty) for key, empty in (("note", ""), ("seed", 0))}
        record |= {kind: recipe.get(kind, {}).get("name", "") for kind in ("data", "network", "method")}
        record |= {"recipe": recipe.get("name", ""), "results": {}, "steps": log[-1]["step"] if log else 0}
        record["rounds"] = [line for line in log if "round" in line]
    missing = {"recipe", "method", "seed", "results"} - record.keys()
    if missing:
        raise MeadaError(f"{folder.record} must be the record of a run, got no {', '.join(sorted(missing))}")
    check(record, FINISHED if folder.finished else RECORD, folder.record)
    for line in log:
        check(line, LINE, folder.log)
    return Run(folder, record, recipe, log)


def _recipe(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    table = parse_toml(path)
    for key in ("data", "network", "method", "plan"):
        if not isinstance(table.get(key, {}), dict):
            raise MeadaError(f"{path}: '{key}' must be a table, got {table[key]!r:.80}")
    return table


def check(content: Any, shape: Shape, where: Path, key: str = "") -> None:
    """Refuse a file whose values do not have the types that meada writes.

    >>> check({"seconds": {"minimise": "long"}}, RECORD, Path("record.json"))
    Traceback (most recent call last):
    meada.errors.MeadaError: record.json: 'seconds.minimise' must be a number, got 'long'
    """
    kinds = shape if isinstance(shape, tuple) else (type(shape) if isinstance(shape, dict | list) else shape,)
    right = isinstance(content, kinds) and not (isinstance(content, bool) and bool not in kinds)
    titles = {str: "text", dict: "a table", list: "a list"}
    title = next((titles[kind] for kind in titles if kind in kinds), "a number")
    if list in kinds and key.rpartition(".")[2] in PAIRS:
        title, right = "a list of two", right and len(content) == 2
    if not right:
        raise MeadaError(f"{where}: '{key}' must be {title}, got {content!r:.80}")
    below = f"{key}." if key else ""
    if isinstance(shape, dict):
        for inner in (name.removesuffix("!") for name in shape if name.endswith("!")):
            if inner not in content:
                raise MeadaError(f"{where}: '{below}{inner}' must be there, got nothing")
        for inner, value in content.items():
            if (wanted := shape.get(f"{inner}!", shape.get(inner, shape.get("*")))) is not None:
                check(value, wanted, where, below + inner)
    elif isinstance(shape, list):
        for place, value in enumerate(content):
            check(value, shape[0], where, f"{below}{place}")
