"""``meada perturb``: harder copies of pictures as files, for any other trainer."""

from pathlib import Path
from typing import Annotated

import typer

from meada.cli.options import Trust


def perturb(
    source: Annotated[
        Path,
        typer.Argument(help="A run's or robustify folder; or, with --model, a folder of pictures."),
    ],
    out: Annotated[Path, typer.Option(help="The new folder to write CLASS/*.png to.")],
    model: Annotated[Path | None, typer.Option(help="Whose network and settings, if SOURCE is pictures.")] = None,
    limit: Annotated[int | None, typer.Option(help="So many pictures at most, spread over the classes.", min=1)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    trust: Trust = None,
) -> None:
    """Write an adversarial set: one maximisation round by the run's own method and settings.

    Of a run's folder, the pictures that it learnt from are made harder for its model.

    Example: meada perturb hardened --out harder
    """
    from meada.cli.progress import progress
    from meada.deploy.adversarial import samples_of, write_adversarial
    from meada.deploy.model import open_model
    from meada.machine.terminal import printable

    opened = open_model(model or source, trust or ())
    with progress("perturb", quiet=quiet) as tell:
        samples = samples_of(opened, source if model else None, limit)
        written = write_adversarial(
            opened, samples, out, source=str(source), tell=lambda done, n: tell("maximise", done, n)
        )
    if not quiet:
        typer.echo(
            f"{written.images:,} pictures in {written.classes} classes in {printable(out)}; the largest "
            f"change of a pixel is {written.mean_change:.1f} of 255 levels on average, "
            f"{written.largest_change:.1f} at most"
        )
