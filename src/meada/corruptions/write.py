"""Corrupted copies of a data set on disk: the published CIFAR-C layout, or a folder tree.

A sidecar, ``corruptions.json``, says that the files are generated and how; it is written first, and
a folder whose sidecar says otherwise is refused rather than mixed. A file is there whole or not at
all, so a second call goes on where the first one stopped.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from io import BytesIO
from itertools import accumulate
from multiprocessing import get_context
from operator import call
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from meada import __version__
from meada.corruptions.batch import CORRUPTIONS, FUNCTIONS, SEVERITIES, corrupt
from meada.corruptions.constants import constants_of, table_for
from meada.corruptions.sources import Stack, Tree
from meada.corruptions.weather import frost_source
from meada.errors import MeadaError, check_count, nearest
from meada.files import DRAFT, naming, new_folder, write_bytes, write_json, write_npy
from meada.machine.limits import map_npy
from meada.machine.terminal import Tell

Run = Callable[[Sequence[Callable[[], int]]], Iterator[int]]  # tasks to how many images each has made
CHUNK = 500  # images of a stack, per task
PICTURES = 8  # of a tree, per task
NAMES = 150  # pixels to the left of the picture of all corruptions
GAP = 4
SIDE = 96  # small images are enlarged by a whole factor to at least this


@dataclass(frozen=True)
class Settings:
    """Corruptions to write. ``constants`` names a table; by default the one for the nearer image size."""

    corruptions: tuple[str, ...] = CORRUPTIONS
    severities: tuple[int, ...] = SEVERITIES
    seed: int = 0
    constants: str | None = None

    def __post_init__(self) -> None:
        for name in self.corruptions:
            if name not in FUNCTIONS:
                raise MeadaError(f"unknown corruption '{name}': {nearest(name, FUNCTIONS)}")
        if not self.severities or not set(self.severities) <= set(SEVERITIES):
            raise MeadaError(f"severities must be from 1 to 5, got {list(self.severities)}")
        if self.constants is not None:
            constants_of(self.constants)

    def corrupt(self, images: np.ndarray, name: str, severity: int, index: Sequence[int] | np.ndarray) -> np.ndarray:
        return corrupt(images, name, severity, seed=self.seed, index=index, constants=self.constants)


def write(
    source: Stack | Tree, out: Path, settings: Settings | None = None, *,
    workers: int = 1, tell: Tell = lambda phase, done, total: None,
) -> dict[str, Any]:  # fmt: skip
    """Write every corruption of ``source`` below ``out``; existing files are kept."""
    settings = settings or Settings()
    check_count("workers", workers, least=1)
    if isinstance(source, Tree) and out.resolve().is_relative_to(source.root.resolve()):
        raise MeadaError(f"--out must be outside of the pictures to corrupt ({source.root}), got {out}")
    new_folder(out)
    with _alone(out), _running(workers) as run:
        sidecar = _merged(out / "corruptions.json", _sidecar(source, settings))
        write_json(out / "corruptions.json", sidecar)
        if isinstance(source, Tree):
            first = source.read(0)
            _write_tree(source, out, settings, run, tell)
        else:
            first = source.images[0].transpose(2, 0, 1)
            _write_stack(source, out, settings, run, tell)
        _save_png(out / "corruptions.png", picture(first, sidecar["corruptions"], settings))
        sidecar["complete"] = True
        write_json(out / "corruptions.json", sidecar)
        return sidecar


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Lock the folder for this process; remove unfinished files of killed processes."""
    handle = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for draft in out.rglob(".*"):
            if draft.is_dir() and draft.name.startswith(".source."):
                rmtree(draft, ignore_errors=True)
            elif draft.name.endswith(".partial") or DRAFT.fullmatch(draft.name):
                draft.unlink(missing_ok=True)
        yield
    except BlockingIOError:
        raise MeadaError(f"{out} must be written by one process at a time, got a second meada corrupt") from None
    finally:
        os.close(handle)


def _sidecar(source: Stack | Tree, settings: Settings) -> dict[str, Any]:
    count = len(source.paths if isinstance(source, Tree) else source.images)
    chosen = settings.constants
    if chosen is None and isinstance(source, Stack):
        chosen = table_for(*source.images.shape[1:3])
    return {
        "generated": True,  # not the published files
        "complete": False,
        "by": f"meada {__version__}",
        "source": source.name,
        "sha256": source.digest(),
        "images": count,
        "layout": "corruption/severity/path" if isinstance(source, Tree) else "severities in order",
        "frost": frost_source(),
        **asdict(settings),
        "constants": chosen or "by each picture's size",
        **({"size": source.size} if isinstance(source, Tree) else {}),
    }


def _merged(path: Path, sidecar: dict[str, Any]) -> dict[str, Any]:
    """Refuse to add to files made with other settings; only the list of corruptions may grow."""
    if not path.exists():
        if published := sorted(file.name for file in path.parent.glob("*.npy")):
            raise MeadaError(
                f"{path.parent} holds {published[0]} but no corruptions.json: these may be published files, which "
                "must not be mixed with generated ones; choose another --out"
            )
        return sidecar
    try:
        old = json.loads(path.read_text())
    except ValueError as error:
        raise MeadaError(f"{path} must be JSON, got {error}; choose another --out") from error
    now = json.loads(json.dumps(sidecar))  # lists for tuples, as on disk
    for key in sorted(set(now) - {"corruptions", "source", "complete"}):
        if old.get(key) != now[key]:
            raise MeadaError(
                f"{key} must be that of the corruptions in {path.parent}, {old.get(key)}, got {now[key]}: "
                "choose another --out"
            )
    return now | {"corruptions": list(dict.fromkeys([*old["corruptions"], *now["corruptions"]]))}


