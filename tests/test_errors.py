"""A MeadaError is a ValueError, and no other clause takes it for one of its own."""

import pytest
import torch
from torch import nn

from meada.algorithm import Plan
from meada.errors import MeadaError, NonFiniteError
from meada.networks.embedding import check_fits


def test_whoever_catches_value_errors_catches_ours():
    assert issubclass(MeadaError, ValueError) and issubclass(NonFiniteError, MeadaError)


def test_a_check_inside_settings_is_told_in_its_own_words():
    with pytest.raises(MeadaError) as caught:
        Plan(rounds=3, min_steps=5, total_steps=10)
    assert str(caught.value) == "plan: 3 rounds of 5 steps do not fit in total_steps=10"


def test_a_network_that_gives_no_logits_is_told_so_and_not_that_the_shape_is_wrong():
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Unflatten(1, (2, 3)))
    with pytest.raises(
        MeadaError, match=r"output for 2 images must be logits of shape \(2, classes\), got shape \(2, 2, 3\)"
    ):
        check_fits(net, torch.rand(2, 3, 2, 2), torch.tensor([0, 1]))
