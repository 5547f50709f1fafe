"""Random commands, settings and files: a result or one sentence, never a traceback.

``MEADA_SEED`` repeats a run, ``MEADA_FUZZ`` is the number of cases.
"""

import json
import os
import random
import resource
import shutil
import time
import tomllib
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import tomli_w
import torch
import typer
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests_tiny import SEED, load_tiny, network_of, write_recipe

import meada.cli.main as cli
from meada.errors import MeadaError
from meada.runs.run import run
from meada.settings import flattened

CASES = int(os.environ.get("MEADA_FUZZ", 300))
NUMBERS = "-1 0 1 2 0.5 -0.0 nan inf -inf 1e308 9223372036854775808 -9223372036854775809"
TEXTS = "true [] [1] [[1]] {} {a=1} '' x [/b] \x1b[31m ../.. null é 1,2 1979-05-27 os:system a=b erm meada last digits"
VALUES = (*NUMBERS.split(), *TEXTS.split(" "), "1" * 5000, "[" * 2000, '"\\u0000"', '["a"]')
LEAVES: tuple[Any, ...] = (None, True, -1, 0, 1, 1e308, 2**70, "", "x", "[/b]", [], [1], {}, {"a": 1}, [[None]])
NOT_HERE = {"bench", "doctor", "get", "push"}  # other processes, the network
ALWAYS = {"inspect": ["--no-pictures"], "sweep": ["--dry-run"], "reproduce": ["--dry-run"], "watch": ["--once"]}
LEFT_OUT = {"help", "version", "install_completion", "show_completion", "dry_run", "once"}
HEAVY = {"inspect", "quickstart", "corrupt", "robustify"}  # tried less often
READERS = ("evaluate", "inspect", "report", "watch", "predict", "perturb", "train")
SMALL = ["data.train=20", "data.validation=10", "data.test=10", "plan.rounds=1", "plan.min_steps=2",
         "plan.total_steps=4", "plan.batch_size=10", "method.steps=1", "evaluation.every=2", "evaluation.subset=10",
         "evaluation.crafted=2"]  # fmt: skip


