"""Run the unfinished runs of a set, several at once, each in its own process."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from meada.errors import MeadaError, nearest
from meada.files import remove_drafts, write_text
from meada.lookup import Trusted
from meada.reproduce import Item
from meada.reproduce.cost import expected_seconds, time_left
from meada.runs.functions import code_in
from meada.runs.recipe import to_toml

Say = Callable[[str], None]
Command = Callable[[Item, Path], list[str]]
ELSEWHERE = "another process is training there"  # how a run says that its folder is locked
ALREADY_STARTED = "already holds a run"  # its message when another process has started the same run
POLL = 0.2  # seconds
UNLOCK_SECONDS = 1.0  # seconds in which a run that was killed has ended and let go of its folder


@dataclass
class Outcome:
    """Names of the runs that did not finish here."""

    failed: dict[str, str] = field(default_factory=dict)  # name -> the last line of its error output
    elsewhere: list[str] = field(default_factory=list)  # trained by another process


@dataclass(frozen=True)
class Job:
    item: Item
    process: "subprocess.Popen[bytes]"
    stderr_file: IO[bytes]  # a file: a pipe that nobody reads would stop the run when it is full
    began: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def last_line(stderr_file: IO[bytes], code: int) -> str:
    stderr_file.seek(0)
    lines = stderr_file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {code}"


def verdict(name: str, code: int, line: str, seconds: float, outcome: Outcome) -> str:
    """How a run ended, in words; unfinished ones are added to ``outcome``."""
    if code == 0:
        return f"done in {seconds / 60:.1f} min"
    if ELSEWHERE in line:
        outcome.elsewhere.append(name)
        return "running elsewhere"
    outcome.failed[name] = line
    return f"failed: {line}"


def run_settings(threads: int, stderr_file: IO[bytes]) -> dict[str, Any]:
    """How a run's process is started: its threads, its error output, and that it ends with this one."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    bound = partial(die_with_parent, os.getpid())
    return {"env": environment, "stdout": subprocess.DEVNULL, "stderr": stderr_file, "preexec_fn": bound}


def named_by(item: Item) -> list[str]:
    """Options that name the outside code of a run, which the user allowed, to the training process."""
    return [str(name) for _, name in code_in(item.recipe.model_dump()) if isinstance(name, Trusted)]


def train_command(item: Item, out: Path) -> list[str]:
    """The command line of a run; a started run continues with the recipe in its folder."""
    folder = item.folder(out)
    recipe, begun = folder.recipe, folder.recipe.exists()
    if not begun:
        recipe = out / "recipes" / f"{item.name}.toml"
        write_text(recipe, to_toml(item.recipe))
    trust = [word for name in named_by(item) for word in ("--trust", name)]
    words = ["train", str(recipe), "--out", str(folder.path), "--quiet", *trust]
    return [sys.executable, "-m", "meada", *words, *(["--resume"] if begun else [])]


def reproduce(
    items: Sequence[Item],
    out: Path,
    *,
    jobs: int,
    say: Say,
    timings: Sequence[Path] = (),
    command: Command = train_command,
) -> Outcome:
    """Run the unfinished runs, ``jobs`` at a time; a failed run does not stop the others.

    ``timings`` are more folders whose records say how long a kind of run takes.
    """
    remove_drafts(out / "recipes")
    waiting = []
    for item in items:
        folder = item.folder(out)
        if folder.finished:
            remove_drafts(folder.path)  # a run that was killed in its last write is not begun again
        else:
            waiting.append(item)
    say(f"{len(items)} runs, {len(items) - len(waiting)} done before, {len(waiting)} to go")
    threads, outcome, looked_again = threads_each(jobs), Outcome(), False
    running: dict[str, Job] = {}

    def left() -> str:
        known = expected_seconds(items, (out, *timings))
        return time_left(waiting, {n: job.seconds for n, job in running.items()}, known, jobs)

    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item = waiting.pop(0)
                if item.done(out):
                    say(f"{item.name}: finished by another process")
                elif item.folder(out).locked:
                    say(f"{item.name}: {verdict(item.name, 1, ELSEWHERE, 0.0, outcome)}")
                else:
                    running[item.name] = _start(item, command(item, out), threads)
                    say(f"{item.name}: started; {left()}")
            time.sleep(POLL)
            for job in [job for job in running.values() if job.process.poll() is not None]:
                del running[job.item.name]
                code = job.process.returncode
                with job.stderr_file as errors:
                    line = last_line(errors, code)
                if code and ALREADY_STARTED in line:
                    waiting.insert(0, job.item)  # looked at again: done, running elsewhere, or to be resumed
                else:
                    say(f"{job.item.name}: {verdict(job.item.name, code, line, job.seconds, outcome)}; {left()}")
            if not (waiting or running or looked_again) and outcome.elsewhere:
                looked_again = True  # whoever had them may have been killed
                time.sleep(UNLOCK_SECONDS)
                waiting = [item for item in items if item.name in outcome.elsewhere]
                outcome.elsewhere.clear()
    finally:
        for job in running.values():
            job.process.terminate()
        for job in running.values():
            job.process.wait()
    return outcome


def threads_each(jobs: int) -> int:
    """Threads per run when several share the cores; OMP_NUM_THREADS is an upper limit."""
    share = max(1, (os.cpu_count() or 1) // jobs)
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(share, int(asked))) if asked.isdecimal() else share


def _start(item: Item, words: list[str], threads: int) -> Job:
    stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as the run
    process = subprocess.Popen(words, **run_settings(threads, stderr_file))
    return Job(item, process, stderr_file, time.monotonic())


def die_with_parent(parent: int) -> None:
    """End this run when process ``parent``, which started it, ends: no orphan keeps training.

    It would hold the cores and its folder's lock. The run itself loses nothing: it is resumed.
    """
    if hasattr(signal, "SIGKILL") and os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it ended before this line
            os.kill(os.getpid(), signal.SIGKILL)


ENGINES = ("local", "ray")


def refuse_settings(engine: str, jobs: int, cores: int, address: str = "", timings: Sequence[Path] = ()) -> None:
    """Refuse settings with which no set can run, even if it is only listed."""
    if engine not in ENGINES:
        raise MeadaError(f"unknown engine '{engine}': {nearest(engine, ENGINES)}")
    for name, count in (("jobs", jobs), ("cores", cores)):
        if count < 1:
            raise MeadaError(f"--{name} must be 1 or more, got {count}")
    if address and engine != "ray":
        raise MeadaError("--address must be used with --engine ray, got --engine local")
    for folder in timings:
        if not folder.is_dir():
            raise MeadaError(f"--timings must be folders of records, got {folder}")
