"""``meada robustify``: your own pictures in, the best of several models and the evidence out."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer


def robustify(
    data: Annotated[Path, typer.Option(help="CLASS/*.jpg, DOMAIN/CLASS/*.jpg or a CSV file of path,label.")],
    out: Annotated[Path, typer.Option(help="The folder to write to; the same command carries on.")],
    test: Annotated[list[Path] | None, typer.Option(help="Pictures from elsewhere to test on; repeatable.")] = None,
    network: Annotated[str | None, typer.Option(help="A name, FILE.py:function, module:function or timm:NAME.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights to start from: .safetensors or a state dict.")] = None,
    model: Annotated[Path | None, typer.Option(help="A model of your own, scored next to the candidates.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stay within this time; default 15 for 1,000 pictures.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and the order.", min=0)] = 0,
    side: Annotated[int | None, typer.Option(help="Resize pictures to this side, 28 to 512.")] = None,
    group: Annotated[str, typer.Option(help="Never divided by the split: a CSV column or a pattern on the path.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a setting: --set steps=200.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print outcome.json instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")] = False,
) -> None:
    """Train a classifier of your own pictures that holds up under domain shift, with the evidence.

    Trains plain fine-tuning and hardened candidates, scores all of them on held-out pictures under corruptions and
    shifts and on your test folders, and writes the one that the held-out evidence favours: model.safetensors,
    outcome.json, MODEL_CARD.md and report.html.

    Example: meada robustify --data photos --test sketches --minutes 20 --out better
    """
    from meada.robustify import robustify as run

    try:
        outcome = run(
            data, out, test=test or (), network=network, weights=weights, model=model, minutes=minutes, seed=seed,
            side=side, group=group, settings=set_ or (), quiet=quiet, say=partial(typer.echo, err=True),
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("meada: stopped; the same command carries on where it was", err=True)
        raise typer.Exit(130) from None
    if json_:
        typer.echo(json.dumps(outcome.content, indent=2))
    elif not quiet:
        files = ", ".join(str(out / name) for name in ("model.safetensors", "outcome.json", "report.html"))
        typer.echo(f"{outcome.table()}\nWritten: {files}")
