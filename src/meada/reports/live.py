"""Watch runs while they train: on the terminal, or as a report served on this machine alone."""

import fcntl
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from meada.errors import MeadaError
from meada.files import regular
from meada.reports.page import build, to_html
from meada.reports.page.training import SCORES
from meada.reports.runs import Run, find_runs

HOST = "127.0.0.1"
EVERY = 10  # seconds between visits of a page whose run goes on


def at_work(path: Path) -> bool:
    """Whether a process holds the run's lock; the lock is tested, never kept."""
    try:
        with open(regular(path / ".lock", None)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except (OSError, MeadaError):
        return False


def going_on(folder: Path) -> bool:
    """Whether any run in the folder or below it is being trained."""
    return any(at_work(lock.parent) for lock in folder.rglob(".lock"))


def lines(folder: Path) -> Iterator[str]:
    """What a terminal shows of every run in the folder."""
    for run in find_runs([folder]):
        yield from _about(run)


def _about(run: Run) -> Iterator[str]:
    total = run.recipe.get("plan", {}).get("total_steps")
    state = "finished" if run.finished else "running" if at_work(run.folder.path) else "stopped"
    unit = "" if run.recipe.get("plan", {}).get("unit", "steps") == "steps" else " (in epochs)"
    yield (f"{run.name}: {run.method}, seed {run.seed}, {state}; step {run.record['steps']:,} of {total}{unit}")
    where = run.folder.load_position() if state == "running" else None
    if where:
        phase, done, total = where
        yield f"  {phase}: {done:,} of {total:,}"
    for line in [line for line in run.log if "loss" in line][-1:]:
        yield f"  at step {line['step']:,}: loss {line['loss']:.4f}"
    for line in [line for line in run.log if "scores" in line][-1:]:
        scores = ", ".join(f"{SCORES.get(rule, rule).lower()} {value:.1f} %" for rule, value in line["scores"].items())
        yield f"  accuracy at step {line['step']:,}, by what would choose this checkpoint: {scores}"
    for line in run.record.get("rounds", []):
        ce = "; cross-entropy from {:.3f} to {:.3f}".format(*line["ce"]) if "ce" in line else ""
        yield f"  round {line['round']}: training set of {line['pool']:,} images{ce}"
    for name, found in run.results("last").items():
        yield f"  {name}: {found['accuracy']:.1f} %"


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """Bound to 127.0.0.1; port 0 is any free one. There is one page, and no file is ever read

    by the name that a visitor gives.
    """

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            names = {f"{host}:{self.server.server_port}" for host in (HOST, "localhost")}  # type: ignore[attr-defined]
            if self.headers.get_all("Host") not in [[name] for name in names]:
                # Another site's name that resolves to this machine (DNS rebinding).
                self._answer(HTTPStatus.FORBIDDEN, "this page is for 127.0.0.1 alone")
            elif self.path not in ("/", "/report.html"):
                self._answer(HTTPStatus.NOT_FOUND, "there is one page: /")
            else:
                try:
                    self._answer(HTTPStatus.OK, page(folder))
                except MeadaError as error:
                    self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

        def _answer(self, status: HTTPStatus, text: str) -> None:
            kind = "text/html" if status == HTTPStatus.OK else "text/plain"
            body = text.encode(errors="backslashreplace")
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """The terminal is the run's."""

    try:
        return ThreadingHTTPServer((HOST, port), Page)
    except (OSError, OverflowError) as error:
        raise MeadaError(f"--serve must be a free port of {HOST}, got {port} ({error})") from None


def page(folder: Path) -> str:
    """The report; while a run goes on, it asks to be loaded again."""
    return to_html(build(find_runs([folder])), refresh=EVERY if going_on(folder) else 0)
