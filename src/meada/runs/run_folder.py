"""A run's folder: what is in it, who may write to it, and what is refused."""

import fcntl
import json
import secrets
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from meada.errors import MeadaError
from meada.files import SUMS, keep_sums, naming, read_bytes, read_text, write_json, write_text
from meada.machine.distributed import World
from meada.runs.parts import code_in, refuse_disagreement
from meada.runs.recipe import Recipe, from_toml, to_toml
from meada.settings import flattened


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def recipe(self) -> Path:
        return self.path / "recipe.toml"

    @property
    def record(self) -> Path:
        return self.path / "record.json"

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.pt"

    @property
    def gallery(self) -> Path:
        return self.path / "gallery.safetensors"

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.safetensors"

    @property
    def attack(self) -> Path:
        return self.path / "attack.json"

    @property
    def apart(self) -> Path:
        return self.path / "apart.json"

    @property
    def position(self) -> Path:
        return self.path / "position.json"

    @property
    def pool(self) -> Path:
        return self.path / "pool"

    def candidate(self, step: int) -> Path:
        return self.path / "candidates" / f"step-{step:07d}.safetensors"

    def selected(self, rule: str) -> Path:
        return self.model if rule == "last" else self.path / "selected" / f"{rule}.safetensors"

    @property
    def finished(self) -> bool:
        return self.record.exists()

    def begin(self, recipe: Recipe) -> None:
        """A new run: the folder must be new or empty, or left by one that never got under way."""
        others = self._others()
        text = to_toml(recipe)
        if others == ["recipe.toml"] and self.recipe.read_bytes() == text.encode():
            keep_sums(self.path)
            write_text(self.recipe, text)  # for its checksum
            return
        if self.recipe.exists():
            raise MeadaError(f"{self.path} already holds a run: --resume carries it on, a new --out begins anew")
        if self.path.exists() and not self.path.is_dir():
            raise MeadaError(f"{self.path} is a file: --out needs a folder")
        if others:
            raise MeadaError(f"{self.path} is not empty and holds no run: --out needs a new folder")
        keep_sums(self.path)
        write_text(self.recipe, text)

    def _others(self) -> list[str]:
        """What lies there next to checksums and the marks of a process at work."""
        if not self.path.is_dir():
            return []
        return [p.name for p in self.path.iterdir() if p.name not in (".lock", ".processes", SUMS)]

    def carry_on(self, recipe: Recipe) -> None:
        """A run that was begun: with the same recipe."""
        if not self.recipe.exists():
            raise MeadaError(f"{self.path} holds no run to resume: recipe.toml is not there")
        if not keep_sums(self.path):
            warnings.warn(f"{self.path} has no {SUMS}: damage to its older files cannot be noticed", stacklevel=2)
        held = from_toml(self.recipe, trust=[name for _, name in code_in(recipe.model_dump())])
        if held != recipe:
            raise MeadaError(
                f"{self.recipe} differs from the recipe that was asked for in "
                f"{_difference(held.model_dump(), recipe.model_dump())}: "
                "resume with the same settings, or begin anew with another --out"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One process at a time; the system lets go of it when the process ends in any way."""
        if self.path.exists() and not self.path.is_dir():
            raise MeadaError(f"{self.path} is a file: --out needs a folder")
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise MeadaError(f"{self.path}: another process is training there") from None
            yield

    @property
    def locked(self) -> bool:
        """Whether a process is training there."""
        if not (self.path / ".lock").exists():
            return False
        try:
            with self.lock():
                return False
        except MeadaError:
            return True

    def shared(self, world: World) -> bool:
        """Whether every process sees the first one's folder, as on a common file system."""
        if world.size == 1:
            return True
        token = self.path / ".processes"
        self.path.mkdir(parents=True, exist_ok=True)
        if world.first:
            write_text(token, secrets.token_hex())
        world.barrier()
        for _ in range(20):  # a network file system may be a second or two behind
            if token.exists():
                break
            time.sleep(0.1)
        shared = world.sees(token.read_bytes() if token.exists() else None)
        if world.first:
            token.unlink()
        return shared

    def write_log(self, line: dict[str, Any]) -> str:
        """Add a line with its own checksum; gives back the text."""
        text = json.dumps({**line, "crc32": _crc(line)}) + "\n"
        with naming(self.log), open(self.log, "a", encoding="utf-8") as file:
            file.write(text)
        return text

    def read_log(self) -> tuple[dict[str, Any], ...]:
        """Whole lines: the last one of a running run may be half written."""
        if not self.log.exists():
            return ()
        *lines, rest = self.log.read_bytes().split(b"\n")
        if rest and self.finished:
            lines.append(rest)
        signed = any(b'"crc32"' in line for line in lines)  # a version before this one wrote none
        return tuple(self._line(number, line, signed) for number, line in enumerate(lines, 1))

    def _line(self, number: int, text: bytes, signed: bool) -> dict[str, Any]:
        try:
            line = json.loads(text)
            if (signed and line.pop("crc32") != _crc(line)) or not isinstance(line["step"], int):
                raise ValueError("its checksum does not match")
            return dict(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{type(error).__name__}: {error}"
            raise MeadaError(f"{self.log} is damaged: line {number} must be what was written, got {what}") from None

    def restore_log(self, lines: Sequence[str]) -> None:
        """As it was at the checkpoint: what came later is about to happen again."""
        if lines or self.log.exists():
            write_text(self.log, "".join(lines), checked=False)

    def rewind_log(self, step: int, rounds: int) -> list[str]:
        """The same for a checkpoint of an earlier version, which does not hold the log."""
        there = lambda told: told["step"] <= step and told.get("round", 0) <= rounds
        lines = [json.dumps({**line, "crc32": _crc(line)}) + "\n" for line in self.read_log() if there(line)]
        self.restore_log(lines)
        return lines

    def load_gallery(self) -> dict[str, Tensor]:
        """Pictures of every round; none where there is no file."""
        try:
            return load(read_bytes(self.gallery)) if self.gallery.exists() else {}
        except SafetensorError as error:
            raise MeadaError(f"{self.gallery} is damaged: it must be safetensors, got {error}") from None

    def write_position(self, phase: str, done: int, total: int) -> None:
        """Where a run is, for whoever watches it; nothing is resumed from it."""
        write_text(self.position, json.dumps({"phase": phase, "done": done, "total": total}), checked=False)

    def load_position(self) -> tuple[str, int, int] | None:
        try:
            held = json.loads(self.position.read_text(encoding="utf-8"))
            return str(held["phase"]), int(held["done"]), int(held["total"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_ascent(self, round_: int, seconds: float) -> None:
        """How long a round has climbed: like its samples, it outlives the process."""
        write_text(self._ascent(round_), f"{seconds} {_crc(seconds)}\n", checked=False)

    def load_ascent(self, round_: int) -> float:
        path = self._ascent(round_)
        try:
            seconds, *told = path.read_text(encoding="utf-8").split()
            if told not in ([], [_crc(float(seconds))]):
                raise ValueError(told)
            return float(seconds)
        except FileNotFoundError:
            return 0.0
        except (ValueError, OSError):
            raise MeadaError(f"{path} is damaged: delete it to go on (the round's time will be too short)") from None

    def _ascent(self, round_: int) -> Path:
        return self.pool / f"round-{round_ + 1}.seconds"

    def load_recipe(self, trust: Iterable[str] = ()) -> Recipe:
        """Code that the file names is run later only if its name is in ``trust``."""
        if not self.recipe.exists():
            raise MeadaError(f"{self.path} holds no run: recipe.toml is not there")
        recipe = from_toml(self.recipe, trust)
        refuse_disagreement(recipe.model_dump(), trust)
        return recipe

    def load_record(self) -> dict[str, Any]:
        if not self.finished:
            raise MeadaError(f"{self.path} holds no finished run: no record.json")
        return read_json(self.record, {"results": dict, "seed": int})

    def load_apart(self) -> dict[str, dict[str, Any]]:
        """Domain -> rule -> scores, of domains that its recipe does not name."""
        return read_json(self.apart) if self.apart.exists() else {}

    def keep_apart(self, rule: str, scores: dict[str, dict[str, Any]]) -> None:
        """Beside what was kept before, of other domains and under other rules."""
        held = self.load_apart()
        write_json(self.apart, held | {d: {**held.get(d, {}), rule: s} for d, s in scores.items()})


def read_json(path: Path, types: Mapping[str, type] | None = None) -> dict[str, Any]:
    """A table; ``types`` are those of keys that it may have."""
    try:
        table = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, MeadaError):
            raise
        raise MeadaError(f"{path} is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise MeadaError(f"{path} must be a JSON table, got {type(table).__name__}")
    for key, wanted in (types or {}).items():
        if key in table and not isinstance(table[key], wanted):
            raise MeadaError(f"{path}: '{key}' must be a {wanted.__name__}, got {table[key]!r:.80}")
    return table


def _crc(content: Any) -> str:
    return f"{zlib.crc32(json.dumps(content).encode()):08x}"


def _difference(a: dict[str, Any], b: dict[str, Any]) -> str:
    """The first key at which two tables part, with both values."""
    a, b = flattened(a), flattened(b)
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) != b.get(name):
            return f"{name} ({a.get(name)!r} there, {b.get(name)!r} asked for)"
    return "nothing"
