"""Spatter's parts, by hand."""

import numpy as np
import pytest

from meada.corruptions import corrupt
from meada.corruptions.spatter import MUD, WATER, chamfer, edges, equalise, shine


def test_the_edge_of_a_step_is_one_pixel_wide() -> None:
    levels = np.zeros((1, 30, 30))
    levels[:, :, 15:] = 200
    found = edges(levels, 50.0, 150.0)[0]
    assert (found.sum(1) == 1).all()
    assert set(np.nonzero(found)[1].tolist()) <= {14, 15}


def test_a_faint_step_is_no_edge_unless_it_joins_a_strong_one() -> None:
    """A slope of 4 x 20 is between the thresholds 50 and 150; one of 4 x 200 is beyond both."""
    levels = np.zeros((2, 30, 30))
    levels[:, :, 15:] = 20
    levels[1, 10:, 15:] = 200
    faint, joined = edges(levels, 50.0, 150.0)
    assert not faint.any()
    assert joined[:8].any()


@pytest.mark.parametrize(
    ("place", "distance"),
    [((15, 18), 3), ((18, 15), 3), ((18, 18), 4.2), ((16, 17), 2.1969), ((17, 20), 2 * 2.1969 + 1)],
)
def test_distance_in_straight_diagonal_and_knights_steps(place, distance) -> None:
    rims = np.zeros((1, 40, 40))
    rims[0, 15, 15] = 1
    assert chamfer(rims)[0][place] == pytest.approx(distance)


def test_an_image_without_rims_does_not_see_its_neighbours() -> None:
    rims = np.zeros((2, 40, 40))
    rims[0, 15, 15] = 1
    assert (chamfer(rims)[1] == 20).all()


def test_equalising_by_hand() -> None:
    """Counts 2, 1, 1 of levels 3, 5, 9: the lowest becomes 0, the rest share 255."""
    levels = np.array([[[3, 3], [5, 9]], [[7, 7], [7, 7]]])
    assert equalise(levels).tolist() == [[[0, 0], [128, 255]], [[7, 7], [7, 7]]]


def test_water_adds_turquoise_and_mud_covers(photographs) -> None:
    black = np.zeros((30, 3, 32, 32))
    water = corrupt(black, "spatter", 3)
    brightest = water.reshape(30, 3, -1).max(2)
    np.testing.assert_allclose(brightest, np.tile(0.5 * WATER / 255, (30, 1)), rtol=1e-6)
    mud = corrupt(photographs(30) / 255, "spatter", 5)
    covered = np.abs(mud - MUD[:, None, None] / 255).max(1) < 0.03
    assert 0.01 < covered.mean() < 0.2
    untouched = np.abs(mud - photographs(30) / 255).max(1) < 1e-9
    assert 0.8 < untouched.mean() < 0.99


def test_shine_is_one_at_most_and_only_where_there_is_water() -> None:
    rng = np.random.default_rng(0)
    liquid = np.floor(255 * np.where(rng.random((3, 32, 32)) > 0.8, 0.8, 0))
    lit = shine(liquid)
    assert (lit[liquid == 0] == 0).all()
    assert lit.max((1, 2)) == pytest.approx(1)


def test_no_water_is_no_shine() -> None:
    assert (shine(np.zeros((1, 32, 32))) == 0).all()
