"""Soak: kill a sweep of small runs at random moments for an hour, and compare with a sweep that nobody touched.

    python scripts/soak.py --minutes 60 --seed 1 --out soak

Every cycle carries one sweep (ADA and ME-ADA, two seeds each) through kills to its end. Then weights, records and
logs must equal those of the undisturbed sweep, apart from times; a log must have no line twice, and no draft may be
left. A difference ends the soak with exit code 1 and the cycle's seed. Processes are forked, so that
kills do not spend themselves on the import of torch.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from safetensors.torch import load_file
from torch import nn

import meada.cli.main
import meada.runs.run  # noqa: F401 - before the first fork
from meada.datasets import DATASETS
from meada.files import DRAFT
from meada.runs.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from tests_kills import Forked, command, fork, runs_are_forked

SETTINGS = ("data.train=120", "data.validation=40", "data.test=40", "plan.rounds=2", "plan.min_steps=20",
            "plan.total_steps=60", "plan.batch_size=20", "method.steps=8", "method.block=6", "evaluation.every=10",
            "evaluation.subset=20", "evaluation.crafted=10", "checkpoint_seconds=0")  # fmt: skip
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# Python itself swallows an interrupt that comes while it runs its handlers after a fork, and says so.
SWALLOWED = re.compile(r"Exception ignored in: <function .*?\nKeyboardInterrupt: *\n", re.DOTALL)
QUIET = 20  # attempts in a row after which a sweep is left alone, so that every cycle ends


def small(num_classes: int = 10) -> nn.Module:
    """A network whose checkpoints are small: most of a run's time is in its files."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(392, 32), nn.ReLU(), nn.Linear(32, num_classes),
    )  # fmt: skip


def sweep(out: Path, jobs: int, said: IO[bytes]) -> Forked:
    """Begin ``meada sweep`` in a process of its own, whose runs are processes too."""
    words = ["sweep", "quickstart/meada", "--grid", "beta=0,10", "--seeds", "2", "--jobs", str(jobs), "--out", str(out)]
    settings = (*SETTINGS, f"network.name={Path(__file__).resolve()}:small")

    def run() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runs_are_forked()
        command([*words, *(word for one in settings for word in ("--set", one))])

    return Forked(fork(run, said))


def essence(run: Path) -> tuple[Any, ...]:
    """What a run is judged by, without times."""
    record = json.loads((run / "record.json").read_text())
    record.pop("seconds")
    for line in record["rounds"]:
        line.pop("seconds")
    weights = {k: v.numpy().tobytes() for k, v in load_file(run / "model.safetensors").items()}
    return weights, record, [{**line, "seconds": 0} for line in RunFolder(run).read_log()]


def faults(out: Path, whole: Path) -> list[str]:
    """What differs from the undisturbed sweep, run by run."""
    runs = {p.parent.name for p in whole.glob("*/record.json")}
    found = [f"{name} is lost" for name in sorted(runs - {p.parent.name for p in out.glob("*/record.json")})]
    found += [f"draft {p} is left" for p in out.rglob("*") if DRAFT.fullmatch(p.name) or p.suffix == ".draft"]
    for name in sorted(runs) if not found else ():
        for what, a, b in zip(("weights", "record", "log"), essence(whole / name), essence(out / name), strict=True):
            if a != b:
                found.append(f"{what} of {name} differ")
        lines = [(line["step"], "round" in line) for line in RunFolder(out / name).read_log()]
        if lines != sorted(set(lines)):
            found.append(f"the log of {name} repeats a line")
    return found


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in listed.read_text().split()] if listed.exists() else []


def disturb(process: Forked, rng: random.Random, seconds: float) -> str:
    """Wait for a random moment, then kill the sweep or one of its runs; what was done."""
    moment = time.monotonic() + rng.uniform(0, seconds)
    while time.monotonic() < moment:
        if process.poll() is not None:
            return "ended"
        time.sleep(0.01)
    runs, chosen = children(process.pid), rng.choice(SIGNALS)
    victim = rng.choice(runs) if runs and rng.random() < 0.4 else process.pid
    with suppress(ProcessLookupError):
        os.kill(victim, chosen)
    return f"{'sweep' if victim == process.pid else 'run'} {chosen.name}"


def cycle(out: Path, rng: random.Random, seconds: float, jobs: int, done: Counter[str]) -> None:
    """One sweep, carried through kills to its end."""
    for attempt in range(QUIET + 1):
        with tempfile.TemporaryFile() as said:
            process = sweep(out, jobs, said)
            fate = disturb(process, rng, seconds) if attempt < QUIET else "left alone"
            code = process.wait()
            said.seek(0)
            told = said.read().decode(errors="replace")
        done[fate] += 1
        bad = "Traceback" in SWALLOWED.sub("", told)
        if bad or code not in (0, 2, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
            raise SystemExit(f"exit code {code} after {fate}: {told}")
        if code == 0:
            return
        if fate == "left alone":
            raise SystemExit(f"a sweep that nobody killed failed: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("soak"))
    asked = parser.parse_args()
    began, whole, done, runs = time.monotonic(), asked.out / "whole", Counter[str](), 0
    os.environ["OMP_NUM_THREADS"] = "1"
    DATASETS["embedded"](train=20, validation=20, test=20)  # imports scikit-learn, once for all
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        if sweep(whole, asked.jobs, said).wait():
            said.seek(0)
            raise SystemExit(f"the undisturbed sweep failed: {said.read().decode()}")
    seconds = time.monotonic() - began
    print(f"seed {asked.seed}; the undisturbed sweep took {seconds:.0f} s", flush=True)
    number = 0
    while time.monotonic() - began < 60 * asked.minutes:
        out, rng = asked.out / str(number), random.Random(f"{asked.seed}/{number}")
        cycle(out, rng, seconds, asked.jobs, done)
        if found := faults(out, whole):
            raise SystemExit(f"seed {asked.seed}, cycle {number}: {'; '.join(found)}")
        runs, number = runs + len(list(out.glob("*/record.json"))), number + 1
        shutil.rmtree(out)
        print(f"{(time.monotonic() - began) / 60:.0f} min: cycle {number}, {runs} runs alike, {dict(done)}", flush=True)
    told = {"minutes": round((time.monotonic() - began) / 60), "seed": asked.seed, "cycles": number, "runs": runs,
            "kills": sum(n for fate, n in done.items() if " " in fate and fate != "left alone"), **done}  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main()
