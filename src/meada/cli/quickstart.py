"""``meada quickstart``: train three methods on one source and compare them on five unseen domains."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from torch import Tensor

METHODS = ("erm", "ada", "meada")


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for runs, pictures and the report.")] = Path("quickstart"),
    seed: Annotated[int, typer.Option(help="Seed of all three runs.")] = 0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set plan.total_steps=500.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train ERM, ADA and ME-ADA on 1,000 digits and compare them on five unseen domains.

    The same command continues an interrupted quickstart, or shows its results again. Example: meada quickstart --seed 1
    """
    from meada.cli.progress import progress
    from meada.reports.quickstart import show
    from meada.runs.recipe import load_recipe
    from meada.runs.run import run
    from meada.runs.run_folder import RunFolder

    folders = {name: out / f"{name}-seed{seed}" for name in METHODS}
    for name, folder in folders.items():
        recipe = load_recipe(f"quickstart/{name}", set_, seed=seed)
        begun = RunFolder(folder).recipe.exists()
        with progress(f"{name:5}", quiet=quiet) as tell:
            run(recipe, folder, resume=begun, tell=tell)
    show(folders, out, _examples(RunFolder(folders["meada"]).load_recipe().data))


def _examples(data: "Mapping[str, Any]") -> "dict[str, Tensor]":
    """The first image of each class, in training and in every target."""
    from meada.pool import as_float
    from meada.runs.recipe import make

    task = make("data", data)
    parts = {"training": task.train, **task.targets}
    firsts = {n: [int((p.labels == k).nonzero()[0]) for k in range(len(task.classes))] for n, p in parts.items()}
    return {name: as_float(part.images[firsts[name]]) for name, part in parts.items()}
