"""The published CIFAR data path: each image is a Pillow picture, converted one by one."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from meada.types import Images8

PADDING = 4


@dataclass
class Pictures:
    """Images as uint8 arrays (H, W, 3), as in the data set's files."""

    arrays: NDArray[np.uint8]
    mean: Tensor
    std: Tensor
    grown: list[NDArray[np.uint8]] = field(default_factory=list)  # pictures that a round added
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    @classmethod
    def of(cls, images: Images8, mean: Tensor, std: Tensor) -> "Pictures":
        return cls(images.permute(0, 2, 3, 1).contiguous().numpy(), mean, std)

    def __len__(self) -> int:
        return len(self.arrays)

    def plain(self, i: int) -> Tensor:
        return self._normalised(Image.fromarray(self.arrays[i]))

    def augmented(self, i: int) -> Tensor:
        """Random horizontal flip and random crop with black padding, by Pillow."""
        picture = Image.fromarray(self.arrays[i])
        if self.rng.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        width, height = picture.size
        left, top = self.rng.randint(0, 2 * PADDING), self.rng.randint(0, 2 * PADDING)
        picture = ImageOps.expand(picture, PADDING).crop((left, top, left + width, top + height))
        return self._normalised(picture)

    def _normalised(self, picture: Image.Image) -> Tensor:
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        return pixels.to(torch.get_default_dtype()).div(255).sub_(self.mean).div_(self.std)


def keep(image: Tensor) -> NDArray[np.uint8]:
    """Convert a perturbed image to an 8-bit picture (truncated) and back to an array."""
    pixels = image.mul(255).byte().permute(1, 2, 0).contiguous().numpy()
    return np.asarray(Image.fromarray(pixels))


class Augmented(Dataset[Tensor]):
    """``n`` augmented pictures, cycling through the source: the data set of the loader's workers."""

    def __init__(self, pictures: Pictures, n: int) -> None:
        self.pictures, self.n = pictures, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Tensor:
        return self.pictures.augmented(i % len(self.pictures))


def loader(pictures: Pictures, n: int, *, batch: int, workers: int) -> DataLoader[Any]:
    return DataLoader(Augmented(pictures, n), batch, shuffle=True, num_workers=workers)
