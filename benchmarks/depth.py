"""Choose the depth of the space ``deep`` for digits, on held-out images only.

    MEADA_DATA=... OMP_NUM_THREADS=1 python -m benchmarks.depth --out benchmarks/depth.json

Trains by the recipe digits/tilted-random with views from ``wide`` (one change) or ``deep`` (several), and scores
held-out images under shifts and corruptions (severity 5) whose families are not in the space, and under every pair of
those shifts. No test domain is read. The file is written after every run and carried on from there.
"""

import argparse
import itertools
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.hardness import fitted, share
from benchmarks.series import continue_series
from meada.algorithm import Watch
from meada.corruptions import corrupt
from meada.evaluation.selection import fixed_subset
from meada.evaluation.validation_shifts import shifted_once, validation_families
from meada.methods.tilted import tilted
from meada.pool import as_float
from meada.robustify.scoring import FAMILY_OF
from meada.runs.functions import make
from meada.runs.recipe import load_recipe
from meada.spaces.deep import deep
from meada.spaces.wide import wide

SHIFTED, SEVERITY = 1500, 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--steps", type=int, default=2000)
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    pairs = itertools.product(range(chosen.seeds), chosen.depths)
    planned = [{"depth": depth, "steps": chosen.steps, "seed": seed} for seed, depth in pairs]
    continue_series(chosen.out, planned, run)


def run(depth: int, steps: int, seed: int) -> dict[str, Any]:
    recipe = load_recipe("digits/tilted-random", [f"plan.total_steps={steps}"], seed=seed)
    task = replace(make("data", recipe.data), targets={})
    space = wide() if depth == 1 else deep(depth=depth)
    method = tilted(space=space, consistency=recipe.method["consistency"])
    net = fitted(recipe, task, Watch(), method)
    some, families = fixed_subset("robustness", task.validation, SHIFTED), validation_families(space.families)
    x = as_float(some.images)
    shifts = {family: shifted_once(x, [family], seed=0)[family] for family in families}
    spoilt = {name: corrupt(x, name, SEVERITY) for name, family in FAMILY_OF.items() if family in families}
    pairs = {}
    for first, then in itertools.combinations(families, 2):
        pairs[f"{first}, {then}"] = shifted_once(shifted_once(x, [first], seed=1)[first], [then], seed=2)[then]
    rows = {
        kind: {name: share(net, images, some.labels) for name, images in of.items()}
        for kind, of in (("shifts", shifts), ("corruptions", spoilt), ("pairs", pairs))
    }
    means = {kind: round(fmean(of.values()), 2) for kind, of in rows.items()}
    return {
        "depth": depth, "steps": steps, "seed": seed, "held_out": share(net, x, some.labels), **means, "by_name": rows
    }  # fmt: skip


if __name__ == "__main__":
    main()
