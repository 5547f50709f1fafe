"""Time both phases on one process and on two, one thread each: WideResNet-40-2, batches of 128.

    python -m benchmarks.processes --out benchmarks/processes.json --markdown

In each round the first process works alone while the other waits, then both share the same work:
one run, in turn, so that whatever slows the machine down slows both down. The ideal is 2.
``--markdown`` renews the table in docs/scaling.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from meada.files import write_json, write_text
from meada.machine.distributed import ParallelLoss, World, process_group
from meada.machine.environment import environment
from meada.methods.meada import meada
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.minimise import Training, minimise
from meada.networks import NETWORKS
from meada.pool import Pool

BATCH, CLASSES = 128, 10
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN, END = "<!-- processes: begin -->", "<!-- processes: end -->"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--steps", type=int, default=4, help="minimisation steps per round")
    options.add_argument("--blocks", type=int, default=4, help="ascent blocks per round")
    options.add_argument("--ascent", type=int, default=3, help="T_max")
    options.add_argument("--network", default="wideresnet")
    options.add_argument("--out", type=Path)
    options.add_argument("--markdown", action="store_true", help="update the table in the docs")
    options.add_argument("--child", type=Path, help="file for the times of the first process")
    chosen = options.parse_args()
    if chosen.child:
        child(chosen)
        return
    result = started(chosen)
    if chosen.out:
        write_json(chosen.out, result)
    print(table(result))
    if chosen.markdown:
        before, rest = PAGE.read_text().split(BEGIN)
        write_text(PAGE, f"{before}{BEGIN}\n{table(result)}\n{END}{rest.split(END)[1]}")


def started(chosen: argparse.Namespace) -> dict[str, Any]:
    names = ("rounds", "steps", "blocks", "ascent", "network")
    words = [f"--{name}={getattr(chosen, name)}" for name in names]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.json"
        launch = ["torch.distributed.run", "--standalone", f"--nproc-per-node={chosen.processes}"]
        command = [sys.executable, "-m", *launch, "-m", "benchmarks.processes", f"--child={path}", *words]
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        subprocess.run(command, env={**os.environ, **one_thread}, check=True)
        return json.loads(path.read_text())


def child(chosen: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = NETWORKS[chosen.network](num_classes=CLASSES).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    n = BATCH * chosen.blocks
    images = torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(0, CLASSES, (n,))
    with process_group(torch.device("cpu")) as world, tempfile.TemporaryDirectory() as own:
        folder = Path(world.broadcast(own.encode()).decode())
        sides = {
            "minimise": descents(net, Pool(images, labels), chosen.steps, world),
            "maximise": ascents(net, (images, labels), chosen.ascent, folder, world),
        }
        times = measured(sides, chosen.rounds, world)
        exchange = all_reduce(sum(p.numel() for p in net.parameters()), world)
        world.barrier()
        if not world.is_main:
            return
        work = {"minimise": BATCH * chosen.steps, "maximise": n * chosen.ascent}
        write_json(chosen.child, {
            "environment": {**environment(), "processes": world.size},
            "network": chosen.network,
            "batch": BATCH,
            "parameters": sum(p.numel() for p in net.parameters()),
            "all_reduce_seconds": exchange,
            "images": work,
            "seconds": times,
        })  # fmt: skip


def descents(net: nn.Module, pool: Pool, steps: int, world: World) -> dict[str, Callable[[], None]]:
    descent = Descent(name="sgd", lr=0.01, momentum=0.9)

    def side(own: World) -> Callable[[], None]:
        mine = deepcopy(net)
        training = Training(mine, descent.build(mine.parameters()))
        loss = meada().loss
        many = ParallelLoss(mine, training.parts.modules, loss, own) if own.size > 1 else None
        context = Context(world=own, total_steps=10**9)

        def work() -> None:
            until = training.step + steps
            for _ in minimise(
                training, pool, loss, descent, context,
                parallel_loss=many, until=until, batch_size=BATCH,
            ):  # fmt: skip
                pass

        return work

    return {"alone": side(World()), "together": side(world)}


def ascents(
    net: nn.Module,
    source: tuple[torch.Tensor, torch.Tensor],
    steps: int,
    folder: Path,
    world: World,
) -> dict[str, Callable[[], None]]:
    method = meada(steps=steps, block=BATCH)

    def side(name: str, own: World) -> Callable[[], None]:
        times = 0

        def work() -> None:
            nonlocal times
            times += 1
            pool = Pool(*source, store="uint8", folder=folder / name / str(times))
            method.grow(net, pool, Context(world=own, pool_size=len(pool)))

        return work

    return {"alone": side("alone", World()), "together": side("together", world)}


def measured(
    sides: dict[str, dict[str, Callable[[], None]]], rounds: int, world: World
) -> dict[str, dict[str, list[float]]]:
    """Interleaved times; the first round is a warm-up."""
    times: dict[str, dict[str, list[float]]] = {phase: {how: [] for how in both} for phase, both in sides.items()}
    for number in range(rounds + 1):
        for phase, both in sides.items():
            for how, work in both.items():
                world.barrier()
                began = time.perf_counter()
                if how == "together" or world.is_main:
                    work()
                took = time.perf_counter() - began
                if number:
                    times[phase][how].append(took)
    return times


def all_reduce(count: int, world: World, times: int = 10) -> float:
    """Median seconds of one all-reduce of all gradients."""
    took = []
    for _ in range(times):
        values = torch.zeros(count)
        world.barrier()
        began = time.perf_counter()
        world.all_reduce_sum(values)
        took.append(time.perf_counter() - began)
    return median(took)


def table(result: dict[str, Any]) -> str:
    n, where = result["environment"]["processes"], result["environment"]
    lines = [
        f"| phase | images/s on 1 process | on {n} | ratio (lowest to highest round) | rounds |",
        "|---|---|---|---|---|",
    ]
    for phase, times in result["seconds"].items():
        images = result["images"][phase]
        ratios = [a / b for a, b in zip(times["alone"], times["together"], strict=True)]
        rates = [images / median(times[how]) for how in ("alone", "together")]
        spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(f"| {phase} | {rates[0]:.1f} | {rates[1]:.1f} | {spread} | {len(ratios)} |")
    exchange = 1000 * result["all_reduce_seconds"]
    return "\n".join([
        *lines,
        "",
        f"{result['network']}, {result['parameters']:,} weights, batches and blocks of "
        f"{result['batch']}, one thread a process, {where['processor']}; one exchange of all "
        f"gradients alone: {exchange:.1f} ms. An image of the maximisation phase is one ascent "
        "step of one image.",
    ])  # fmt: skip


if __name__ == "__main__":
    main()
