"""``meada reproduce`` and ``meada sweep``: sets of runs, for the paper's tables and for grids of settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meada.cli.early_checks import RecipeName, Trust
from meada.errors import MeadaError
from meada.files import new_folder
from meada.machine.terminal import progress

if TYPE_CHECKING:
    from meada.reproduce import Item


Engine = Annotated[str, typer.Option(help="local (this machine) or ray (a cluster).")]
Address = Annotated[str, typer.Option(help="HOST:PORT of a Ray cluster. [default: Ray starts one here]")]
Cores = Annotated[int, typer.Option(help="Cores per run, with --engine ray.")]


SETS = (
    "digits (Table 1), figure1, cifar10c, cifar100c (Table 3), cifar10c-small, figure2, pacs (Table 2), pacs-small, or "
    "sensitivity (a study of ME-ADA's settings)."
)


def reproduce(
    what: Annotated[str, typer.Argument(help=SETS)],
    methods: Annotated[str, typer.Option(help="Methods, separated by commas. [default: those of the paper]")] = "",
    seeds: Annotated[str, typer.Option(help="Number of seeds (0, 1, 2, ...); or by method: erm=10,ada=5.")] = "10",
    out: Annotated[Path | None, typer.Option(help="Folder of the runs. [default: results/SET]")] = None,
    jobs: Annotated[int, typer.Option(help="Number of runs at once; they share the cores.")] = 1,
    scale: Annotated[float, typer.Option(help="Fraction of each recipe's data, steps and rounds to keep.")] = 1.0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a key of every recipe.")] = None,
    timings: Annotated[list[Path] | None, typer.Option(help="More folders of runs to estimate hours from.")] = None,
    engine: Engine = "local",
    address: Address = "",
    cores: Cores = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs, hours and bytes, and stop.")] = False,
) -> None:
    """Run a table or a figure of the paper; the same command continues an interrupted set.

    Examples: meada reproduce digits --methods erm,meada --seeds 3 --jobs 2

    meada reproduce digits --seeds erm=10,meada=10,ada=5
    """
    from meada.reproduce.runner import refuse_settings
    from meada.reproduce.sets import FOLDERS, items_of, once, seeds_by_method

    refuse_settings(engine, jobs, cores, address, timings or [])
    changes = [*(set_ or []), *([f"scale={scale}"] if scale != 1 else [])]
    parts = seeds_by_method(seeds, [m for m in methods.split(",") if m])
    items = once(item for names, count in parts for item in items_of(what, names, count, changes))
    folder = out or Path("results") / FOLDERS.get(what, what)
    if dry_run:
        _list(items, folder, timings or [], jobs)
        return
    _run(items, folder, engine, jobs, address, cores, timings or [])


def _list(items: "Sequence[Item]", out: Path, timings: list[Path], jobs: int) -> None:
    from meada.reproduce.cost import expected_seconds, megabytes, time_left

    recorded = expected_seconds(items, (out, *timings))
    waiting = [item for item in items if not item.done(out)]
    tried = _tried([item for item in waiting if item.name not in recorded], jobs)
    known = {**tried, **recorded}
    sizes = [megabytes(item.recipe) for item in items]
    for item, size in zip(items, sizes, strict=True):
        state = "to run" if item in waiting else "done"
        hours = f"{known[item.name] / 3600:,.2f} h" if item.name in known else "hours unknown"
        about = "about " if item.name in tried else ""
        room = "bytes unknown: the data must be read first" if size is None else f"{size:,.0f} MB while it runs"
        typer.echo(f"{item.name}  {state}  {about}{hours}  {room}")
    most = sum(sorted(size or 0 for size in sizes)[-jobs:])
    left = time_left(waiting, {}, known, jobs)
    more = ", and runs whose size is unknown" if None in sizes else ""
    counts = f"{len(items)} runs, {len(items) - len(waiting)} done, {len(waiting)} to run"
    typer.echo(f"{counts}; {left}; up to {most:,.0f} MB at once{more}")


def _tried(items: "Sequence[Item]", jobs: int) -> dict[str, float]:
    """Estimate hours of runs without a record by timing a few steps with the number of threads per run."""
    if not items:
        return {}
    import torch

    from meada.reproduce.cost import estimated_seconds
    from meada.reproduce.runner import threads_each

    torch.set_num_threads(threads_each(jobs))
    with progress("no records yet") as tell:
        return estimated_seconds(items, tell)


def _run(
    items: "Sequence[Item]", out: Path, engine: str, jobs: int, address: str, cores: int, timings: Sequence[Path] = ()
) -> None:
    """Run on this machine or on a Ray cluster; list runs that another process trains, and failed ones."""
    new_folder(out)
    if engine == "ray":
        from meada.reproduce.on_ray import on_ray

        outcome = on_ray(items, out, say=typer.echo, address=address, cores=cores)
    else:
        from meada.reproduce.runner import reproduce

        outcome = reproduce(items, out, jobs=jobs, say=typer.echo, timings=timings)
    if outcome.elsewhere:
        names = ", ".join(outcome.elsewhere)
        typer.echo(f"{len(outcome.elsewhere)} runs are being trained by another process: {names}")
    if outcome.failed:
        reasons = "; ".join(f"{name} ({why})" for name, why in outcome.failed.items())
        raise MeadaError(f"{len(outcome.failed)} of {len(items)} runs failed: {reasons}")


def sweep(
    recipe: RecipeName,
    out: Annotated[Path, typer.Option(help="Folder of the runs.")],
    grid: Annotated[list[str] | None, typer.Option(help="Values of a key: beta=1,10,100. May be repeated.")] = None,
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
    from meada.reproduce.runner import refuse_settings
    from meada.reproduce.sets import sweep as items_of

    refuse_settings(engine, jobs, cores, address)
    items = items_of(recipe, grid or [], seeds, set_ or [], trust or ())
    if dry_run:
        for item in items:
            typer.echo("  ".join([item.name, "done" if item.done(out) else "to run", *item.changes]))
        return
    _run(items, out, engine, jobs, address, cores)
