"""Natural images of several sizes, and the words an image draws, for checks by hand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images

Crops = Callable[..., np.ndarray]


@pytest.fixture(scope="session")
def photographs() -> Crops:
    """``photographs(n, height, width)``: n crops of scikit-learn's two photographs, 8 bits."""
    images = [Image.fromarray(image) for image in load_sample_images().images]

    def crops(n: int, height: int = 32, width: int = 32, zoom: int = 6) -> np.ndarray:
        scale = min(zoom, 427 // height, 640 // width)  # pixels of the photograph for one here
        found = []
        for number in range(n):
            image = images[number % 2]
            left = (number * 97) % (image.width - width * scale + 1)
            top = (number * 61) % (image.height - height * scale + 1)
            box = (left, top, left + width * scale, top + height * scale)
            crop = image.crop(box).resize((width, height), Image.Resampling.LANCZOS)
            found.append(np.asarray(crop).transpose(2, 0, 1))
        return np.stack(found)

    return crops


@pytest.fixture
def generated_frost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No photographs, whatever lies on this machine."""
    monkeypatch.setenv("MEADA_DATA", str(tmp_path))
