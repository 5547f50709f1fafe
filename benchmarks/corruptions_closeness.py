"""Share of pixel values of the deterministic corruptions that equal the published definitions.

    pip install opencv-python-headless==5.0.0.93 scikit-image==0.26.0
    MEADA_DATA=DATA python -m benchmarks.corruptions_closeness --json FILE

The definitions are carried out image by image by the libraries that they were published with (four
need no others than `per_image_corruptions.py` has), on test images of CIFAR-10 (32x32 constants)
and photographs of PACS (224x224 constants).
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import skimage
from skimage.color import hsv2rgb, rgb2hsv
from skimage.filters import gaussian

from benchmarks import per_image_corruptions as per_image
from meada.corruptions import CIFAR, IMAGENET, SEVERITIES, corrupt
from meada.datasets.cifar import CIFAR10, read_test
from meada.datasets.domains import pacs

Array = np.ndarray  # an image (H, W, 3): of 0 to 255 as given, of 0 to 1 as floats


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--images", type=int, default=100)
    options.add_argument("--json", type=Path, help="file to write the results to")
    chosen = options.parse_args()
    n = chosen.images
    sets = {
        "cifar10": (read_test(CIFAR10).images[:n].numpy(), CIFAR),
        "pacs photo": (pacs(sources=["photo"], per_domain=n).train.images[:n].numpy(), IMAGENET),
    }
    record = {
        "opencv": cv2.__version__,
        "scikit-image": skimage.__version__,
        "images": {name: len(images) for name, (images, _) in sets.items()},
        "corruptions": {
            corruption: {name: compared(corruption, *of) for name, of in sets.items()} for corruption in PUBLISHED
        },
    }
    print(json.dumps(record, indent=2))
    if chosen.json:
        chosen.json.write_text(json.dumps(record, indent=2) + "\n")


def compared(name: str, images: Array, constants: Any) -> dict[str, Any]:
    """By severity: percentage of bitwise equal values, and the largest difference."""
    equal, largest = [], 0
    for severity, numbers in zip(SEVERITIES, constants[name], strict=True):
        theirs = np.stack([once(name, image.transpose(1, 2, 0), numbers) for image in images])
        ours = np.asarray(corrupt(images, name, severity)).transpose(0, 2, 3, 1)
        difference = np.abs(ours.astype(int) - theirs)
        equal.append(round(100 * float((difference == 0).mean()), 2))
        largest = max(largest, int(difference.max()))
    return {"equal": equal, "largest difference": largest}


def once(name: str, image: Array, numbers: tuple[float, ...]) -> Array:
    """Apply the published definition to one image; floats are truncated to 8 bits, as published."""
    return PUBLISHED[name](np.ascontiguousarray(image), *numbers).astype(np.uint8)


def levels(x: Array) -> Array:
    return np.clip(x, 0, 1) * 255


def defocus_blur(image: Array, radius: float, alias: float) -> Array:
    reach, size = (np.arange(-8, 9), 3) if radius <= 8 else (np.arange(-radius, radius + 1), 5)
    across, down = np.meshgrid(reach, reach)
    disk = np.array(across**2 + down**2 <= radius**2, dtype=np.float32)
    kernel = cv2.GaussianBlur(disk / disk.sum(), ksize=(size, size), sigmaX=alias)
    x = image / 255.0
    return levels(np.stack([cv2.filter2D(x[..., c], -1, kernel) for c in range(3)], axis=-1))


def gaussian_blur(image: Array, sigma: float) -> Array:
    return levels(gaussian(image / 255.0, sigma=sigma, channel_axis=-1))


def brightness(image: Array, more: float) -> Array:
    x = rgb2hsv(image / 255.0)
    x[..., 2] = np.clip(x[..., 2] + more, 0, 1)
    return levels(hsv2rgb(x))


def saturate(image: Array, times: float, more: float) -> Array:
    x = rgb2hsv(image / 255.0)
    x[..., 1] = np.clip(x[..., 1] * times + more, 0, 1)
    return levels(hsv2rgb(x))


PUBLISHED: dict[str, Callable[..., Array]] = {
    "pixelate": per_image.pixelate,
    "jpeg_compression": per_image.jpeg_compression,
    "contrast": per_image.contrast,
    "defocus_blur": defocus_blur,
    "zoom_blur": per_image.zoom_blur,
    "gaussian_blur": gaussian_blur,
    "brightness": brightness,
    "saturate": saturate,
}


if __name__ == "__main__":
    main()
