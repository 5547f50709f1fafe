"""Cost of making a view in each space, next to a forward pass of LeNet at 32x32 and of EfficientNet-Lite0 at 128x128.

    OMP_NUM_THREADS=1 python -m benchmarks.spaces --rounds 31 --out benchmarks/spaces-avx512.json

`spaces.json` is the record of an older machine (AVX2), made before views became cheaper and with two rounds of warm-up.

Views and forward passes of the same images are timed in turn in one process, by the processor's clock. A view costs a
fixed number of small calls besides its pixels, so that a batch of 32 (the digits' recipes) and one of 128 differ.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Side, Spread, interleave, speedup, work
from meada.files import write_json
from meada.machine.environment import environment
from meada.networks import NETWORKS
from meada.spaces import SPACES, Space, view_random

CASES = {  # network, side, batch
    "lenet": ("lenet", 32, 32),
    "lenet, batch of 128": ("lenet", 32, 128),
    "efficientnet_lite0": ("efficientnet_lite0", 128, 32),
}
CLASSES = 10
WARM_UP = 30  # the first convolution of each shape, here of each number of images, has to be prepared
PRIORS = [name for name in SPACES if name != "pixels"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    record = {
        "command": f"python -m benchmarks.spaces --rounds {chosen.rounds}",
        "environment": environment(),
        "networks": {name: measured(name, chosen.rounds) for name in CASES},
    }
    print(json.dumps(record, indent=2))
    if chosen.out:
        write_json(chosen.out, record)


def measured(case: str, rounds: int) -> dict[str, Any]:
    """Seconds of a forward pass and of a batch of views, and their ratio."""
    network, side, batch = CASES[case]
    x = torch.rand(batch, 3, side, side)
    sides = {"forward": forward(network, CLASSES, x)} | {name: views(SPACES[name](), x) for name in PRIORS}
    interleave(sides, WARM_UP)
    taken = interleave(sides, rounds, clock=time.process_time)
    return {
        "side": side,
        "batch": batch,
        "forward_seconds": vars(Spread.of(taken["forward"])),
        "share_of_forward": {name: vars(speedup(taken[name], taken["forward"])) for name in PRIORS},
    }


def forward(network: str, classes: int, x: torch.Tensor) -> Side:
    net = NETWORKS[network](num_classes=classes).eval()
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    laid_out = x.contiguous(memory_format=torch.channels_last)

    def run() -> None:
        with torch.inference_mode():
            net(laid_out)

    return work(run)


def views(space: Space, x: torch.Tensor) -> Side:
    """Make views at a new step in each call, to average over cheap and expensive transformations."""
    steps = iter(range(1_000_000))

    def run() -> None:
        step = next(steps)
        space.view(x, view_random(0, step, 0, np.arange(len(x))), step)

    return work(run)


if __name__ == "__main__":
    main()
