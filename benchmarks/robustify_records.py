"""Write the page of committed ``robustify`` records: gains by kind of data, and how well the rule chose.

    python -m benchmarks.robustify_records results/robustify --out results/robustify/README.md

A record is a folder NAME-seedN with the ``outcome.json`` of one run and the ``command.txt`` that made it.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from meada.files import write_text
from meada.reports.page.blocks import Cell, Page, Section, Table, Text
from meada.reports.page.text import to_markdown

Outcome = dict[str, Any]
Groups = dict[str, list[Outcome]]  # by data set: one outcome per seed
CLOSE = 1.0  # points: a choice this near to the best on the tests counts as right
DELIVERABLE = ("plain", "probe", "hardened", "averaged", "interpolated")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    write_text(chosen.out, markdown(chosen.folder))


def markdown(folder: Path) -> str:
    groups = read(folder)
    sections = [
        _summary(groups),
        *(_candidates(name, runs) for name, runs in groups.items()),
        _rule(groups),
        _noise(groups),
    ]
    return to_markdown(Page("Robustify: records", tuple(sections)), {}, folder)


def read(folder: Path) -> Groups:
    groups: Groups = {}
    for path in sorted(folder.glob("*-seed*/outcome.json")):
        command = path.with_name("command.txt").read_text("utf-8").strip()
        run = {**json.loads(path.read_text("utf-8")), "command": command}
        groups.setdefault(path.parent.name.rpartition("-seed")[0], []).append(run)
    return groups


def unseen(run: Outcome, name: str) -> float:
    """Mean over the test folders: accuracy, or balanced accuracy where there are two classes."""
    scores = run["candidates"][name]["tests"].values()
    return fmean(one["balanced_accuracy" if "auc" in one else "accuracy"] for one in scores)


def corrupted(run: Outcome, name: str) -> float:
    return float(run["candidates"][name]["corruptions"]["mean"])


def held_out(run: Outcome, name: str) -> float:
    return float(run["candidates"][name]["held_out"]["accuracy"])


MEASURES: dict[str, Callable[[Outcome, str], float]] = {
    "unseen": unseen, "corruptions": corrupted, "held out": held_out,
}  # fmt: skip


def _summary(groups: Groups) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, runs in groups.items():
        cells: list[Cell] = [name, len(runs), ", ".join(run["delivered"] for run in runs)]
        for measure in MEASURES.values():
            plain, best = (fmean(measure(run, one(run)) for run in runs) for one in (_plain, _delivered))
            cells += [plain, best, f"{best - plain:+.1f}"]
        rows.append(tuple(cells))
    columns = ["data", "seeds", "delivered"]
    columns += [f"{what}: {which}" for what in MEASURES for which in ("plain", "delivered", "gain")]
    return Section("What was gained", (
        Text("Accuracy (%), mean over seeds: on the test folders, which are never used to choose (with two classes "
             "balanced accuracy); on held-out pictures under fifteen corruptions; on held-out pictures as they are."),
        Table("", tuple(columns), tuple(rows)),
    ))  # fmt: skip


def _plain(run: Outcome) -> str:
    return "plain"


def _delivered(run: Outcome) -> str:
    return str(run["delivered"])


def _candidates(name: str, runs: Sequence[Outcome]) -> Section:
    first = runs[0]["candidates"]
    tests = list(first["plain"]["tests"])
    two = tests and "auc" in first["plain"]["tests"][tests[0]]
    scores = {"accuracy": "accuracy", **({"balanced_accuracy": "balanced", "auc": "AUC"} if two else {})}
    rows: list[tuple[Cell, ...]] = []
    for candidate in first:
        of = [run["candidates"][candidate] for run in runs]
        mean = lambda get, of=of: fmean(get(one) for one in of)
        rows.append((
            candidate, mean(lambda o: o["held_out"]["accuracy"]), mean(lambda o: o["corruptions"]["mean"]),
            mean(lambda o: o["validation_shifts"]["mean"]), mean(lambda o: o["held_out"]["ece"]),
            mean(lambda o: o["corruptions"]["ece"]),
            *(mean(lambda o, t=t, k=k: o["tests"][t][k]) for t in tests for k in scores),
        ))  # fmt: skip
    heads = [f"{t}, {name}" if len(scores) > 1 else t for t in tests for name in scores.values()]
    columns = ("candidate", "held out", "corruptions", "shifts", "ECE", "ECE, corruptions", *heads)
    table = Table("", columns, tuple(rows), {"ECE": 3, "ECE, corruptions": 3} | {h: 3 for h in heads if "AUC" in h})
    made = "; ".join(f"`{run['command']}`" for run in runs)
    minutes = fmean(run["seconds"]["total"] for run in runs) / 60
    seeds = ", ".join(str(run["seed"]) for run in runs)
    said = f"Accuracy (%), mean over seeds {seeds}; {minutes:.0f} minutes each."
    return Section(name, (Text(f"{said} {made}".strip()), table))


def choices(groups: Groups) -> Iterator[tuple[str, str, str, float]]:
    """Of each run: its name, what was delivered, the best on the tests, and how far below it the choice lies."""
    for name, runs in groups.items():
        for run in runs:
            among = [one for one in DELIVERABLE if one in run["candidates"]]
            best = max(among, key=partial(unseen, run))
            yield (
                f"{name}, seed {run['seed']}",
                run["delivered"],
                best,
                unseen(run, best) - unseen(run, run["delivered"]),
            )


def _rule(groups: Groups) -> Section:
    found = list(choices(groups))
    close = sum(below <= CLOSE for *_, below in found)
    return Section("How well the rule chose", (
        Text(f"In {close} of {len(found)} runs the delivered model is the best on the test folders, "
             f"or within {CLOSE:g} point of it. The same candidate every time would be so in {always(groups)}."),
        Table("", ("run", "delivered", "best on the tests", "points below the best"), tuple(found)),
    ))  # fmt: skip


def always(groups: Groups) -> str:
    """For each candidate, in how many runs it is the best on the test folders, or close to it."""
    runs = [run for one in groups.values() for run in one]
    best = [max(unseen(run, name) for name in DELIVERABLE if name in run["candidates"]) for run in runs]
    told = []
    for name in DELIVERABLE:
        below = [top - unseen(run, name) for top, run in zip(best, runs, strict=True) if name in run["candidates"]]
        told.append(f"{sum(one <= CLOSE for one in below)} of {len(below)} ({name})")
    return ", ".join(told)


def gaps(groups: Groups) -> list[tuple[str, str, float]]:
    """Of each run: its name, where its network started, and points between plain and plain_repeat for the rule."""
    found = []
    for name, runs in groups.items():
        for run in runs:
            start = "pretrained" if "probe" in run["candidates"] else "from scratch"
            mean = run["evidence"]["mean"]
            found.append((f"{name}, seed {run['seed']}", start, mean["plain"] - mean["plain_repeat"]))
    return found


def _noise(groups: Groups) -> Section:
    found = gaps(groups)
    told = []
    for start in sorted({start for _, start, _ in found}, reverse=True):
        pairs = [gap for _, one, gap in found if one == start]
        told.append(f"{fmean(gap**2 / 2 for gap in pairs) ** 0.5:.2f} points {start} (pairs: {len(pairs)})")
    return Section("Noise of training", (
        Text(f"Two plain trainings that differ in the order of batches, in the mean accuracy that the rule looks at: "
             f"standard deviation {', '.join(told)}."),
        Table("", ("run", "network", "plain minus its repetition"), tuple(found)),
    ))  # fmt: skip


if __name__ == "__main__":
    main()
