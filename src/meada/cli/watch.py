"""``meada watch``: a run as it goes, in the terminal or in a browser on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def watch(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or a folder of them.")],
    once: Annotated[bool, typer.Option("--once", help="Print once.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 2.0,
    serve: Annotated[
        int | None,
        typer.Option(help="Serve the report on this port of 127.0.0.1 instead; 0: a free one."),
    ] = None,
) -> None:
    """Watch a run: steps, loss, scores and rounds, until it ends.

    Example: meada watch runs/meada-3 --serve 8000
    """
    import time

    from meada.machine.terminal import printable
    from meada.reports.live import going_on, lines

    shown_text = lambda folder: printable("\n".join(lines(folder)))
    text = shown_text(folder)
    if serve is not None:
        from meada.reports.live import server

        with server(folder, serve) as opened:
            typer.echo(f"http://127.0.0.1:{opened.server_port}/ (Ctrl-C ends it)")
            opened.serve_forever()
    elif once:
        typer.echo(text)
    else:
        from rich.live import Live
        from rich.text import Text

        from meada.machine.terminal import SafeConsole

        with Live(Text(text), console=SafeConsole(), auto_refresh=False) as shown:
            while going_on(folder):
                time.sleep(every)
                shown.update(Text(shown_text(folder)), refresh=True)
            shown.update(Text(shown_text(folder)), refresh=True)
