"""``meada list``: every method, network, data set and recipe by its name."""

import json
from textwrap import fill
from typing import Annotated

import typer


def listing(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List methods, networks, data sets, spaces and recipes.

    Example: meada list --json
    """
    from meada.cli.quick import names
    from meada.runs.shipped import recipe_names, recipe_patterns

    known = {kind: names(kind) for kind in ("methods", "networks", "datasets")}
    known["recipes"] = recipe_names()
    if as_json:
        typer.echo(json.dumps(known))
        return
    for kind in ("methods", "networks", "datasets", "spaces"):
        typer.echo(f"{kind}\n{_indented(', '.join(names(kind)))}")
    typer.echo(f"recipes ({len(known['recipes'])}; braces as in a shell)")
    for pattern in recipe_patterns():
        typer.echo(_indented(pattern.replace(",", ", ")).replace(", ", ","))
    typer.echo("train one: meada train pacs/meada-sketch-small --out runs/sketch")


def _indented(text: str) -> str:
    return fill(text, 98, initial_indent="  ", subsequent_indent="    ")
