"""Estimate a set of runs: hours from similar records or from a few timed steps, bytes from the recipes."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from meada.algorithm import Watch, begin, nothing, train
from meada.datasets import Sizes, sizes_of
from meada.errors import MeadaError
from meada.evaluation import predict
from meada.evaluation.validation_shifts import validation_families
from meada.machine.clock import median_gap, seconds_of
from meada.machine.terminal import Tell
from meada.methods.method import Method
from meada.pool import Pool
from meada.reproduce import Item, runs
from meada.runs.functions import make
from meada.runs.identity import recipe_in
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, method_of

COPIES = 4 + 3  # of the weights: each rule's choice, and candidates that may still be chosen
PROBED = 40  # images of a batch that are timed at most: a step's time grows with its batch
STEPS = 3  # minimisation steps that are timed, after one that is not
READ = 32  # pictures read at once, at most
CHOICES = 3  # checkpoints of a run that are scored on whole test sets, besides ties


@dataclass(frozen=True)
class Costs:
    """Seconds, each measured on this machine with this network."""

    step: float  # a minimisation step on a batch
    climb: float  # an ascent step on one picture
    look: float  # reading one picture


def kind(recipe: Recipe) -> str:
    """Key of the settings on which a run's time depends."""
    method = {k: recipe.method.get(k) for k in ("name", "steps", "grow", "posterior_draws")}
    data = {k: v for k, v in recipe.data.items() if k != "root"}
    rest = (recipe.network["name"], method, recipe.loss.get("name"), recipe.plan.model_dump(), recipe.precision)
    return repr((data, *rest))


def expected_seconds(items: Sequence[Item], folders: Iterable[Path]) -> dict[str, float]:
    """Mean seconds of the runs of each item's kind in ``folders``."""
    took: dict[str, list[float]] = {}
    for folder in {f for out in folders for f in runs(out) if f.finished}:
        try:
            seconds = sum(folder.load_record()["seconds"].values())
            took.setdefault(kind(recipe_in(folder)), []).append(seconds)
        except (MeadaError, KeyError):  # a record that cannot be read has no time to tell
            continue
    means = {k: sum(values) / len(values) for k, values in took.items()}
    return {i.name: means[kind(i.recipe)] for i in items if kind(i.recipe) in means}


def time_left(waiting: Sequence[Item], running: Mapping[str, float], known: Mapping[str, float], jobs: int) -> str:
    """Time left in words, from ``known`` seconds by name; ``running`` has the elapsed seconds of each.

    >>> time_left([], {"a": 1800.0}, {"a": 7200.0}, jobs=1)
    'about 1.5 h left'
    """
    names = [item.name for item in waiting]
    rest = [known[n] for n in names if n in known]
    rest += [max(0.0, known[n] - done) for n, done in running.items() if n in known]
    unknown = sum(n not in known for n in (*names, *running))
    if not rest:
        return "time left unknown" if unknown else "nothing left"
    more = f", and {unknown} runs of unknown length" if unknown else ""
    return f"about {max(sum(rest) / jobs, max(rest)) / 3600:.1f} h left{more}"


def megabytes(recipe: Recipe) -> float | None:
    """Disk space of a run: new blocks of the pool and copies of the weights; None if the data's size is unknown."""
    sizes = sizes_of(recipe.data)
    if sizes is None:
        return None
    pixel = 1 if recipe.pool.store == "uint8" else 4
    born = method_of(recipe).growth(sizes.train, recipe.plan.rounds) - sizes.train
    moments = 2 if recipe.descent.name == "adam" else int(recipe.descent.momentum > 0)
    return (born * 3 * sizes.side**2 * pixel + weights(recipe, sizes.classes) * (COPIES + 1 + moments)) / 1e6


def weights(recipe: Recipe, classes: int) -> int:
    """Bytes of the network's weights, without allocating them.

    A method that looks at the weights (L-CNN cuts them to a rank) has it counted uncut.
    """
    table = {k: v for k, v in recipe.network.items() if k not in ("weights", "partial")}
    with torch.device("meta"):
        net: nn.Module = make("network", table, num_classes=classes)
        with suppress(RuntimeError):  # what torch says where there are no values
            net = method_of(recipe).adapt(net)
    return sum(t.numel() * 4 for t in net.state_dict().values())


