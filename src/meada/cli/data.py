"""``meada data``: list, check and download published data sets."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from meada.datasets.published.catalogue import Domain, File
    from meada.datasets.published.checks import Report
    from meada.datasets.published.download import Progress

app = typer.Typer(
    name="data",
    help="List, check and download published data sets.",
    no_args_is_help=True,
)

Names = Annotated[list[str] | None, typer.Argument(help="Domains; all of them by default.")]
Wanted = Annotated[list[str], typer.Argument(help="Domains, such as mnist.")]
Root = Annotated[
    Path | None,
    typer.Option(help="The data folder; by default $MEADA_DATA, else ~/.cache/meada."),
]
Json = Annotated[bool, typer.Option("--json", help="For a machine to read.")]


@app.command("list")
def list_(root: Root = None, as_json: Json = False) -> None:
    """Show every domain: what it is, where it is looked for, and whether it is there.

    Example: meada data list --root data
    """
    from meada.datasets.published.catalogue import CATALOGUE
    from meada.files import data_root

    folder = data_root(root)
    rows = [_row(entry, folder) for entry in CATALOGUE.values()]
    if as_json:
        typer.echo(json.dumps({"root": str(folder), "domains": rows}, indent=2))
        return
    typer.echo(f"data folder: {folder}")
    columns = ("domain", "images", "state", "what", "looked for at", "to get it")
    keys = ("name", "images", "state", "about", "place", "get")
    _table(columns, [[_cell(row[key]) for key in keys] for row in rows])


@app.command()
def check(names: Names = None, root: Root = None, as_json: Json = False) -> None:
    """Read domains to the end and say whether they are whole.

    Exit code 2 if something that is there cannot be read; data whose checksum is not the published
    one is said to be different, and an absent domain to be absent.

    Example: meada data check mnist usps
    """
    from meada.datasets.published.catalogue import CATALOGUE, domain
    from meada.datasets.published.checks import USABLE, examine
    from meada.errors import MeadaError
    from meada.files import data_root

    folder = data_root(root)
    entries = [domain(name) for name in names or CATALOGUE]
    reports = []
    for entry in entries:
        with _busy(f"reading {entry.name}"):
            reports.append(examine(entry, folder))
        if not as_json:
            typer.echo(_line(reports[-1]))
    if as_json:
        content = {"root": str(folder), "domains": [_facts(report) for report in reports]}
        typer.echo(json.dumps(content, indent=2))
    bad = [report for report in reports if report.state not in (*USABLE, "absent")]
    if bad:
        others = f" (and {len(bad) - 1} more, above)" if len(bad) > 1 else ""
        raise MeadaError(f"{bad[0].name} is {bad[0].state}: {bad[0].note}{others}")


@app.command()
def get(
    names: Wanted,
    root: Root = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Download domains that have a public address; after an interruption, go on where it broke off.

    Example: meada data get mnist usps
    """
    from meada.datasets.published.catalogue import domain
    from meada.datasets.published.download import fetch, outstanding
    from meada.files import data_root

    folder = data_root(root)
    entries = [domain(name) for name in names]
    todo = [outstanding(entry, folder, force) for entry in entries]
    for entry, files in zip(entries, todo, strict=True):
        for file in files:
            with _progress(file) as progress:
                path = fetch(file, folder, progress)
            typer.echo(f"{path}: {path.stat().st_size:,} bytes, md5 as published")
        if not files:
            typer.echo(f"{entry.name} is already there, md5 as published")


def _row(entry: "Domain", root: Path) -> dict[str, Any]:
    from meada.datasets.published.catalogue import fetchable
    from meada.datasets.published.disk import home, present

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
            {
                "path": file.path,
                "present": is_there,
                "size": file.size,
                "md5": file.md5,
                "url": file.url,
            }
            for file, is_there in zip(entry.files, there, strict=True)
        ],
    }


def _facts(report: "Report") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(report)


def _line(report: "Report") -> str:
    return f"{report.name:<15} {report.state:<10}  {report.note}"


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(columns: tuple[str, ...], rows: list[list[str]]) -> None:
    """A table on a terminal; elsewhere one line a row, whatever its length, for grep and cut."""
    if sys.stdout.isatty():
        from rich.table import Table

        from meada.machine.terminal import SafeConsole as Console

        table = Table(*columns)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for line in [list(columns), *rows]:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


@contextmanager
def _busy(what: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    from meada.machine.terminal import SafeConsole as Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def _progress(file: "File") -> "Iterator[Progress]":
    """A bar while a file arrives, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from meada.machine.terminal import SafeConsole as Console

    columns = (TextColumn(file.name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(file.name, total=file.size)
        yield lambda done, total: bar.update(task, completed=done, total=total)
