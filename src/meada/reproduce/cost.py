"""What a set of runs will cost: hours from records of its kind, bytes from its recipe."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import nn

from meada.datasets import sizes_of
from meada.errors import MeadaError
from meada.reproduce.item import Item, runs
from meada.runs.identity import held_recipe
from meada.runs.recipe import Recipe, make, method_of

COPIES = 4 + 3  # of the weights: each rule's choice, and candidates that may still be chosen


def kind(recipe: Recipe) -> str:
    """What a run's time depends on: runs of one kind differ in numbers that cost nothing."""
    method = {k: recipe.method.get(k) for k in ("name", "steps", "grow", "posterior_draws")}
    loss = recipe.loss.get("name")
    data = {k: v for k, v in recipe.data.items() if k != "root"}
    plan = recipe.plan.model_dump()
    return repr((data, recipe.network["name"], method, loss, plan, recipe.precision))


def expected_seconds(items: Sequence[Item], folders: Iterable[Path]) -> dict[str, float]:
    """For each item of a kind that was run in one of ``folders``: how long that took on average."""
    took: dict[str, list[float]] = {}
    for folder in {f for out in folders for f in runs(out) if f.finished}:
        try:
            seconds = sum(folder.load_record()["seconds"].values())
            took.setdefault(kind(held_recipe(folder)), []).append(seconds)
        except (MeadaError, KeyError):  # a record that cannot be read has no time to tell
            continue
    means = {k: sum(values) / len(values) for k, values in took.items()}
    return {i.name: means[kind(i.recipe)] for i in items if kind(i.recipe) in means}


def time_left(waiting: Sequence[Item], running: Mapping[str, float], known: Mapping[str, float], jobs: int) -> str:
    """In words, from ``known`` seconds by name; ``running`` has the seconds that each has run.

    >>> time_left([], {"a": 1800.0}, {"a": 7200.0}, jobs=1)
    'about 1.5 h left'
    >>> time_left([], {"a": 1800.0}, {}, jobs=1)
    'time left unknown'
    """
    names = [item.name for item in waiting]
    rest = [known[n] for n in names if n in known]
    rest += [max(0.0, known[n] - done) for n, done in running.items() if n in known]
    unknown = sum(n not in known for n in (*names, *running))
    if not rest:
        return "time left unknown" if unknown else "nothing left"
    more = f", and {unknown} runs of unknown length" if unknown else ""
    hours = max(sum(rest) / jobs, max(rest)) / 3600
    return f"about {hours:.1f} h left{more}"


def megabytes(recipe: Recipe) -> float | None:
    """On disk while it runs: the pool's new blocks, and every copy of the weights; None: size of the data not known."""
    sizes = sizes_of(recipe.data)
    if sizes is None:
        return None
    pixel = 1 if recipe.pool.store == "uint8" else 4
    born = method_of(recipe).growth(sizes.train, recipe.plan.rounds) - sizes.train
    moments = 2 if recipe.descent.name == "adam" else int(recipe.descent.momentum > 0)
    return (born * 3 * sizes.side**2 * pixel + weights(recipe, sizes.classes) * (COPIES + 1 + moments)) / 1e6


def weights(recipe: Recipe, classes: int) -> int:
    """Bytes of the network that is trained, without making it.

    A method that looks at the weights (L-CNN cuts them to a rank) has it counted uncut.
    """
    table = {k: v for k, v in recipe.network.items() if k not in ("weights", "partial")}
    with torch.device("meta"):
        net: nn.Module = make("network", table, num_classes=classes)
        with suppress(RuntimeError):  # what torch says where there are no values
            net = method_of(recipe).adapt(net)
    return sum(t.numel() * 4 for t in net.state_dict().values())
