"""A run: recipe -> data -> network -> Algorithm 1 -> scores -> record; resumable at any moment."""

import shutil
import time
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from meada import __version__
from meada.algorithm import begin, nothing, train
from meada.averaging import renew_batch_norm
from meada.datasets import Task
from meada.evaluation import evaluate
from meada.evaluation.predictions import Predictions, save_predictions
from meada.evaluation.selection import RULES
from meada.files import read_bytes, remove_drafts, write_json
from meada.machine.device import choose, in_precision
from meada.machine.distributed import World, process_group, synchronise_batch_norm
from meada.machine.environment import environment, match_arithmetic
from meada.machine.terminal import Tell
from meada.minimise import Training
from meada.networks.freezing import batch_norm_frozen
from meada.pool import Pool
from meada.runs.checkpoint import load_checkpoint, load_weights_into, read_state, save_weights
from meada.runs.network import fresh_network
from meada.runs.recipe import Recipe, make, method_name, method_of
from meada.runs.recorder import Recorder
from meada.runs.run_folder import RunFolder

PREDICTED = ("last", "source_val")  # the rules whose predictions are written down, image by image


def run(
    recipe: Recipe, out: Path, *, resume: bool = False, accept_different_bits: bool = False, tell: Tell = nothing
) -> dict[str, Any]:
    """Train a recipe in the folder ``out``; returns the record.

    Of several processes, which torchrun starts, only the first writes and has the record. A resumed run keeps
    the arithmetic that it was started with (threads, torch, device); ``accept_different_bits`` allows another one.
    """
    folder = RunFolder(out)
    with process_group(choose(recipe.device)) as world, folder.lock() if world.is_main else nullcontext():
        if world.is_main:
            (folder.resume if resume else folder.begin)(recipe)
            remove_drafts(folder.path)
        world = replace(world, shared=folder.shared(world))
        if not world.broadcast(b"finished" if folder.finished else b""):
            shown = with_position(tell, folder) if world.is_main else tell
            _train(recipe, folder, shown, world, accept_different_bits)
        world.barrier()
        if world.is_node_writer:
            clean(folder, keep_pool=recipe.pool.keep)
        return folder.load_record() if world.is_main else {}


def with_position(tell: Tell, folder: RunFolder, every: float = 2.0) -> Tell:
    """``tell``, which also writes the position to the run's folder: at each new phase, and every few seconds."""
    last, current = float("-inf"), ""

    def both(phase: str, done: int, total: int) -> None:
        nonlocal last, current
        tell(phase, done, total)
        if phase != current or time.monotonic() - last >= every:
            folder.write_position(phase, done, total)
            last, current = time.monotonic(), phase

    return both


def _train(recipe: Recipe, folder: RunFolder, tell: Tell, world: World, accept_different_bits: bool) -> None:
    device, state = choose(recipe.device), _checkpoint(folder, world)
    match_arithmetic(state.get("extras", {}).get("arithmetic"), device, folder.checkpoint, accept=accept_different_bits)
    task, method = make("data", recipe.data), method_of(recipe)
    pool = Pool(
        task.train.images, task.train.labels, task.train.domains,
        store=recipe.pool.store, folder=folder.pool, memory=recipe.pool.memory_mb << 20,
    )  # fmt: skip
    net, weights = fresh_network(recipe, len(task.classes), file=True)
    net = synchronise_batch_norm(net, wanted=recipe.sync_batch_norm, world=world, device=device)
    net = in_precision(net, recipe.precision, device)
    net, embedding = net.to(device), recipe.embedding or None
    training = begin(net, pool, method, recipe.descent, seed=recipe.seed, embedding=embedding)
    total = recipe.plan.in_steps(len(pool), method.growth)[1]
    recorder = Recorder(recipe, folder, task, tell, total=total, world=world)
    if state:
        recorder.restore(load_checkpoint(folder.checkpoint, training, state), training)
        pool.adopt(recorder.blocks)
    elif world.is_main:
        folder.restore_log([])  # of a process that was killed before its first checkpoint
    with batch_norm_frozen(net) if recipe.freeze_batch_norm else nullcontext():
        train(
            training, pool, method, recipe.plan, recipe.descent,
            seed=recipe.seed, embedding=embedding, watch=recorder.watch(), world=world,
        )  # fmt: skip
    recorder.save(training)
    finish(recorder, task, training, pool, weights)


