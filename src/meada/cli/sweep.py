"""``meada sweep``: run one recipe over a grid of settings and seeds."""

from pathlib import Path
from typing import Annotated

import typer

from meada.cli.options import Trust

Engine = Annotated[str, typer.Option(help="local (this machine) or ray (a cluster).")]
Address = Annotated[str, typer.Option(help="HOST:PORT of a Ray cluster. [default: Ray starts one here]")]
Cores = Annotated[int, typer.Option(help="Cores per run, with --engine ray.")]


def sweep(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (meada list) or a TOML file.")],
    out: Annotated[Path, typer.Option(help="Folder of the runs.")],
    grid: Annotated[
        list[str] | None,
        typer.Option(help="Values of a key, such as beta=1,10,100. Repeat for further keys."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds; they are 0, 1, 2, ...")] = 1,
    engine: Engine = "local",
    address: Address = "",
    jobs: Annotated[int, typer.Option(help="Number of runs at once on this machine.")] = 1,
    cores: Cores = 1,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key of every run.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and stop.")] = False,
    trust: Trust = None,
) -> None:
    """Run a recipe for every combination of the grid's values; the same command continues an interrupted sweep.

    Example: meada sweep digits/meada --grid beta=1,10,100 --seeds 5 --out results/beta
    """
    from meada.cli.reproduce import _report
    from meada.reproduce.engines import refuse_settings, run_on
    from meada.reproduce.sweep import sweep as items_of

    refuse_settings(engine, jobs, cores, address)
    items = items_of(recipe, grid or [], seeds, set_ or [], trust or ())
    if dry_run:
        for item in items:
            typer.echo(f"{item.name}  {'done' if item.done(out) else 'to run'}")
        return
    outcome = run_on(engine, items, out, say=typer.echo, jobs=jobs, address=address, cores=cores)
    _report(outcome, len(items))
