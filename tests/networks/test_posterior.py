"""Several draws of a network at rest: weights of a posterior, masks of MC-dropout."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from meada.maximise import perturb
from meada.networks import to_bayesian
from meada.networks.posterior import Posterior, posterior_passes

X = torch.rand(6, 3, 4, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def x() -> torch.Tensor:
    return X.double()


def dropping(layer: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 40), layer, nn.Linear(40, 5))


def looked_at(net, x, number=0, **settings):
    with posterior_passes(net, **settings) as passes:
        return passes(x, number)


def test_a_plain_network_is_its_own_only_draw(linear_net, x):
    logits, z = looked_at(linear_net, x, count=7)
    assert_close(logits, linear_net(x)[None])
    assert_close(z, x.flatten(1)[None])


def test_draws_go_by_seed_number_and_place(x):
    net = to_bayesian(nn.Sequential(nn.Flatten(), nn.Linear(48, 5)), rho=-1.0)
    first = looked_at(net, x, count=3)[0]
    assert torch.equal(first, looked_at(net, x, count=3)[0])
    assert torch.equal(first[:2], looked_at(net, x, count=2)[0])  # more draws, the same first ones
    others = [looked_at(net, x, 1, count=3), looked_at(net, x, count=3, seed=1)]
    assert all(not torch.allclose(first, other[0]) for other in others)
    assert not torch.allclose(first[0], first[1])


def test_a_mask_is_one_for_all_samples_and_kept_over_passes(x):
    net = dropping(nn.Dropout(0.5))
    with posterior_passes(net, count=2, stochastic=["2"]) as passes:
        z = passes(x, 0)[1]
        kept = z != 0
        assert (kept == kept[:, :1]).all() and 0 < kept.double().mean() < 1
        assert not torch.equal(kept[0], kept[1])
        assert torch.equal(passes(x, 0)[1], z)
        assert_close(passes(x[2:3], 0)[1], z[:, 2:3])
        assert not torch.equal(passes(x, 1)[1] != 0, kept)
    hidden = net[:2](x)
    assert_close(z[0][kept[0]], (2 * hidden)[kept[0]])


def test_the_mean_over_masks_is_the_network_in_eval_mode(x):
    """A linear network, so that the mean goes through it; 4 standard errors."""
    net = dropping(nn.Dropout(0.3)).eval()
    logits = looked_at(net, x, count=64, stochastic=["2"])[0]
    assert ((logits.mean(0) - net(x)).abs() < 4.5 * logits.std(0) / 8).all()


def test_channels_are_dropped_whole(x):
    net = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Dropout2d(0.5), nn.Flatten(), nn.Linear(128, 5))
    z = looked_at(net, x, stochastic=["1"])[1].view(6, 8, 16)
    kept = (z != 0).all(-1)
    assert ((z != 0).any(-1) == kept).all() and (kept == kept[:1]).all()
    assert 0 < kept.double().mean() < 1


def test_layers_in_a_named_one_and_layers_called_twice(x):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tail = nn.Sequential(nn.Dropout(0.5, inplace=True))
            self.head = nn.Linear(96, 5)

        def forward(self, x):
            x = torch.ones_like(x.flatten(1))
            return self.head(torch.cat([self.tail(x.clone()), self.tail(x.clone())], 1))

    z = looked_at(Net(), x, stochastic=["tail"])[1][0]
    assert set(z.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(z[:, :48], z[:, 48:])


def test_other_random_layers_repeat_themselves(x):
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x) if self.training else x

    net = dropping(Noise())
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = looked_at(net, x, count=2, stochastic=["2"])[0]
    assert torch.equal(before, torch.random.get_rng_state())
    torch.rand(5)
    assert torch.equal(first, looked_at(net, x, count=2, stochastic=["2"])[0])
    assert not torch.allclose(first[0], first[1])


@pytest.mark.parametrize("pieces", [[1, 5], [3, 3]])
@pytest.mark.parametrize("draws", ["shared", "renewed"])
def test_a_sample_moves_alike_in_any_batch(x, pieces, draws):
    y, settings = torch.arange(6) % 5, {
        "beta": 10.0, "gamma": 1.0, "step_size": 0.1, "steps": 4,
    }  # fmt: skip
    nets = {"2": dropping(nn.Dropout(0.5)), "": to_bayesian(dropping(nn.Tanh()), rho=-2.0)}
    for name, net in nets.items():
        settings["posterior"] = Posterior(samples=3, draws=draws, stochastic=[name] if name else [])
        whole = perturb(net, x, y, **settings)
        parts = zip(x.split(pieces), y.split(pieces), strict=True)
        apart = torch.cat([perturb(net, *part, **settings) for part in parts])
        assert_close(whole, apart, rtol=0, atol=1e-9)
        assert_close(whole, perturb(net, x, y, **settings, block=4), rtol=0, atol=1e-9)
