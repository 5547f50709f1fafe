"""Speedup from channels-last weights and folded batch norms in fine-tuning, the ascent and scoring.

    OMP_WAIT_POLICY=passive python -m benchmarks.layout --out benchmarks/layout.json

`layout.json` is of a machine with AVX2, `layout-avx512.json` of one with AVX-512 (`--threads 1 --rounds 5`).

Sides are timed in turn in one process by the processor's clock, with one and with two threads; idle threads sleep, so
that the clock counts work alone. `fine-tuning`: one step (forward, backward, SGD) of EfficientNet-Lite0, batch norm
frozen, 32 pictures of 128x128, against a plain loop over the published implementation. `perturb`: the library's call on
a network in PyTorch's own layout, against the same ascent without channels-last copies and against a recipe's network.
`scoring`: the passes that score the candidates of `hard_views`, against bare forward passes of a recipe's network.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.measure import Side, interleave, scaled, speedup, work
from meada.files import write_json
from meada.machine.environment import environment
from meada.maximise import perturb, scoring
from meada.networks import NETWORKS
from meada.networks.freezing import batch_norm_frozen, frozen
from meada.objective import Objective

ASCENTS = {"lenet": (128, 32), "allconv": (8, 32), "wideresnet16_1": (16, 32)}  # images, pixels
CANDIDATES = 2


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", choices=("fine-tuning", "perturb", "scoring"))
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    found = {}
    for threads in chosen.threads:
        for name, case in cases(chosen.only, threads, chosen.rounds):
            found[f"{name}, threads {threads}"] = case
            print(name, threads, {k: round(one["median"], 2) for k, one in case["ratios"].items()}, flush=True)
            if chosen.out:
                about = {"command": "python -m benchmarks.layout", "environment": environment()}
                write_json(chosen.out, {**about, "cases": found})


def cases(only: str | None, threads: int, rounds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    if only in (None, "fine-tuning"):
        yield "fine-tuning efficientnet_lite0", measured(fine_tuning(), "plain", rounds)
    for name, (n, side) in ASCENTS.items():
        if only in (None, "perturb"):
            yield f"perturb {name}", measured(ascent(name, n, side), "own layout", rounds)
        if only in (None, "scoring"):
            yield f"scoring {name}", measured(passes(name, n, side), "bare", rounds)


def measured(sides: dict[str, Side], base: str, rounds: int) -> dict[str, Any]:
    """Seconds of every side and its speedup over ``base``; the first round is a warm-up."""
    times = {name: one[1:] for name, one in interleave(sides, rounds + 1, clock=time.process_time).items()}
    spread = lambda one: {"median": one.median, "low": one.low, "high": one.high}
    others = {name: one for name, one in times.items() if name != base}
    return {
        "seconds": {name: spread(scaled(one, 1.0)) for name, one in times.items()},
        "ratios": {f"{name} over {base}": spread(speedup(times[base], one)) for name, one in others.items()},
        "fastest": {f"{name} over {base}": min(times[base]) / min(one) for name, one in others.items()},
    }


def fine_tuning() -> dict[str, Side]:
    x, y = torch.rand(32, 3, 128, 128), torch.randint(7, (32,))
    published = EfficientNet.from_name("efficientnet-lite0", image_size=128, num_classes=7)
    ours = NETWORKS["efficientnet_lite0"](num_classes=7)
    return {"plain": work(step(published, (255 * x - 127) / 128, y)), "meada": work(step(ours, x, y))}


def step(net: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, nesterov=True)

    def once() -> None:
        with batch_norm_frozen(net.train()):
            optimiser.zero_grad()
            cross_entropy(net(x), y).backward()
            optimiser.step()

    return once


def ascent(name: str, n: int, side: int) -> dict[str, Side]:
    net, x, y = subject(name, n, side)
    recipe = deepcopy(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def climb(of: nn.Module, copies: bool = True) -> None:
        with nullcontext() if copies else without_copies():
            perturb(of, x, y, beta=1.0, gamma=1 / 1024, step_size=1 / 32, steps=4)

    return {"own layout": work(climb, net, False), "perturb": work(climb, net), "recipe": work(climb, recipe)}


def passes(name: str, n: int, side: int) -> dict[str, Side]:
    net, x, y = subject(name, n, side)
    recipe = deepcopy(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.no_grad()
    def score() -> None:
        with scoring(net, x, y, Objective(beta=1.0, gamma=0.0)) as of:
            for _ in range(CANDIDATES):
                of(x)

    @torch.no_grad()
    def bare() -> None:
        with frozen(recipe):
            for _ in range(CANDIDATES):
                recipe(x)

    return {"bare": work(bare), "scoring": work(score)}


def subject(name: str, n: int, side: int) -> tuple[nn.Module, Tensor, Tensor]:
    return NETWORKS[name](num_classes=10), torch.rand(n, 3, side, side), torch.randint(10, (n,))


@contextmanager
def without_copies() -> Iterator[None]:
    with mock.patch("meada.networks.freezing._weight_to_convert", lambda module: None):
        yield


if __name__ == "__main__":
    main()
