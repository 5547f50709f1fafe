"""``meada reproduce``: the paper's tables and figures as sets of runs."""

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    what: Annotated[str, typer.Argument(help="digits (Table 1) or figure1.")],
    methods: Annotated[str, typer.Option(help="Methods, with commas; all by default.")] = "",
    seeds: Annotated[int, typer.Option(help="Seeds 0, 1, ..., one less than this.")] = 10,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at once; they share the cores out.")] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key of every recipe.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and stop.")] = False,
) -> None:
    """Run a table or a figure of the paper; started again it carries on where it was.

    Example: meada reproduce digits --methods erm,meada --seeds 3 --jobs 2
    """
    from meada.errors import MeadaError
    from meada.reproduce import expected_seconds, items_of
    from meada.reproduce import reproduce as run_all

    if jobs < 1:
        raise MeadaError(f"--jobs {jobs}: at least one is needed")
    folder = out or Path("results") / ("digits" if what == "figure1" else what)
    items = items_of(what, [m for m in methods.split(",") if m], seeds, set_ or [])
    if dry_run:
        known = expected_seconds(items, folder)
        for item in items:
            state = "done" if item.done(folder) else "to run"
            hours = f"{known[item.name] / 3600:.2f} h" if item.name in known else "hours unknown"
            typer.echo(f"{item.name}  {state}  {hours}  {_megabytes(item):,.0f} MB while it runs")
        return
    failed = run_all(items, folder, jobs=jobs, say=typer.echo)
    if failed:
        raise MeadaError(f"{len(failed)} of {len(items)} runs failed: {', '.join(failed)}")


def _megabytes(item: object) -> float:
    """The pool's new blocks: what a run needs on disk beyond a few copies of its weights."""
    from meada.methods import Method
    from meada.recipe import make
    from meada.reproduce import Item

    assert isinstance(item, Item)
    recipe = item.recipe
    method: Method = make("method", recipe.method)
    n = int(recipe.data.get("train", 0))
    pixel = 1 if recipe.pool.store == "uint8" else 4
    return (method.growth(n, recipe.plan.rounds) - n) * 3 * 32 * 32 * pixel / 1e6
