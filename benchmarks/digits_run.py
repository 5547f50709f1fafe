"""Estimate a full digits run of ME-ADA on each side from short timings of its parts.

The published side scores every target whole every 100 steps; a run of the package scores candidates
on fixed subsets and the chosen ones whole. Both have the recipe's steps, rounds and targets.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.measure import Result, Side, Spread, Tell, interleave, speedup, work
from benchmarks.phases import (
    SEED,
    Space,
    meada_ascent,
    meada_descent,
    meada_scores,
    published_ascent,
    published_descent,
    published_scores,
    space,
)
from benchmarks.subjects import Subject
from meada.algorithm import begin
from meada.datasets import Samples, Task
from meada.evaluation.rounds import SAMPLE, diagnose
from meada.evaluation.selection import RULES, Selection
from meada.pool import as_float
from meada.runs.checkpoint import save_checkpoint, save_weights
from meada.runs.recipe import Recipe

TARGETS = {"svhn": 26_032, "mnist_m": 9_001, "usps": 2_007, "syn": 9_553}  # images to be scored
EVERY = 100  # steps between evaluations of the published code


@dataclass(frozen=True)
class Length:
    """Number of steps, ascents and scored images in a full run."""

    steps: int
    rounds: int
    climbed: int  # images that go through the ascent
    climbed_published: int  # its last partial batches are left out, and so are their children
    scored_published: int  # images, over all evaluations
    candidates: int
    scored: int  # images, over the choices of all rules


def length(recipe: Recipe) -> Length:
    """The length of a full run of the recipe.

    >>> from meada.runs.recipe import load_recipe
    >>> length(load_recipe("digits/meada")).climbed_published  # 9,984 + 19,968 + 39,936
    69888
    """
    n, plan = int(recipe.data["train"]), recipe.plan
    targets = sum(TARGETS[name] for name in recipe.data["targets"])
    pool, climbed = n, 0
    for _ in range(plan.rounds):
        born = pool // plan.batch_size * plan.batch_size
        pool, climbed = pool + born, climbed + born
    rules = len(RULES) - (recipe.average_from == 1) - (not recipe.calibrate_on)
    return Length(
        steps=plan.total_steps,
        rounds=plan.rounds,
        climbed=n * (2**plan.rounds - 1),
        climbed_published=climbed,
        scored_published=plan.total_steps // EVERY * targets,
        candidates=plan.total_steps // recipe.evaluation.every,
        scored=rules * (targets + int(recipe.data["validation"])),
    )


def digits_run(subject: Subject, n: int, steps: int, scored: int, rounds: int, tell: Tell) -> Result:
    """Extrapolate a full run from ``n`` ascents, ``steps`` training steps and ``scored`` scored images."""
    recipe = subject.recipe
    full = length(recipe)
    with space() as where:
        sides = _parts(where, subject, n, steps, scored)
        interleave(sides, 1)
        times = interleave(sides, rounds, tell)
    lines = [_seconds({name: t[i] for name, t in times.items()}, full, recipe, n, steps, scored) for i in range(rounds)]
    totals = {name: [line[name] for line in lines] for name in lines[0]}
    bare, scoring = _sum(totals, "train"), _sum(totals, "score")
    whole = {side: [a + b for a, b in zip(bare[side], scoring[side], strict=True)] for side in bare}
    return Result(
        about=f"{full.steps:,} steps, {full.rounds} rounds of {full.climbed:,} images in all, "
        f"{', '.join(recipe.data['targets'])}; summed from {steps} steps and {n} images",
        unit="minutes",
        rounds=rounds,
        sides={name: Spread.of([t / 60 for t in seconds]) for name, seconds in whole.items()},
        ratios={
            "published": speedup(whole["published"], whole["meada"]),
            "without evaluation": speedup(bare["published"], bare["meada"]),
        },
        facts={"seconds": {name: Spread.of(t).median for name, t in totals.items()}},
    )


def _parts(where: Space, subject: Subject, n: int, steps: int, scored: int) -> dict[str, Side]:
    recipe, pool = subject.recipe, subject.pool(n)
    pool.append(as_float(subject.images(n)), parents=torch.arange(n))
    training = begin(subject.net, pool, subject.method, recipe.descent, seed=SEED)
    sizes = recipe.evaluation
    candidates = Selection(task(subject), subset=sizes.subset, crafted_size=sizes.crafted)
    weights, checkpoint = where.folder / "w.safetensors", where.folder / "checkpoint.pt"
    _take_a_step(training.optimiser)
    return {
        "published minimise": published_descent(where, subject, n, steps),
        "meada minimise": meada_descent(subject, n, steps),
        "published maximise": published_ascent(where, subject, n),
        "meada maximise": meada_ascent(where, subject, n),
        "published evaluate": published_scores(subject, scored),
        "meada evaluate": meada_scores(subject, scored),
        "meada candidate": work(candidates.scores, subject.net),
        "meada candidate's weights": work(save_weights, weights, subject.net),
        "meada round's terms": work(diagnose, subject.net, pool),
        "meada checkpoint": work(save_checkpoint, checkpoint, training, {}),
    }


def _seconds(t: Mapping[str, float], full: Length, recipe: Recipe, n: int, steps: int, scored: int) -> dict[str, float]:
    """Times of one round, extrapolated to a full run, by side, kind and part."""
    minimise = full.steps / steps * t["meada minimise"]
    maximise = full.climbed / n * t["meada maximise"]
    saves = 2 * full.rounds + 1 + (minimise + maximise) // recipe.checkpoint_seconds
    return {
        "published train minimise": full.steps / steps * t["published minimise"],
        "published train maximise": full.climbed_published / n * t["published maximise"],
        "published score targets": full.scored_published / scored * t["published evaluate"],
        "meada train minimise": minimise,
        "meada train maximise": maximise,
        "meada train checkpoints": saves * t["meada checkpoint"],
        "meada score candidates": full.candidates * t["meada candidate"],
        # At most: a candidate's weights are written only when a rule prefers it.
        "meada score candidates' weights": full.candidates * t["meada candidate's weights"],
        "meada score rounds": full.rounds * SAMPLE / min(n, SAMPLE) * t["meada round's terms"],
        "meada score chosen": full.scored / scored * t["meada evaluate"],
    }


def _sum(totals: Mapping[str, list[float]], kind: str) -> dict[str, list[float]]:
    return {
        side: [sum(values) for values in zip(
            *(t for name, t in totals.items() if name.startswith(f"{side} {kind}")), strict=True
        )]
        for side in ("published", "meada")
    }  # fmt: skip


def task(subject: Subject) -> Task:
    """Random data with the domains that the recipe names, as large as a candidate's subsets."""
    recipe = subject.recipe
    n = max(recipe.evaluation.subset, recipe.evaluation.crafted)
    samples = Samples(subject.images(n), subject.labels(n))
    return Task(
        classes=tuple(str(k) for k in range(subject.classes)),
        train=samples,
        validation=samples,
        targets={name: samples for name in recipe.data["targets"]},
        sources=("source",),
    )


def _take_a_step(optimiser: torch.optim.Optimizer) -> None:
    """Take an optimiser step, so that Adam has its state (two numbers per weight) to save."""
    for group in optimiser.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    optimiser.step()
    optimiser.zero_grad()
