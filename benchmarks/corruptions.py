"""Time fifteen corruptions at five severities: batched, and one image at a time.

    python -m benchmarks.corruptions --images 1000 --json corruptions.json

Both run in this process on one thread, on crops of scikit-learn's photographs (or on ``--file``, a
.npy of uint8 images (N, H, W, 3), such as CIFAR-10's test images).
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from benchmarks import per_image_corruptions as per_image
from meada.corruptions import CORRUPTIONS, SEVERITIES, corrupt, frost_source, table_for
from meada.corruptions.constants import TABLES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--file", type=Path, help="images to use instead of photographs")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    images = np.load(options.file)[: options.images] if options.file else crops(options.images)
    figures = {name: measure(images, name) for name in CORRUPTIONS}
    show(figures, len(images))
    if options.json:
        content = {"machine": platform.processor() or platform.machine(), "images": len(images)}
        content |= {"frost": frost_source(), "seconds": figures, "ratio": ratio(total(figures))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


def measure(images: np.ndarray, name: str) -> dict[str, float]:
    """Seconds for all five severities, without the time to build tables that are built only once."""
    batch = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    strengths = TABLES[table_for(*images.shape[1:3])][name]
    one_by_one = getattr(per_image, name)
    batched = alone = 0.0
    for severity, numbers in zip(SEVERITIES, strengths, strict=True):
        corrupt(batch[:2], name, severity)
        one_by_one(images[0], *numbers)
        start = time.perf_counter()
        corrupt(batch, name, severity)
        middle = time.perf_counter()
        np.stack([np.uint8(one_by_one(image, *numbers)) for image in images])
        batched += middle - start
        alone += time.perf_counter() - middle
    return {"batched": batched, "per_image": alone}


def crops(n: int, side: int = 32, scale: int = 4) -> np.ndarray:
    """``n`` overlapping crops of the two photographs, resized to ``side``."""
    pictures = [Image.fromarray(image) for image in load_sample_images().images]
    found = []
    for number in range(n):
        picture, window = pictures[number % 2], side * scale
        left = (number * 97) % (picture.width - window)
        top = (number * 61) % (picture.height - window)
        piece = picture.crop((left, top, left + window, top + window))
        found.append(np.asarray(piece.resize((side, side), Image.Resampling.LANCZOS)))
    return np.stack(found)


def total(figures: dict[str, dict[str, float]]) -> dict[str, float]:
    return {way: sum(seconds[way] for seconds in figures.values()) for way in ("batched", "per_image")}


def ratio(seconds: dict[str, float]) -> float:
    return round(seconds["per_image"] / seconds["batched"], 1)


def show(figures: dict[str, dict[str, float]], images: int) -> None:
    print(f"{images} images, five severities, one thread; seconds")
    print(f"{'':20} {'per image':>10} {'batched':>10} {'ratio':>7}")
    for name, seconds in {**figures, "all fifteen": total(figures)}.items():
        times = f"{seconds['per_image']:10.2f} {seconds['batched']:10.3f}"
        print(f"{name:20} {times} {ratio(seconds):7.1f}")


if __name__ == "__main__":
    main()
