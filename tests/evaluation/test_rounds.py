"""What a round did, against the terms of the objective computed apart."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.entropy import softmax_entropy
from meada.evaluation.rounds import EDGES, bands, diagnose, in_bands, power, spectra
from meada.networks import to_bayesian
from meada.networks.bayesian.variational import WeightSample, using_weights
from meada.pool import Pool


def test_terms_before_and_after(linear_net, monkeypatch):
    monkeypatch.setattr("meada.evaluation.rounds.BLOCK", 4)
    x, y = torch.rand(6, 3, 4, 4), torch.randint(5, (6,))
    pool = Pool(x, y)
    harder = (x + 0.1).clamp(0, 1)
    pool.append(harder, parents=torch.arange(6))
    got = diagnose(linear_net, pool)
    for name, images in (("0", x), ("1", harder)):
        i = int(name)
        assert_close(got["ce"][i], cross_entropy(linear_net(images), y).item())
        assert_close(got["entropy"][i], softmax_entropy(linear_net(images)).mean().item())
    assert_close(got["cost"], float((harder - x).square().flatten(1).sum(1).mean()))
    assert_close(got["linf_max"], float((harder - x).abs().max()))


def test_children_are_compared_with_their_own_parents(linear_net):
    x, y = torch.rand(4, 3, 4, 4), torch.randint(5, (4,))
    pool = Pool(x, y)
    pool.append(x.flip(0), parents=torch.tensor([3, 2, 1, 0]))
    assert diagnose(linear_net, pool)["linf"] == 0


def pair_of(net, shift=0.1, n=6):
    x, y = torch.rand(n, 3, 4, 4) * 0.5, torch.randint(5, (n,))
    pool = Pool(x, y)
    pool.append(x + shift, parents=torch.arange(n))
    return pool, x, y


def test_the_theorys_measures_of_the_predictions(linear_net):
    pool, x, _ = pair_of(linear_net)
    got = diagnose(linear_net, pool, beta=2.0)
    for i, images in enumerate((x, x + 0.1)):
        p = linear_net(images).softmax(-1).detach()
        mean = p.mean(0)
        assert_close(got["plug_in_entropy"][i], float(-(mean * mean.log()).sum()))
    assert got["information"] == pytest.approx([0, 0], abs=1e-12)  # one network, no disagreement
    assert got["bound"]["n"] == 6 and got["bound"]["classes"] == 5
    k, n, c = 5, 6, math.sqrt(math.log(2 / 0.05))
    want = k * math.log(n) * c / math.sqrt(2 * n) + (k - 1) / n
    assert got["bound"]["proposition_3"] == pytest.approx(want)
    assert got["bound"]["sharper"] < want


def test_the_rise_is_shared_out_between_confusion_and_uncertainty(linear_net):
    pool, _, _ = pair_of(linear_net, shift=0.3)
    got = diagnose(linear_net, pool, beta=2.0)
    ce, h = got["ce"][1] - got["ce"][0], got["entropy"][1] - got["entropy"][0]
    assert got["rise"]["ce"] == pytest.approx(ce) and got["rise"]["entropy"] == pytest.approx(h)
    if ce + 2 * h > 0:
        assert got["rise"]["share_of_ce"] == pytest.approx(ce / (ce + 2 * h))
    assert "share_of_ce" not in diagnose(linear_net, pool)["rise"]  # a method without a beta


def test_copies_of_a_source_do_not_count_as_samples(linear_net):
    pool, x, _ = pair_of(linear_net)
    pool.append(pool.images(torch.arange(12)), parents=torch.arange(12))
    assert diagnose(linear_net, pool)["bound"]["n"] == 6


@pytest.mark.parametrize("levels, warned", [(0.4, True), (0.6, False)])
def test_a_round_that_did_nothing_is_told_of(linear_net, levels, warned):
    pool, _, _ = pair_of(linear_net, shift=levels / 255)
    got = diagnose(linear_net, pool)
    assert got["levels"]["median"] == pytest.approx(levels)
    assert got["levels"]["max"] == pytest.approx(levels)
    assert [text for text in got["warnings"] if "round 1 did nothing" in text] == got["warnings"]
    assert bool(got["warnings"]) == warned


def test_a_bayesian_network_is_looked_at_through_its_draws(linear_net):
    net = to_bayesian(linear_net, rho=-1.0)
    pool, x, y = pair_of(net)
    got = diagnose(net, pool)
    ps = []
    for j in range(8):
        with using_weights(net, WeightSample(0, "draw", 0, j)):
            ps.append(net(x).softmax(-1).detach())
    each = torch.stack([-(p * p.log()).sum(-1).mean() for p in ps]).mean()
    mean = torch.stack(ps).mean(0)
    of_mean = -(mean * mean.log()).sum(-1).mean()
    assert got["entropy"][0] == pytest.approx(float(each))
    assert got["information"][0] == pytest.approx(float(of_mean - each)) and of_mean > each
    nll = torch.stack([-p[torch.arange(6), y].log().mean() for p in ps]).mean()
    assert got["ce"][0] == pytest.approx(float(nll))


def wave(frequency: float, side: int = 32) -> torch.Tensor:
    """A plane wave along the columns, so many cycles a pixel."""
    row = torch.cos(2 * math.pi * frequency * torch.arange(side))
    return row.expand(1, 1, side, side)


@pytest.mark.parametrize("cycles", [0, 2, 4, 7, 9, 13, 16])
def test_a_wave_lies_in_the_band_of_its_frequency(cycles):
    frequency = cycles / 32
    parts = bands(power(wave(frequency)))
    assert parts[int(frequency * 16) if frequency < 0.5 else 7] == pytest.approx(1, abs=1e-6)


def test_the_corners_belong_to_the_last_band():
    checks = (-1.0) ** (torch.arange(8)[:, None] + torch.arange(8))
    assert bands(power(checks.expand(1, 1, 8, 8)))[-1] == pytest.approx(1)


def test_energy_is_kept():
    images = torch.rand(3, 2, 8, 6)
    assert_close(power(images).sum().double(), images.square().sum((2, 3)).mean(), rtol=1e-5, atol=0)


def test_white_noise_is_flat():
    noise = torch.randn(200, 3, 16, 16)
    told = in_bands(power(noise), power(noise))
    assert torch.allclose(torch.tensor(told["perturbation"]), torch.tensor(told["white"]), atol=0.01)
    assert sum(told["white"]) == pytest.approx(1) and len(told["white"]) == len(EDGES)


def test_nothing_moved_is_no_energy():
    assert bands(torch.zeros(4, 4)) == [0.0] * 8


def test_children_are_taken_against_their_own_parents(monkeypatch):
    monkeypatch.setattr("meada.evaluation.rounds.BLOCK", 3)
    x = torch.rand(6, 3, 8, 8) * 0.5
    pool = Pool(x, torch.zeros(6).long())
    parents = torch.tensor([5, 3, 1, 0])
    pool.append((x + wave(0.5, 8) * 0.1 + 0.1)[parents], parents=parents)
    moved, there = spectra(pool, torch.arange(4))
    assert_close(moved, power(wave(0.5, 8) * 0.1 + 0.1), rtol=1e-4, atol=1e-6)
    assert_close(there, power(x[parents]), rtol=1e-4, atol=1e-6)
