"""``meada quickstart``: train three methods on one source and compare them on five unseen domains."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from torch import Tensor

METHODS = ("erm", "meada", "tilted")
VIEWS = 4  # rows of hard views in the picture


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for runs, pictures and the report.")] = Path("quickstart"),
    seed: Annotated[int, typer.Option(help="Seed of all runs.")] = 0,
    ada: Annotated[bool, typer.Option("--ada", help="Also train ADA, which is ME-ADA without entropy.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set plan.total_steps=500.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train ERM, ME-ADA and tilted augmentation on 1,000 digits and compare them on five unseen domains.

    The same command continues an interrupted quickstart, or shows its results again. Example: meada quickstart --seed 1
    """
    from meada.cli.progress import progress
    from meada.reports.quickstart import show
    from meada.runs.recipe import load_recipe
    from meada.runs.run import run
    from meada.runs.run_folder import RunFolder

    folders = {name: out / f"{name}-seed{seed}" for name in (*METHODS, *(["ada"] if ada else []))}
    for name, folder in folders.items():
        recipe = load_recipe(f"quickstart/{name}", set_, seed=seed)
        begun = RunFolder(folder).recipe.exists()
        with progress(f"{name:6}", quiet=quiet) as tell:
            run(recipe, folder, resume=begun, tell=tell)
    shown = _examples(RunFolder(folders["meada"]).load_recipe().data)
    show(folders, out, shown, _hard_views(folders["tilted"], shown["training"], seed))


def _examples(data: "Mapping[str, Any]") -> "dict[str, Tensor]":
    """The first image of each class, in training and in every target."""
    from meada.pool import as_float
    from meada.runs.recipe import make

    task = make("data", data)
    parts = {"training": task.train, **task.targets}
    firsts = {n: [int((p.labels == k).nonzero()[0]) for k in range(len(task.classes))] for n, p in parts.items()}
    return {name: as_float(part.images[firsts[name]]) for name, part in parts.items()}


def _hard_views(run: Path, x: "Tensor", seed: int) -> "dict[str, Tensor]":
    """One image of each class, and views of it that the trained network finds hard."""
    import torch

    from meada.maximise import hard_views
    from meada.runs.run import load_model
    from meada.runs.run_folder import RunFolder

    folder, y = RunFolder(run), torch.arange(len(x))
    net, method = load_model(folder, len(x)), folder.load_recipe().method
    settings = {name: method[name] for name in ("space", "k", "hardness", "beta", "gamma")}
    views = {f"view {n}": hard_views(net, x, y, seed=seed, step=n, **settings) for n in range(1, VIEWS + 1)}
    return {"training": x, **views}
