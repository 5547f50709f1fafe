"""Glass and motion, against loops that go pixel by pixel with the same random numbers."""

from math import ceil, cos, radians, sin

import numpy as np
import pytest
from scipy import ndimage

from meada.corruptions import SEVERITIES, corrupt
from meada.corruptions.blur import follow_chains, glass_shuffle, glass_sources, motion, motion_weights
from meada.corruptions.constants import CIFAR, TABLES
from meada.streams import sample_streams


def moved(x: np.ndarray, angle: float, radius: float, sigma: float) -> np.ndarray:
    """One channel: each pixel looks ahead along the line, the border's pixels going on."""
    height, width = x.shape
    taps = range(2 * ceil(radius) + 1)
    k = np.array([np.exp(-i * i / (2 * sigma**2)) for i in taps])
    k /= k.sum()
    y = np.zeros_like(x)
    for row in range(height):
        for column in range(width):
            for i in taps:
                down, right = (ceil(i * f(radians(angle)) - 0.5) for f in (sin, cos))
                at = min(max(row + down, 0), height - 1), min(max(column + right, 0), width - 1)
                y[row, column] += k[i] * x[at]
    return y


@pytest.mark.parametrize("angle", [-135.0, -90.0, -45.0, -17.3, 0.0, 33.0, 45.0])
def test_motion_is_a_walk_along_a_line(angle, photographs) -> None:
    x = photographs(1, 28, 30).astype(float)
    ours = motion(x, np.array([angle]), 9.0, 2.5)
    for channel in range(3):
        theirs = moved(x[0, channel], angle, 9.0, 2.5)
        assert np.abs(ours[0, channel] - theirs).max() <= 0.5 + 1e-3  # rounded, not truncated


def test_motion_to_the_right_leaves_the_light_on_the_left() -> None:
    """A bright column at 20, seen from the columns before it, with the kernel's weights."""
    x = np.zeros((1, 1, 28, 40))
    x[..., 20] = 255
    y = motion(x, np.array([0.0]), 6.0, 2.0)[0, 0, 14]
    k = motion_weights(6.0, 2.0)
    assert y[20 : 20 - len(k) : -1].tolist() == np.rint(255 * k).tolist()
    assert (y[21:] == 0).all()


def test_each_image_has_an_angle_of_its_own_within_45_degrees() -> None:
    """The light of a dot stays in the quadrant to its left, above as often as below."""
    images = np.zeros((400, 1, 33, 33), np.uint8)
    images[:, :, 16, 16] = 255
    y = corrupt(images, "motion_blur", 5)[:, 0].astype(int)
    rows, columns = np.indices((33, 33)) - 16
    allowed = (columns <= 0) & (np.abs(rows) <= -columns + 1)
    assert (y[:, ~allowed] == 0).all()
    up = (y * (rows < 0)).sum((1, 2)) > (y * (rows > 0)).sum((1, 2))
    assert up.mean() == pytest.approx(0.5, abs=0.1)
    assert len(np.unique(y.reshape(400, -1), axis=0)) > 20


def copied(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    """From the last pixel to the first, each takes what its target holds by then."""
    y = x.copy()
    for pixel in range(len(x) - 1, -1, -1):
        y[pixel] = y[target[pixel]]
    return y


@pytest.mark.parametrize("reach", [1, 2, 3, 4])
def test_chains_of_copies_are_those_of_the_loop(reach) -> None:
    height, width = 20, 17
    rng = sample_streams(0, "glass_blur", reach, np.arange(3))
    draws = rng.sixteen((2, height * width)).astype(int)
    ours = glass_sources(rng, height, width, reach, 0)
    x = np.arange(height * width)
    for image in range(3):
        target = x.copy()
        for row in range(reach + 1, height - reach + 1):
            for column in range(reach + 1, width - reach + 1):
                p = row * width + column
                down, right = (draws[image, :, p] * 2 * reach) // 65536 - reach
                target[p] = (row + down) * width + column + right
        assert (ours[image] == copied(x, target)).all()


def test_a_long_chain_is_followed_to_its_end() -> None:
    """Pixel p looks at p + 1, which is done before it: all show the last pixel's colour."""
    target = np.minimum(np.arange(1, 101), 99)[None]
    assert (follow_chains(target) == 99).all()


def test_shuffled_pixels_keep_their_channels_together() -> None:
    x = np.broadcast_to(np.arange(900.0).reshape(30, 30), (1, 3, 30, 30)) + np.zeros((1, 3, 30, 30))
    y = glass_shuffle(x, sample_streams(0, "glass_blur", 1, [0]), 2, 2)
    assert (y[:, 0] == y[:, 1]).all()
    assert (y[:, 0] == y[:, 2]).all()
    assert 0.5 < (y != x).mean() < 1


def test_steps_of_glass_are_uniform() -> None:
    """With a reach of one a pixel takes itself, the one above, to the left, or both, alike."""
    x = np.arange(32 * 32)
    target = glass_sources(sample_streams(0, "glass_blur", 1, np.arange(50)), 32, 32, 1, 0)
    steps = (x - target).reshape(50, 32, 32)[:, 2:, 2:]
    assert set(np.unique(steps)) == {0, 1, 32, 33}
    for step in (0, 1, 32, 33):
        assert (steps == step).mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_glass_blurs_before_and_after_with_8_bits_between(severity, photographs) -> None:
    images = photographs(1)
    sigma, reach, rounds = CIFAR["glass_blur"][severity - 1]
    blur = lambda x: ndimage.gaussian_filter(x, (0, 0, sigma, sigma), mode="nearest", truncate=4)
    smooth = np.floor(blur(images.astype(float)) + 1e-7)
    shuffled = glass_shuffle(smooth, sample_streams(0, "glass_blur", severity, [0]), int(reach), int(rounds))
    ours = corrupt(images, "glass_blur", severity)
    assert np.abs(ours - np.floor(blur(shuffled))).max() <= 1


@pytest.mark.parametrize("table", TABLES)
def test_motion_blur_keeps_a_flat_image(table) -> None:
    images = np.full((5, 3, 40, 40), 201, np.uint8)
    for severity in SEVERITIES:
        assert (corrupt(images, "motion_blur", severity, constants=table) == 201).all()
