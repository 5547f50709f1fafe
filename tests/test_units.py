"""Official units are converted in one place and equal a literal batch-mean ascent."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.maximise import perturb
from meada.networks.normalise import Normalise
from meada.units import per_sample

B, ETA, GAMMA, BETA, STEPS = 6, 20.0, 3.0, 10.0, 5


def literal(embed, head, x, y, mean, std):
    """Batch means, a cost averaged over coordinates, an optimiser on normalised pixels."""
    raw = ((x - mean) / std).clone().requires_grad_()
    z0 = embed(raw).detach()
    optimiser = torch.optim.SGD([raw], lr=ETA)
    for _ in range(STEPS):
        z = embed(raw)
        logits = head(z)
        p = logits.softmax(1)
        entropy = -(p * p.log()).sum(1).mean()
        loss = cross_entropy(logits, y) + BETA * entropy - GAMMA * mse_loss(z, z0)
        optimiser.zero_grad()
        (-loss).backward()
        optimiser.step()
    return (raw * std + mean).clamp(0, 1).detach()


@pytest.mark.parametrize(
    "mean, std",
    [(None, None), (0.5, 0.5), ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))],
    ids=["digits", "scalar", "per channel"],
)
def test_official_units_equal_the_literal_ascent(mean, std):
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(16, 9), nn.Tanh())
    head = nn.Linear(9, 5)
    layers = [body, head] if mean is None else [Normalise(mean, std), body, head]
    net = nn.Sequential(*layers)
    x, y = torch.rand(B, 3, 4, 4), torch.randint(5, (B,))
    mu = torch.tensor(mean if mean is not None else 0.0).reshape(-1, 1, 1)
    sigma = torch.tensor(std if std is not None else 1.0).reshape(-1, 1, 1)
    want = literal(body, head, x, y, mu, sigma)
    eta, gamma = per_sample("official", net, x, step_size=ETA, gamma=GAMMA, batch=B)
    got = perturb(net, x, y, beta=BETA, gamma=gamma, step_size=eta, steps=STEPS)
    assert (want - x).abs().max() > 0.01  # it moved
    assert_close(got, want, rtol=0, atol=1e-12)


def test_the_numbers_of_the_guide():
    cifar = nn.Sequential(Normalise(0.5, 0.5), nn.Flatten(), nn.Linear(48, 5))
    x = torch.rand(1, 3, 4, 4)
    eta, gamma = per_sample("official", cifar, x, step_size=20.0, gamma=1.0, batch=128)
    assert float(eta) == 0.0390625 and gamma == 1 / 48


def test_units_of_a_sample_are_left_alone(linear_net):
    x = torch.rand(1, 3, 4, 4)
    assert per_sample("sample", linear_net, x, step_size=0.1, gamma=2.0, batch=9) == (0.1, 2.0)


def test_pixels_are_those_of_any_network(linear_net):
    """The way of a step is left alone; gamma's cost is a mean over z, as in official units."""
    x = torch.rand(1, 3, 4, 4)
    for net in (linear_net, nn.Sequential(Normalise(0.5, 0.5), nn.Flatten(), nn.Linear(48, 5))):
        assert per_sample("pixels", net, x, step_size=0.1, gamma=2.0, batch=9) == (0.1, 2.0 / 48)


def test_two_normalisations_are_refused():
    net = nn.Sequential(Normalise(0.5, 0.5), Normalise(0.5, 0.5), nn.Flatten(), nn.Linear(48, 5))
    with pytest.raises(MeadaError, match="at most one normalisation layer, got 2"):
        per_sample("official", net, torch.rand(1, 3, 4, 4), step_size=1.0, gamma=1.0, batch=1)
