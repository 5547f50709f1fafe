"""``meada report``, ``meada inspect`` and ``meada watch``: show results and progress of runs."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from meada.cli.early_checks import Json
from meada.errors import MeadaError
from meada.machine.terminal import SafeConsole, printable


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that contain them.")],
    out: Annotated[Path | None, typer.Option(help="The HTML page. [default: report.html; a table is printed]")] = None,
    table: Annotated[
        int | None, typer.Option(help="Instead of the whole page, a table of the paper: 1, 2 or 3.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="A Markdown file; its pictures go to figures/ next to it, or to --png.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Write the charts as PNG files to this folder.")] = None,
    rule: Annotated[str, typer.Option(help="Rule of the checkpoints: last, source_val, crafted or oracle.")] = "last",
) -> None:
    """Report the results of runs: one self-contained HTML file, or a table of the paper.

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
    out: Annotated[Path | None, typer.Option(help="Where the pictures go. [default: the run's folder]")] = None,
    pictures: Annotated[bool, typer.Option(help="Write rounds.png and spectrum.png.")] = True,
    as_json: Json = False,
) -> None:
    """Show each maximisation round: a table, its samples, and the spectrum of their changes.

    Writes rounds.png (source, adversarial image, difference) and spectrum.png (where in frequency
    the change lies).

    Example: meada inspect runs/meada-3
    """
    from meada.reports.inspect import draw, load_rounds, print_rounds
    from meada.runs.run_folder import RunFolder

    folder = RunFolder(run)
    rounds = load_rounds(folder)
    files = draw(rounds, folder, out or run) if pictures else []
    names = [str(path) for path in files]
    if as_json:
        typer.echo(json.dumps({"rounds": rounds, "pictures": names}))
        return
    print_rounds(rounds, title=f"{run}: before > after each round")
    if files:
        typer.echo(f"Pictures: {', '.join(names)}")


def watch(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or a folder of runs.")],
    once: Annotated[bool, typer.Option("--once", help="Print the state once and stop.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between updates.", min=0.1)] = 2.0,
    serve: Annotated[
        int | None, typer.Option(help="Serve the report on this port of 127.0.0.1 instead; 0 picks a free port.")
    ] = None,
) -> None:
    """Watch a run: steps, loss, scores and rounds, until it ends.

    Example: meada watch runs/meada-3 --serve 8000
    """
    if once and serve is not None:
        raise MeadaError("at most one of --once and --serve may be given, got both")
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
