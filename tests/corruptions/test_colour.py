"""Value, saturation and grey, by hand where the photographs do not reach."""

import numpy as np
import pytest

from meada.corruptions import corrupt
from meada.corruptions.colour import luma, with_saturation, with_value


def pixel(*rgb: float) -> np.ndarray:
    return np.array(rgb, float).reshape(1, 3, 1, 1)


def test_black_becomes_grey_when_it_brightens() -> None:
    assert with_value(pixel(0, 0, 0), 0.2).ravel().tolist() == [51, 51, 51]


def test_white_stays_white() -> None:
    assert with_value(pixel(255, 255, 255), 0.3).ravel().tolist() == [255, 255, 255]


def test_a_grey_turns_towards_red_when_it_is_given_saturation() -> None:
    assert with_saturation(pixel(100, 100, 100), 2.0, 0.1).ravel() == pytest.approx([100, 90, 90])


def test_no_saturation_leaves_the_value() -> None:
    assert with_saturation(pixel(200, 100, 50), 0.0, 0.0).ravel() == pytest.approx([200] * 3)


def test_luma_weighs_green_most() -> None:
    assert luma(pixel(100, 0, 0)).item() == pytest.approx(29.9)
    assert luma(pixel(0, 100, 0)).item() == pytest.approx(58.7)
    assert luma(pixel(0, 0, 100)).item() == pytest.approx(11.4)


def test_a_single_channel_is_saturated_as_the_grey_it_is() -> None:
    """Severities 1 to 3 add no saturation; at 4, s = 0.1 takes a tenth from green and blue."""
    images = np.full((1, 1, 32, 32), 0.5)
    assert (corrupt(images, "saturate", 3) == 0.5).all()
    assert corrupt(images, "saturate", 4)[0, 0, 0, 0] == pytest.approx(0.5 * (1 - 0.1 * 0.701))
