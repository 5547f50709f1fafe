"""``meada inspect``: what the maximisation rounds of a run did, and whether they went too far."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meada.cli.options import Trust

if TYPE_CHECKING:
    from meada.runs.run_folder import RunFolder


def inspect(
    run: Annotated[Path, typer.Argument(help="A run's folder; it need not be finished.")],
    judge: Annotated[
        Path | None,
        typer.Option(
            help="Another finished run on the same classes, such as ERM's, whose network took no "
            "part in making the samples: it reads them."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the pictures go. [default: the run's folder]")] = None,
    pictures: Annotated[bool, typer.Option(help="Write rounds.png and spectrum.png.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    trust: Trust = None,
) -> None:
    """Show what each maximisation round did: a table, its samples, and their spectrum.

    Writes rounds.png (source, adversarial image, difference) and spectrum.png (where in frequency
    the change lies).

    Example: meada inspect runs/meada-3 --judge runs/erm-3
    """
    from meada.reports.inspect import draw, load_rounds, print_rounds
    from meada.runs.run_folder import RunFolder

    folder = RunFolder(run)
    rounds = load_rounds(folder)
    verdicts = _judged(folder, RunFolder(judge), trust or []) if judge else []
    files = draw(rounds, folder, out or run) if pictures else []
    if as_json:
        shown = [str(path) for path in files]
        typer.echo(json.dumps({"rounds": rounds, "judge": verdicts, "pictures": shown}))
        return
    print_rounds(rounds, verdicts, title=f"{run}: before > after each round")
    if files:
        typer.echo("Pictures: " + ", ".join(str(path) for path in files))


def _judged(folder: "RunFolder", other: "RunFolder", trust: list[str]) -> list[dict[str, Any]]:
    from safetensors import safe_open

    from meada.errors import MeadaError
    from meada.evaluation.readability import judge
    from meada.reports.inspect import load_gallery
    from meada.runs.run import load_model

    if folder.path.resolve() == other.path.resolve():
        raise MeadaError(f"{other.path} made the samples: another run is needed to judge them")
    if not other.model.exists():
        raise MeadaError(f"{other.path} holds no finished run: a judge needs model.safetensors")
    with safe_open(other.model, framework="pt") as file:
        classes = (file.metadata() or {}).get("classes", "").split("\n")
    return judge(load_model(other, len(classes), trust=trust), load_gallery(folder), len(classes))
