"""The mean distance from the clean image grows with severity, where the constants make it grow.

Where they do not, and why:

- glass_blur: stronger smoothing takes back some of what the shuffling did, so of severities with as
  many rounds the later one need not be further away;
- motion_blur, 32x32: severities 3 and 4 share their sigma; the longer tail weighs nothing;
- snow, 224x224: severity 3 has sparser flakes than severity 2;
- frost: from 3 to 4 the image is dimmed and the frost is not, which brings the sum nearer to the
  clean image; with the 32x32 constants the same goes for 4 to 5;
- fog, 224x224: where a bank lies is chance, and thickness saturates;
- elastic_transform: the affine part, which moves most, shrinks; at 32x32 all the way;
- spatter, 32x32: severity 4 goes over from water to small blots of mud;
- saturate: severities 1 and 2 take colour away, the others add it.
"""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meada.corruptions import CORRUPTIONS, SEVERITIES, VALIDATION, corrupt

NOT_GROWING = {  # the severities that need not be further away than the one before
    "cifar": {
        "glass_blur": {2, 3, 5},
        "motion_blur": {4},
        "frost": {4, 5},
        "elastic_transform": {2, 3, 4, 5},
        "spatter": {4},
        "saturate": {3},
    },
    "imagenet": {
        "glass_blur": {2, 4, 5},
        "snow": {3},
        "frost": {4},
        "fog": {2, 3, 4, 5},
        "elastic_transform": {2, 3, 4, 5},
        "saturate": {3},
    },
}


def distances(images: np.ndarray, name: str, table: str) -> list[float]:
    if name == "frost":  # which of the five pictures an image meets matters more than the severity
        images = np.tile(images, (8, 1, 1, 1))
    results = (corrupt(images, name, severity, constants=table) for severity in SEVERITIES)
    return [float(np.abs(result.astype(int) - images).mean()) for result in results]


def assert_grows(d: list[float], name: str, table: str) -> None:
    exempt = NOT_GROWING[table].get(name, set())
    for severity in (2, 3, 4, 5):
        if severity not in exempt:
            assert d[severity - 1] > d[severity - 2], (name, severity, d)


@pytest.mark.parametrize("name", CORRUPTIONS + VALIDATION)
def test_with_the_constants_of_32x32(name, photographs) -> None:
    assert_grows(distances(photographs(64), name, "cifar"), name, "cifar")


@pytest.mark.parametrize("name", CORRUPTIONS + VALIDATION)
def test_with_the_constants_of_224x224(name, photographs) -> None:
    images = photographs(12, 112, 112, zoom=3)
    assert_grows(distances(images, name, "imagenet"), name, "imagenet")


def test_elastic_falls_with_the_constants_of_32x32(photographs) -> None:
    """The three points move by 8, 7, 6, 5, 3 per cent of the side."""
    d = distances(photographs(64), "elastic_transform", "cifar")
    assert d[0] > d[2] > d[4]


def test_a_second_round_of_glass_moves_further(photographs) -> None:
    d = distances(photographs(64), "glass_blur", "cifar")
    assert min(d[3:]) > max(d[:3])


def test_the_whole_is_worse_at_5_than_at_1(photographs) -> None:
    """Even where the middle is not in order, but for elastic and what changes sign."""
    images = photographs(64)
    for name in CORRUPTIONS:
        if name != "elastic_transform":
            d = distances(images, name, "cifar")
            assert d[4] > d[0], name


@pytest.mark.parametrize("name", CORRUPTIONS + VALIDATION)
def test_on_photographs_of_pacs(name, real_data: Path) -> None:
    paths = sorted((real_data / "pacs" / "images" / "photo").glob("*/*"))[::80]
    small = [np.asarray(Image.open(p).convert("RGB").resize((32, 32))) for p in paths]
    images = np.stack(small).transpose(0, 3, 1, 2)
    assert_grows(distances(images, name, "cifar"), name, "cifar")