class World:
    """A finished run, its recipe, pictures and arrays; random commands about them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, folder / "run"
        self.recipe = write_recipe(folder)
        self.trust = network_of(self.recipe)
        resolved = load_tiny(self.recipe, SMALL)
        run(resolved, self.run)
        self.keys = [*flattened(resolved.model_dump()), "loss.name", "augment.name", "scale", "zz", "plan", "a.b.c"]
        rng = np.random.default_rng(0)
        for place in range(6):
            path = folder / "photos" / "ab"[place % 2] / f"{place}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(path)
        np.save(folder / "images.npy", rng.integers(0, 256, (2, 32, 32, 3), np.uint8))
        np.save(folder / "labels.npy", np.arange(2))
        (folder / "empty").mkdir()
        (folder / "text").write_text("x")
        os.mkfifo(folder / "fifo")
        there = "run run/model.safetensors photos photos/a/0.png images.npy empty text fifo nowhere"
        self.paths = [self.recipe, *(folder / name for name in there.split())]

    def value(self, rng: random.Random, param: click.Parameter, run: Path) -> str:
        name = param.name or ""
        if name in ("set_", "grid"):
            return f"{rng.choice(self.keys)}={rng.choice(VALUES)}"
        if name in ("trust", "network") and rng.random() < 0.9:
            return self.trust
        if name in ("out", "csv", "onnx", "markdown", "png") and rng.random() < 0.9:
            return str(self.folder / "made" / f"{rng.randrange(10**9)}")
        if name == "recipe" and rng.random() < 0.8:
            return rng.choice([str(self.recipe), "quickstart/erm", str(run / "recipe.toml")])
        if name in ("run", "model", "runs", "folder", "source") and rng.random() < 0.7:
            return str(run)
        if name in ("images", "data") and rng.random() < 0.7:
            return str(self.folder / "photos")
        return str(rng.choice(self.paths)) if rng.random() < 0.3 else rng.choice(VALUES)

    def words(self, rng: random.Random, name: str, command: click.Command, run: Path) -> list[str]:
        words: list[str] = []
        for param in command.params:
            if param.name in LEFT_OUT:
                continue
            if param.param_type_name == "argument":
                words.append(self.value(rng, param, run))
            elif param.required or rng.random() < (0.8 if param.name in ("set_", "trust") else 0.15):
                words.append(param.opts[0])
                words += [] if getattr(param, "is_flag", False) else [self.value(rng, param, run)]
        return [*name.split(), *words, *ALWAYS.get(name, [])]

    def damaged(self, rng: random.Random, out: Path) -> Path:
        """The run with one value of one of its files replaced, as a stranger could: without checksums."""
        shutil.copytree(self.run, out)
        (out / "checksums.json").unlink()
        file = out / rng.choice(["record.json", "record.json", "log.jsonl", "recipe.toml", "model.safetensors"])
        if file.suffix == ".json":
            file.write_text(json.dumps(replaced(rng, json.loads(file.read_text()))))
        elif file.suffix == ".jsonl":
            lines = [json.loads(line) for line in file.open()]
            for line in lines:
                line.pop("crc32")
            file.write_text("".join(json.dumps(line) + "\n" for line in replaced(rng, lines)))
        elif file.suffix == ".toml":
            file.write_text(tomli_w.dumps(_plain(replaced(rng, tomllib.loads(file.read_text())))))
        else:
            with safe_open(file, "pt") as held:
                about = dict(held.metadata())
            about.pop("sha256")
            about[rng.choice(list(about))] = rng.choice(VALUES)
            save_file(load_file(file), file, about)
        return out


def replaced(rng: random.Random, content: Any) -> Any:
    """One value, somewhere in tables and lists, by another; the outermost stays what it is."""
    here, places = content, list(content) if isinstance(content, dict) else list(range(len(content)))
    while True:
        key = rng.choice(places)
        inner = here[key]
        places = list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
        if not places or rng.random() < 0.2:
            here[key] = rng.choice(LEAVES)
            return content
        here = inner


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null and no large numbers."""
    return {
        k: _plain(v) if isinstance(v, dict) else "x" if v in (None, 2**70, [[None]]) else v for k, v in table.items()
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    torch.set_default_dtype(torch.float32)
    return World(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, world: World) -> Iterator[None]:
    """Whatever takes long is begun and then stopped, as if by a person; memory has a limit."""
    import meada.cli.reproduce
    import meada.corruptions.write
    import meada.deploy.onnx
    import meada.robustify.pipeline
    import meada.runs.run

    running = meada.corruptions.write._running

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(meada.runs.run, "finish", stop)
    monkeypatch.setattr(meada.runs.run.Recorder, "climbed", stop)
    stepped = meada.runs.run.Recorder.stepped

    def two_steps(self: Any, training: Any, loss: Any) -> None:
        stepped(self, training, loss)
        if training.step >= 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(meada.runs.run.Recorder, "stepped", two_steps)
    monkeypatch.setattr(meada.robustify.pipeline, "carry_out", stop)
    monkeypatch.setattr(meada.cli.reproduce, "_tried", lambda *_: {})
    monkeypatch.setattr(meada.corruptions.write, "_running", lambda workers: running(1))
    monkeypatch.setattr(meada.deploy.onnx, "export_onnx", stop)
    monkeypatch.setenv("MEADA_CACHE", str(world.folder / "cache"))
    monkeypatch.setenv("MEADA_DATA", str(world.folder / "no data"))
    monkeypatch.chdir(world.folder / "empty")
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (6 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


WHOLE = typer.main.get_command(cli.app)


def commands() -> dict[str, click.Command]:
    """Every verb by its words."""
    found: dict[str, click.Command] = {}
    for name, command in WHOLE.commands.items():  # type: ignore[attr-defined]
        inner: dict[str, click.Command] = getattr(command, "commands", {})
        found |= {f"{name} {sub}": one for sub, one in inner.items()} if inner else {name: command}
    return {name: one for name, one in found.items() if name.split()[-1] not in NOT_HERE}


def fault(words: list[str]) -> str:
    """What a person would see of the program's insides; nothing where all is well."""
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            WHOLE.main(args=words, prog_name="meada")
        return ""
    except (MeadaError, OSError, MemoryError, KeyboardInterrupt):  # one sentence, as ``cli.main`` tells it
        return ""
    except SystemExit as end:
        return "" if end.code in (None, 0, 2, 130) else f"exit code {end.code} by {' '.join(words)!r:.300}"
    except BaseException as error:
        stack = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
        return f"{error!r:.200} at {' '.join(stack[-5:])} by {' '.join(words)!r:.300}"


def test_random_commands_end_well_or_in_a_sentence(world, short, single, tmp_path):
    rng, verbs, faults = random.Random(SEED), commands(), []
    names = [name for name in verbs for _ in range(1 if name in HEAVY else 4)]
    slow: dict[str, float] = {}
    for number in range(CASES):
        name = rng.choice(names if number % 3 else READERS)
        run = world.run if number % 3 else world.damaged(rng, tmp_path / str(number))
        words = world.words(rng, name, verbs[name], run)
        began = time.monotonic()
        if found := fault(words):
            faults.append(found)
            print(found)
        slow[" ".join(words)[:200]] = time.monotonic() - began
    print(sorted(slow.items(), key=lambda one: -one[1])[:5])
    assert not faults, f"MEADA_SEED={SEED}, {len(faults)} faults:\n" + "\n".join(sorted(faults))
