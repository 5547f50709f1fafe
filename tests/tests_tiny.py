"""Networks and a recipe so small that a run takes seconds; used by tests through their files."""

import os
import time
import tomllib
from pathlib import Path
from typing import Any

from torch import nn

from meada.runs.recipe import Recipe, load_recipe

SEED = int(os.environ.get("MEADA_SEED", 1))  # of random kills, damage and commands; others: docs/limits.md
RECIPE = """
name = "tiny"
checkpoint_seconds = {checkpoint_seconds}
[data]
name = "embedded"
train = 60
validation = 20
test = 20
targets = ["noisy", "blurred"]
[network]
name = "{network}"
[method]
name = "{method}"
{settings}
[plan]
rounds = 2
min_steps = {min_steps}
total_steps = {total_steps}
batch_size = {batch_size}
[descent]
lr = 0.01
[evaluation]
every = 5
subset = 20
crafted = 10
[pool]
keep = {keep}
"""
# A network as a file of its own, and settings of robustify with which a run takes seconds.
WITH_BATCH_NORM = """
from torch import nn

def tiny(num_classes):
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, stride=4), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Linear(196, 8), nn.ReLU(), nn.Linear(8, num_classes),
    )
"""
QUICK = ("steps=12", "trial_steps=2", "shifted=5", "severities=[3]")
ASCENT = "steps = 3\nstep_size = 1.0\nblock = 7"


def tiny(num_classes: int = 10) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 5, stride=4),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(196, 16),
        nn.ReLU(),
        nn.Linear(16, num_classes),
    )


def gated(num_classes: int = 10, gate: str = "") -> nn.Module:
    """Trains for some steps and then waits for the file ``gate``: a run that is surely not over yet."""
    net = tiny(num_classes)
    seen = [0]

    def wait(*_: Any) -> None:
        seen[0] += net.training
        while seen[0] > 8 and not Path(gate).exists():
            time.sleep(0.05)

    net.register_forward_pre_hook(wait)
    return net


def plain(num_classes: int = 10) -> nn.Module:
    """Nothing in it depends on how a batch is shared out; one layer is never reached."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 5, stride=4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(196, 16),
        nn.ReLU(),
        nn.Linear(16, num_classes),
    )
    net[0].register_module("unused", nn.Linear(2, 2))
    return net


def write_recipe(
    folder: Path,
    *,
    net: str = "tiny",
    method: str = "meada",
    settings: str = ASCENT,
    checkpoint_seconds: float = 0.0,
    min_steps: int = 6,
    total_steps: int = 20,
    batch_size: int = 16,
    keep: bool = False,
) -> Path:
    path = folder / f"{method}-{net}.toml"
    path.write_text(
        RECIPE.format(
            network=f"{Path(__file__)}:{net}",
            method=method,
            settings=settings,
            checkpoint_seconds=checkpoint_seconds,
            min_steps=min_steps,
            total_steps=total_steps,
            batch_size=batch_size,
            keep=str(keep).lower(),
        )
    )
    return path


def network_of(path: Path | str) -> str:
    """The code that a recipe names, which a person has to name too."""
    return str(tomllib.loads(Path(path).read_text())["network"]["name"])


def load_tiny(path: Path | str, changes: list[str] | None = None, **values: Any) -> Recipe:
    return load_recipe(str(path), changes, trust=[network_of(path)], **values)
