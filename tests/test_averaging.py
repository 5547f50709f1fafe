"""Running means of weights and points between two sets of weights."""

import pytest
import torch
from torch import nn

from meada.averaging import RunningMean, interpolate
from meada.errors import MeadaError


def test_the_mean_is_uniform_over_what_was_added():
    mean, weights = RunningMean(), torch.randn(5, 3, dtype=torch.float64)
    for row in weights:
        mean.add({"w": row})
    torch.testing.assert_close(mean.state["w"], weights.mean(0), rtol=0, atol=1e-12)


def test_it_copies_so_that_training_on_does_not_move_it():
    net, mean = nn.Linear(2, 2), RunningMean()
    mean.add(net.state_dict())
    before = mean.state["weight"].clone()
    with torch.no_grad():
        net.weight += 1
    assert torch.equal(mean.state["weight"], before)


def test_counters_keep_their_last_value_and_statistics_are_averaged():
    mean = RunningMean()
    for step in (1, 2):
        mean.add({"num_batches_tracked": torch.tensor(step), "running_mean": torch.tensor([float(step)])})
    assert mean.state["num_batches_tracked"] == 2 and mean.state["running_mean"] == 1.5


def test_a_mean_that_was_saved_goes_on_to_the_same_bits():
    rows = torch.randn(6, 4)
    whole, first, second = RunningMean(), RunningMean(), RunningMean()
    for row in rows:
        whole.add({"w": row})
    for row in rows[:3]:
        first.add({"w": row})
    second.load_state_dict(first.state_dict())
    for row in rows[3:]:
        second.add({"w": row})
    assert torch.equal(whole.state["w"], second.state["w"])


def test_the_ends_of_the_line_are_the_two_networks():
    a, b = ({"w": torch.randn(3), "head": torch.randn(2)} for _ in range(2))
    assert torch.equal(interpolate(a, b, 1.0)["w"], b["w"])
    assert torch.equal(interpolate(a, b, 0.0)["w"], a["w"])
    torch.testing.assert_close(interpolate(a, b, 0.25)["w"], 0.75 * a["w"] + 0.25 * b["w"])
    kept = interpolate(a, b, 0.0, keep=["head"])
    assert torch.equal(kept["head"], b["head"]) and torch.equal(kept["w"], a["w"])


def test_a_place_outside_the_line_is_refused():
    with pytest.raises(MeadaError, match=r"t must be between 0 and 1, got 1.5"):
        interpolate({}, {}, 1.5)
