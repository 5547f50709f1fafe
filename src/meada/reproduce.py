"""Sets of runs: the paper's tables and figures, each run named by what it holds and run once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.files import write_text
from meada.folder import RunFolder
from meada.recipe import Recipe, load_recipe, to_toml

Say = Callable[[str], None]


@dataclass(frozen=True)
class Item:
    """One run of a set; the same recipe has the same name wherever it is asked for."""

    recipe: Recipe

    @property
    def name(self) -> str:
        digest = sha256(to_toml(self.recipe).encode()).hexdigest()[:8]
        return f"{self.recipe.name.replace('/', '-')}-seed{self.recipe.seed}-{digest}"

    def folder(self, out: Path) -> RunFolder:
        return RunFolder(out / self.name)

    def done(self, out: Path) -> bool:
        return self.folder(out).finished


def digits(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Table 1."""
    return [
        Item(load_recipe(f"digits/{method}", changes, seed=seed))
        for seed in range(seeds)
        for method in methods or ("erm", "ada", "meada")
    ]


def figure1(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Accuracy against K. K = 0 is ERM; K = 3 is Table 1's own run."""
    items = []
    for seed in range(seeds):
        items.append(Item(load_recipe("digits/erm", changes, seed=seed)))
        for method in methods or ("ada", "meada"):
            for rounds in (1, 2, 3):
                more = [*changes, f"plan.rounds={rounds}"]
                items.append(Item(load_recipe(f"digits/{method}", more, seed=seed)))
    return items


SETS: dict[str, Callable[[Sequence[str], int, list[str]], list[Item]]] = {
    "digits": digits,
    "figure1": figure1,
}


def items_of(name: str, methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    if name not in SETS:
        raise MeadaError(f"unknown set of runs '{name}': " + nearest(name, SETS))
    if seeds < 1:
        raise MeadaError(f"--seeds {seeds}: at least one is needed")
    chosen = {item.name: item for item in SETS[name](methods, seeds, changes)}
    return list(chosen.values())  # a run that is asked for twice is one run


def expected_seconds(items: Sequence[Item], out: Path) -> dict[str, float]:
    """For each kind of run that has been done in ``out``, how long it took on average."""
    took: dict[str, list[float]] = {}
    for path in out.glob("*/record.json"):
        record = RunFolder(path.parent).load_record()
        kind = f"{record['recipe']}/{len(record['rounds'])}"
        took.setdefault(kind, []).append(sum(record["seconds"].values()))
    means = {kind: sum(values) / len(values) for kind, values in took.items()}
    return {i.name: means[_kind(i)] for i in items if _kind(i) in means}


def _kind(item: Item) -> str:
    return f"{item.recipe.name}/{item.recipe.plan.rounds}"


def reproduce(items: Sequence[Item], out: Path, *, jobs: int, say: Say) -> list[str]:
    """Run what is not done, ``jobs`` at a time; gives back the names of those that failed."""
    waiting = [item for item in items if not item.done(out)]
    say(f"{len(items)} runs, {len(items) - len(waiting)} done before, {len(waiting)} to go")
    threads = max(1, (os.cpu_count() or 1) // jobs)  # several at once share the cores out
    running: dict[str, tuple[Item, subprocess.Popen[str], float]] = {}
    failed: list[str] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item = waiting.pop(0)
                running[item.name] = (item, _start(item, out, threads), time.monotonic())
                say(f"{item.name}: begun")
            time.sleep(0.2)
            for name, minutes, fault in _ended(running):
                failed += [name] if fault else []
                left = expected_seconds(waiting, out)
                hours = sum(left.values()) / 3600 / jobs
                after = f"; about {hours:.1f} h left" if len(left) == len(waiting) else ""
                say(f"{name}: {fault or f'done in {minutes:.1f} min'}{after}")
    finally:
        for _, process, _ in running.values():
            process.terminate()
    return failed


def _start(item: Item, out: Path, threads: int) -> "subprocess.Popen[str]":
    folder = item.folder(out)
    recipe = out / "recipes" / f"{item.name}.toml"
    write_text(recipe, to_toml(item.recipe))
    words = ["train", str(recipe), "--out", str(folder.path), "--quiet"]
    words += ["--resume"] if folder.recipe.exists() else []
    return subprocess.Popen(
        [sys.executable, "-m", "meada", *words],
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ended(
    running: "dict[str, tuple[Item, subprocess.Popen[str], float]]",
) -> Iterator[tuple[str, float, str]]:
    for name, (_, process, began) in list(running.items()):
        if process.poll() is None:
            continue
        del running[name]
        _, said = process.communicate()
        last = (said.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        fault = f"failed: {last}" if process.returncode else ""
        yield name, (time.monotonic() - began) / 60, fault
