"""PGD against its closed form on a linear network, and the ball that it stays in."""

import torch
from torch import nn

from meada.evaluation.attack import pgd


def test_on_two_classes_the_attack_ends_in_the_worst_corner(batch):
    """The slope of a linear network's loss has one sign everywhere: the best answer is a corner."""
    x0 = 0.25 + 0.5 * batch[0]
    y = torch.tensor([0, 1, 0, 1, 0, 1])
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    x = pgd(net, x0, y, radius=0.01, steps=10, generator=torch.Generator().manual_seed(0))
    w = net[1].weight.detach()
    away = torch.stack([(w[1 - k] - w[k]).sign().view(3, 4, 4) for k in y])
    assert torch.allclose(x, x0 + 0.01 * away)


def test_it_stays_in_the_ball_and_the_cube_and_leaves_the_network_alone(linear_net, batch):
    x0, y = batch
    x0 = x0.round()  # at the edges of the cube
    weights = [p.clone() for p in linear_net.parameters()]
    linear_net.train()
    x = pgd(linear_net, x0, y, radius=0.1, steps=10, generator=torch.Generator())
    assert (x - x0).abs().max() <= 0.1 + 1e-12 and x.min() >= 0 and x.max() <= 1
    assert not torch.equal(x, x0)
    assert linear_net.training and all(p.requires_grad for p in linear_net.parameters())
    assert all(torch.equal(a, b) for a, b in zip(weights, linear_net.parameters(), strict=True))
    assert all(p.grad is None for p in linear_net.parameters())
