"""What a data set returns: labelled images to train on, to validate on and to test on.

To add one, write a function that returns a :class:`Task`; CONTRIBUTING has an example.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.types import Images8, LabelMatrix, Labels


@dataclass(frozen=True)
class Samples:
    """Labelled images in 8 bits, all of one size."""

    images: Images8  # a tensor (N, C, H, W) of 0..255
    labels: Labels | LabelMatrix  # class numbers; 0.0 and 1.0 by class where a picture has several labels
    domains: Labels | None = None  # which of ``Task.sources`` each comes from

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, n: int) -> "Samples":
        return self[torch.arange(min(n, len(self)))]

    def __getitem__(self, index: Labels) -> "Samples":
        domains = None if self.domains is None else self.domains[index]
        return Samples(self.images[index], self.labels[index], domains)


@dataclass(frozen=True)
class Sizes:
    """Numbers of images of a task, known before reading it."""

    classes: int
    train: int
    targets: Mapping[str, int]  # images of each
    sources: int = 1
    side: int = 32


@dataclass(frozen=True)
class Task:
    """Training data (the source), a held-out part of it, and test domains."""

    classes: tuple[str, ...]  # label -> its name
    train: Samples
    validation: Samples
    targets: Mapping[str, Samples]  # domain -> its images, never trained on
    sources: tuple[str, ...]  # names of the domains trained on; several: ``train.domains`` says which image is whose
    provenance: dict[str, str] = field(default_factory=dict)  # domain -> what was read, for records
    clean: Samples | None = None  # the source's own test split: scored, in no mean over targets
    severities: int = 0  # number of severities in each target, in equal parts, the mildest first
    crafted: Literal["shifts", "corruptions"] = "shifts"  # disjoint from the targets
    multilabel: bool = False  # each picture may show several of the classes

    def __post_init__(self) -> None:
        for name, part in self.parts().items():
            check(name, part, len(self.classes), multilabel=self.multilabel)

    def parts(self) -> dict[str, Samples]:
        clean = {} if self.clean is None else {"clean": self.clean}
        return {"train": self.train, "validation": self.validation, **clean, **self.targets}


def check(name: str, samples: Samples, classes: int, *, multilabel: bool = False) -> None:
    """Refuse unusable data; the message names the domain."""
    images, labels = samples.images, samples.labels
    for what, value in (("images", images), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise MeadaError(f"domain '{name}' must have {what} as a torch.Tensor, got {type(value).__name__}")
    if len(samples) == 0:
        raise MeadaError(f"domain '{name}' must have at least one labelled image, got none")
    if images.ndim != 4 or len(images) != len(labels):
        raise MeadaError(
            f"domain '{name}' must have images of shape (N, C, H, W) with N labels, "
            f"got {tuple(images.shape)} with {len(labels)} labels"
        )
    if labels.shape[1:] != ((classes,) if multilabel else ()):
        raise MeadaError(f"domain '{name}' must have {_kind(classes, multilabel)}, got shape {tuple(labels.shape)}")
    low, high = float(labels.min()), float(labels.max())
    if low < 0 or high > (1 if multilabel else classes - 1):
        raise MeadaError(f"domain '{name}' must have {_kind(classes, multilabel)}, got labels from {low:g} to {high:g}")


def _kind(classes: int, multilabel: bool) -> str:
    return f"labels of shape (N, {classes}) from 0 to 1" if multilabel else f"labels from 0 to {classes - 1}"
