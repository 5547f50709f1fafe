"""The stand-in for SYN: balanced, repeatable, legible, and for digits alone."""

import numpy as np
import pytest
import torch
from numpy.random import default_rng

from meada.datasets.embedded import shifts as shifts
from meada.datasets.embedded.shifts import FAINTEST, either_way, number, printed_numbers
from meada.datasets.embedded.wheels import fonts
from meada.errors import MeadaError


def test_every_digit_is_as_frequent_and_the_pictures_are_always_the_same() -> None:
    one, two = printed_numbers(n=205), printed_numbers(n=205)
    assert torch.equal(one.images, two.images) and torch.equal(one.labels, two.labels)
    assert sorted(one.labels.bincount().tolist()) == [20] * 5 + [21] * 5
    assert not torch.equal(one.images, printed_numbers(n=205, seed=1).images)


def test_the_label_is_the_figure_in_the_middle() -> None:
    """Whatever stands beside it: without neighbours the same draw has the same ink there."""
    face = fonts()[0]
    for digit in range(10):
        alone, between = (
            np.asarray(shifts.typeset(str(digit), face, default_rng(digit), *beside), float)
            for beside in (("", ""), ("1", "1"))
        )
        ink = alone > 128
        assert ink.sum() > 20 and (between[ink] > 100).mean() > 0.9  # hinting may move an edge
        assert between.sum() > alone.sum()


def test_strokes_are_lighter_or_darker_than_their_ground_and_always_to_be_seen() -> None:
    rng = default_rng(0)
    contrast = [shifts.LUMA @ (ink - ground) for ink, ground in (either_way(rng) for _ in range(99))]
    assert min(map(abs, contrast)) >= FAINTEST and 20 < sum(c > 0 for c in contrast) < 79


def test_some_are_blurred_more_than_others() -> None:
    rng, face = default_rng(0), fonts()[0]
    sharpest = [np.abs(np.diff(number(8, face, rng).astype(int))).max() for _ in range(40)]
    assert max(sharpest) > 200 and min(sharpest) < 150


def test_other_classes_are_refused_by_name() -> None:
    with pytest.raises(MeadaError, match="digits 0 to 9, got cat, dog"):
        printed_numbers(("cat", "dog"))
