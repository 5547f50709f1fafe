"""``meada predict``: what a trained model says of pictures."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from meada.cli.options import Trust


def predict(
    model: Annotated[Path, typer.Argument(help="A run's folder, a robustify folder or its model.safetensors.")],
    images: Annotated[list[Path], typer.Argument(help="Pictures, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    trust: Trust = None,
) -> None:
    """Label, probability and entropy (in nats) of pictures.

    Example: meada predict hardened holiday/*.jpg --json
    """
    from meada.deploy.model import open_model
    from meada.deploy.predictions import pictures_in, predict_files
    from meada.errors import MeadaError

    opened = open_model(model, trust or ())
    said = predict_files(opened, pictures_in(images))
    if as_json:
        typer.echo(json.dumps([one.line() for one in said], indent=2))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{model} (entropy in nats, at most {math.log(len(opened.classes)):.2f})")
        for name in ("file", "label", "probability", "entropy"):
            table.add_column(
                name,
                justify="left" if name in ("file", "label") else "right",
                overflow="fold",  # a path is shown whole
            )
        for one in said:
            if not one.error:
                numbers = (f"{one.probability:.3f}", f"{one.entropy:.3f}")
                table.add_row(one.file, one.label, *numbers)
        Console().print(table)
    bad = [f"{one.file} {one.error}" for one in said if one.error]
    if bad:
        more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise MeadaError("; ".join(bad[:3]) + more)
