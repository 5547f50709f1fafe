"""CIFAR-C (Hendrycks and Dietterich, 2019): the test split under fifteen corruptions at five severities.

One file per corruption, the severities one after the other. A sidecar file marks generated files, so that they are
never taken for published ones.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from meada.corruptions import CORRUPTIONS, SEVERITIES, VALIDATION
from meada.corruptions.sources import Stack
from meada.corruptions.write import write
from meada.datasets.task import Samples
from meada.errors import MeadaError
from meada.machine.limits import map_npy
from meada.types import Labels

SIDECAR = "corruptions.json"  # written by meada corrupt, and by nobody else


@dataclass(frozen=True, eq=False)
class Corrupted(Mapping[str, Samples]):
    """Corruption -> its images, severity 1 first.

    A file is mapped when it is asked for and let go of with what was asked: all fifteen are
    2.3 GB, of which no more than one need be in memory.
    """

    files: dict[str, Path]
    labels: Labels  # of one severity, the ones that are used
    total: int  # images of one severity in the files

    def __getitem__(self, name: str) -> Samples:
        pixels = torch.from_numpy(map_npy(self.files[name], "c")).permute(0, 3, 1, 2)
        parts = pixels.unflatten(0, (len(SEVERITIES), self.total))[:, : len(self.labels)]
        return Samples(parts.flatten(0, 1), self.labels.repeat(len(SEVERITIES)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def open_set(name: str, root: Path, clean: Samples, test: int, which: str) -> tuple[Corrupted, dict[str, str]]:
    """The corrupted copies of the first ``test`` of ``clean``, see :func:`meada.datasets.cifar`; their provenance."""
    folder = root / name
    if which == "official" and (folder / SIDECAR).exists():
        raise MeadaError(
            f"{folder} must hold the official corruptions, got generated ones (see {SIDECAR} in it): move it away and "
            "unpack the published archive there"
        )
    if which == "generated" or (which == "auto" and not folder.is_dir()):
        folder = _generated(name, root, clean, test)
    elif which not in ("official", "auto"):
        folder = Path(which)
    return _open(folder, clean, test)


def _open(folder: Path, clean: Samples, test: int) -> tuple[Corrupted, dict[str, str]]:
    """Open a folder after checking all of its files."""
    if not folder.is_dir():
        raise MeadaError(
            f"{folder} is missing: unpack the published archive there, or set data.corrupted to 'generated'"
        )
    sidecar = _sidecar(folder)
    total = int(sidecar["images"]) if sidecar else len(clean)
    if total < test or total > len(clean):
        raise MeadaError(f"{folder} must have {test:,} to {len(clean):,} images per severity, got {total:,}")
    files = {name: folder / f"{name}.npy" for name in CORRUPTIONS}
    if missing := [name for name, path in files.items() if not path.is_file()]:
        raise MeadaError(
            f"{folder} must hold all fifteen corruptions, got none of {', '.join(missing)}: the "
            "score is the mean over them"
        )
    _check_labels(folder / "labels.npy", clean.labels[:total])
    if sidecar and stack(str(folder), clean.first(total)).digest() != sidecar["sha256"]:
        raise MeadaError(f"{folder} must be made from this test split, got other images: choose another folder")
    for path in files.values():
        _check_images(path, total, clean)
    extra = [name for name in VALIDATION if (folder / f"{name}.npy").exists()]
    about = _about(folder, sidecar, test, total)
    left = {"left out": f"{', '.join(extra)}: not of the fifteen"} if extra else {}
    return Corrupted(files, clean.labels[:test], total), {"corruptions": about, **left}


def _sidecar(folder: Path) -> dict[str, Any]:
    """Metadata next to generated files; empty for published ones."""
    path = folder / SIDECAR
    if not path.exists():
        return {}
    try:
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        listed, complete = set(sidecar["corruptions"]), sidecar["complete"]
        severities, constants = tuple(sidecar["severities"]), sidecar["constants"]
        for key in ("images", "sha256", "seed", "frost", "by"):
            sidecar[key]
    except (ValueError, KeyError, TypeError) as error:
        raise MeadaError(f"{path} is not what meada corrupt writes ({error!r})") from None
    if not complete:
        raise MeadaError(f"{folder} is not finished: run the same meada corrupt command again to finish it")
    if severities != SEVERITIES or constants != "cifar":
        raise MeadaError(
            f"{path} must have severities 1 to 5 with the constants 'cifar', got {list(severities)} with '{constants}'"
        )
    if foreign := [n for n in CORRUPTIONS if n not in listed and (folder / f"{n}.npy").exists()]:
        raise MeadaError(
            f"{folder} holds {', '.join(foreign)}, which {SIDECAR} does not list: "
            "keep generated and other files in separate folders"
        )
    return sidecar


def _check_labels(path: Path, clean: Labels) -> None:
    labels = map_npy(path)
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise MeadaError(f"{path} must hold labels, got {labels.dtype} of shape {labels.shape}")
    wanted = np.tile(clean.numpy(), len(SEVERITIES))
    if labels.shape != wanted.shape:
        raise MeadaError(
            f"{path} must hold {len(wanted):,} labels, those of the test split repeated five times, got {len(labels):,}"
        )
    if different := int((labels != wanted).sum()):
        raise MeadaError(
            f"{path} must hold the labels of the test split, repeated five times, got {different:,} of "
            f"{len(wanted):,} that differ: the files belong to another data set"
        )


def _check_images(path: Path, total: int, clean: Samples) -> None:
    _, channels, height, width = clean.images.shape
    images, wanted = map_npy(path), (len(SEVERITIES) * total, height, width, channels)
    if images.dtype != np.uint8 or images.shape != wanted:
        raise MeadaError(
            f"{path} must hold uint8 of shape {wanted}, five severities of the test split in order, "
            f"got {images.dtype} of shape {images.shape}"
        )


def _about(folder: Path, sidecar: dict[str, Any], test: int, total: int) -> str:
    part = "" if test == total else f"; the first {test:,} of {total:,} images of each severity"
    if not sidecar:
        return f"official files in {folder.name}{part}"
    return (
        f"generated by {sidecar['by']}, seed {sidecar['seed']}, frost: {sidecar['frost']}, "
        f"from images with sha256 {sidecar['sha256']}{part}"
    )


def _generated(name: str, root: Path, clean: Samples, test: int) -> Path:
    """The generated copies below ``root``, made once; finished ones of the whole test split are used for any part."""
    home = root / "generated"
    whole, part = (home / f"{name}-first-{count}" for count in (len(clean), test))
    if _finished(whole):
        return whole
    home.mkdir(parents=True, exist_ok=True)
    with open(home / ".lock", "w") as lock:  # several runs may begin at once: one of them writes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _finished(part):
            write(stack(name, clean.first(test)), part)
    return part


def _finished(folder: Path) -> bool:
    path = folder / SIDECAR
    return path.exists() and json.loads(path.read_text(encoding="utf-8")).get("complete") is True


def stack(name: str, samples: Samples) -> Stack:
    """Images with channels last, as :mod:`meada.corruptions.write` takes them."""
    return Stack(name, samples.images.permute(0, 2, 3, 1).numpy(), samples.labels.numpy())