def _checkpoint(folder: RunFolder, world: World) -> dict[str, Any]:
    """What the checkpoint holds, on every process; nothing where there is none."""
    there = world.is_main and folder.checkpoint.exists()
    held = world.broadcast(read_bytes(folder.checkpoint) if there else b"")
    return read_state(folder.checkpoint, held) if held else {}


def clean(folder: RunFolder, *, keep_pool: bool) -> None:
    """What only an unfinished run needs."""
    shutil.rmtree(folder.path / "candidates", ignore_errors=True)
    folder.position.unlink(missing_ok=True)
    if not keep_pool:
        shutil.rmtree(folder.pool, ignore_errors=True)


def finish(recorder: Recorder, task: Task, training: Training, pool: Pool, weights: dict[str, Any]) -> None:
    """Score each rule's choice on the whole of every domain, then write the record."""
    recipe, folder, world = recorder.recipe, recorder.folder, recorder.world
    about = {"meada": __version__, "recipe": recipe.name, "classes": "\n".join(task.classes)}
    steps = {"last": training.step, **recorder.selection.steps}
    if recorder.mean.count:
        steps["averaged"] = training.step
    rules = [rule for rule in RULES if rule in steps]
    scored: dict[Any, dict[str, Any]] = {}  # by step; rules that chose the same step share it
    found: dict[str, dict[str, Any]] = {}  # by rule
    net = deepcopy(training.net)
    for number, rule in enumerate(rules):
        recorder.tell("evaluate", number, len(rules))
        weights_of = rule if rule == "averaged" else steps[rule]
        if rule == "last":
            net.load_state_dict(training.net.state_dict())
        elif rule == "averaged":
            net.load_state_dict(recorder.mean.state)
            if not recipe.freeze_batch_norm:
                renew_batch_norm(net, pool, batch_size=recipe.plan.batch_size, seed=recipe.seed)
        elif world.is_main:
            load_weights_into(net, folder.candidate(steps[rule]))
        world.align(net)
        if world.is_main:
            save_weights(folder.selected(rule), net, {**about, "rule": rule})
        if weights_of not in scored:
            with recorder.clock.during("evaluate"):
                scored[weights_of] = _scores(net, task, world, steps[rule])
        found[rule] = scored[weights_of]
    if not world.is_main:
        return
    predictions = {rule: found[rule]["predictions"] for rule in rules if rule in PREDICTED}
    save_predictions(folder.predictions, predictions, task.classes)
    recorder.clock.switch("evaluate")
    write_json(folder.record, {
        **_settings(recipe),
        "environment": {
            **environment(),
            "device": str(next(net.parameters()).device),
            "precision": recipe.precision,
            "processes": world.size,
            "sync_batch_norm": recipe.sync_batch_norm,
        },
        "provenance": task.provenance,
        "weights": weights,
        "rounds": recorder.rounds,
        "seconds": recorder.clock.seconds,
        "steps": training.step,
        "selected": {rule: {"step": steps[rule], **recorder.selection.about(rule)} for rule in rules},
        "source": {rule: found[rule]["source"] for rule in rules},
        **({"clean": {rule: found[rule]["clean"] for rule in rules}} if task.clean else {}),
        "results": {rule: found[rule]["targets"] for rule in rules},
    })  # fmt: skip


def _settings(recipe: Recipe) -> dict[str, Any]:
    return {
        "meada": __version__,
        "recipe": recipe.name,
        "note": recipe.note,
        "method": method_name(recipe),
        "passes": dict(zip(("forward", "backward"), method_of(recipe).passes, strict=True)),
        "network": recipe.network["name"],
        "data": recipe.data["name"],
        "seed": recipe.seed,
        "scale": recipe.scaled,
    }


def _scores(net: nn.Module, task: Task, world: World, step: int) -> dict[str, Any]:
    """Held-out source, the source's own test split if there is one, and every target in turn."""
    own, kept = {"source": task.validation} | ({"clean": task.clean} if task.clean else {}), Predictions()
    domains = {k: (s.images, s.labels) for k, s in own.items()}
    scores: dict[str, Any] = evaluate(net, domains, each=kept.keep, world=world, step=step)
    scores["targets"], scores["predictions"] = {}, kept
    for name, one in task.targets.items():  # one at a time: a target may be read from disk when it is asked for
        pair = {name: (one.images, one.labels)}
        scores["targets"] |= evaluate(net, pair, severities=task.severities, each=kept.keep, world=world, step=step)
    return scores
