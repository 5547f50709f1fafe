"""The tilted draw: laws of the choice, of the views, and of the network left as it was."""

from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.testing import assert_close

import meada
from meada.errors import MeadaError
from meada.maximise import ascend
from meada.objective import Objective
from meada.spaces import SPACES, Space, skip_mix, view_random
from meada.spaces.choice import choose, inverse_temperature


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 144, 5)
    )


@pytest.fixture
def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(16, 3, 12, 12), torch.arange(16) % 5


def candidates(space, x, k, seed=0, step=0):
    return torch.stack([SPACES[space]().view(x, view_random(seed, step, j, np.arange(len(x)))) for j in range(k)], 1)


def scores_of(net, views, y, beta):
    net = deepcopy(net).eval()
    z = torch.zeros(len(y), 0)
    with torch.no_grad():
        return np.stack(
            [Objective(beta=beta, gamma=0.0)(net(views[:, j]), z, z, y).numpy() for j in range(views.shape[1])], 1
        )


def test_hardness_one_keeps_the_highest_score(net, images):
    x, y = images
    views = candidates("wide", x, 4)
    best = scores_of(net, views, y, 1.0).argmax(1)
    got = meada.hard_views(net, x, y, k=4, hardness=1.0, seed=0)
    assert_close(got, views[torch.arange(16), torch.from_numpy(best)], rtol=0, atol=1e-12)


def test_every_view_is_one_of_its_candidates_and_hardness_zero_ignores_the_network(net, images):
    x, y = images
    views = candidates("wide", x, 4)
    other = deepcopy(net)
    for p in other.parameters():
        p.data.mul_(-3)
    for hardness in (0.0, 0.5):
        got = meada.hard_views(net, x, y, k=4, hardness=hardness, seed=0)
        assert ((views - got[:, None]).abs().amax((2, 3, 4)).amin(1) < 1e-12).all()
    random = [meada.hard_views(n, x, y, k=4, hardness=0.0, seed=0) for n in (net, other)]
    assert torch.equal(*random)
    hard = [meada.hard_views(n, x, y, k=4, hardness=0.9, seed=0) for n in (net, other)]
    assert not torch.equal(*hard)


def test_one_candidate_is_the_prior_whatever_the_network(net, images):
    x, y = images
    got = meada.hard_views(net, x, y, k=1, hardness=1.0, seed=0)
    assert_close(got, candidates("wide", x, 1)[:, 0], rtol=0, atol=1e-12)


def test_half_a_batch_gives_the_same_views(net, images):
    x, y = images
    whole = meada.hard_views(net, x, y, hardness=0.5, seed=1, step=4)
    half = meada.hard_views(net, x[8:], y[8:], hardness=0.5, seed=1, step=4, index=torch.arange(8, 16))
    assert_close(whole[8:], half, rtol=0, atol=1e-12)


def test_without_a_seed_every_call_gives_new_views(net, images):
    assert not torch.equal(*(meada.hard_views(net, *images) for _ in range(2)))
    torch.manual_seed(7)
    first = meada.hard_views(net, *images)
    torch.manual_seed(7)
    assert torch.equal(first, meada.hard_views(net, *images))


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_the_network_is_left_as_it_was(net, images, gamma):
    net.train()
    net(images[0]).sum().backward()
    before = deepcopy(net.state_dict()), [p.grad.clone() for p in net.parameters()]
    meada.hard_views(net, *images, gamma=gamma)
    assert net.training and all(p.requires_grad for p in net.parameters())
    assert_close(before[0], net.state_dict(), rtol=0, atol=0)
    assert_close(before[1], [p.grad for p in net.parameters()], rtol=0, atol=0)


def test_k_plus_one_applications(net, images):
    applied = []
    wave = SPACES["wave"]()
    counted = replace(wave, transform=lambda x, theta: applied.append(1) or wave.transform(x, theta))
    meada.hard_views(net, *images, space=counted, k=3, seed=0)
    assert len(applied) == 4


