"""Scores against numbers worked out by hand."""

import math

import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError
from meada.evaluation.score import calibration_gap, predict, score
from meada.machine.distributed import World


def logits_of(*rows):
    return torch.tensor(rows).log()


def test_by_hand():
    logits = logits_of([0.7, 0.2, 0.1], [0.1, 0.6, 0.3])
    got = score(logits, torch.tensor([0, 2]))
    assert got["accuracy"] == 50.0 and got["n"] == 2
    assert got["nll"] == pytest.approx(-(math.log(0.7) + math.log(0.3)) / 2)
    assert got["brier"] == pytest.approx((0.09 + 0.04 + 0.01 + 0.01 + 0.36 + 0.49) / 2)
    assert got["ece"] == pytest.approx((abs(0.7 - 1) + abs(0.6 - 0)) / 2)


def test_calibration_sums_within_a_bin_before_the_gap():
    logits = logits_of([0.61, 0.39], [0.62, 0.38])  # both in (9/15, 10/15]
    assert score(logits, torch.tensor([0, 1]))["ece"] == pytest.approx(0.615 - 0.5)


def test_certainty_falls_into_the_last_bin():
    assert score(torch.tensor([[1000.0, 0.0]]), torch.tensor([0]))["ece"] == 0


def test_a_confidence_on_the_edge_of_two_bins_falls_into_the_lower():
    confidence, right = torch.tensor([[0.5, 0.9], [1.0, 0.0]]).double()  # bins (0, 1/2] and (1/2, 1]
    ece = calibration_gap(confidence, right, bins=2)
    assert ece == pytest.approx((abs(0.5 - 1) + abs(0.9 - 0)) / 2)


def test_a_perfect_prediction_has_no_brier_score():
    assert score(torch.tensor([[1000.0, 0.0]]), torch.tensor([0]))["brier"] == 0


def test_eight_bits_and_floats_score_alike_and_the_network_is_left_alone():
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(48), nn.Linear(48, 5)).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    images = torch.randint(256, (10, 3, 4, 4), dtype=torch.uint8)
    labels = torch.randint(5, (10,))
    a = meada.evaluate(net, {"a": (images, labels)}, batch_size=3)
    b = meada.evaluate(net, {"a": (images.double() / 255, labels)})
    assert a["a"].keys() >= {"accuracy", "n", "ece", "nll"}
    assert a["a"] == pytest.approx(b["a"])
    assert net.training and all(torch.equal(before[k], v) for k, v in net.state_dict().items())


def test_every_image_is_seen_partial_batch_included():
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    x = torch.rand(7, 3, 4, 4)
    assert torch.allclose(predict(net, x, batch_size=3), net(x))


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_processes_share_out_batches_and_together_see_every_image_once(monkeypatch, processes):
    """Seven images in batches of two: four batches, so that some processes have more or none."""
    net, x = nn.Sequential(nn.Flatten(), nn.Linear(48, 5)), torch.rand(7, 3, 4, 4)
    monkeypatch.setattr(World, "all_reduce_sum", lambda self, values: values)  # what this process adds
    parts = [predict(net, x, batch_size=2, world=World(rank, processes)) for rank in range(processes)]
    assert torch.allclose(sum(parts), net(x))
    assert sum((part != 0).any(1).int() for part in parts).tolist() == [1] * 7


def test_bad_domains_are_named():
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    x = torch.rand(2, 3, 4, 4)
    with pytest.raises(MeadaError, match="domain 'empty': data must hold at least one"):
        meada.evaluate(net, {"empty": (x[:0], torch.zeros(0).long())})
    with pytest.raises(MeadaError, match=r"domain 'odd': labels must be in 0\.\.4, .* got 0 to 9"):
        meada.evaluate(net, {"odd": (x, torch.tensor([0, 9]))})
