"""Corruptions make the pixels that version 0.1.0 made, so that records of both stand in one row of Table 3."""

import numpy as np
import pytest
import torch

from meada.corruptions import CORRUPTIONS, corrupt

# Made by version 0.1.0 from the images below, severity 3, seed 0: mean, and mean difference from the image.
MADE = dict(
    gaussian_noise=(130.91, 15.48), shot_noise=(130.36, 13.22), impulse_noise=(131.22, 3.66),
    defocus_blur=(131.14, 11.19), glass_blur=(130.86, 18.62), motion_blur=(130.85, 26.28), zoom_blur=(131.47, 21.67),
    snow=(158.84, 27.36), frost=(177.55, 46.11), fog=(126.81, 31.43), brightness=(150.85, 19.38),
    contrast=(130.98, 38.02), elastic_transform=(131.41, 33.1), pixelate=(131.51, 4.93),
    jpeg_compression=(131.52, 19.83),
)  # fmt: skip


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_pixels_of_the_first_version(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEADA_DATA", raising=False)  # frost is a texture here, as in the records
    blocks = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3))
    x = torch.from_numpy(np.kron(blocks, np.ones((1, 4, 4, 1))).astype(np.uint8)).permute(0, 3, 1, 2).contiguous()
    y = corrupt(x, name, 3, seed=0, index=np.arange(8)).double()
    found = float(y.mean()), float((y - x).abs().mean())
    assert found == pytest.approx(MADE[name], abs=0.03)
