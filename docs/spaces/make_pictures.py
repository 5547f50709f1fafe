"""Draw eight draws of each space at three strengths (python docs/spaces/make_pictures.py)."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from meada.spaces import SPACES, view_random

STRENGTHS, DRAWS, SIDE = (0.3, 0.6, 1.0), 8, 72


def sample() -> torch.Tensor:
    """The flower of scikit-learn's sample images, square."""
    picture = Image.fromarray(load_sample_image("flower.jpg")).crop((130, 20, 530, 420)).resize((SIDE, SIDE))
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255


def rows(name: str, x: torch.Tensor) -> torch.Tensor:
    """One row per strength: the clean picture, then the draws."""
    batch = x.expand(DRAWS, *x.shape)
    made = []
    for strength in STRENGTHS:
        views = SPACES[name](strength=strength).view(batch, view_random(0, 0, 0, np.arange(DRAWS)))
        made.append(torch.cat([x, *views], 2))
    return torch.cat(made, 1)


def main() -> None:
    x = sample()
    for name in SPACES:
        if name != "pixels":
            levels = rows(name, x).mul(255).round().byte().permute(1, 2, 0).numpy()
            Image.fromarray(levels).quantize(128).save(Path(__file__).with_name(f"{name}.png"), optimize=True)


if __name__ == "__main__":
    main()
