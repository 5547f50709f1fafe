"""Decode a picture file to 8-bit RGB of one size; errors say in one sentence what is wrong with it.

CMYK and more than 8 bits per channel, which have no exact form in 8-bit RGB, are refused unless ``lenient`` is set.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from meada.errors import MeadaError
from meada.machine.limits import picture_formats

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
EXACT = ("RGB", "L", "1", "P")  # become RGB without loss
TRANSPARENT = ("RGBA", "LA", "PA")
ADVICE = "save it as 8-bit RGB"


def decode(path: Path, side: int, *, lenient: bool = False) -> NDArray[np.uint8]:
    """(3, side, side) by Pillow's bilinear filter; the aspect ratio is not kept; see :func:`upright`."""
    with _explained(path):
        small = upright(path, lenient=lenient).resize((side, side), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))


def upright(path: Path, *, lenient: bool = False) -> Image.Image:
    """The whole picture in 8-bit RGB: rotated by its EXIF tag, transparency on white.

    ``lenient`` takes CMYK and more than 8 bits per channel too, see :func:`eight_bits`.
    """
    if path.exists() and not path.is_file():
        raise MeadaError("must be a file, got a folder, a FIFO or a device")  # a read of which may never end
    with _explained(path), Image.open(path, formats=picture_formats()) as image:
        if not lenient:
            refuse(image)
        turned = ImageOps.exif_transpose(image)
        return flat(eight_bits(turned) if lenient else turned)


def upright_rgb(image: Image.Image) -> Image.Image:
    """:func:`upright` of a picture given as an object, with ``lenient``."""
    try:
        turned = ImageOps.exif_transpose(image)
    except SyntaxError as error:
        raise MeadaError(f"a picture must have readable EXIF data, got {error}") from None
    return flat(eight_bits(turned))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever Pillow raises into one sentence about the file."""
    try:
        yield
    except MeadaError:
        raise
    except Image.DecompressionBombError:
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) // 1_000_000
        raise MeadaError(f"has more than {most:,} million pixels: save a smaller copy") from None
    except UnidentifiedImageError:
        raise MeadaError("is not a readable picture: unknown format") from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        what = " ".join(str(error).replace(str(path), "the file").split()) or type(error).__name__
        raise MeadaError(f"is not a readable picture ({what})") from None


@contextmanager
def large_ones_too() -> Iterator[None]:
    """Silence Pillow's warning about large pictures; twice its limit is still an error.

    Use it around threads, not inside them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def refuse(image: Image.Image) -> None:
    """Raise an error for a kind of picture without an exact 8-bit RGB form."""
    # A 16-bit colour PNG opens as "RGB" and loses its lower bytes: only the tile tells.
    if image.mode.startswith(("I", "F")) or ";16" in str(getattr(image, "tile", "")):
        raise MeadaError(f"has more than 8 bits per channel: {ADVICE}")
    if image.mode == "CMYK":
        raise MeadaError(f"is CMYK, whose colours depend on a profile: {ADVICE}")
    if image.mode not in (*EXACT, *TRANSPARENT):
        raise MeadaError(f"is of mode {image.mode}: {ADVICE}")


def flat(image: Image.Image) -> Image.Image:
    """Convert to RGB with transparency on white."""
    if image.mode not in TRANSPARENT and "transparency" not in image.info:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    white = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(white, clear).convert("RGB")


def eight_bits(image: Image.Image) -> Image.Image:
    """Convert any kind of picture for :func:`flat`: upper 8 of 16 bits; CMYK by its profile if it has one.

    >>> eight_bits(Image.fromarray(np.full((2, 2), 65_535, np.uint16))).getpixel((0, 0))
    255
    """
    if image.mode.startswith(("I", "F")):
        return Image.fromarray(_levels(np.asarray(image)))
    if image.mode == "CMYK" and (profile := image.info.get("icc_profile")):
        try:
            known = ImageCms.ImageCmsProfile(BytesIO(profile))
            made = ImageCms.profileToProfile(image, known, ImageCms.createProfile("sRGB"), outputMode="RGB")
        except (ImageCms.PyCMSError, OSError):
            made = None
        return made or image.convert("RGB")
    return image if image.mode in (*EXACT, *TRANSPARENT) else image.convert("RGB")


def _levels(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Whole numbers up to 65,535 in 256 levels; floats up to 1 or, if they go further, 255."""
    if values.dtype == np.uint16:
        return (values >> 8).astype(np.uint8)
    whole = values.dtype.kind in "iu"
    low, high = float(values.min()), float(values.max())  # NaN fails the comparison below
    top = 65_535 if whole else 1 if high <= 1 else 255
    if not 0 <= low <= high <= top:
        raise MeadaError(f"must have values from 0 to {top:,}, got {low:g} to {high:g}: {ADVICE}")
    return (values >> 8 if whole else np.round(values.astype(np.float64) * (255 / top))).astype(np.uint8)