def estimated_seconds(items: Sequence[Item], tell: Tell = nothing) -> dict[str, float]:
    """Seconds by item name, from a few timed steps with torch's current number of threads.

    Runs on data whose size is not known before it is read are left out.
    """
    known = [(item, sizes) for item in items if (sizes := sizes_of(item.recipe.data)) is not None]
    different = {_step_of(item.recipe): (item.recipe, sizes) for item, sizes in known}
    costs: dict[str, Costs] = {}
    for steps, (recipe, sizes) in different.items():
        tell("timing a few steps of each kind", len(costs), len(different))
        costs[steps] = probe(recipe, sizes)
    return {item.name: run_seconds(item.recipe, costs[_step_of(item.recipe)]) or 0.0 for item, _ in known}


def _step_of(recipe: Recipe) -> str:
    """Key of the settings on which the time of a single step depends."""
    method = {k: v for k, v in recipe.method.items() if k not in ("grow", "beta", "gamma", "units")}
    data = (recipe.data["name"], recipe.data.get("side"), len(recipe.data.get("targets", ())))
    rest = (recipe.network, recipe.loss, recipe.plan.batch_size, recipe.precision)
    return repr((method, data, rest))


def probe(recipe: Recipe, sizes: Sizes) -> Costs:
    """Time a few steps on noise; of a large batch only a part, scaled up to the whole."""
    batch, n = recipe.plan.batch_size, PROBED
    few = batch if batch <= PROBED else PROBED // 5
    short = recipe.model_copy(update={"plan": recipe.plan.model_copy(update={"batch_size": few})})
    images = torch.randint(256, (n, 3, sizes.side, sizes.side), dtype=torch.uint8)
    domains = torch.arange(n) % sizes.sources if sizes.sources > 1 else None
    pool = Pool(images, torch.arange(n) % sizes.classes, domains, store=recipe.pool.store)
    costs = measure(short, pool, build_network(recipe, sizes.classes, file=False))
    return replace(costs, step=costs.step * batch / few)


def measure(recipe: Recipe, pool: Pool, net: nn.Module) -> Costs:
    """``net`` is trained for a few steps."""
    method, images = method_of(recipe), pool.images(torch.arange(READ))
    step, climb = _step(recipe, method, net, pool), _ascent_seconds(recipe, method, net, pool)
    predict(net, images)  # the first one is slower
    return Costs(step, climb, seconds_of(lambda: predict(net, images)) / READ)


def run_seconds(recipe: Recipe, costs: Costs) -> float | None:
    """Seconds of all phases; None if the data's size is unknown before it is read.

    >>> from meada.runs.recipe import load_recipe
    >>> costs = Costs(step=0.1, climb=0.01, look=0.0)
    >>> run_seconds(load_recipe("digits/meada"), costs)  # 10,000 steps, 70,000 new images of 15 steps
    11500.0
    """
    sizes = sizes_of(recipe.data)
    if sizes is None:
        return None
    method, look = method_of(recipe), recipe.evaluation
    n, rounds = sizes.train, recipe.plan.rounds
    _, steps = recipe.plan.in_steps(n, method.growth)
    climbed = (method.growth(n, rounds) - n) * int(recipe.method.get("steps", 0))
    candidates = -(-steps // look.every)
    shifts = len(validation_families(method.families))
    looked = candidates * (len(sizes.targets) * look.subset + shifts * look.crafted)
    looked += CHOICES * sum(sizes.targets.values())
    return steps * costs.step + climbed * costs.climb + looked * costs.look


def _step(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    marks: list[float] = []
    watch = Watch(stepped=lambda *_: marks.append(time.perf_counter()))
    _train(recipe, method, net, pool, watch, rounds=0, total_steps=1 + STEPS)
    return median_gap(marks)


def _ascent_seconds(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    """Seconds of one ascent step on one picture; 0 if the method has no ascent."""
    steps = recipe.method.get("steps")
    if not steps or method.growth(1, 1) == 1:
        return 0.0
    brief = method_of(recipe.model_copy(update={"method": {**recipe.method, "steps": 2}}))
    n = min(len(pool), int(recipe.method.get("block", READ)))
    few = Pool(pool.images(torch.arange(n)), pool.labels[:n], pool.domains[:n])
    round_ = lambda: _train(recipe, brief, net, few, Watch(), rounds=1, total_steps=0)
    return seconds_of(round_) / (2 * n)


def _train(recipe: Recipe, method: Method, net: nn.Module, pool: Pool, watch: Watch, **length: int) -> None:
    plan = recipe.plan.model_copy(update={"min_steps": 0, "unit": "steps", **length})
    place = recipe.embedding or None
    training = begin(net, pool, method, recipe.descent, embedding=place)
    train(training, pool, method, plan, recipe.descent, embedding=place, watch=watch)
