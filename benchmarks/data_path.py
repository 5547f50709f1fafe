"""Time the augmentation of images in memory: one image at a time, and in batches."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import Result, Tell, Work, interleave, scaled, speedup
from benchmarks.pillow_images import Pictures, loader
from benchmarks.subjects import Subject
from meada.images.augment import flip_and_crop
from meada.networks.normalise import CIFAR_MEAN, CIFAR_STD, Normalise
from meada.pool import Pool
from meada.streams import stream
from meada.types import Images, Labels

LOADERS = 2  # worker processes: as many as the cores of the reference machine


def data_path(subject: Subject, n: int, batch: int, rounds: int, tell: Tell) -> Result:
    """``n`` images in shuffled batches: random flip, random crop with padding 4, normalisation."""
    normalise = Normalise(CIFAR_MEAN, CIFAR_STD)
    pictures = Pictures.of(subject.images(n), normalise.mean, normalise.std)
    sides = {
        "published": partial(_one_by_one, pictures, n, batch),
        "published, 2 loaders": partial(_loaded, pictures, n, batch),
        "meada": partial(_at_once, subject.pool(n), normalise, batch),
    }
    interleave(sides, 1)
    times = interleave(sides, rounds, tell)
    return Result(
        about=f"{n} images of {subject.pixels} x {subject.pixels} in batches of {batch}: flip, crop, normalise",
        unit="us/image",
        rounds=rounds,
        sides={name: scaled(t, 1e6 / n) for name, t in times.items()},
        ratios={
            "published": speedup(times["published"], times["meada"]),
            "loaders": speedup(times["published, 2 loaders"], times["meada"]),
        },
    )


def augmented_batch(pool: Pool, index: Labels, normalise: Normalise, generator: torch.Generator) -> Images:
    """Load and augment a batch as a minimisation step does, before the forward pass."""
    return normalise(pool.batch(index, partial(flip_and_crop, generator=generator)).x)


def _at_once(pool: Pool, normalise: Normalise, batch: int) -> Work:
    generator = stream("bench", "augment")

    def run() -> None:
        for index in _order(len(pool), batch):
            augmented_batch(pool, index, normalise, generator)

    return run


def _one_by_one(pictures: Pictures, n: int, batch: int) -> Work:
    def run() -> None:
        for index in _order(n, batch):
            torch.stack([pictures.augmented(i) for i in index.tolist()])

    return run


def _loaded(pictures: Pictures, n: int, batch: int) -> Work:
    """A loader whose workers have started: their start and first batch are not timed."""
    batches: Iterator[Any] = iter(loader(pictures, n + batch, batch=batch, workers=LOADERS))
    next(batches)

    def run() -> None:
        for _ in batches:
            pass

    return run


def _order(n: int, batch: int) -> tuple[Tensor, ...]:
    return torch.randperm(n, generator=stream("bench", "order")).split(batch)
