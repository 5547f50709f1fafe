"""``meada train``, ``robustify`` and ``quickstart``: a recipe, your own pictures, and a first comparison of methods."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meada.cli.early_checks import Quiet, RecipeName, Trust
from meada.errors import MeadaError
from meada.files import new_folder
from meada.machine.terminal import progress

if TYPE_CHECKING:
    from torch import Tensor


def train(
    recipe: RecipeName,
    out: Annotated[Path, typer.Option(help="The run's folder.")],
    seed: Annotated[int | None, typer.Option(help="Seed; the recipe's own by default.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set plan.rounds=2.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a run that stopped.")] = False,
    accept_different_bits: Annotated[
        bool,
        typer.Option("--accept-different-bits", help="Resume even if the torch version or number of threads differs."),
    ] = False,
    scale: Annotated[float | None, typer.Option(help="Fraction of data, epochs and rounds to keep, as in 0.1.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps; auto by default.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 (default) or bf16.")] = None,
    quiet: Quiet = False,
    track: Annotated[str, typer.Option(help="Log losses and scores to tensorboard, wandb or mlflow.")] = "",
    trust: Trust = None,
) -> None:
    """Train a network by a recipe.

    Example: meada train digits/meada --seed 3 --out runs/meada-3

    On several processes: torchrun --nproc-per-node 2 -m meada train digits/meada --out runs/two
    """
    from meada.integrations.tracking import following, tracker
    from meada.machine.distributed import world_from_env
    from meada.reports.page.text import print_record
    from meada.runs.recipe import load_recipe, method_of
    from meada.runs.run import run

    asked = {"seed": seed, "scale": scale, "device": device, "precision": precision}
    values = {name: value for name, value in asked.items() if value is not None}
    resolved, world = load_recipe(recipe, set_, trust=trust or (), **values), world_from_env()
    quiet = quiet or not world.is_main  # of several processes the first one speaks
    if not quiet:
        forward, backward = method_of(resolved).passes
        typer.echo(f"cost of a step per image: {forward:g} forward and {backward:g} backward passes (plain: 1 and 1)")
    callbacks = [tracker(track, out)] if track and world.is_main else []
    try:
        with (
            progress(resolved.name, quiet=quiet) as tell,
            following(out, tell, callbacks, resolved.model_dump()) as (tell_both, ended),
        ):
            record = run(resolved, out, resume=resume, accept_different_bits=accept_different_bits, tell=tell_both)
            ended(record)
    except KeyboardInterrupt:
        again = f"meada train {recipe} --out {out} --resume (and the same --seed and --set)"
        typer.echo(f"meada: stopped; the last checkpoint is kept. Resume with: {again}", err=True)
        raise typer.Exit(130) from None
    except MeadaError as error:
        if world.is_main:
            raise
        raise MeadaError(f"process {world.rank} of {world.size}: {error}") from None
    if not quiet:
        print_record(record, out)


def robustify(
    data: Annotated[Path, typer.Option(help="CLASS/*.jpg, DOMAIN/CLASS/*.jpg or a CSV file of path,label.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; repeat the same command to resume.")],
    test: Annotated[
        list[Path] | None, typer.Option(help="Pictures from another source to test on. May be repeated.")
    ] = None,
    network: Annotated[str | None, typer.Option(help="A name, FILE.py:function, module:function or timm:NAME.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights to start from: .safetensors or a state dict.")] = None,
    model: Annotated[Path | None, typer.Option(help="An existing model to compare with.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Time budget; default about 15 for 1,000 pictures.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split, weights and batches.", min=0)] = 0,
    side: Annotated[int | None, typer.Option(help="Resize pictures to this side, 28 to 512.")] = None,
    group: Annotated[str, typer.Option(help="Groups to keep together: a CSV column or a regular expression.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: --set steps=200.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print outcome.json instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no table.")] = False,
) -> None:
    """Train a robust classifier on your own pictures and report how much better it is than plain fine-tuning.

    Trains several candidates, scores them on held-out pictures under corruptions and shifts and on your test folders,
    and delivers the one with the best held-out results: model.safetensors, outcome.json, MODEL_CARD.md, report.html.

    Example: meada robustify --data photos --test sketches --minutes 20 --out better
    """
    from meada.robustify import robustify as run

    try:
        outcome = run(
            data, out, test=test or (), network=network, weights=weights, model=model, minutes=minutes, seed=seed,
            side=side, group=group, settings=set_ or (), quiet=quiet, say=partial(typer.echo, err=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("meada: stopped; repeat the same command to resume", err=True)
        raise typer.Exit(130) from None
    if json_:
        typer.echo(json.dumps(outcome.content, indent=2))
    elif not quiet:
        files = ", ".join(str(out / name) for name in ("model.safetensors", "outcome.json", "report.html"))
        typer.echo(f"{outcome.table()}\nWritten: {files}")


METHODS = ("erm", "meada", "tilted")
VIEWS = 4  # rows of hard views in the picture


def quickstart(
    out: Annotated[Path, typer.Option(help="Folder for runs, pictures and the report.")] = Path("quickstart"),
    seed: Annotated[int, typer.Option(help="Seed of all runs.")] = 0,
    ada: Annotated[bool, typer.Option("--ada", help="Also train ADA, which is ME-ADA without entropy.")] = False,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set plan.total_steps=500.")] = None,
    quiet: Quiet = False,
) -> None:
    """Train ERM, ME-ADA and tilted augmentation on 1,000 digits and compare them on five unseen domains.

    The same command continues an interrupted quickstart, or shows its results again. Example: meada quickstart --seed 1
    """
    from meada.reports.quickstart import show
    from meada.runs.recipe import load_recipe
    from meada.runs.run import run
    from meada.runs.run_folder import RunFolder

    new_folder(out)
    if any(out.iterdir()) and not any(out.glob("*-seed*")):
        raise MeadaError(f"--out must be a new folder or that of a quickstart, got {out} with other files")
    folders = {name: out / f"{name}-seed{seed}" for name in (*METHODS, *(["ada"] if ada else []))}
    for name, folder in folders.items():
        recipe = load_recipe(f"quickstart/{name}", set_, seed=seed)
        begun = RunFolder(folder).recipe.exists()
        with progress(f"{name:6}", quiet=quiet) as tell:
            run(recipe, folder, resume=begun, tell=tell)
    shown = _examples(RunFolder(folders["meada"]).load_recipe().data)
    show(folders, out, shown, _hard_views(folders["tilted"], shown["training"], seed))


def _examples(data: Mapping[str, Any]) -> "dict[str, Tensor]":
    """The first image of each class, in training and in every target."""
    from meada.pool import as_float
    from meada.runs.functions import make

    task, found = make("data", data), {}
    for name, part in {"training": task.train, **task.targets}.items():
        firsts = [int((part.labels == k).nonzero()[0]) for k in range(len(task.classes))]
        found[name] = as_float(part.images[firsts])
    return found


def _hard_views(run: Path, x: "Tensor", seed: int) -> "dict[str, Tensor]":
    """One image of each class, and hard views of it for the trained network."""
    import torch

    from meada.maximise import hard_views
    from meada.runs.network import load_model
    from meada.runs.run_folder import RunFolder

    folder, y = RunFolder(run), torch.arange(len(x))
    net, method = load_model(folder, len(x)), folder.load_recipe().method
    settings = {name: method[name] for name in ("space", "k", "hardness", "beta", "gamma")}
    views = {f"view {n}": hard_views(net, x, y, seed=seed, step=n, **settings) for n in range(1, VIEWS + 1)}
    return {"training": x, **views}
