"""Shifted copies of digits for the embedded task: on photographs, in print, noisy, blurred; printed house numbers."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator, default_rng
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from scipy.ndimage import gaussian_filter

from meada.datasets.digits import CLASSES, SIDE
from meada.datasets.embedded.wheels import Classes, Colour, Grey, Photograph, fonts
from meada.datasets.task import Samples
from meada.errors import MeadaError

# The strongest gaussian noise of ImageNet-C (severity 5), per channel; 1 is black to white.
NOISE = 0.38
# Pixels. A stroke is some 2.5 wide and this gaussian 4.7 at half its height: strokes run into each
# other and holes begin to close, yet the eye still tells most digits.
BLUR = 2.0

EM = (22, 32)  # pixels: figures 14 to 28 high, where MNIST's fill a box of 23
TILT = 15.0  # degrees, either way
SHIFT = 3.0  # pixels, either way
CONTRAST = 128.0  # luma, half its range: how much lighter a figure is than its ground, at least
LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601

# Of printed numbers.
IMAGES = 9_553  # as many as SYN's test split has
NEIGHBOUR = 0.5  # chance of another figure, on either side
SOFTEST = 1.0  # pixels of blur: the largest standard deviation
FAINTEST = 64.0  # luma, a quarter of its range: between strokes and ground, at least

RGB = Float[np.ndarray, " 3"]


def rgb(images: Grey) -> Colour:
    """The same grey in three channels."""
    return np.repeat(images[:, None], 3, axis=1)


def blend(digits: Colour, patches: Colour) -> Colour:
    """MNIST-M's recipe, ``|digit - patch|``: a stroke shows the photograph in inverse video.

    >>> pixel = lambda value: np.full((1, 3, 1, 1), value, np.uint8)
    >>> [int(blend(pixel(digit), pixel(200))[0, 0, 0, 0]) for digit in (0, 100, 255)]
    [200, 100, 55]
    """
    return np.abs(digits.astype(np.int16) - patches).astype(np.uint8)


def patches(photographs: Sequence[Photograph], n: int, rng: Generator) -> Colour:
    """``n`` random squares at the photographs' own resolution, each photograph as likely."""
    windows = [sliding_window_view(p, (SIDE, SIDE), axis=(0, 1)) for p in photographs]
    chosen = [windows[k] for k in rng.integers(len(windows), size=n)]
    return np.stack([w[rng.integers(w.shape[0]), rng.integers(w.shape[1])] for w in chosen])


def noise(shape: tuple[int, ...], rng: Generator) -> Float[np.ndarray, "..."]:
    """Gaussian, independent in every pixel and channel, in 8-bit units."""
    return 255 * NOISE * rng.standard_normal(shape)


def noisy(digits: Colour, rng: Generator) -> Colour:
    spoilt = digits + noise(digits.shape, rng)
    return np.rint(spoilt.clip(0, 255)).astype(np.uint8)


def blurred(digits: Grey) -> Grey:
    """A gaussian over each picture, the ground going on black beyond the edge."""
    soft = gaussian_filter(digits.astype(np.float64), (0, BLUR, BLUR), mode="constant")
    return np.rint(soft).astype(np.uint8)


def printed(labels: Classes, typefaces: Sequence[Path], rng: Generator) -> Colour:
    """Each label as a figure: font, size, place, tilt and both colours at random."""
    faces = [typefaces[int(f)] for f in rng.integers(len(typefaces), size=len(labels))]
    masks = [np.asarray(typeset(str(k), f, rng)) for k, f in zip(labels, faces, strict=True)]
    return coloured(np.stack(masks), [two_colours(rng) for _ in labels])


def coloured(masks: Grey, pairs: Sequence[tuple[RGB, RGB]]) -> Colour:
    """Each mask in its own ink and ground: white is ink, black is ground."""
    colours = np.array(pairs)[..., None, None]  # N, 2, 3, 1, 1
    cover, ink, ground = masks[:, None] / 255, colours[:, 0], colours[:, 1]
    return np.rint(ground + cover * (ink - ground)).astype(np.uint8)


def typeset(digit: str, font: Path, rng: Generator, before: str = "", after: str = "") -> Image.Image:
    """One digit, white on black, off centre and tilted, in line with its neighbours."""
    x, y = SIDE / 2 + rng.uniform(-SHIFT, SHIFT, size=2)
    face = typeface(font, int(rng.integers(*EM, endpoint=True)))
    left, top, right, bottom = face.getbbox(digit)
    sheet = Image.new("L", (SIDE, SIDE))
    corner = (x - (left + right) / 2 - face.getlength(before), y - (top + bottom) / 2)
    ImageDraw.Draw(sheet).text(corner, before + digit + after, fill=255, font=face)
    tilt = rng.uniform(-TILT, TILT)
    return sheet.rotate(tilt, Image.Resampling.BILINEAR, center=(x, y))


@cache
def typeface(font: Path, em: int) -> ImageFont.FreeTypeFont:
    # The basic layout: whether Pillow finds Raqm on a machine must not move a pixel.
    return ImageFont.truetype(font, em, layout_engine=ImageFont.Layout.BASIC)


def two_colours(rng: Generator, least: float = CONTRAST) -> tuple[RGB, RGB]:
    """Ink and ground, uniform over the pairs of colours where the ink is clearly the lighter.

    Light on dark, as MNIST is: what changes is print and colour. That strokes may be darker than
    what is around them is left to the photographs.
    """
    while True:
        ink, ground = rng.uniform(0, 255, size=(2, 3))
        if abs(contrast := LUMA @ (ink - ground)) >= least:
            return (ink, ground) if contrast > 0 else (ground, ink)


def printed_numbers(classes: Sequence[str] = CLASSES, *, n: int = IMAGES, seed: int = 0) -> Samples:
    """A stand-in for SYN, whose file can seldom be had: drawn here, and never under SYN's name.

    SYN (Ganin and Lempitsky, 2015) was drawn in Windows' fonts to look like house numbers: one to three
    figures, in any place, direction and pair of colours, more or less blurred. So is this, in the fonts
    inside matplotlib's wheel; how much of each is a guess, so its accuracies are not SYN's. The label of each
    of ``n`` pictures is its middle figure; balanced over the ten to within one.

    >>> printed_numbers(n=4).images.shape
    torch.Size([4, 3, 32, 32])
    """
    if tuple(classes) != CLASSES:
        raise MeadaError(f"the classes of printed_numbers must be the digits 0 to 9, got {', '.join(classes[:3])} ...")
    rng = default_rng([seed, *b"printed numbers"])
    labels = rng.permutation(np.arange(n) % len(CLASSES))
    faces = fonts()
    masks = [number(int(k), faces[rng.integers(len(faces))], rng) for k in labels]
    images = coloured(np.stack(masks), [either_way(rng) for _ in labels])
    return Samples(torch.from_numpy(images), torch.from_numpy(labels))


def number(digit: int, font: Path, rng: Generator) -> UInt8[np.ndarray, "H W"]:
    """The digit in the middle, with or without a neighbour on each side, blurred."""
    before, after = (str(rng.integers(10)) if rng.random() < NEIGHBOUR else "" for _ in range(2))
    sheet = typeset(str(digit), font, rng, before, after)
    return np.asarray(sheet.filter(ImageFilter.GaussianBlur(rng.uniform(0, SOFTEST))))


def either_way(rng: Generator) -> tuple[RGB, RGB]:
    """Strokes lighter than their ground, or darker."""
    light, dark = two_colours(rng, FAINTEST)
    return (light, dark) if rng.random() < 0.5 else (dark, light)
