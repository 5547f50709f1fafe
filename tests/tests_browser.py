"""A real browser for tests: Debian's chromium without a window, driven over its DevTools pipe.

Messages are JSON with a zero byte at the end, on file descriptors 3 (to it) and 4 (from it), so no
package is needed for it.
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--remote-debugging-pipe", "--hide-scrollbars",
]  # fmt: skip


class Browser:
    """One page; what it logs and what it asks for is kept."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]

        def place() -> None:
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path, *, width: int = 1100, dark: bool = False) -> None:
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while True:  # the timeout of tests ends what hangs
            if self.run("document.readyState") == "complete":
                break
            time.sleep(0.05)
        # Two frames: whatever was to be drawn or laid out again has been.
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; an exception there is one here."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(str(told["exceptionDetails"]))
        return told["result"].get("value")

    def screenshot(self, path: Path) -> None:
        taken = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self) -> list[str]:
        """Console errors and warnings, exceptions, and log entries of the browser itself."""
        found = []
        for event in self.events:
            about = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(about["exceptionDetails"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and about["type"] != "log":
                found.append(str(about["args"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(about["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for, those inside the page aside."""
        asked = [e for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        urls = [event["params"]["request"]["url"] for event in asked]
        return [url for url in urls if not url.startswith(("data:", "blob:", "about:"))]

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._session = None
            self.ask("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _next(self, seconds: float = 1500) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], seconds)
            if not ready:
                raise RuntimeError(f"chromium did not answer within {seconds:.0f} s")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("chromium ended")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(Path(profile))
        try:
            yield browser
        finally:
            browser.close()
