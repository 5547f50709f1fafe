"""A run's folder: the names of its files, its lock, and reading and writing with checks."""

import fcntl
import json
import os
import secrets
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from meada.errors import MeadaError
from meada.files import (
    DRAFT,
    MAX_TEXT_BYTES,
    SUMS,
    crc32,
    keep_sums,
    naming,
    new_folder,
    read_text,
    regular,
    write_text,
)
from meada.machine.distributed import World
from meada.runs.checkpoint import read_tensors
from meada.runs.functions import code_in, refuse_disagreement
from meada.runs.recipe import Recipe, from_toml, to_toml
from meada.settings import flattened

# Seconds before each try to lock a folder: a process that only looks whether it is locked holds it for an instant.
LOCK_WAITS = (0.0, *[0.1] * 20)


@dataclass(frozen=True)
class InFolder:
    """An attribute that is the path of a file in the folder."""

    name: str

    def __get__(self, folder: "RunFolder", owner: type) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    path: Path

    recipe = InFolder("recipe.toml")
    record = InFolder("record.json")
    log = InFolder("log.jsonl")
    model = InFolder("model.safetensors")
    checkpoint = InFolder("checkpoint.pt")
    gallery = InFolder("gallery.safetensors")
    predictions = InFolder("predictions.safetensors")
    attack = InFolder("attack.json")
    position = InFolder("position.json")
    pool = InFolder("pool")

    def candidate(self, step: int) -> Path:
        return self.path / "candidates" / f"step-{step:07d}.safetensors"

    def selected(self, rule: str) -> Path:
        return self.model if rule == "last" else self.path / "selected" / f"{rule}.safetensors"

    @property
    def finished(self) -> bool:
        return self.record.exists()

    def begin(self, recipe: Recipe) -> None:
        """Start a run: the folder must be new, empty, or that of a run without a training step."""
        marks = (".lock", ".processes", SUMS)  # checksums, and the marks of a process at work
        there = [p.name for p in self.path.glob("*") if p.name not in marks and not DRAFT.fullmatch(p.name)]
        text = to_toml(recipe)
        begun = there == ["recipe.toml"] and read_text(self.recipe) == text
        if self.recipe.exists() and not begun:
            raise MeadaError(f"{self.path} already holds a run: --resume continues it, another --out starts a new one")
        if there and not begun:
            raise MeadaError(f"--out must be a new or empty folder, got {self.path}, which holds other files")
        keep_sums(self.path)
        write_text(self.recipe, text)

    def resume(self, recipe: Recipe) -> None:
        """Open a run that was started with the same recipe."""
        if not self.recipe.exists():
            raise MeadaError(f"{self.path} must hold a run to resume, got no recipe.toml")
        for place in ("candidates", "selected"):
            if (self.path / place).is_symlink():  # old candidates are deleted: not where a link leads
                raise MeadaError(f"{self.path / place} must be a folder, got a link")
        if not keep_sums(self.path):
            warnings.warn(f"{self.path} has no {SUMS}: damage to its older files cannot be noticed", stacklevel=2)
        held = from_toml(self.recipe, trust=[name for _, name in code_in(recipe.model_dump())])
        if held != recipe:
            raise MeadaError(
                f"the recipe must be that of {self.recipe}, got another "
                f"{_difference(held.model_dump(), recipe.model_dump())}: "
                "resume with the same settings, or start again with another --out"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for one process; the system releases it when the process ends in any way."""
        new_folder(self.path)
        with _opened(self.path / ".lock") as file:
            if not any(_taken(file, wait) for wait in LOCK_WAITS):
                raise MeadaError(f"{self.path}: another process is training there")
            yield

    @property
    def locked(self) -> bool:
        """Whether a process is training in this folder."""
        if not (self.path / ".lock").is_file():
            return False
        with open(self.path / ".lock", "rb") as file:
            return not _taken(file)

    def shared(self, world: World) -> bool:
        """Whether all processes see the same folder, as on a shared file system."""
        if world.size == 1:
            return True
        token = self.path / ".processes"
        self.path.mkdir(parents=True, exist_ok=True)
        if world.is_main:
            write_text(token, secrets.token_hex())
        world.barrier()
        for _ in range(20):  # a network file system may be a second or two behind
            if token.exists():
                break
            time.sleep(0.1)
        shared = world.sees(token.read_bytes() if token.exists() else None)
        if world.is_main:
            token.unlink()
        return shared

    def write_log(self, line: dict[str, Any]) -> str:
        """Add a line with its own checksum; returns the text."""
        text = json.dumps({**line, "crc32": crc32(line)}) + "\n"
        with naming(self.log), open(self.log, "a", encoding="utf-8") as file:
            file.write(text)
        return text

    def read_log(self) -> tuple[dict[str, Any], ...]:
        """Complete lines of the log; the last one of a running run may be half written."""
        if not self.log.exists():
            return ()
        *lines, rest = regular(self.log, MAX_TEXT_BYTES).read_bytes().split(b"\n")
        lines += [rest] if rest and self.finished else []
        signed = any(b'"crc32"' in line for line in lines)  # a version before this one wrote none
        return tuple(self._line(number, line, signed) for number, line in enumerate(lines, 1))

    def _line(self, number: int, text: bytes, signed: bool) -> dict[str, Any]:
        try:
            line = json.loads(text)
            if (signed and line.pop("crc32") != crc32(line)) or not isinstance(line["step"], int):
                raise ValueError("its checksum does not match")
            return dict(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{type(error).__name__}: {error}"
            raise MeadaError(f"{self.log} is damaged: line {number} must be what was written, got {what}") from None

    def restore_log(self, lines: Sequence[str]) -> None:
        """Restore the log of the checkpoint; later steps are repeated."""
        if lines or self.log.exists():
            write_text(self.log, "".join(lines), checked=False)

    def rewind_log(self, step: int, rounds: int) -> list[str]:
        """Restore the log for a checkpoint of an earlier version, which does not contain it."""
        there = lambda line: line["step"] <= step and line.get("round", 0) <= rounds
        lines = [json.dumps({**line, "crc32": crc32(line)}) + "\n" for line in self.read_log() if there(line)]
        self.restore_log(lines)
        return lines

    def load_gallery(self) -> dict[str, Tensor]:
        """Pictures of every round; empty if there is no file."""
        return read_tensors(self.gallery) if self.gallery.exists() else {}

    def write_position(self, phase: str, done: int, total: int) -> None:
        """Write the current phase and step, for ``meada watch``; nothing is resumed from it."""
        write_text(self.position, json.dumps({"phase": phase, "done": done, "total": total}), checked=False)

    def load_position(self) -> tuple[str, int, int] | None:
        try:
            held = json.loads(regular(self.position, MAX_TEXT_BYTES).read_text(encoding="utf-8"))
            return str(held["phase"]), int(held["done"]), int(held["total"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_ascent(self, round_: int, seconds: float) -> None:
        """Write the seconds that a round has taken so far; kept, like its samples, if the process dies."""
        write_text(self._ascent(round_), f"{seconds} {crc32(seconds)}\n", checked=False)

    def load_ascent(self, round_: int) -> float:
        path = self._ascent(round_)
        try:
            seconds, *checksum = path.read_text(encoding="utf-8").split()
            if checksum not in ([], [crc32(float(seconds))]):
                raise ValueError(checksum)
            return float(seconds)
        except FileNotFoundError:
            return 0.0
        except (ValueError, OSError):
            raise MeadaError(
                f"{path} is damaged: delete it to continue (this round's time will be too short)"
            ) from None

    def _ascent(self, round_: int) -> Path:
        return self.pool / f"round-{round_ + 1}.seconds"

    def load_recipe(self, trust: Iterable[str] = ()) -> Recipe:
        """Code that the file names is run later only if its name is in ``trust``."""
        if not self.recipe.exists():
            raise MeadaError(f"{self.path} must hold a run, got no recipe.toml")
        recipe = from_toml(self.recipe, trust)
        refuse_disagreement(recipe.model_dump(), trust)
        return recipe

    def load_record(self) -> dict[str, Any]:
        if not self.finished:
            raise MeadaError(f"{self.path} must hold a finished run, got no record.json")
        return read_json(self.record)


def _opened(path: Path) -> IO[bytes]:
    """Open or create a lock file. Links are not followed: an untrusted folder could link to any file."""
    with naming(path):
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666), "r+b", 0)


def _taken(file: IO[Any], wait: float = 0.0) -> bool:
    """Try to take the lock until the file is closed; return whether it was free."""
    time.sleep(wait)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_json(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MeadaError(f"{path} is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise MeadaError(f"{path} must be a JSON table, got {type(table).__name__}")
    return table


def _difference(a: dict[str, Any], b: dict[str, Any]) -> str:
    """The first key at which two tables differ, with both values."""
    a, b = flattened(a), flattened(b)
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) != b.get(name):
            return f"{name} ({a.get(name)!r} there, {b.get(name)!r} given)"
    return "nothing"
