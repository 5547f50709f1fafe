"""``meada data`` and ``meada corrupt``: list, check, download and corrupt data sets."""

import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meada.cli.early_checks import Json, Quiet
from meada.errors import MeadaError
from meada.files import data_root
from meada.machine.terminal import SafeConsole, progress

if TYPE_CHECKING:
    from meada.datasets.published.catalogue import Domain


app = typer.Typer(name="data", help="List, check and download published data sets.", no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(help="Domains; all of them by default.")]
Wanted = Annotated[list[str], typer.Argument(help="Domains, such as mnist.")]
Root = Annotated[Path | None, typer.Option(help="The data folder; by default $MEADA_DATA, else ~/.cache/meada.")]


@app.command("list")
def list_(root: Root = None, as_json: Json = False) -> None:
    """List every domain with its description, its folder and whether its files are there.

    Example: meada data list --root data
    """
    from meada.datasets.published.catalogue import CATALOGUE

    folder = data_root(root)
    rows = [_row(entry, folder) for entry in CATALOGUE.values()]
    if as_json:
        typer.echo(json.dumps({"root": str(folder), "domains": rows}, indent=2))
        return
    typer.echo(f"data folder: {folder}")
    keys = {"domain": "name", "images": "images", "state": "state", "what": "about", "looked for at": "place",
            "to get it": "get"}  # fmt: skip
    shown = [{**row, "images": f"{row['images']:,}"} for row in rows]
    _table([*keys], [[row[key] for key in keys.values()] for row in shown])


@app.command()
def check(names: Names = None, root: Root = None, as_json: Json = False) -> None:
    """Read all files of domains and report whether they are complete.

    Exit code 2 if something that is there cannot be read; data whose checksum is not the published
    one is said to be different, and an absent domain to be absent.

    Example: meada data check mnist usps
    """
    from meada.datasets.published.catalogue import CATALOGUE, domain
    from meada.datasets.published.checks import USABLE, examine

    folder = data_root(root)
    entries = [domain(name) for name in names or CATALOGUE]
    reports = []
    for entry in entries:
        with SafeConsole(stderr=True).status(f"reading {entry.name}"):
            reports.append(examine(entry, folder))
        if not as_json:
            typer.echo("{name:<15} {state:<10}  {note}".format(**asdict(reports[-1])))
    if as_json:
        content = {"root": str(folder), "domains": [asdict(report) for report in reports]}
        typer.echo(json.dumps(content, indent=2))
    bad = [report for report in reports if report.state not in (*USABLE, "absent")]
    if bad:
        others = f" (and {len(bad) - 1} more, above)" if len(bad) > 1 else ""
        raise MeadaError(f"{bad[0].name} is {bad[0].state}: {bad[0].note}{others}")


@app.command()
def get(
    names: Wanted,
    root: Root = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Download domains that have a public address; an interrupted download continues where it stopped.

    Example: meada data get mnist usps
    """
    from meada.datasets.published.catalogue import domain
    from meada.datasets.published.download import fetch, outstanding

    folder = data_root(root)
    entries = [domain(name) for name in names]
    todo = [outstanding(entry, folder, force) for entry in entries]
    for entry, files in zip(entries, todo, strict=True):
        for file in files:
            with progress("download", quiet=not sys.stderr.isatty()) as tell:
                path = fetch(file, folder, partial(tell, file.name))
            typer.echo(f"{path}: {path.stat().st_size:,} bytes, md5 as published")
        if not files:
            typer.echo(f"{entry.name} is already there, md5 as published")


def _row(entry: "Domain", root: Path) -> dict[str, Any]:
    from meada.datasets.published.catalogue import fetchable, home, present

    place = home(entry, root)
    there = [present(file, place) for file in entry.files]
    return {
        "name": entry.name,
        "images": entry.images,
        "state": "present" if all(there) else "incomplete" if any(there) else "absent",
        "about": entry.about,
        "place": str(place / entry.files[0].path.partition("/")[0]),
        "get": f"meada data get {entry.name}" if fetchable(entry) else entry.page,
        "files": [
            {"path": file.path, "present": is_there, "size": file.size, "md5": file.md5, "url": file.url}
            for file, is_there in zip(entry.files, there, strict=True)
        ],
    }


def _table(columns: list[str], rows: list[list[str]]) -> None:
    """A table on a terminal; otherwise one line per row of any length, for grep and cut."""
    if sys.stdout.isatty():
        from rich.table import Table

        table = Table(*columns)
        for row in rows:
            table.add_row(*row)
        SafeConsole().print(table)
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for line in [columns, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def corrupt(
    source: Annotated[
        str, typer.Argument(help="A folder CLASS/*.png, a .npy file of uint8 images (N, H, W, 3), cifar10 or cifar100.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to; the same command continues an interrupted one.")],
    corruptions: Annotated[
        str, typer.Option(help="Names (a,b,c), benchmark (15), validation (4) or all.")
    ] = "benchmark",
    severity: Annotated[str, typer.Option(help="Severities from 1 to 5, separated by commas.")] = "1,2,3,4,5",
    seed: Annotated[int, typer.Option(help="Seed of the random corruptions.", min=0)] = 0,
    labels: Annotated[Path | None, typer.Option(help="Labels of a .npy file. [default: labels.npy next to it]")] = None,
    constants: Annotated[
        str | None, typer.Option(help="Strengths: cifar (for 32x32) or imagenet (for 224x224). [default: by size]")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Crop and resize a folder's pictures to this side.", min=28, max=512)
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes. [default: one per core]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print corruptions.json.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write corrupted copies of a data set: fifteen corruptions at five severities.

    Arrays of images give the published CIFAR-C files (gaussian_noise.npy ..., labels.npy), folders give
    CORRUPTION/SEVERITY/CLASS/*.png; corruptions.json says how they were made, and corruptions.png shows them.

    Example: meada corrupt photos/ --size 224 --out photos-c --corruptions fog,snow --severity 3
    """
    from meada.corruptions import CORRUPTIONS, VALIDATION
    from meada.corruptions.sources import open_source
    from meada.corruptions.write import Settings, write
    from meada.datasets.cifar import TEST_SPLITS

    groups = {"benchmark": CORRUPTIONS, "validation": VALIDATION, "all": CORRUPTIONS + VALIDATION}
    names = groups.get(corruptions) or tuple(dict.fromkeys(name.strip() for name in corruptions.split(",")))
    settings = Settings(names, _severities(severity), seed, constants)
    opened = open_source(source, labels, size, TEST_SPLITS)
    with progress("corrupt", quiet=quiet or as_json) as tell:
        made = write(opened, out, settings, workers=(os.cpu_count() or 1) if workers is None else workers, tell=tell)
    if as_json:
        typer.echo(json.dumps(made, indent=2))
    elif not quiet:
        count = made["images"] * len(settings.corruptions) * len(settings.severities)
        typer.echo(f"{count:,} corrupted images in {out} (frost: {made['frost']}); see corruptions.png")


def _severities(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise MeadaError(f"--severity must be numbers separated by commas, such as 1,3,5, got {text}") from None
