"""MNIST-M's format: a folder of PNGs, and a text file with ``name label`` a line."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from meada.datasets.published.formats import Raw
from meada.errors import MeadaError
from meada.machine.limits import read_text, regular


def read(entries: list[tuple[str, int]], folder: Path, side: int = 32) -> Raw:
    """The coloured images that the list names, in its order, with its labels 0..9."""
    images = np.empty((len(entries), side, side, 3), np.uint8)
    for row, (name, _) in enumerate(entries):
        images[row] = read_image(folder / name, side)
    labels = np.array([label for _, label in entries], np.int64)
    return Raw(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), labels)


def read_list(listing: Path) -> list[tuple[str, int]]:
    lines = read_text(listing).splitlines()
    return [_entry(listing, number, line) for number, line in enumerate(lines, start=1)]


def _entry(listing: Path, number: int, line: str) -> tuple[str, int]:
    match line.split():
        case [name, label] if label in DIGITS and name == Path(name).name:
            return name, int(label)
    raise MeadaError(f"{listing}, line {number}: '{line[:40]}' is not a file's name and a digit")


DIGITS = {str(digit) for digit in range(10)}


def read_image(path: Path, side: int) -> NDArray[np.uint8]:
    if not path.exists():
        raise MeadaError(f"{path} is missing, though the list names it")
    try:
        with Image.open(regular(path, None), formats=["PNG"]) as image:
            if image.size == (side, side):
                return np.asarray(image.convert("RGB"))
            width, height = image.size
    except PermissionError:
        raise
    except MeadaError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise MeadaError(f"{path} is not a whole PNG image") from None
    raise MeadaError(f"{path} is {width}x{height} pixels: {side}x{side} is right")
