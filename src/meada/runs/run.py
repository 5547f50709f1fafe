"""A run: recipe -> data -> network -> Algorithm 1 -> scores -> record; resumable at any moment."""

import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import nn

from meada import __version__
from meada.algorithm import begin, nothing, train
from meada.datasets import Task
from meada.errors import MeadaError
from meada.evaluation import evaluate
from meada.evaluation.predictions import Predictions, save_predictions
from meada.evaluation.selection import RULES
from meada.files import data_root, write_json
from meada.machine.device import choose, in_precision
from meada.machine.distributed import World, joined
from meada.machine.environment import environment
from meada.machine.parallel import synchronised
from meada.methods import Method
from meada.minimise import Training
from meada.networks.freezing import batch_norm_frozen
from meada.networks.pretrained import load_weights
from meada.pool import Pool
from meada.runs.checkpoint import load_checkpoint, load_weights_into, save_weights
from meada.runs.recipe import Recipe, make, method_name, method_of
from meada.runs.recorder import Journal
from meada.runs.run_folder import RunFolder
from meada.streams import key

KEPT = ("last", "source_val")  # the rules whose predictions are written down, image by image
Tell = Callable[[str, int, int], None]  # the phase's name, how much is done, of how much


def run(recipe: Recipe, out: Path, *, resume: bool = False, tell: Tell = nothing) -> dict[str, Any]:
    """Train what the recipe says into the folder ``out``; gives back the record.

    Of several processes, which torchrun starts, the first alone writes and has the record.
    """
    folder = RunFolder(out)
    with (
        joined(choose(recipe.device)) as world,
        folder.lock() if world.first else nullcontext(),
    ):
        if world.first:
            (folder.carry_on if resume else folder.begin)(recipe)
        world = replace(world, shared=folder.shared(world))
        if not world.hand_out(b"finished" if folder.finished else b""):
            _train(recipe, folder, noted(tell, folder) if world.first else tell, world)
        world.barrier()
        if world.leads:
            clean(folder, keep_pool=recipe.pool.keep)
        return folder.load_record() if world.first else {}


def noted(tell: Tell, folder: RunFolder, every: float = 2.0) -> Tell:
    """``tell``, and the position in the run's folder: each new phase, then every so often."""
    last, current = float("-inf"), ""

    def both(phase: str, done: int, total: int) -> None:
        nonlocal last, current
        tell(phase, done, total)
        if phase != current or time.monotonic() - last >= every:
            folder.write_position(phase, done, total)
            last, current = time.monotonic(), phase

    return both


def build_network(recipe: Recipe, classes: int, *, file: bool = True) -> nn.Module:
    """A fresh network with the weights that the recipe's seed, and its file of weights, give it.

    Its convolutions are laid out channels-last, which the CPU's kernels are fastest with.
    """
    return _fresh(recipe, classes, file=file)[0]


def _fresh(recipe: Recipe, classes: int, *, file: bool) -> tuple[nn.Module, dict[str, Any]]:
    """The network, and what of it the file of weights gave: nothing, where none is named."""
    table = dict(recipe.network)
    name, partial = table.pop("weights", ""), bool(table.pop("partial", False))
    if not file:  # a run's own weights follow: a package of pretrained ones need not be installed
        table.pop("pretrained", None)
    with torch.random.fork_rng():
        torch.manual_seed(key(recipe.seed, "initial weights"))
        net: nn.Module = make("network", table, num_classes=classes)
        account: dict[str, Any] = {}
        if name and file:
            path = data_root() / "weights" / name
            loaded = load_weights(net, path, partial=partial)
            account = {
                "file": path.name,
                "sha256": sha256(path.read_bytes()).hexdigest(),
                "loaded": list(loaded.loaded),
                "left_at_random": list(loaded.left),
                "unused": list(loaded.unused),
            }
        net = method_of(recipe).adapt(net)
        net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net, account


def load_model(folder: RunFolder, classes: int, rule: str = "last", trust: Iterable[str] = ()) -> nn.Module:
    """The network that a finished run chose by ``rule``."""
    path = folder.selected(rule)
    if not path.exists():
        raise MeadaError(f"{path} is not there: the run is not finished, or has no '{rule}' model")
    net = build_network(folder.load_recipe(trust), classes, file=False)
    load_weights_into(net, path)
    return net


