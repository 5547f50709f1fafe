"""Pass the lines of a run's log to callbacks while the run is going on."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from meada.algorithm.callbacks import Callback, numbers
from meada.machine.terminal import Tell

Following = tuple[Tell, Callable[[dict[str, Any]], None]]


class _Log:
    """New lines of a log file; a half-written line waits for its end."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, path.stat().st_size if path.exists() else 0

    def new(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists() or self.path.stat().st_size == self.read:
            return
        content = self.path.read_bytes()
        begin = content.rfind(b"\n", 0, self.read) + 1  # a resumed run may have taken back the end of a line
        self.read = max(content.rfind(b"\n") + 1, begin)
        yield from (json.loads(line) for line in content[begin : self.read].splitlines() if line.strip())


@contextmanager
def following(folder: Path, tell: Tell, callbacks: Sequence[Callback], about: dict[str, Any]) -> Iterator[Following]:
    """A ``tell`` that also passes on new lines of ``folder/log.jsonl``, and a function that takes the final record."""
    log = _Log(folder / "log.jsonl")
    ended: list[dict[str, Any]] = []

    def passed_on() -> None:
        for line in log.new():
            step, name = int(line.pop("step")), "round/" if "round" in line else ""
            for one in callbacks:
                one.on_log(step, numbers(line, name))

    def told(phase: str, done: int, total: int) -> None:
        tell(phase, done, total)
        if callbacks:
            passed_on()

    for one in callbacks:
        one.on_start(about)
    try:
        yield told, ended.append
        if callbacks:
            passed_on()
    finally:
        for one in callbacks:
            one.on_end(ended[0] if ended else None)
