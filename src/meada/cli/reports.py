"""``meada report``, ``meada inspect`` and ``meada watch``: what runs achieved, and what they are doing."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meada.cli.quick import Trust
from meada.errors import MeadaError
from meada.machine.terminal import SafeConsole, printable

if TYPE_CHECKING:
    from meada.runs.run_folder import RunFolder


def report(
    runs: Annotated[list[Path], typer.Argument(help="Runs' folders, or folders of them.")],
    out: Annotated[Path | None, typer.Option(help="The HTML page. [default: report.html; a table is printed]")] = None,
    table: Annotated[
        int | None, typer.Option(help="Instead of the whole page, a table of the paper: 1, 2 or 3.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="A Markdown file; its pictures go to figures/ next to it, or to --png.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Put the charts as PNG into a folder.")] = None,
    rule: Annotated[str, typer.Option(help="Whose checkpoints: last, source_val, crafted or oracle.")] = "last",
) -> None:
    """Show what runs achieved: one HTML file that opens anywhere, or a table of the paper.

    Example: meada report runs/erm-* runs/meada-* --out report.html
    """
    from meada.reports.page import build, to_markdown, write
    from meada.reports.page import table as table_of
    from meada.reports.page.text import print_page
    from meada.reports.runs import find_runs

    found = find_runs(runs)
    if table is None:
        command = " ".join(["meada report", *map(str, runs), *(["--rule", rule] * (rule != "last"))])
        page = build(found, rule=rule, command=command)
        out = out if out or markdown or png else Path("report.html")
    else:
        page = table_of(found, table, rule=rule, command=f"meada reproduce digits --out {runs[0]}")
    for path in write(page, out=out, markdown=markdown, png=png):
        typer.echo(str(path))
    if not (out or markdown or png):
        print_page(page) if sys.stdout.isatty() else typer.echo(to_markdown(page, {}, Path()))


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
    names = [str(path) for path in files]
    if as_json:
        typer.echo(json.dumps({"rounds": rounds, "judge": verdicts, "pictures": names}))
        return
    print_rounds(rounds, verdicts, title=f"{run}: before > after each round")
    if files:
        typer.echo(f"Pictures: {', '.join(names)}")


def _judged(folder: "RunFolder", other: "RunFolder", trust: list[str]) -> list[dict[str, Any]]:
    from safetensors import safe_open

    from meada.evaluation.rounds import judge
    from meada.reports.inspect import load_gallery
    from meada.runs.network import load_model

    if folder.path.resolve() == other.path.resolve():
        raise MeadaError(f"--judge must be another run than the one that made the samples, got {other.path}")
    if not other.model.exists():
        raise MeadaError(f"{other.path} holds no finished run: a judge needs model.safetensors")
    with safe_open(other.model, framework="pt") as file:
        classes = (file.metadata() or {}).get("classes", "").split("\n")
    return judge(load_model(other, len(classes), trust=trust), load_gallery(folder), len(classes))


def watch(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or a folder of them.")],
    once: Annotated[bool, typer.Option("--once", help="Print once.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 2.0,
    serve: Annotated[
        int | None, typer.Option(help="Serve the report on this port of 127.0.0.1 instead; 0: a free one.")
    ] = None,
) -> None:
    """Watch a run: steps, loss, scores and rounds, until it ends.

    Example: meada watch runs/meada-3 --serve 8000
    """
    if once and serve is not None:
        raise MeadaError("--once must be given without --serve, which goes on until Ctrl-C, got both")
    from meada.reports.live import going_on, lines, server

    shown_text = lambda: printable("\n".join(lines(folder)))
    text = shown_text()
    if serve is not None:
        with server(folder, serve) as opened:
            typer.echo(f"http://127.0.0.1:{opened.server_port}/ (Ctrl-C ends it)")
            opened.serve_forever()
    elif once:
        typer.echo(text)
    else:
        from rich.live import Live
        from rich.text import Text

        with Live(Text(text), console=SafeConsole(), auto_refresh=False) as shown:
            while going_on(folder):
                time.sleep(every)
                shown.update(Text(shown_text()), refresh=True)
            shown.update(Text(shown_text()), refresh=True)
