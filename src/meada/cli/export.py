"""``meada export``: a trained model for other runtimes."""

from pathlib import Path
from typing import Annotated

import typer

from meada.cli.options import Trust


def export(
    model: Annotated[Path, typer.Argument(help="A run's folder, a robustify folder or its model.safetensors.")],
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    trust: Trust = None,
) -> None:
    """Write a model as ONNX, after a check that ONNX Runtime gives the same logits.

    Images go in as pixels in [0, 1], any number at a time; normalisation and class names are in the
    file.

    Example: meada export hardened --onnx hardened.onnx
    """
    from meada.deploy.model import open_model
    from meada.deploy.onnx import export_onnx
    from meada.machine.terminal import printable

    opened = open_model(model, trust or ())
    checked = export_onnx(opened, onnx)
    real = f"{checked.real} of them real" if checked.real else "all of them random"
    typer.echo(
        f"{printable(onnx)}: images (batch, 3, {opened.side}, {opened.side}) to logits of "
        f"{len(opened.classes)} classes; ONNX Runtime agrees to {checked.difference:.1e} on "
        f"{checked.images} images, {real}"
    )