@pytest.mark.parametrize("hardness", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_choice_differs_from_uniform_by_hardness_log_k(k, hardness):
    scores = np.random.default_rng(0).normal(size=(200, k)) * np.logspace(-6, 6, 200)[:, None]
    p = scores * inverse_temperature(scores, hardness)[:, None]
    p = np.exp(p - p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    kl = np.log(k) + (p * np.log(np.maximum(p, 1e-300))).sum(1)
    np.testing.assert_allclose(kl, hardness * np.log(k), rtol=1e-6)


def test_equal_scores_are_broken_by_the_noise():
    scores = np.array([[1.0, 1.0, 0.0, 0.0]] * 4000)
    noise = np.random.default_rng(0).gumbel(size=scores.shape)
    counts = np.bincount(choose(scores, 0.5, noise), minlength=4)  # m = 2 >= 4^0.5
    assert counts[2:].sum() == 0 and stats.binomtest(counts[0], 4000).pvalue > 0.001
    counts = np.bincount(choose(np.zeros((4000, 4)), 1.0, noise), minlength=4)
    assert stats.chisquare(counts).pvalue > 0.001


def test_frequencies_match_the_softmax():
    scores = np.array([[0.3, -0.2, 1.1]])
    b = float(inverse_temperature(scores, 0.4)[0])
    p = np.exp(scores[0] * b) / np.exp(scores[0] * b).sum()
    rows = np.repeat(scores, 20_000, 0)
    noise = np.stack([view_random(5, 0, j, np.arange(20_000)).gumbel("choice") for j in range(3)], 1)
    counts = np.bincount(choose(rows, 0.4, noise), minlength=3)
    assert stats.chisquare(counts, 20_000 * p).pvalue > 0.001
    assert stats.chisquare(counts, 20_000 * np.full(3, 1 / 3)).pvalue < 1e-9


def test_views_are_draws_from_the_tilted_law():
    """Through the door: three enumerated candidates, 20,000 samples, by a chi-square test."""
    levels = torch.tensor([0.1, 0.5, 0.9])

    def draw(random, shape):
        return {"level": levels[random.integers("level", 3)]}

    three = Space(draw=draw, transform=lambda x, theta: theta["level"].to(x).view(-1, 1, 1, 1).expand_as(x),
                  families=frozenset({"tone"}), name="three")  # fmt: skip
    net = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    n, k = 20_000, 3
    x, y = torch.full((n, 1, 1, 1), 0.3), torch.zeros(n, dtype=torch.long)
    got = meada.hard_views(net, x, y, space=three, k=k, hardness=0.5, beta=0.0, seed=2).flatten()
    with torch.no_grad():
        of = nn.functional.cross_entropy(
            net(levels.view(3, 1, 1, 1)), torch.zeros(3, dtype=torch.long), reduction="none"
        )
    expected = np.zeros(3)
    for combination in product(range(3), repeat=k):  # every way in which the prior draws k candidates
        scores = of[list(combination)].double().numpy()[None]
        b = inverse_temperature(scores, 0.5)[0]
        p = (scores == scores.max())[0] if np.isinf(b) else np.exp((scores[0] - scores.max()) * b)
        np.add.at(expected, list(combination), p / p.sum() / 3**k)
    counts = [int((got - level).abs().lt(1e-6).sum()) for level in levels]
    assert stats.chisquare(counts, n * expected).pvalue > 0.001
    assert stats.chisquare(counts, n * np.full(3, 1 / 3)).pvalue < 1e-9


def test_ascending_over_pixels_is_perturb(net, images):
    x, y = images
    frozen = deepcopy(net).eval()
    score = lambda v, step: nn.functional.cross_entropy(frozen(v), y, reduction="none")
    got = ascend(score, SPACES["pixels"](), x, {"image": x}, steps=4, step_size=0.05)
    want = meada.perturb(net, x, y, beta=0.0, gamma=0.0, step_size=0.05, steps=4)
    assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["random_convolution", "colour_curve", "filter", "warp", "wave"])
def test_ascending_raises_the_score_in_every_smooth_space(net, images, name):
    x, y = images
    frozen = deepcopy(net).eval()
    score = lambda v, step: nn.functional.cross_entropy(frozen(v), y, reduction="none")
    space = skip_mix(SPACES[name]())
    theta = space.draw(view_random(0, 0, 0, np.arange(16)), x.shape)
    start, end = (ascend(score, space, x, theta, steps=n, step_size=0.003) for n in (0, 8))
    assert_close(start, space.apply(x, theta))
    with torch.no_grad():
        assert float(score(end, 0).mean()) > float(score(start, 0).mean())


def test_a_space_without_derivative_is_refused_by_the_ascent(images):
    with pytest.raises(MeadaError, match="'operations' cannot be differentiated"):
        ascend(lambda v, s: v.sum((1, 2, 3)), SPACES["operations"](), images[0], {}, steps=1, step_size=1.0)


def test_an_ascent_names_the_step_of_what_is_wrong_with_a_space(images):
    x, _ = images
    score = lambda v, step: v.sum((1, 2, 3))
    space = Space(draw=lambda random, shape: {}, transform=lambda x, theta: x * 0 + 0.5,
                  families=frozenset(), smooth=True, name="flat")  # fmt: skip
    with pytest.raises(MeadaError, match="space 'flat', step 0: views must depend on the parameters, but do not"):
        ascend(score, space, x, {"a": torch.zeros(16)}, steps=2, step_size=0.1)
    wrong = replace(space, transform=lambda x, theta: x[:1] * theta["a"].mean())
    with pytest.raises(MeadaError, match="space 'flat', step 0: views must be floats of shape"):
        ascend(score, wrong, x, {"a": torch.zeros(16)}, steps=2, step_size=0.1)
    unused = replace(space, transform=lambda x, theta: x * (1 + theta["a"].view(-1, 1, 1, 1)))
    theta = {"a": torch.zeros(16), "b": torch.ones(16)}
    assert float((ascend(score, unused, x, theta, steps=1, step_size=0.001) - x).min()) >= 0


def test_bad_input_is_named(net, images):
    for settings, what in (
        ({"k": 0}, "k must be 1 or more, got 0"),
        ({"hardness": 1.5}, r"hardness must be in 0\.\.1, got 1\.5"),
        ({"space": "wde"}, "unknown space 'wde': did you mean 'wide'"),
        ({"space": "pixels"}, "no prior"),
        ({"index": [1, 2]}, r"one integer per image \(16\), got shape \(2,\)"),
    ):
        with pytest.raises(MeadaError, match=what):
            meada.hard_views(net, *images, **settings)


class Reshaping(nn.Module):
    """Calls ``view`` on the output of a convolution, as many tutorials do: channels-last outputs have no such view."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 144, 5)

    def forward(self, x):
        return self.head(self.conv(x).relu().view(len(x), -1))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_network_that_reshapes_with_view(images, wrapped):
    x, y = images
    net = Reshaping()
    if wrapped:  # as libraries do that replace ``forward`` on the object
        inner = net.forward
        net.forward = lambda x: inner(x)
    same = nn.Sequential(net.conv, nn.ReLU(), nn.Flatten(), net.head)
    before, held = deepcopy(net.state_dict()), net.__dict__.get("forward")
    for call in (lambda n: meada.hard_views(n, x, y, seed=0), lambda n: meada.perturb(n, x, y, steps=3)):
        assert_close(call(net), call(same), rtol=0, atol=1e-9)
    assert net.__dict__.get("forward") is held
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    with pytest.raises(MeadaError, match="Reshaping does not take images of shape"):
        meada.hard_views(net, x[..., :5], y)
    assert net.__dict__.get("forward") is held


def test_a_network_that_does_more_in_eval_mode(images):
    """Like adapters that are merged into the weights by ``eval()`` and taken out by ``train()``."""

    class Merging(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.added, self.merged = nn.Parameter(torch.randn(5, 432)), nn.Parameter(torch.ones(1)), False

        def train(self, mode=True):
            super().train(mode)
            if mode == self.merged:
                self.weight.data += -self.added.data if mode else self.added.data
                self.merged = not mode
            return self

        def forward(self, x):
            return x.flatten(1) @ (self.weight if self.merged else self.weight + self.added).T

    net = Merging().train()
    before = net.weight.detach().clone()
    meada.hard_views(net, *images)
    assert net.training and not net.merged
    assert_close(net.weight.detach(), before)


def test_views_made_in_inference_mode_can_be_trained_on(net, images):
    with torch.inference_mode():
        views = meada.hard_views(net, *images)
    net(views).sum().backward()


def test_weights_made_in_inference_mode_are_left_as_they_are(images):
    with torch.inference_mode():
        net = nn.Sequential(nn.Flatten(), nn.Linear(432, 5))
    wanted = [p.requires_grad for p in net.parameters()]
    meada.hard_views(net, *images)
    assert [p.requires_grad for p in net.parameters()] == wanted


def test_the_cost_takes_the_embedding_that_is_named(images):
    x, y = images
    net = nn.Sequential(nn.Conv2d(3, 5, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())  # has no nn.Linear
    keys = {"seed": 0, "hardness": 1.0, "k": 6}
    with pytest.raises(MeadaError, match="embedding"):
        meada.hard_views(net, x, y, gamma=0.1, **keys)
    near, far = (meada.hard_views(net, x, y, gamma=g, embedding="1", **keys) for g in (1e6, -1e6))
    moved = [(net(v) - net(x)).square().sum(1).mean() for v in (near, far)]
    assert moved[0] < moved[1]


def test_ascent_over_kernels_of_a_bank_never_ends_lower(images):
    """Samples that share a kernel at the start have kernels of their own after a step."""
    x, y = images
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 5))
    for name in ("random_convolution", "filter", "colour_curve", "warp", "wave"):
        space = SPACES[name]()
        theta = space.draw(view_random(0, 0, 0, np.arange(16)), x.shape)
        score = lambda v, step: nn.functional.cross_entropy(net(v), y, reduction="none")
        climbed = ascend(score, space, x, theta, steps=10, step_size=1e-3)
        gain = (score(climbed, 0) - score(space.apply(x, theta), 0)).detach()
        assert float(gain.min()) > -1e-3 and float(gain.mean()) > 0, name


def test_no_images_give_no_views(net, images):
    x, y = images
    assert meada.hard_views(net, x[:0], y[:0]).shape == (0, *x.shape[1:])
