"""Whether the way in which USPS is brought to 32x32 explains accuracies below the paper's.

    python results/usps-resizing/measure.py RUN... --out results/usps-resizing/accuracies.json

Each run's model (last step, and the oracle's) reads USPS' 2,007 test images, 16x16, enlarged by
each of Pillow's filters, and enlarged less with a black frame around, as MNIST's digits have one.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from meada.datasets.root import data_root
from meada.folder import RunFolder
from meada.run import load_model
from numpy.typing import NDArray
from PIL import Image

from meada.datasets.digits import READERS, SIDE
from meada.evaluation import evaluate
from meada.files import write_json

FILTERS = ("NEAREST", "BOX", "BILINEAR", "HAMMING", "BICUBIC", "LANCZOS")
SIDES = (20, 22, 24, 26, 28, 30)  # of the digit within the frame


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("runs", nargs="+", type=Path)
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    raw = READERS["usps"](data_root())
    labels = torch.from_numpy(raw.labels)
    ways = {
        **{name.lower(): enlarged(raw.images, SIDE, name) for name in FILTERS},
        **{f"bilinear, {side} of {SIDE}": enlarged(raw.images, side) for side in SIDES},
    }
    figures = {}
    for run in chosen.runs:
        folder = RunFolder(run)
        held = folder.load_recipe()
        for rule in ("last", "oracle"):
            net = load_model(folder, 10, rule)
            scores = evaluate(net, {name: (images, labels) for name, images in ways.items()})
            accuracies = {name: round(s["accuracy"], 2) for name, s in scores.items()}
            figures[f"{held.name} seed {held.seed}, {rule}"] = accuracies
    write_json(chosen.out, {"images": len(labels), "accuracy": figures})


def enlarged(images: NDArray[np.uint8], side: int, name: str = "BILINEAR") -> torch.Tensor:
    """Digits of ``side`` pixels in the middle of 32x32 black ones, three channels alike."""
    out, edge = np.zeros((len(images), SIDE, SIDE), np.uint8), (SIDE - side) // 2
    for row, image in enumerate(images):
        digit = Image.fromarray(image).resize((side, side), Image.Resampling[name])
        out[row, edge : edge + side, edge : edge + side] = np.asarray(digit)
    return torch.from_numpy(out)[:, None].repeat(1, 3, 1, 1)


if __name__ == "__main__":
    main()
