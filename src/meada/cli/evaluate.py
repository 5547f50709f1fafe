"""``meada evaluate``: a finished run's model on any domain that its data set has."""

from pathlib import Path
from typing import Annotated, Any

import typer

from meada.cli.options import Trust


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run or of meada robustify.")],
    on: Annotated[
        list[str] | None,
        typer.Option(
            help="Domains; all that the recipe names by default. Digits also have printed_numbers, "
            "a stand-in for SYN; its scores are kept for meada report --table 1."
        ),
    ] = None,
    rule: Annotated[str, typer.Option(help="Whose model: last, source_val, crafted or oracle.")] = "last",
    pgd: Annotated[
        int,
        typer.Option(min=0, help="Also attack so many images of each; kept for meada report."),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    trust: Trust = None,
) -> None:
    """Score a finished run's model.

    Example: meada evaluate runs/meada-3 --on svhn --json
    """
    from meada.datasets import APART
    from meada.deploy.model import PLAN, open_model
    from meada.errors import MeadaError, nearest
    from meada.evaluation import evaluate as score
    from meada.evaluation.attack import under_attack
    from meada.evaluation.selection import RULES
    from meada.files import json_text, write_json
    from meada.reports.page.terminal import print_scores
    from meada.runs.network import load_model
    from meada.runs.parts import make, refuse_untrusted
    from meada.runs.run_folder import RunFolder

    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': " + nearest(rule, RULES))
    folder, delivered = RunFolder(run), (run / PLAN).is_file()
    if delivered and rule != "last":
        raise MeadaError(f"--rule must be last for a folder of meada robustify, got {rule}")
    model = open_model(run, trust or ()) if delivered else None
    recipe = model.recipe if model else folder.load_recipe(trust or ())
    refuse_untrusted({"data": recipe.data, "network": recipe.network})
    task = make("data", recipe.data)
    clean = {"clean": task.clean} if task.clean else {}
    domains = {"source": task.validation, **clean, **task.targets}
    domains |= {name: APART[name](task.classes) for name in on or [] if name in APART}
    for name in on or []:
        if name not in domains:
            raise MeadaError(f"unknown domain '{name}': " + nearest(name, [*domains, *APART]))
    net = model.net if model else load_model(folder, len(task.classes), rule, trust or ())
    chosen = {name: domains[name] for name in on or task.targets}
    scores = score(net, {name: (s.images, s.labels) for name, s in chosen.items()})
    if tried := {name: scores[name] for name in scores if name in APART}:
        folder.keep_apart(rule, tried)
    if pgd:
        looked_at = chosen if on else {"source": task.validation, **chosen}
        attack = {"rule": rule, **under_attack(net, looked_at, n=pgd)}
        write_json(folder.attack, attack)
        scores = {name: {**s, **_attacked(attack, name)} for name, s in scores.items()}
    if as_json:
        typer.echo(json_text(scores))
    else:
        print_scores(scores, title=f"{run} ({rule})")
        if pgd:
            for name, s in attack["domains"].items():
                typer.echo(
                    f"{name}: {s['attacked']:.1f} % of {s['n']} images under an attack of "
                    f"{attack['radius']:g} levels of 255, {s['clean']:.1f} % without"
                )


def _attacked(attack: dict[str, Any], name: str) -> dict[str, Any]:
    return {"pgd": attack["domains"][name]} if name in attack["domains"] else {}
