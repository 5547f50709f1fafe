"""Peak memory of a maximisation phase by pool size, and speed of shuffled reads from disk.

    python -m benchmarks.memory --out benchmarks/memory.json

Images are 3 x 32 x 32 in 8 bits. The source of 5,000 lies in memory; the rest of the pool, and all
that the phase adds, is on disk. Each size is a process of its own: peak memory never falls again.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.measure import Spread, interleave, speedup, work
from meada.files import write_json
from meada.machine.environment import environment
from meada.methods import METHODS
from meada.methods.method import Context
from meada.pool import Pool

SOURCE, SHAPE, PIECE = 5_000, (3, 32, 32), 500
BUDGET = 16 << 20  # bytes of grown images that may stay in memory
SIZES = (10_000, 50_000, 200_000)
READ, BATCH = 20_000, 128  # images of the pools that are read shuffled, and how many at once


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options.add_argument("--out", type=Path)
    options.add_argument("--child", type=int, help="measure this size in this process")
    chosen = options.parse_args()
    if chosen.child:
        print(json.dumps(phase(chosen.child)))
        return
    sizes = [int(size) for size in chosen.sizes.split(",")]
    record = {
        "command": f"python -m benchmarks.memory --sizes {chosen.sizes}",
        "environment": environment(),
        "phases": [_in_a_process(size) for size in sizes],
        "reads": reads(READ),
    }
    print(json.dumps(record, indent=2))
    if chosen.out:
        write_json(chosen.out, record)


def phase(n: int) -> dict[str, Any]:
    """Peak resident memory before and after an ascent step on ``n`` images."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(prefix="meada-memory-") as folder:
        pool = filled(n, Path(folder), memory=BUDGET)
        net = nn.Sequential(nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(392, 10))
        method = METHODS["meada"](steps=1)
        before, began = peak_mb(), time.perf_counter()
        method.grow(net, pool, Context(pool_size=n))
        return {
            "pool": n,
            "grown": len(pool),
            "before_mb": before,
            "peak_mb": peak_mb(),
            "images_mb": sum(block.images.nbytes for block in pool.blocks) / 2**20,
            "seconds": time.perf_counter() - began,
        }


def filled(n: int, folder: Path | None, memory: int) -> Pool:
    """A pool of ``n`` images: the source and one block of perturbed copies."""
    images = torch.randint(256, (min(SOURCE, n), *SHAPE), dtype=torch.uint8)
    pool = Pool(images, torch.arange(len(images)) % 10, store="uint8", folder=folder, memory=memory)
    parents = torch.arange(n - len(images)) % len(images)
    growth = pool.grow(parents)
    for some in parents.split(PIECE):
        growth.write(pool.images(some))
    growth.close()
    return pool


def reads(n: int, rounds: int = 5) -> dict[str, Any]:
    """Time shuffled batches from a cached block on disk and from one in memory."""
    with tempfile.TemporaryDirectory(prefix="meada-memory-") as folder:
        pools = {
            "memory": filled(n, None, memory=1 << 40),
            "disk": filled(n, Path(folder), memory=0),
        }
        order = torch.randperm(n).split(BATCH)
        sides = {name: work(_read, pool, order) for name, pool in pools.items()}
        interleave(sides, 1)
        times = interleave(sides, rounds)
    return {
        "images": n,
        "batch": BATCH,
        "us_per_image": {k: 1e6 * Spread.of(t).median / n for k, t in times.items()},
        "disk_over_memory": vars(speedup(times["disk"], times["memory"])),
    }


def _read(pool: Pool, order: tuple[torch.Tensor, ...]) -> None:
    for index in order:
        pool.batch(index)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kilobytes on Linux


def _in_a_process(n: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", "--child", str(n)], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
