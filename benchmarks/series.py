"""A series of runs in one JSON file: written after every run, and continued from there by the same command."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from meada.files import write_json
from meada.machine.environment import environment
from meada.machine.memory import keep_freed_memory
from meada.runs.run_folder import read_json

Run = dict[str, Any]


def continue_series(
    path: Path, planned: Iterable[Mapping[str, Any]], run: Callable[..., Run],
    about: Callable[[Sequence[Run]], Mapping[str, Any]] = lambda runs: {},
) -> None:  # fmt: skip
    """Call ``run(**keys)`` for each of the ``planned`` keys that no run in the file has.

    ``about``: what the file says of all its runs.
    """
    keep_freed_memory()  # as ``meada train`` does: a sixth of a step on photographs goes to page faults otherwise
    held: dict[str, Any] = read_json(path) if path.exists() else {"environment": environment(), "runs": []}
    for keys in planned:
        if not any(keys.items() <= one.items() for one in held["runs"]):
            where = environment()
            held["runs"].append({**run(**keys), "on": f"{where['processor']}, {where['cpu_capability']}"})
            print(json.dumps(held["runs"][-1]), flush=True)
            write_json(path, {**held, **about(held["runs"])})
