"""``meada list``: every method, network, data set and recipe by its name."""

import json
from typing import Annotated

import typer


def listing(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List methods, networks, data sets and recipes.

    Example: meada list --json
    """
    from meada.datasets import DATASETS
    from meada.methods import METHODS
    from meada.networks import NETWORKS
    from meada.recipe import recipe_names

    known = {
        "methods": list(METHODS),
        "networks": list(NETWORKS),
        "datasets": list(DATASETS),
        "recipes": recipe_names(),
    }
    if as_json:
        typer.echo(json.dumps(known))
        return
    for kind, names in known.items():
        typer.echo(f"{kind}: {', '.join(names)}")
