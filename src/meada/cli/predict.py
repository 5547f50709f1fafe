"""``meada predict``: what a trained model says of pictures."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meada.cli.options import Trust

if TYPE_CHECKING:
    from meada.deploy.model import Model
    from meada.deploy.predictions import Prediction


def predict(
    model: Annotated[Path, typer.Argument(help="A run's folder, a robustify folder or its model.safetensors.")],
    images: Annotated[list[Path], typer.Argument(help="Pictures, folders of them, or quoted patterns ('*.jpg').")],
    top: Annotated[int, typer.Option(help="Labels per picture, the likeliest first.", min=1)] = 1,
    abstain: Annotated[
        float | None,
        typer.Option(
            help="Entropy (nats) above which no label is given; by default what the model was given, if anything.",
            min=0,
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    trust: Trust = None,
) -> None:
    """Label, probability and entropy (in nats) of pictures.

    Example: meada predict hardened holiday/*.jpg --json
    """
    from meada.deploy.model import open_model
    from meada.deploy.predictions import pictures_in, predict_files
    from meada.errors import MeadaError
    from meada.files import json_text

    if abstain is not None and not abstain >= 0:
        raise MeadaError(f"--abstain must be 0 nats or more, got {abstain:g}")
    opened = open_model(model, trust or ())
    limit = opened.abstain_entropy if abstain is None else abstain
    said = predict_files(opened, pictures_in(images), top)
    if csv:
        _write_csv(csv, said, limit, top)
    if as_json:
        typer.echo(json_text([one.line(limit) for one in said], indent=2))
    elif not csv:
        _print(opened, said, limit)
    bad = [f"{one.file} {one.error}" for one in said if one.error]
    if bad:
        more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise MeadaError("; ".join(bad[:3]) + more)


def _write_csv(path: Path, said: "list[Prediction]", limit: float | None, top: int) -> None:
    from csv import writer
    from io import StringIO

    from meada.files import write_text

    text = StringIO()
    rows = writer(text)
    ranks = [name for k in range(2, top + 1) for name in (f"label_{k}", f"probability_{k}")]
    rows.writerow(["file", "label", "probability", "entropy", "abstain", *ranks, "error"])
    for one in said:
        flat = [value for pair in one.best[1:] for value in pair]
        told = [one.label, one.probability, one.entropy] if one.best else ["", "", ""]
        unsure = "" if limit is None or one.error else str(one.entropy > limit).lower()
        rows.writerow([one.file, *told, unsure, *flat, *[""] * (len(ranks) - len(flat)), one.error])
    write_text(path, text.getvalue())


def _print(model: "Model", said: "list[Prediction]", limit: float | None) -> None:
    from rich.table import Table

    from meada.machine.terminal import SafeConsole

    table = Table(title=f"{model.path} (entropy in nats, at most {math.log(len(model.classes)):.2f})")
    for name in ("file", "label", "probability", "entropy"):
        left = name in ("file", "label")
        table.add_column(name, justify="left" if left else "right", overflow="fold")  # a path is shown whole
    for one in said:
        if not one.error:
            unsure = limit is not None and one.entropy > limit
            labels = "\n".join(label for label, _ in one.best)
            chances = "\n".join(f"{p:.3f}" for _, p in one.best)
            table.add_row(one.file, f"(unsure) {labels}" if unsure else labels, chances, f"{one.entropy:.3f}")
    SafeConsole().print(table)
