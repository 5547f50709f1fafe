"""A run: recipe -> data -> network -> Algorithm 1 -> scores -> record; resumable at any moment."""

import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from meada.algorithm import begin, nothing, train
from meada.checkpoint import load_checkpoint, load_weights_into, save_weights
from meada.datasets import Task
from meada.device import choose, in_precision
from meada.environment import environment
from meada.errors import MeadaError
from meada.evaluation import evaluate
from meada.evaluation.selection import KNOWS, RULES
from meada.files import write_json
from meada.folder import RunFolder
from meada.journal import Journal
from meada.methods import Method
from meada.minimise import Training
from meada.pool import Pool
from meada.recipe import Recipe, make
from meada.streams import key
from meada.version import __version__

Tell = Callable[[str, int, int], None]  # the phase's name, how much is done, of how much


def run(recipe: Recipe, out: Path, *, resume: bool = False, tell: Tell = nothing) -> dict[str, Any]:
    """Train what the recipe says into the folder ``out``; gives back the record."""
    folder = RunFolder(out)
    with folder.lock():
        if resume:
            folder.carry_on(recipe)
        else:
            folder.begin(recipe)
        if not folder.finished:
            _train(recipe, folder, tell)
        clean(folder, keep_pool=recipe.pool.keep)
        return folder.load_record()


def build_network(recipe: Recipe, classes: int) -> nn.Module:
    """A fresh network with the weights that the recipe's seed gives it.

    Its convolutions are laid out channels-last, which the CPU's kernels are fastest with.
    """
    with torch.random.fork_rng():
        torch.manual_seed(key(recipe.seed, "initial weights"))
        net: nn.Module = make("network", recipe.network, num_classes=classes)
        method: Method = make("method", recipe.method)
        return method.adapt(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def load_model(folder: RunFolder, classes: int, rule: str = "last") -> nn.Module:
    """The network that a finished run chose by ``rule``."""
    path = folder.selected(rule)
    if not path.exists():
        raise MeadaError(f"{path} is not there: the run is not finished, or has no '{rule}' model")
    net = build_network(folder.load_recipe(), classes)
    load_weights_into(net, path)
    return net


def _train(recipe: Recipe, folder: RunFolder, tell: Tell) -> None:
    task: Task = make("data", recipe.data)
    method: Method = make("method", recipe.method)
    pool = Pool(
        task.train.images,
        task.train.labels,
        task.train.domains,
        store=recipe.pool.store,
        folder=folder.pool,
        memory=recipe.pool.memory_mb << 20,
    )
    device = choose(recipe.device)
    net = in_precision(build_network(recipe, len(task.classes)), recipe.precision, device)
    net, embedding = net.to(device), recipe.embedding or None
    training = begin(net, pool, method, recipe.descent, seed=recipe.seed, embedding=embedding)
    journal = Journal(recipe, folder, task, tell, total=_total(recipe, method, pool))
    if folder.checkpoint.exists():
        journal.restore(load_checkpoint(folder.checkpoint, training))
        folder.rewind_log(training.step)
        pool.adopt(training.round)
    train(
        training,
        pool,
        method,
        recipe.plan,
        recipe.descent,
        seed=recipe.seed,
        embedding=embedding,
        watch=journal.watch(),
    )
    journal.save(training)
    _finish(recipe, folder, task, training, journal)


def _total(recipe: Recipe, method: Method, pool: Pool) -> int:
    return recipe.plan.in_steps(len(pool), method.growth)[1]


def _finish(
    recipe: Recipe, folder: RunFolder, task: Task, training: Training, journal: Journal
) -> None:
    """Score each rule's choice on the whole of every domain, then write the record."""
    about = {"meada": __version__, "recipe": recipe.name, "classes": "\n".join(task.classes)}
    results, sources = {}, {}
    steps = {"last": training.step, **journal.chosen.steps}
    rules = [rule for rule in RULES if rule in steps]
    scored: dict[int, dict[str, Any]] = {}
    net = deepcopy(training.net)
    for number, rule in enumerate(rules):
        journal.tell("evaluate", number, len(rules))
        if rule == "last":
            net.load_state_dict(training.net.state_dict())
        else:
            load_weights_into(net, folder.candidate(steps[rule]))
        save_weights(folder.selected(rule), net, {**about, "rule": rule})
        if steps[rule] not in scored:
            parts = {"source": task.validation, **task.targets}
            with journal.clock.during("evaluate"):
                scored[steps[rule]] = evaluate(
                    net, {name: (s.images, s.labels) for name, s in parts.items()}
                )
        results[rule] = {k: v for k, v in scored[steps[rule]].items() if k != "source"}
        sources[rule] = scored[steps[rule]]["source"]
    journal.clock.switch("evaluate")
    write_json(folder.record, {
        "meada": __version__,
        "recipe": recipe.name,
        "note": recipe.note,
        "method": recipe.method["name"],
        "network": recipe.network["name"],
        "data": recipe.data["name"],
        "seed": recipe.seed,
        "environment": {
            **environment(),
            "device": str(next(net.parameters()).device),
            "precision": recipe.precision,
        },
        "provenance": task.provenance,
        "rounds": journal.rounds,
        "seconds": journal.clock.seconds,
        "steps": training.step,
        "selected": {rule: {"step": steps[rule], "knows": KNOWS[rule]} for rule in rules},
        "source": sources,
        "results": results,
    })  # fmt: skip


def clean(folder: RunFolder, *, keep_pool: bool) -> None:
    """What only an unfinished run needs."""
    shutil.rmtree(folder.path / "candidates", ignore_errors=True)
    if not keep_pool:
        shutil.rmtree(folder.pool, ignore_errors=True)
