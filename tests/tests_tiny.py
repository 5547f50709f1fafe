"""A network and a recipe so small that a run takes seconds; used by tests through their files."""

from pathlib import Path

from torch import nn

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
name = "{network}:tiny"
[method]
name = "{method}"
{settings}
[plan]
rounds = 2
min_steps = 6
total_steps = {total_steps}
batch_size = 16
[descent]
lr = 0.01
[evaluation]
every = 5
subset = 20
crafted = 10
"""
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


def write_recipe(
    folder: Path,
    *,
    method: str = "meada",
    settings: str = ASCENT,
    checkpoint_seconds: float = 0.0,
    total_steps: int = 20,
) -> Path:
    path = folder / "tiny.toml"
    path.write_text(
        RECIPE.format(
            network=Path(__file__),
            method=method,
            settings=settings,
            checkpoint_seconds=checkpoint_seconds,
            total_steps=total_steps,
        )
    )
    return path
