"""The distribution that each space draws from: the constants of its card, by statistics of many draws."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import meada
from meada.images.random_ops import uniform
from meada.methods.method import Context
from meada.spaces import SPACES, view_random
from meada.spaces.mixture import blend, mixture
from meada.types import Batch

N = 4000
UNLIKELY = 1e-4  # the draws are the same in every run of the test


def draws(space, channels=3, side=16):
    return space.draw(view_random(3, 0, 0, np.arange(N)), (N, channels, side, side))


def fits(values, law, *parameters):
    return stats.kstest(np.asarray(values, dtype=np.float64).ravel(), law, parameters).pvalue > UNLIKELY


@pytest.mark.parametrize("channels", [1, 3])
def test_random_convolution_has_every_size_and_the_variance_of_its_fan_in(channels):
    theta = draws(SPACES["random_convolution"](bank=0), channels)
    size, kernel = theta["size"], theta["kernel"].double()
    assert stats.chisquare([int((size == k).sum()) for k in (1, 3, 5, 7)]).pvalue > UNLIKELY
    for k in (1, 3, 5, 7):
        cut = slice((7 - k) // 2, (7 + k) // 2)
        weights = kernel[size == k][..., cut, cut]
        assert fits(weights * math.sqrt(channels) * k, "norm")


def test_colour_curves_differ_by_channel():
    a = draws(SPACES["colour_curve"]())["coefficients"].double()
    assert a.shape == (N, 3, 20)
    assert float(a.square().mean()) == pytest.approx(0.05**2 / 3, rel=0.05)  # sigma is 0.05 times U(0, 1)
    assert abs(np.corrcoef(a[:, 0].ravel(), a[:, 1].ravel())[0, 1]) < 0.02


def test_filters_are_a_delta_and_noise():
    kernel = draws(SPACES["filter"]())["kernel"].double()
    means, spread = kernel.mean(0), kernel.std(0)
    assert float(means[1, 1]) == pytest.approx(1, abs=0.15)
    off = torch.ones(3, 3, dtype=torch.bool)
    off[1, 1] = False
    assert float(means[off].abs().max()) < 0.15
    assert float(spread.min()) > 0.9 * 4 / math.sqrt(3) and float(spread.max()) < 1.1 * 4 / math.sqrt(3)  # U(0, 4)


def test_waves_go_in_every_direction():
    theta = draws(SPACES["wave"](), side=32)
    assert fits(theta["amplitude"], "expon", 0, 0.2)
    assert fits(theta["angle"], "uniform", 0, math.pi) and fits(theta["phase"], "uniform", 0, 2 * math.pi)
    assert fits(theta["frequency"], "uniform", 1 / 32, 0.5 - 1 / 32)


def test_warps_move_alike_in_both_directions():
    a = draws(SPACES["warp"]())["coefficients"].double()
    both = a.square().mean((0, 2, 3)).sqrt()
    assert float(both[0] / both[1]) == pytest.approx(1, abs=0.05)
    assert abs(np.corrcoef(a[:, 0].ravel(), a[:, 1].ravel())[0, 1]) < 0.02


def test_mixtures_are_dirichlet_of_chains_of_every_length():
    theta = draws(mixture(SPACES["wave"](), width=3, depth=3))
    assert fits(theta["mix"], "uniform")
    for place in range(3):  # the marginal law of Dirichlet(1, 1, 1)
        assert fits(theta["weights"][:, place], "beta", 1, 2)
        assert stats.chisquare(np.bincount(theta["length"][:, place].numpy())).pvalue > UNLIKELY
    assert set(theta["length"].unique().tolist()) == {0, 1, 2}  # further links after the first


def test_a_blend_starts_anywhere():
    theta = blend([torch.rand(N, 1, 2, 2)] * 3).draw(view_random(3, 0, 0, np.arange(N)), (N, 1, 2, 2))
    assert fits(theta["mix"], "uniform") and fits(theta["weights"], "uniform")


@pytest.mark.parametrize(("space", "step", "index"), [("wave", 18, 70363), ("wide", 996, 73094)], ids=["wave", "wide"])
def test_a_draw_that_rounds_to_one_gives_an_image(space, step, index):
    """One in 2^25 uniform numbers is 1.0 in float32: an exponential number made of it would be infinite."""
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    x = torch.rand(1, 3, 8, 8)
    view = meada.hard_views(
        net, x, torch.zeros(1, dtype=torch.long), space=space, k=1, seed=0, step=step, index=[index]
    )
    assert bool(view.isfinite().all())


def test_a_mixture_whose_draw_rounds_to_one_can_be_trained_on():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    batch = Batch(torch.rand(1, 3, 8, 8), torch.zeros(1, dtype=torch.long), None, torch.tensor([36181]))
    assert bool(meada.METHODS["prime"]().loss(net, batch, Context(seed=0, step=191)).isfinite())


def test_uniform_numbers_stay_below_their_bound(monkeypatch):
    largest, like = 1 - 2.0**-53, torch.zeros(())
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, largest, dtype=torch.float64))
    assert float(uniform(like, 2, generator=torch.Generator()).max()) < 1
    assert float(uniform(like.double(), 2, generator=torch.Generator()).max()) == largest
    assert float(view_random(0, 18, 0, [70363]).uniform("amplitude", 3).max()) < 1
    wide = view_random(3, 0, 0, np.arange(N)).uniform("any", low=-2.0, high=5.0)
    assert -2 <= float(wide.min()) < float(wide.max()) < 5