def _train(recipe: Recipe, folder: RunFolder, tell: Tell, world: World) -> None:
    task: Task = make("data", recipe.data)
    method: Method = method_of(recipe)
    pool = Pool(
        task.train.images,
        task.train.labels,
        task.train.domains,
        store=recipe.pool.store,
        folder=folder.pool,
        memory=recipe.pool.memory_mb << 20,
    )
    device = choose(recipe.device)
    net, weights = _fresh(recipe, len(task.classes), file=True)
    net = synchronised(net, wanted=recipe.sync_batch_norm, world=world, device=device)
    net = in_precision(net, recipe.precision, device)
    net, embedding = net.to(device), recipe.embedding or None
    training = begin(net, pool, method, recipe.descent, seed=recipe.seed, embedding=embedding)
    journal = Journal(recipe, folder, task, tell, total=_total(recipe, method, pool), world=world)
    held = folder.checkpoint.read_bytes() if world.first and folder.checkpoint.exists() else b""
    if held := world.hand_out(held):
        journal.restore(load_checkpoint(folder.checkpoint, training, held))
        if world.first:
            folder.rewind_log(training.step, training.round)
        pool.adopt(journal.blocks)
    with batch_norm_frozen(net) if recipe.freeze_batch_norm else nullcontext():
        train(
            training,
            pool,
            method,
            recipe.plan,
            recipe.descent,
            seed=recipe.seed,
            embedding=embedding,
            watch=journal.watch(),
            world=world,
        )
    journal.save(training)
    _finish(recipe, folder, task, training, journal, weights, world)


def _total(recipe: Recipe, method: Method, pool: Pool) -> int:
    return recipe.plan.in_steps(len(pool), method.growth)[1]


def _finish(
    recipe: Recipe,
    folder: RunFolder,
    task: Task,
    training: Training,
    journal: Journal,
    weights: dict[str, Any],
    world: World,
) -> None:
    """Score each rule's choice on the whole of every domain, then write the record."""
    about = {"meada": __version__, "recipe": recipe.name, "classes": "\n".join(task.classes)}
    results, sources, cleans = {}, {}, {}
    steps = {"last": training.step, **journal.selection.steps}
    rules = [rule for rule in RULES if rule in steps]
    scored: dict[int, dict[str, Any]] = {}
    net = deepcopy(training.net)
    for number, rule in enumerate(rules):
        journal.tell("evaluate", number, len(rules))
        if rule == "last":
            net.load_state_dict(training.net.state_dict())
        elif world.first:
            load_weights_into(net, folder.candidate(steps[rule]))
        world.align(net)
        if world.first:
            save_weights(folder.selected(rule), net, {**about, "rule": rule})
        if steps[rule] not in scored:
            with journal.clock.during("evaluate"):
                scored[steps[rule]] = _scores(net, task, world, steps[rule])
        results[rule] = scored[steps[rule]]["targets"]
        sources[rule] = scored[steps[rule]]["source"]
        cleans[rule] = scored[steps[rule]].get("clean")
    if not world.first:
        return
    told = {rule: scored[steps[rule]]["predictions"] for rule in rules if rule in KEPT}
    save_predictions(folder.predictions, told, task.classes)
    journal.clock.switch("evaluate")
    write_json(folder.record, {
        "meada": __version__,
        "recipe": recipe.name,
        "note": recipe.note,
        "method": method_name(recipe),
        "passes": dict(zip(("forward", "backward"), method_of(recipe).passes, strict=True)),
        "network": recipe.network["name"],
        "data": recipe.data["name"],
        "seed": recipe.seed,
        "scale": recipe.scaled,
        "environment": {
            **environment(),
            "device": str(next(net.parameters()).device),
            "precision": recipe.precision,
            "processes": world.size,
            "sync_batch_norm": recipe.sync_batch_norm,
        },
        "provenance": task.provenance,
        "weights": weights,
        "rounds": journal.rounds,
        "seconds": journal.clock.seconds,
        "steps": training.step,
        "selected": {rule: {"step": steps[rule], **journal.selection.about(rule)} for rule in rules},
        "source": sources,
        **({"clean": cleans} if task.clean else {}),
        "results": results,
    })  # fmt: skip


def _scores(net: nn.Module, task: Task, world: World, step: int) -> dict[str, Any]:
    """Held-out source, the source's own test split if there is one, and every target in turn."""
    own = {"source": task.validation} | ({"clean": task.clean} if task.clean else {})
    kept = Predictions()
    domains = {k: (s.images, s.labels) for k, s in own.items()}
    scores: dict[str, Any] = evaluate(net, domains, each=kept.keep, world=world, step=step)
    scores["targets"], scores["predictions"] = {}, kept
    for name in task.targets:  # one at a time: a target may be read from disk when it is asked for
        one = task.targets[name]
        scores["targets"] |= evaluate(
            net,
            {name: (one.images, one.labels)},
            severities=task.severities,
            each=kept.keep,
            world=world,
            step=step,
        )
    return scores


def clean(folder: RunFolder, *, keep_pool: bool) -> None:
    """What only an unfinished run needs."""
    shutil.rmtree(folder.path / "candidates", ignore_errors=True)
    folder.position.unlink(missing_ok=True)
    if not keep_pool:
        shutil.rmtree(folder.pool, ignore_errors=True)
