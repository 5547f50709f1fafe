"""Networks and recipes for runs on several processes."""

from pathlib import Path

from torch import nn

RECIPE = """
name = "many"
checkpoint_seconds = 0.0
[data]
name = "embedded"
train = 60
validation = 20
test = 20
targets = ["noisy", "blurred"]
[network]
name = "{network}:{net}"
[method]
name = "{method}"
{settings}
[plan]
rounds = 2
min_steps = {min_steps}
total_steps = {total_steps}
batch_size = 14
[descent]
lr = 0.01
[evaluation]
every = 5
subset = 20
crafted = 10
[pool]
keep = true
"""
ASCENT = "steps = 3\nstep_size = 1.0\nblock = 7"


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


def batch_normed(num_classes: int = 10) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 5, stride=4),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(196, num_classes),
    )


def write_recipe(
    folder: Path,
    *,
    net: str = "plain",
    method: str = "meada",
    settings: str = ASCENT,
    min_steps: int = 6,
    total_steps: int = 20,
) -> Path:
    path = folder / f"{method}-{net}.toml"
    path.write_text(
        RECIPE.format(
            network=Path(__file__),
            net=net,
            method=method,
            settings=settings,
            min_steps=min_steps,
            total_steps=total_steps,
        )
    )
    return path


def main() -> None:
    """Several recipes one after the other, in float64: a start of torch is what costs."""
    import sys

    import torch

    from meada.distributed import joined
    from meada.recipe import load_recipe
    from meada.run import run

    torch.set_default_dtype(torch.float64)
    with joined(torch.device("cpu")):
        for recipe in sys.argv[2:]:
            run(load_recipe(recipe), Path(sys.argv[1]) / Path(recipe).stem)
    print("threads left:", *threads())


def threads() -> list[str]:
    """Names of this process's threads, as Linux keeps them."""
    return sorted((task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())


if __name__ == "__main__":
    main()
