"""Commands in processes that die at chosen moments, without the seconds that importing torch takes.

Run as a program, this file is a server: it imports everything once and forks a child for each command. A child may
be killed before its n-th change to a folder, or after some seconds of processor time. Neither depends on how busy the
machine is, so a seed repeats a failure.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Ended:
    code: int  # negative: the signal that ended it
    said: str
    changes: int  # to its folder; 0 where it was killed
    seconds: float  # of processor time


class Server:
    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "127.0.0.1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, words: list[str], home: Path, **how: Any) -> Ended:
        """``how``: ``change`` or ``seconds``, the moment of death; ``of_run``, to die in a run of a set; ``file``;

        ``stop``, to be stopped and continued instead; ``unprivileged``, to be somebody who may not write everywhere.
        """
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"words": words, "home": str(home), **how}) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Forked:
    """What ``meada.reproduce.runner`` asks of a process that it started."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self, how: int = os.WNOHANG) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int | None:
        return self.poll(0)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


def fork(run: Callable[[], object], out: IO[bytes]) -> int:
    """A child that does ``run`` and nothing else, with its output in a file."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 70
    try:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def command(words: list[str]) -> None:
    from meada.cli.main import main

    sys.argv = ["meada", *words]
    main()


def runs_are_forked(begin: Callable[[], None] = lambda: None) -> None:
    """A set's runs begin without imports too; ``begin`` is called in each of them."""
    from meada.reproduce import runner

    def start(item: Any, words: list[str], threads: int) -> runner.Job:
        parent = os.getpid()

        def run() -> None:
            runner.die_with_parent(parent)
            begin()
            command(words[words.index("meada") + 1 :])

        stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 - as in the runner
        return runner.Job(item, Forked(fork(run, stderr_file)), stderr_file, time.monotonic())  # type: ignore[arg-type]

    runner._start = start


def count_changes(
    home: str, last: int, victim: Callable[[], int], counted: list[int], how: signal.Signals = signal.SIGKILL
) -> None:
    """Kill ``victim``, or stop it, before the change number ``last`` below ``home``."""

    def hook(event: str, given: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(given[2], int) and given[2] & WRITING
        if (opened or event in CHANGES) and isinstance(given[0], str | Path) and str(given[0]).startswith(home):
            counted[0] += 1
            if counted[0] == last:
                os.kill(victim(), how)
                if how == signal.SIGKILL:
                    signal.pause()

    sys.addaudithook(hook)


def child(asked: dict[str, Any], note: Path) -> None:
    import meada.robustify.training
    from meada.datasets.published import catalogue

    meada.robustify.training.SAVE_SECONDS = 0.0  # a checkpoint every step
    if "file" in asked:
        catalogue.CATALOGUE["usps"] = catalogue.Domain("usps", "digits", 2, (catalogue.File(*asked["file"]),), "a page")
    if asked.get("unprivileged"):
        become_nobody()
    counted = [0]
    how = signal.SIGSTOP if asked.get("stop") else signal.SIGKILL
    watched = lambda victim: count_changes(asked["home"], asked.get("change", 0), victim, counted, how)
    runs_are_forked((lambda: watched(os.getppid)) if asked.get("of_run") else lambda: None)
    if not asked.get("of_run"):
        watched(os.getpid)
    if "seconds" in asked:
        signal.setitimer(signal.ITIMER_PROF, asked["seconds"])  # its signal ends the process at once
    try:
        command(asked["words"])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        with suppress(PermissionError):
            note.write_text(str(counted[0]))


def become_nobody() -> None:
    """Root may write everywhere; a test of folders that cannot be written needs somebody who may not."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def serve() -> NoReturn:
    import meada.cli.main
    import meada.corruptions.write
    import meada.robustify
    import meada.runs.run  # noqa: F401
    from meada.datasets import DATASETS

    DATASETS["embedded"](train=20, validation=20, test=20)  # imports scikit-learn
    note = Path(tempfile.mkdtemp()) / "changes"
    for line in sys.stdin:
        note.unlink(missing_ok=True)
        asked = json.loads(line)
        with tempfile.TemporaryFile() as said:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            pid = fork(lambda asked=asked: child(asked, note), said)
            while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
                os.kill(pid, signal.SIGCONT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            said.seek(0)
            told = {
                "code": os.waitstatus_to_exitcode(status),
                "said": said.read().decode(errors="replace"),
                "changes": int(note.read_text()) if note.exists() else 0,
                "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            }
        print(json.dumps(told), flush=True)
    sys.exit()


if __name__ == "__main__":
    serve()
