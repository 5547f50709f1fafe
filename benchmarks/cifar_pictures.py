"""Write the first pictures of CIFAR-10 to folders train/CLASS and test/CLASS, for a record of ``meada robustify``.

MEADA_DATA=data python -m benchmarks.cifar_pictures OUT
"""

import argparse
from itertools import islice
from pathlib import Path

from PIL import Image

from meada.datasets import Samples
from meada.datasets.cifar import CIFAR10, find, read
from meada.files import data_root

SIZES = {"train": 5_000, "test": 2_000}  # pictures, the first of each split


def lay_out(samples: Samples, out: Path, n: int) -> int:
    """Write ``n`` pictures as PNG files and return how many were written."""
    pixels = samples.images.permute(0, 2, 3, 1).numpy()
    pairs = islice(zip(pixels, samples.labels.tolist(), strict=True), n)
    for number, (picture, label) in enumerate(pairs):
        folder = out / CIFAR10.classes[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number:05}.png")
    return min(n, len(pixels))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path)
    out, home = options.parse_args().out, find(CIFAR10, data_root())
    for split, n in SIZES.items():
        print(f"{lay_out(read(CIFAR10, home, split), out / split, n):,} pictures in {out / split}")


if __name__ == "__main__":
    main()
