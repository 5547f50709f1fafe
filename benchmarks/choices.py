"""Ablation of tilted augmentation on digits: hardness, score, number of candidates, and two controls.

    MEADA_DATA=... OMP_NUM_THREADS=1 python -m benchmarks.choices --precision bf16 --out benchmarks/choices.json

Every setting trains for as many steps with the same seeds, by the recipe digits/tilted with one thing changed, and is
scored on held-out images under shifts and corruptions whose families ``wide`` does not make. Test domains are scored
once, for the record. Equal time instead of equal steps is the question of ``benchmarks.hardness``.
The file is written after every run and carried on from there.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

from benchmarks.hardness import scores
from benchmarks.series import continue_series
from meada.evaluation.statistics import over_seeds
from meada.machine.device import Precision
from meada.runs.functions import make
from meada.runs.recipe import load_recipe

RANDOM = "random views"
SETTINGS: dict[str, tuple[str, ...]] = {  # changes to digits/tilted, which has k = 4, hardness 0.5, score CE + h
    RANDOM: ("method.hardness=0.0",),
    "hardness 0.5": (),
    "hardness 1": ("method.hardness=1.0",),
    "score CE": ("method.beta=0.0",),
    "score h": ("method.beta=1e6",),  # the temperature adapts to the scores' scale, so that CE no longer counts
    "k = 2": ("method.k=2",),
    "handed to another image": ("method.handed_on=true",),
    "trivialaugment": (),
}
TESTED = 3000  # images of each test domain


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--steps", type=int, default=2000)
    options.add_argument("--precision", choices=get_args(Precision), default="fp32", help="bf16 takes half the time")
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    pairs = product(range(chosen.seeds), SETTINGS)
    common = {"steps": chosen.steps, "precision": chosen.precision}
    planned = [{"setting": setting, "seed": seed, **common} for seed, setting in pairs]
    continue_series(chosen.out, planned, run, lambda runs: {"summary": summary(runs)})


def run(setting: str, seed: int, steps: int, precision: Precision) -> dict[str, Any]:
    method = setting if setting == "trivialaugment" else "tilted"
    changes = [*SETTINGS[setting], f"plan.total_steps={steps}", f"precision={precision}"]
    recipe = load_recipe(f"digits/{method}", changes, seed=seed)
    found = scores(recipe, make("data", recipe.data), tested=TESTED)
    return {"setting": setting, "seed": seed, "steps": steps, "precision": precision, **found}


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Means over seeds, and the paired difference from random views under shifts with its 95 % interval.

    >>> row = {"seconds": 1.0, "held_out": 99.0, "tests": {"a": 70.0}}
    >>> one = lambda s, n: {"setting": s, "seed": n, "shifted": 80.0 + n + (s != RANDOM), **row}
    >>> made = summary([one(s, n) for s in SETTINGS for n in (0, 1)])
    >>> made["k = 2"]["shifted"], made["k = 2"]["minus_random"]
    (81.5, 1.0)
    """
    by_setting = {name: [r for r in runs if r["setting"] == name] for name in SETTINGS}
    shifted = {name: {r["seed"]: float(r["shifted"]) for r in of} for name, of in by_setting.items()}
    found: dict[str, dict[str, float | None]] = {}
    for name, of in by_setting.items():
        if not of:
            continue
        mean = lambda key, of=of: round(fmean(r[key] for r in of), 2)
        tests = round(fmean(fmean(r["tests"].values()) for r in of), 2)
        row = {"n": len(of), "seconds": mean("seconds"), "held_out": mean("held_out"), "shifted": mean("shifted")}
        found[name] = {**row, "tests": tests}
        common = shifted[name].keys() & shifted[RANDOM].keys()
        if name != RANDOM and len(common) > 1:
            gap = over_seeds(shifted[name], shifted[RANDOM])
            found[name] |= {"minus_random": round(gap.value, 2), "p": gap.p}
            found[name] |= {"low": gap.interval.low, "high": gap.interval.high} if gap.interval else {}
    return found


if __name__ == "__main__":
    main()
