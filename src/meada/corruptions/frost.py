"""Frost textures: the published photographs if they are found, otherwise generated ones."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

from meada.corruptions.ice import grow
from meada.files import data_root
from meada.streams import Streams

PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
# a sixth, frost6.jpg, is published and never drawn: the generator draws from five

Picture = UInt8[np.ndarray, "3 _ _"]  # each of a size of its own


def frost_source() -> str:
    """What frost is made of here: "published photographs" or "generated texture", for records."""
    return "published photographs" if _found(data_root()) else "generated texture"


def _found(root: Path) -> bool:
    return all((root / "frost" / name).is_file() for name in PHOTOGRAPHS)


def textures(scale: float, height: int, width: int) -> tuple[Picture, ...]:
    """Five pictures larger than ``height x width``, at ``scale`` of their published size."""
    return _textures(data_root(), _found(data_root()), scale, height, width)


def crop(
    pictures: tuple[Picture, ...], rng: Streams, height: int, width: int
) -> UInt8[np.ndarray, "N 3 {height} {width}"]:
    """For each image one of the pictures and a place in it."""
    which = rng.integers(len(pictures), lane=0)
    out = np.empty((len(rng), 3, height, width), np.uint8)
    limits = np.array([(p.shape[1] - height, p.shape[2] - width) for p in pictures])[which]
    top, left = rng.integers(limits[:, 0], lane=1), rng.integers(limits[:, 1], lane=2)
    for number, picture in enumerate(pictures):
        mine = which == number
        places = sliding_window_view(picture, (height, width), axis=(1, 2))
        out[mine] = places[:, top[mine], left[mine]].swapaxes(0, 1)
    return out


@lru_cache(maxsize=4)
def _textures(root: Path, published: bool, scale: float, height: int, width: int) -> tuple[Picture, ...]:
    if published:
        images = [Image.open(root / "frost" / name).convert("RGB") for name in PHOTOGRAPHS]
        pictures = [np.asarray(image) for image in images]
    else:
        pictures = [grow(number) for number in range(len(PHOTOGRAPHS))]
    return tuple(_fit(_shrink(picture, scale), height, width) for picture in pictures)


def _shrink(picture: UInt8[np.ndarray, "H W 3"], scale: float) -> UInt8[np.ndarray, "h w 3"]:
    """Every 1/scale-th pixel from the middle of its cell: what bilinear sampling gives for 1/5."""
    stride = round(1 / scale)
    height, width = (round(side * scale) for side in picture.shape[:2])
    return picture[stride // 2 :: stride, stride // 2 :: stride][:height, :width]


def _fit(picture: UInt8[np.ndarray, "h w 3"], height: int, width: int) -> Picture:
    """Enlarge a picture that has no room for the crop to move; (3, H, W)."""
    grow = max((height + 1) / picture.shape[0], (width + 1) / picture.shape[1])
    if grow > 1:
        image = Image.fromarray(picture)
        size = (int(image.width * grow * 1.1) + 1, int(image.height * grow * 1.1) + 1)
        picture = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
    return np.ascontiguousarray(picture.transpose(2, 0, 1))
