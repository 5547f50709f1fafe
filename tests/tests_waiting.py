"""Waiting for what another process does, without a guess at how long it takes."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS = 1500  # against a hang; what is waited for comes long before, on a busy machine too


def wait_for(condition: Callable[[], Any], process: "subprocess.Popen[Any] | None" = None) -> None:
    """Until something is to be seen; a process that ended before it is a fault."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if process is not None:
            assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.01)


def written(sums: Path) -> int:
    """Samples of a block of the pool that have a checksum, as a process left them."""
    pieces = [line.split() for line in sums.read_text().split("\n")[:-1]]
    return sum(int(stop) - int(start) for start, stop, _ in pieces)
