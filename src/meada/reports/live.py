"""Watch runs while they train: on the terminal, or as a report served on 127.0.0.1."""

from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from meada.errors import MeadaError
from meada.reports.page import build, to_html
from meada.reports.page.training import SCORES
from meada.reports.runs import Run, find_runs
from meada.runs.run_folder import RunFolder

HOST = "127.0.0.1"
EVERY = 10  # seconds between visits of a page whose run goes on


def going_on(folder: Path) -> bool:
    """Whether any run in the folder or its subfolders is being trained."""
    return any(RunFolder(lock.parent).locked for lock in folder.rglob(".lock"))


def lines(folder: Path) -> Iterator[str]:
    """Lines for the terminal about every run in the folder."""
    return (line for run in find_runs([folder]) for line in _about(run))


def _about(run: Run) -> Iterator[str]:
    plan = run.recipe.get("plan", {})
    state = "finished" if run.finished else "running" if run.folder.locked else "stopped"
    unit = "" if plan.get("unit", "steps") == "steps" else " (in epochs)"
    of = f"step {run.record['steps']:,} of {plan.get('total_steps')}{unit}"
    yield f"{run.name}: {run.method}, seed {run.seed}, {state}; {of}"
    if state == "running" and (where := run.folder.load_position()):
        yield "  {}: {:,} of {:,}".format(*where)
    for line in [line for line in run.log if "loss" in line][-1:]:
        yield f"  at step {line['step']:,}: loss {line['loss']:.4f}"
    for line in [line for line in run.log if "scores" in line][-1:]:
        scores = ", ".join(f"{SCORES.get(rule, rule).lower()} {value:.1f} %" for rule, value in line["scores"].items())
        yield f"  accuracy at step {line['step']:,} on the data of each selection rule: {scores}"
    for line in run.record.get("rounds", []):
        ce = "; cross-entropy from {:.3f} to {:.3f}".format(*line["ce"]) if "ce" in line else ""
        yield f"  round {line['round']}: training set of {line['pool']:,} images{ce}"
    for name, found in run.results("last").items():
        yield f"  {name}: {found['accuracy']:.1f} %"


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server on 127.0.0.1; port 0 picks a free one. There is one page, and no file is ever read

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
            """Do not log requests: the terminal shows the run."""

    try:
        return ThreadingHTTPServer((HOST, port), Page)
    except (OSError, OverflowError) as error:
        raise MeadaError(f"--serve must be a free port of {HOST}, got {port} ({error})") from None


def page(folder: Path) -> str:
    """The report as HTML; it reloads itself while a run is being trained."""
    return to_html(build(find_runs([folder])), refresh=EVERY if going_on(folder) else 0)