def _save_png(path: Path, image: Image.Image) -> None:
    file = BytesIO()
    image.save(file, "PNG")
    write_bytes(path, file.getvalue())


def _write_stack(source: Stack, out: Path, settings: Settings, run: Run, tell: Tell) -> None:
    """The published layout: NAME.npy with the images of each severity in turn, and labels.npy."""
    labels = np.tile(np.asarray(source.labels), len(settings.severities))
    small = labels.min() >= 0 and labels.max() < 256
    write_npy(out / "labels.npy", labels.astype(np.uint8 if small else np.int64))
    with TemporaryDirectory(dir=out, prefix=".source.") as folder:
        shared = Path(folder) / "images.npy"  # the workers read it from disk, once
        np.save(shared, source.images)
        for name in settings.corruptions:
            if not (out / f"{name}.npy").exists():
                _write_corruption(shared, out / f"{name}.npy", name, settings, run, tell)


def _write_corruption(shared: Path, path: Path, name: str, settings: Settings, run: Run, tell: Tell) -> None:
    shape = map_npy(shared).shape
    total = len(settings.severities) * shape[0]
    draft = path.with_name(f".{path.name}.partial")
    try:
        np.lib.format.open_memmap(draft, "w+", np.uint8, (total, *shape[1:]))
        with naming(draft), open(draft, "r+b") as file:
            # Take its bytes on disk now: written through a mapping, a full disk would kill the process.
            os.posix_fallocate(file.fileno(), 0, draft.stat().st_size)
        tasks = [
            partial(_corrupt_chunk, shared, draft, name, place, severity, first, settings)
            for place, severity in enumerate(settings.severities)
            for first in range(0, shape[0], CHUNK)
        ]
        for done in accumulate(run(tasks)):
            tell(name, done, total)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _corrupt_chunk(
    shared: Path, draft: Path, name: str, place: int, severity: int, first: int, settings: Settings
) -> int:
    source, target = map_npy(shared), map_npy(draft, "r+")
    images = np.ascontiguousarray(source[first : first + CHUNK].transpose(0, 3, 1, 2))
    index = np.arange(first, first + len(images))
    corrupted = settings.corrupt(images, name, severity, index)
    start = place * len(source) + first
    target[start : start + len(images)] = corrupted.transpose(0, 2, 3, 1)
    target.flush()  # type: ignore[attr-defined]
    return len(images)


def _write_tree(source: Tree, out: Path, settings: Settings, run: Run, tell: Tell) -> None:
    """A folder tree of PNG files: NAME/SEVERITY/ and then the picture's own path."""
    numbers = range(len(source.paths))
    tasks = [partial(_corrupt_pictures, source, out, numbers[i : i + PICTURES], settings) for i in numbers[::PICTURES]]
    for done in accumulate(run(tasks)):
        tell("pictures", done, len(numbers))


def _corrupt_pictures(source: Tree, out: Path, numbers: Sequence[int], settings: Settings) -> int:
    for number in numbers:
        below = source.paths[number].with_suffix(".png")
        image = None
        for name in settings.corruptions:
            for severity in settings.severities:
                path = out / name / str(severity) / below
                if path.exists():
                    continue
                image = source.read(number) if image is None else image
                corrupted = settings.corrupt(image[None], name, severity, [number])
                _save_png(path, as_pillow(corrupted[0]))
    return len(numbers)


def picture(image: UInt8[np.ndarray, "C H W"], names: Sequence[str], settings: Settings) -> Image.Image:
    """A figure of the clean image and its five severities, for each of ``names``."""
    factor = -(-SIDE // min(image.shape[1:]))
    height, width = (side * factor + GAP for side in image.shape[1:])
    columns = 1 + len(SEVERITIES)
    size = (NAMES + columns * width, 20 + len(names) * height)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
    for column, title in enumerate(("clean", *(f"severity {s}" for s in SEVERITIES))):
        draw.text((NAMES + column * width, 2), title, fill="black", font=font)
    for row, name in enumerate(names):
        top = 20 + row * height
        draw.text((4, top + height // 2 - 8), name, fill="black", font=font)
        shown = [settings.corrupt(image[None], name, s, [0])[0] for s in SEVERITIES]
        for column, cell in enumerate((image, *shown)):
            sheet.paste(as_pillow(cell.repeat(factor, 1).repeat(factor, 2)), (NAMES + column * width, top))
    return sheet


def as_pillow(image: UInt8[np.ndarray, "C H W"]) -> Image.Image:
    return Image.fromarray(image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))


@contextmanager
def _running(workers: int) -> Iterator[Run]:
    """Runs tasks in fresh processes, since torch's threads do not survive a fork; here for a single worker."""
    if workers == 1:
        yield partial(map, call)
        return
    # One thread per process: the processes are the parallelism.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,))
    try:
        yield partial(pool.map, call)
    finally:
        pool.shutdown(cancel_futures=True)
