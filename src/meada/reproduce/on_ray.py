"""Run a set on a Ray cluster: one task with its own cores per run, retried if its node dies.

A task starts the same ``meada train`` as on one machine. Where the nodes share the folder, a run
that is tried again resumes; elsewhere it starts again, and the files of its end come back.
"""

import logging
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meada.errors import MeadaError, one_line
from meada.files import write_bytes, write_text
from meada.machine.extras import need
from meada.reproduce import Item, runner
from meada.reproduce.runner import ELSEWHERE, Command, Outcome
from meada.runs.recipe import from_toml, to_toml

TRIES = 5  # times that a run is begun again after its node or worker was lost
PATIENCE = 120.0  # seconds that a run of a lost node has to let go of its folder
COPIED_FILES = ("checksums.json", "recipe.toml", "log.jsonl", "*.safetensors", "selected/*.safetensors", "record.json")


@dataclass
class End:
    """How a task ended."""

    code: int
    line: str  # the last line of its error output
    seconds: float
    files: dict[str, bytes] = field(default_factory=dict)  # where its folder is not the driver's


def on_ray(
    items: Sequence[Item],
    out: Path,
    *,
    say: runner.Say,
    address: str = "",
    cores: int = 1,
    command: Command = runner.train_command,
) -> Outcome:
    """Run the unfinished runs, as many at a time as the cluster's cores allow."""
    waiting = [item for item in items if not item.done(out)]
    say(f"{len(items)} runs, {len(items) - len(waiting)} done before, {len(waiting)} to go")
    if not waiting:
        return Outcome()
    out = out.resolve()
    token = secrets.token_hex()
    write_text(out / ".driver", token)
    ray = _connected(address)
    task = ray.remote(num_cpus=cores, max_retries=TRIES)(work)
    running = {
        task.remote(to_toml(item.recipe), str(out), token, cores, command, runner.named_by(item)): item
        for item in waiting
    }
    outcome = Outcome()
    try:
        while running:
            ended, _ = ray.wait(list(running), timeout=1.0)
            for ref in ended:
                item = running.pop(ref)
                say(f"{item.name}: {_brought_back(item, out, _end(ray, ref), outcome)}; {len(running)} left")
    finally:
        for ref in running:
            ray.cancel(ref, force=True)
        ray.shutdown()
        (out / ".driver").unlink(missing_ok=True)
    return outcome


def work(toml: str, out: str, token: str, cores: int, command: Command, trust: Sequence[str] = ()) -> dict[str, Any]:
    """Train one run on this node; return an :class:`End` as a plain dict."""
    home = Path(out)
    if (home / ".driver").exists() and (home / ".driver").read_text() == token:
        return vars(_trained(toml, home, cores, command, trust))
    with tempfile.TemporaryDirectory(prefix="meada-run-") as own:
        end = _trained(toml, Path(own), cores, command, trust)
        if end.code == 0:
            folder = next(Path(own).glob("*/record.json")).parent
            found = [path for pattern in COPIED_FILES for path in sorted(folder.glob(pattern))]
            end.files = {str(p.relative_to(folder)): p.read_bytes() for p in found}
        return vars(end)


def _trained(toml: str, out: Path, cores: int, command: Command, trust: Sequence[str]) -> End:
    write_text(path := out / "recipes" / f"{secrets.token_hex(8)}.toml", toml)
    item = Item(from_toml(path, trust))
    path.unlink()
    began = time.monotonic()
    deadline = began + PATIENCE
    while True:
        if item.done(out):
            return End(0, "", time.monotonic() - began)
        # A lost node's run may take a moment to die and let go of its folder: a look at the lock costs nothing,
        # while a process that finds it taken has imported torch first.
        code, line = (1, ELSEWHERE) if item.folder(out).locked else _train(command(item, out), cores)
        if ELSEWHERE not in line or time.monotonic() > deadline:
            return End(code, line, time.monotonic() - began)
        time.sleep(0.5)


def _train(words: list[str], cores: int) -> tuple[int, str]:
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(words, **runner.run_settings(cores, errors))
        return done.returncode, runner.last_line(errors, done.returncode)


def _connected(address: str) -> Any:
    ray = need("ray", extra="ray")
    # Ray lowers the priority of its workers by 15, which on a busy machine leaves a run a thirtieth of a core.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        ray.init(
            address=address or None,
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # Ray raises many kinds for an address that does not answer
        raise MeadaError(f"--address {address}: no Ray cluster answers there ({one_line(error)})") from None
    return ray


def _end(ray: Any, ref: Any) -> End:
    try:
        return End(**ray.get(ref))
    except ray.exceptions.RayError as error:  # lost too often, or a fault of the task's own
        return End(1, (str(error).strip().splitlines() or [type(error).__name__])[-1], 0.0)


def _brought_back(item: Item, out: Path, end: End, outcome: Outcome) -> str:
    for name, content in end.files.items():  # the record comes last: with it the run is done
        write_bytes(item.folder(out).path / name, content)
    return runner.verdict(item.name, end.code, end.line, end.seconds, outcome)
