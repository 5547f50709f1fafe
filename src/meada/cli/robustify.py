"""``meada robustify``: a folder of one's own pictures in, a hardened model and the proof out."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from meada.robustify.pipeline import Outcome
    from meada.robustify.prepare import Prepared

LONG = 3600  # seconds above which a smaller plan is offered


def robustify(
    data: Annotated[Path, typer.Option(help="CLASS/*.jpg, DOMAIN/CLASS/*.jpg or a CSV file of path,label.")],
    out: Annotated[Path, typer.Option(help="The folder to write to; the same command carries on.")],
    network: Annotated[
        str | None,
        typer.Option(help="A name (meada list), FILE.py:function, module:function or timm:NAME."),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights to begin with: .safetensors or a state dict.")] = None,
    method: Annotated[str, typer.Option(help="What is compared with ERM.")] = "meada",
    test: Annotated[
        list[Path] | None,
        typer.Option(help="Pictures from elsewhere, never learnt from; more than once if need be."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Fit the plan to so much time.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and the order.", min=0)] = 0,
    side: Annotated[int | None, typer.Option(help="Resize pictures to this side, 28 to 512.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: --set plan.rounds=2.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Harden a classifier of your own pictures, and see what it gained.

    Trains ERM and the method for the same number of steps, tries both on held-out pictures, the
    fifteen corruptions, crafted shifts and your test folders, and writes model.safetensors,
    MODEL_CARD.md, report.html and the two runs.

    Example: meada robustify --data photos --test sketches --minutes 20 --out hardened
    """
    from functools import partial

    from meada.cli.progress import progress
    from meada.robustify.pipeline import carried_out, planned
    from meada.robustify.prepare import Asked

    asked = Asked(
        data=str(data.resolve()),
        network=_absolute(network or ""),
        weights=str(weights.resolve()) if weights else "",
        method=method,
        tests=tuple(str(path.resolve()) for path in test or []),
        minutes=minutes,
        seed=seed,
        side=side,
        changes=tuple(set_ or ()),
    )
    say = (lambda text: None) if quiet else partial(typer.echo, err=True)
    bar = partial(progress, quiet=quiet)
    try:
        plan = planned(asked, out, say=say, bar=bar)
        if not quiet:
            _print_plan(plan, minutes)
        outcome = carried_out(plan, out, bar=bar)
    except KeyboardInterrupt:
        typer.echo("meada: stopped; the same command carries on where it was", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        _print_outcome(outcome, out)


def _absolute(network: str) -> str:
    """A file is found again from anywhere."""
    file, colon, function = network.rpartition(":")
    return f"{Path(file).resolve()}:{function}" if colon and file.endswith(".py") else network


def _print_plan(plan: "Prepared", minutes: float | None) -> None:
    import sys

    from rich.console import Console
    from rich.table import Table

    from meada.robustify.budget import told

    console = Console(stderr=True)
    table = Table(title="Settings (each can be changed with --set key=value)")
    for name in ("key", "value", "why"):
        table.add_column(name)
    for key, (value, reason) in plan.settings.items():
        table.add_row(key, str(value), reason)
    console.print(table)
    total = sum(plan.seconds.values())
    parts = ", ".join(f"{name} {told(value)}" for name, value in plan.seconds.items())
    console.print(f"About {told(total)} by a few steps timed here ({parts}).")
    if minutes is not None and total > 60 * minutes:
        console.print(f"This is the smallest plan: it does not fit into {minutes:g} minutes.")
    elif minutes is None and total > LONG:
        words = shlex.join(["meada", *sys.argv[1:], "--minutes", "60"])
        console.print(f"That is over an hour. A smaller plan, in a new --out: {words}", soft_wrap=True)


def _print_outcome(outcome: "Outcome", out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from meada.robustify.robustness import rows, verdict

    method = outcome.after["method"]
    table = Table(title="Accuracy (%) before and after")
    for name in ("pictures", "n", "ERM", method, "change"):
        table.add_column(name, justify="left" if name == "pictures" else "right")
    before, after = rows(outcome.before), rows(outcome.after)
    for name, (y, n) in after.items():
        x = before[name][0]
        table.add_row(name, f"{n:,}", f"{x:.1f}", f"{y:.1f}", f"{y - x:+.1f}")
    console = Console()
    console.print(table)
    console.print(
        f"Both for {outcome.after['steps']:,} steps; corruptions and shifts on "
        f"{outcome.after['robustness']['note']}. One seed: small differences are noise."
    )
    console.print(verdict(outcome.before, outcome.after), soft_wrap=True)
    files = ", ".join(str(out / name) for name in ("model.safetensors", "MODEL_CARD.md", "report.html"))
    console.print(f"Written: {files}", soft_wrap=True)
