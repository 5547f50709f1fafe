"""A head fitted to frozen features."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import MeadaError
from meada.networks.embedding import features
from meada.robustify.probe import best_head, fit_head, fit_into


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Dropout(), nn.Linear(96, 3))


def test_the_head_is_where_the_gradient_of_the_penalised_loss_vanishes():
    torch.manual_seed(1)
    z, y, penalty = 3 * torch.randn(60, 4, dtype=torch.float64) + 5, torch.arange(60) % 3, 0.01
    w, b = fit_head(z, y, 3, penalty)
    scale, mean = z.var(0).mean().sqrt(), z.mean(0)
    v = (w * scale).requires_grad_()  # of scaled features
    a = (b + w @ mean).requires_grad_()
    loss = cross_entropy((z - mean) / scale @ v.T + a, y) + penalty * v.square().sum()
    gradients = torch.autograd.grad(loss, [v, a])
    assert max(float(g.abs().max()) for g in gradients) < 1e-4


def test_a_feature_that_hardly_varies_gets_no_large_weight():
    """A feature that is all but dead on the training pictures may be alive on others."""
    torch.manual_seed(3)
    y = torch.arange(60) % 2
    z = torch.randn(60, 5, dtype=torch.float64) + y[:, None]
    z[:, 4] = 1e-4 * (torch.randn(60) + 2 * y)
    w, _ = fit_head(z, y, 2, 0.01)
    assert float(w[:, 4].abs().max()) < 0.1 * float(w[:, :4].abs().max())


def test_the_penalty_is_chosen_on_held_out_pictures():
    torch.manual_seed(2)
    y = torch.arange(40) % 2
    z = torch.randn(40, 30) + 0.5 * y[:, None]
    noise = torch.randn(200, 30) + 0.5 * (torch.arange(200) % 2)[:, None]
    _, strong = best_head((z, y), (noise, torch.arange(200) % 2), 2)
    assert strong == 1e-1  # hardly any penalty fits the noise of 40 pictures


def test_the_network_says_what_the_head_says(net):
    x, y = torch.rand(20, 3, 6, 6), torch.arange(20) % 3
    head, _ = best_head((features(net, x), y), (features(net, x), y), 3)
    fit_into(net, head)
    torch.testing.assert_close(
        net.eval()(x).double(), features(net, x).double() @ head[0].T + head[1], rtol=0, atol=1e-5
    )
    with pytest.raises(MeadaError, match=r"the last layer must be \(4, 96\) with a bias, got \(3, 96\)"):
        fit_into(net, (torch.zeros(4, 96), torch.zeros(4)))
