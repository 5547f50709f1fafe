"""``meada train``: one run from a recipe."""

from pathlib import Path
from typing import Annotated

import typer

from meada.cli.options import Trust


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (meada list) or a TOML file.")],
    out: Annotated[Path, typer.Option(help="The run's folder.")],
    seed: Annotated[int | None, typer.Option(help="Seed; the recipe's own by default.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set plan.rounds=2.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Carry on a run that stopped.")] = False,
    accept_different_bits: Annotated[
        bool,
        typer.Option(
            "--accept-different-bits",
            help="Resume with another torch or number of threads than the run was begun with.",
        ),
    ] = False,
    scale: Annotated[float | None, typer.Option(help="A part of its data, epochs and rounds, such as 0.1.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps; auto by default.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 (default) or bf16.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    track: Annotated[str, typer.Option(help="Send its numbers to tensorboard, wandb or mlflow.")] = "",
    trust: Trust = None,
) -> None:
    """Train what a recipe says.

    Example: meada train digits/meada --seed 3 --out runs/meada-3

    On several processes: torchrun --nproc-per-node 2 -m meada train digits/meada --out runs/two
    """
    from meada.cli.progress import progress
    from meada.errors import MeadaError
    from meada.integrations.following import followed
    from meada.machine.distributed import foretold
    from meada.reports.page.terminal import print_record
    from meada.runs.recipe import load_recipe
    from meada.runs.run import run

    asked = {"seed": seed, "scale": scale, "device": device, "precision": precision}
    values = {name: value for name, value in asked.items() if value is not None}
    resolved, world = load_recipe(recipe, set_, trust=trust or (), **values), foretold()
    quiet = quiet or not world.first  # of several processes the first one speaks
    try:
        with (
            progress(resolved.name, quiet=quiet) as tell,
            followed(out, tell, track if world.first else "", resolved.model_dump()) as (told, ended),
        ):
            record = run(resolved, out, resume=resume, accept_different_bits=accept_different_bits, tell=told)
            ended(record)
    except KeyboardInterrupt:
        again = f"meada train {recipe} --out {out} --resume (and the same --seed and --set)"
        typer.echo(f"meada: stopped; the last checkpoint is kept. Go on with: {again}", err=True)
        raise typer.Exit(130) from None
    except MeadaError as error:
        if world.first:
            raise
        raise MeadaError(f"process {world.rank} of {world.size}: {error}") from None
    if not quiet:
        print_record(record, out)
