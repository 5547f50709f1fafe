"""A stand-in for SYN, whose file can seldom be had: drawn here, and never under SYN's name.

SYN (Ganin and Lempitsky, 2015) was drawn in Windows' fonts to look like house numbers: one to three
figures, in any place, direction and pair of colours, more or less blurred. So is this, in the fonts
inside matplotlib's wheel; how much of each is a guess, so its accuracies are not SYN's.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.random import Generator, default_rng
from PIL import ImageFilter

from meada.datasets.digits import CLASSES
from meada.datasets.embedded import shifts as shifts
from meada.datasets.embedded import wheels as wheels
from meada.datasets.task import Samples
from meada.errors import MeadaError

IMAGES = 9_553  # as many as SYN's test split has
NEIGHBOUR = 0.5  # chance of another figure, on either side
BLUR = 1.0  # pixels: the largest standard deviation
CONTRAST = 64.0  # luma, a quarter of its range: between strokes and ground, at least


def printed_numbers(classes: Sequence[str] = CLASSES, *, n: int = IMAGES, seed: int = 0) -> Samples:
    """``n`` pictures whose middle figure is the label; balanced over the ten to within one.

    >>> printed_numbers(n=4).images.shape
    torch.Size([4, 3, 32, 32])
    """
    if tuple(classes) != CLASSES:
        raise MeadaError(f"printed_numbers shows the digits 0 to 9, and not {', '.join(classes[:3])} ...")
    rng = default_rng([seed, *b"printed numbers"])
    labels = rng.permutation(np.arange(n) % len(CLASSES))
    fonts = wheels.fonts()
    masks = [number(int(k), fonts[rng.integers(len(fonts))], rng) for k in labels]
    images = shifts.coloured(np.stack(masks), [either_way(rng) for _ in labels])
    return Samples(torch.from_numpy(images), torch.from_numpy(labels))


def number(digit: int, font: Path, rng: Generator) -> UInt8[np.ndarray, "H W"]:
    """The digit in the middle, with or without a neighbour on each side, blurred."""
    before, after = (str(rng.integers(10)) if rng.random() < NEIGHBOUR else "" for _ in range(2))
    sheet = shifts.typeset(str(digit), font, rng, before, after)
    return np.asarray(sheet.filter(ImageFilter.GaussianBlur(rng.uniform(0, BLUR))))


def either_way(rng: Generator) -> tuple[shifts.RGB, shifts.RGB]:
    """Strokes lighter than their ground, or darker."""
    light, dark = shifts.two_colours(rng, CONTRAST)
    return (light, dark) if rng.random() < 0.5 else (dark, light)
