"""The report of a folder on this machine alone, made anew at each visit."""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from meada.errors import MeadaError
from meada.reports.live import going_on
from meada.reports.page import build, to_html
from meada.reports.runs import find_runs

HOST = "127.0.0.1"
EVERY = 10  # seconds between visits of a page whose run goes on


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
            body = text.encode()
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
        raise MeadaError(f"port {port} of {HOST} cannot be had: {error}") from None


def page(folder: Path) -> str:
    """The report; while a run goes on, it asks to be loaded again."""
    html = to_html(build(find_runs([folder])))
    if not going_on(folder):
        return html
    return html.replace("<head>", f'<head><meta http-equiv="refresh" content="{EVERY}">', 1)
