"""``meada corrupt``: write corrupted copies of a data set to measure robustness on."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer


def corrupt(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder of pictures (CLASS/*.png), a .npy file of uint8 images (N, H, W, 3), "
            "or a data set whose test split is corrupted: cifar10, cifar100."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to; the same command continues an interrupted one.")],
    corruptions: Annotated[
        str,
        typer.Option(help="Names, separated by commas; 'benchmark' (15), 'validation' (4) or 'all' (19)."),
    ] = "benchmark",
    severity: Annotated[str, typer.Option(help="Severities from 1 to 5, separated by commas.")] = "1,2,3,4,5",
    seed: Annotated[int, typer.Option(help="Seed of the random corruptions.")] = 0,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labels of a .npy file of images. [default: labels.npy next to it]"),
    ] = None,
    constants: Annotated[
        str | None,
        typer.Option(help="Strengths: cifar (for 32x32) or imagenet (for 224x224). [default: the nearer in size]"),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Crop and resize pictures of a folder to squares of this side.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes. [default: one per core]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print corruptions.json.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Write corrupted copies of a data set: fifteen corruptions at five severities.

    Arrays of images give the published CIFAR-C files (gaussian_noise.npy ..., labels.npy), folders
    give CORRUPTION/SEVERITY/CLASS/*.png; corruptions.json says how they were made, and
    corruptions.png shows them.

    Example: meada corrupt photos/ --size 224 --out photos-c --corruptions fog,snow --severity 3
    """
    from meada.cli.progress import progress
    from meada.corruptions.sources import open_source
    from meada.corruptions.write import Settings, write
    from meada.datasets.cifar import TEST_SPLITS

    settings = Settings(_names(corruptions), _severities(severity), seed, constants)
    opened = open_source(source, labels, size, TEST_SPLITS)
    with progress("corrupt", quiet=quiet or as_json) as tell:
        made = write(opened, out, settings, workers=_workers(workers), tell=tell)
    if as_json:
        typer.echo(json.dumps(made, indent=2))
    elif not quiet:
        count = made["images"] * len(settings.corruptions) * len(settings.severities)
        typer.echo(f"{count:,} corrupted images in {out} (frost: {made['frost']}); see corruptions.png")


def _workers(workers: int | None) -> int:
    return (os.cpu_count() or 1) if workers is None else workers


def _names(text: str) -> tuple[str, ...]:
    from meada.corruptions import CORRUPTIONS, VALIDATION

    groups = {"benchmark": CORRUPTIONS, "validation": VALIDATION, "all": CORRUPTIONS + VALIDATION}
    return groups.get(text) or tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def _severities(text: str) -> tuple[int, ...]:
    from meada.errors import MeadaError

    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise MeadaError(f"--severity must be numbers separated by commas, such as 1,3,5, got {text}") from None
