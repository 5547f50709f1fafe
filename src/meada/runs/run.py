"""A run: recipe -> data -> network -> Algorithm 1 -> scores -> record; resumable at any moment."""

import shutil
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from meada.algorithm import begin, nothing, train
from meada.files import read_bytes, remove_drafts
from meada.machine.device import choose, in_precision
from meada.machine.distributed import World, process_group, synchronise_batch_norm
from meada.machine.environment import match_arithmetic
from meada.machine.terminal import Tell
from meada.networks.freezing import batch_norm_frozen
from meada.pool import Pool
from meada.runs.checkpoint import load_checkpoint, read_state
from meada.runs.functions import make
from meada.runs.network import fresh_network
from meada.runs.recipe import Recipe, method_of
from meada.runs.recorder import Recorder
from meada.runs.results import finish
from meada.runs.run_folder import RunFolder


def run(
    recipe: Recipe, out: Path, *, resume: bool = False, accept_different_bits: bool = False, tell: Tell = nothing
) -> dict[str, Any]:
    """Train a recipe in the folder ``out``; return the record.

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
    """``tell`` that also writes the position to the run's folder: at each new phase, and every few seconds."""
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
    """Content of the checkpoint, on every process; empty if there is none."""
    there = world.is_main and folder.checkpoint.exists()
    held = world.broadcast(read_bytes(folder.checkpoint) if there else b"")
    return read_state(folder.checkpoint, held) if held else {}


def clean(folder: RunFolder, *, keep_pool: bool) -> None:
    """Remove files that only an unfinished run needs."""
    shutil.rmtree(folder.path / "candidates", ignore_errors=True)
    folder.position.unlink(missing_ok=True)
    if not keep_pool:
        shutil.rmtree(folder.pool, ignore_errors=True)
