"""Compare hard with random views at equal training time, on held-out images only.

    MEADA_DATA=... OMP_NUM_THREADS=1 python -m benchmarks.hardness --data digits --out benchmarks/hardness.json

Both settings train by the recipe DATA/tilted. Random views make ``--steps`` steps; hard ones make as many as the same
processor time allows, from steps of both timed in turn. Scored are held-out images of the source under corruptions and
validation shifts whose families are not in the space. The file is written after every run and carried on from there.
``tests`` has the accuracy on the test domains, which the verdict does not look at.
"""

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from torch import Tensor, nn

from benchmarks.series import continue_series
from meada.algorithm import Watch, begin, train
from meada.datasets import Task
from meada.evaluation import predict
from meada.evaluation.selection import fixed_subset
from meada.evaluation.statistics import over_seeds
from meada.machine.device import choose, in_precision
from meada.methods.method import Method
from meada.networks.freezing import batch_norm_frozen
from meada.pool import Pool
from meada.robustify.labels import accuracy
from meada.robustify.scoring import BATCH, rule_rows, sets
from meada.runs.functions import make
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, load_recipe, method_of
from meada.spaces import SPACES
from meada.types import Labels

STEPS = {"digits": 2000, "cifar10c-small": 2000, "pacs-photo": 200}  # of random views
SEVERITIES, SHIFTED, TESTED = (3, 5), 500, 1000  # images under each shift, and of each test domain
TIMED = 15  # steps of each setting
HARD = 0.5
SEEDS = 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", choices=STEPS, required=True)
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--steps", type=int, help="training steps with random views; the default depends on the data")
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    data, steps = chosen.data, chosen.steps or STEPS[chosen.data]
    by_hardness = cache(lambda: {0.0: steps, HARD: round(steps / slower(data))})  # timed only if a run is missing
    timed = lambda **keys: run(**keys, steps=by_hardness()[keys["hardness"]])
    pairs = product(range(chosen.seeds), (0.0, HARD))
    planned = [{"data": data, "seed": seed, "hardness": hardness} for seed, hardness in pairs]
    continue_series(chosen.out, planned, timed, lambda runs: {"verdict": verdict(runs)})


def slower(data: str) -> float:
    """Time of a step with hard views relative to random views: median over pairs."""
    spent: dict[float, list[float]] = {}
    for hardness in (0.0, HARD, 0.0, HARD):
        recipe, task = prepared(data, 0, hardness, TIMED)
        clock: list[float] = []
        fitted(recipe, task, Watch(stepped=lambda *_, clock=clock: clock.append(time.process_time())))
        spent.setdefault(hardness, []).extend(b - a for a, b in zip(clock[2:], clock[3:], strict=False))
    return median(spent[HARD]) / median(spent[0.0])


def prepared(data: str, seed: int, hardness: float, steps: int) -> tuple[Recipe, Task]:
    recipe = load_recipe(f"{data}/tilted", [f"method.hardness={hardness}", f"plan.total_steps={steps}"], seed=seed)
    return recipe, make("data", recipe.data)


def fitted(recipe: Recipe, task: Task, watch: Watch, method: Method | None = None) -> nn.Module:
    """Train the recipe's network, with ``method`` instead of the recipe's if it is given."""
    pool = Pool(task.train.images, task.train.labels, store=recipe.pool.store)
    net, method = build_network(recipe, len(task.classes)), method or method_of(recipe)
    net = in_precision(net, recipe.precision, choose(recipe.device))
    training = begin(net, pool, method, recipe.descent, seed=recipe.seed)
    with batch_norm_frozen(net) if recipe.freeze_batch_norm else nullcontext():
        train(training, pool, method, recipe.plan, recipe.descent, seed=recipe.seed, watch=watch)
    return net


def run(data: str, seed: int, hardness: float, steps: int) -> dict[str, Any]:
    recipe, task = prepared(data, seed, hardness, steps)
    return {"data": data, "seed": seed, "hardness": hardness, "steps": steps, **scores(recipe, task)}


def scores(recipe: Recipe, task: Task, space: str = "wide", tested: int = TESTED) -> dict[str, Any]:
    """Train the recipe; return accuracy on held-out images, on shifts outside ``space``, and on the tests."""
    began = time.process_time()
    net = fitted(recipe, task, Watch())
    seconds = time.process_time() - began
    trained = SPACES[space]().families
    made = sets(task.validation, {}, trained=trained, shifted_n=SHIFTED, severities=SEVERITIES, seed=0)
    rows = {name: share(net, *made[name]()) for name in rule_rows(list(made), trained)}
    tests = {name: fixed_subset(name, one, tested) for name, one in task.targets.items()}
    return {
        "seconds": round(seconds, 1),
        "held_out": share(net, *made["held_out"]()), "shifted": round(fmean(rows.values()), 3), "by_name": rows,
        "tests": {name: share(net, one.images, one.labels) for name, one in tests.items()},
    }  # fmt: skip


def share(net: nn.Module, images: Tensor, labels: Labels) -> float:
    return round(accuracy(predict(net, images, batch_size=BATCH), labels), 2)


def verdict(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Hard minus random, paired by seed and pooled over data; p of a one-sided t-test.

    It is no verdict while one of the data sets is ``missing`` pairs. ``time``: seconds of hard over those of random.

    >>> of = lambda seed, hardness, shifted: {"data": "d", "seed": seed, "hardness": hardness, "shifted": shifted}
    >>> made = verdict([of(0, 0.0, 80.0), of(0, 0.5, 81.0), of(1, 0.0, 80.0), of(1, 0.5, 83.0), of(2, 0.0, 80.0)])
    >>> made["gaps"], round(made["p"], 3), made["hard_wins"], made["missing"]
    ({'d': [1.0, 3.0]}, 0.148, None, ['digits', 'cifar10c-small', 'pacs-photo'])
    """
    scores = {(r["data"], r["seed"], r["hardness"]): float(r["shifted"]) for r in runs}
    pairs = [(data, seed) for data, seed, hardness in scores if hardness and (data, seed, 0.0) in scores]
    hard, random = ({n: scores[(*pair, h)] for n, pair in enumerate(pairs)} for h in (HARD, 0.0))
    gaps: dict[str, list[float]] = {}
    for n, (data, _) in enumerate(pairs):
        gaps.setdefault(data, []).append(round(hard[n] - random[n], 3))
    found = over_seeds(hard, random) if len(pairs) > 1 else None
    p = None if found is None or found.p is None else found.p / 2 if found.value > 0 else 1 - found.p / 2
    missing = [data for data in STEPS if len(gaps.get(data, ())) < SEEDS]
    spent = {h: sum(r.get("seconds", 0) for r in runs if r["hardness"] == h) for h in (HARD, 0.0)}
    return {
        "gaps": gaps, "mean": found and found.value, "p": p, "missing": missing,
        "hard_wins": None if missing or p is None else p < 0.05,
        "time": round(spent[HARD] / spent[0.0], 3) if spent[0.0] else None,
    }  # fmt: skip


if __name__ == "__main__":
    main()
