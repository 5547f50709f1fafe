"""Brightness, saturation, grey and elastic transform, by hand and against SciPy."""

import numpy as np
import pytest
from scipy import ndimage

from meada.corruptions import corrupt
from meada.corruptions.constants import TABLES
from meada.corruptions.digital import affine_maps, field, sample, saturate
from meada.corruptions.operators import luma
from meada.corruptions.weather import brightness
from meada.streams import sample_streams

RNG = sample_streams(0, "none", 1, [0])


def pixel(*rgb: float) -> np.ndarray:
    return np.array(rgb, float).reshape(1, 3, 1, 1)


def test_black_becomes_grey_when_it_brightens() -> None:
    assert brightness(pixel(0, 0, 0), RNG, 0.2).ravel().tolist() == [51, 51, 51]


def test_white_stays_white() -> None:
    assert brightness(pixel(255, 255, 255), RNG, 0.3).ravel().tolist() == [255, 255, 255]


def test_a_grey_turns_towards_red_when_it_is_given_saturation() -> None:
    assert saturate(pixel(100, 100, 100), RNG, 2.0, 0.1).ravel() == pytest.approx([100, 90, 90])


def test_no_saturation_leaves_the_value() -> None:
    assert saturate(pixel(200, 100, 50), RNG, 0.0, 0.0).ravel() == pytest.approx([200] * 3)


def test_luma_weighs_green_most() -> None:
    assert luma(pixel(100, 0, 0)).item() == pytest.approx(29.9)
    assert luma(pixel(0, 100, 0)).item() == pytest.approx(58.7)
    assert luma(pixel(0, 0, 100)).item() == pytest.approx(11.4)


def test_a_single_channel_is_saturated_as_the_grey_it_is() -> None:
    """Severities 1 to 3 add no saturation; at 4, s = 0.1 takes a tenth from green and blue."""
    images = np.full((1, 1, 32, 32), 0.5)
    assert (corrupt(images, "saturate", 3) == 0.5).all()
    assert corrupt(images, "saturate", 4)[0, 0, 0, 0] == pytest.approx(0.5 * (1 - 0.1 * 0.701))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("severity", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(32, 32), (29, 44)])
def test_two_look_ups(table, severity, shape, photographs) -> None:
    """First the affine map, mirrored about the outer pixels; then the shifts, about the edges."""
    images = photographs(2, *shape) / 255
    alpha, sigma, affine = TABLES[table]["elastic_transform"][severity - 1]
    rng = sample_streams(0, "elastic_transform", severity, np.arange(2))
    maps = affine_maps(rng, *shape, affine)
    rows, columns = np.indices(shape).astype(float)
    noise = [rng.sixteen(shape, lane=lane) / 32768 - 1 for lane in (1, 2)]
    for image in range(2):
        (a, b, c), (d, e, f) = maps[image]
        source = [d * columns + e * rows + f, a * columns + b * rows + c]
        smooth = lambda u: ndimage.gaussian_filter(u, sigma, mode="reflect", truncate=3) if sigma else u
        right, down = (alpha * smooth(u[image]) for u in noise)
        for channel in range(3):
            bent = ndimage.map_coordinates(images[image, channel], source, order=1, mode="mirror")
            at = [rows + down, columns + right]
            expected = ndimage.map_coordinates(bent, at, order=1, mode="reflect")
            ours = corrupt(images, "elastic_transform", severity, constants=table)[image, channel]
            np.testing.assert_allclose(ours, expected, atol=2e-4)


def test_affine_maps_bring_moved_points_back() -> None:
    maps = affine_maps(sample_streams(0, "elastic_transform", 1, np.arange(300)), 32, 32, 2.5)
    points = np.array([[26.0, 26, 1], [26, 6, 1], [6, 6, 1]])
    forward = np.linalg.inv(np.concatenate([maps, np.tile([[[0.0, 0, 1]]], (300, 1, 1))], 1))
    moved = np.einsum("nij,pj->npi", forward, points)[..., :2] - points[:, :2]
    assert np.abs(moved).max() <= 2.5 + 1e-9
    assert moved.std() == pytest.approx(5 / np.sqrt(12), rel=0.05)


def test_no_motion_is_the_identity(photographs) -> None:
    x = photographs(1).astype(float)
    rows, columns = np.indices((32, 32)).astype(float)
    for mirror in ("about pixels", "about edges"):
        np.testing.assert_allclose(sample(x, columns[None], rows[None], mirror), x, atol=1e-9)


def test_fields_have_the_spread_of_smoothed_noise() -> None:
    """White noise in [-1, 1] has variance 1/3; a Gaussian leaves 1 / (4 pi sigma^2) of it."""
    shifts = field(sample_streams(0, "a", 1, np.arange(200)), 64, 64, 10.0, 2.0, 1)[:, 8:-8, 8:-8]
    expected = 10 * np.sqrt(1 / 3 / (4 * np.pi * 2.0**2))
    assert shifts.std() == pytest.approx(expected, rel=0.05)
