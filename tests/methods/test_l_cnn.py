"""L-CNN: weights by descriptor, the agnostic one at test, a pretrained network to begin with."""

import sys
from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file
from tests_resume import killed_and_resumed, stopped_and_resumed
from tests_tiny import load_tiny, write_recipe
from torch import nn
from torch.nn.functional import conv2d, cross_entropy, linear
from torch.testing import assert_close

import meada
from meada.algorithm import Plan, Watch, begin, train
from meada.errors import MeadaError
from meada.methods.l_cnn import describing, l_cnn, leading, to_low_rank
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain
from meada.networks.embedding import embedding_passes
from meada.pool import Pool
from meada.runs.checkpoint import save_weights
from meada.runs.network import load_model
from meada.runs.run_folder import RunFolder

SGD = Descent(name="sgd", lr=0.05, momentum=0.9)
IDS = (7, -2, 40)
AGNOSTIC = torch.tensor([0.0, 0.0, 0.0, 1.0])


def plain() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1, bias=False), nn.Tanh(), nn.Flatten(),
        nn.Linear(96, 9), nn.Tanh(), nn.Linear(9, 5),
    )  # fmt: skip


@pytest.fixture
def pool() -> Pool:
    return Pool(torch.rand(15, 3, 8, 8), torch.arange(15) % 5, torch.tensor(IDS).repeat(5))


@pytest.fixture
def net() -> nn.Module:
    """Away from its beginning, so that every slice of every weight matters."""
    net = to_low_rank(plain(), domains=3, error=0.6)
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return net


def product(layer: nn.Module, z: torch.Tensor) -> torch.Tensor:
    """W(z) entry by entry: the sum over all ranks."""
    kernel = tuple(layer.rest) or (1,)
    core = layer.core.unflatten(2, (layer.u_in.shape[1], *kernel)).flatten(3)
    w = torch.zeros(len(layer.u_out), len(layer.u_in), core.shape[3])
    for s in range(len(z)):
        for d in range(len(core)):
            for a in range(layer.u_out.shape[1]):
                for b in range(layer.u_in.shape[1]):
                    outer = layer.u_out[:, a, None, None] * layer.u_in[None, :, b, None]
                    w = w + z[s] * layer.u_domain[s, d] * outer * core[d, a, b]
    return w.view(*w.shape[:2], *layer.rest)


@pytest.mark.parametrize("z", [(1.0, 0, 0, 1.0), (0, 0, 1.0, 1.0), (0, 0, 0, 1.0), (0.2, 3, -1, 2)])
@torch.no_grad()
def test_a_weight_is_the_low_rank_product_with_the_descriptor(net, z):
    z, x = torch.tensor(z, dtype=torch.float64), torch.rand(2, 3, 8, 8)
    conv, first, last = (net[i] for i in (0, 3, 5))
    h = torch.tanh(conv2d(x, product(conv, z), stride=2, padding=1)).flatten(1)
    h = torch.tanh(linear(h, product(first, z), first.bias))
    want = linear(h, product(last, z), last.bias)
    with describing(net, z):
        assert_close(net(x), want)
        for layer in (conv, first, last):
            assert_close(layer.weight, product(layer, z))
    assert all(layer.descriptor is None for layer in (conv, first, last))


def test_ranks_are_lower_than_the_weights(net):
    assert len(net[3].u_out) == 9 and net[3].u_out.shape[1] < 9
    assert len(net[3].u_in) == 96 and net[3].u_in.shape[1] <= 9


def test_without_a_descriptor_it_is_the_agnostic_network_in_either_mode(net):
    x = torch.rand(4, 3, 8, 8)
    with describing(net, AGNOSTIC):
        want = net(x)
    assert_close(net.eval()(x), want)
    assert_close(net.train()(x), want)
    with describing(net, torch.tensor([1.0, 0, 0, 1])):
        assert (net(x) - want).abs().max() > 1e-3


@pytest.mark.parametrize("error", [0.0, 0.1, 0.4])
def test_it_begins_as_the_given_network_within_the_decompositions_error(error):
    given = plain()
    low = to_low_rank(given, domains=3, error=error)
    for i in (0, 3, 5):
        lost = (low[i].weight - given[i].weight).norm() / given[i].weight.norm()
        assert lost <= error + 1e-6
        if error == 0.4:
            assert lost > 0.05  # and something was saved by it
    x = torch.rand(4, 3, 8, 8)
    for z in (AGNOSTIC, torch.tensor([0.0, 1.0, 0.0, 1.0])):  # every domain begins there
        with describing(low, z):
            if error == 0:
                assert_close(low(x), given(x), rtol=0, atol=1e-6)
            assert_close(low(x), low.eval()(x))


def test_a_weight_of_low_rank_is_given_back_exactly():
    given = nn.Sequential(nn.Conv2d(8, 10, 3), nn.Flatten(), nn.Linear(40, 20))
    with torch.no_grad():
        given[0].weight.copy_(torch.einsum(
            "oa,abkl,ib->oikl", torch.randn(10, 2), torch.randn(2, 3, 3, 3), torch.randn(8, 3)
        ))  # fmt: skip
        given[2].weight.copy_(torch.randn(20, 4) @ torch.randn(4, 40))
    low = to_low_rank(given, domains=2, error=0.0)
    assert [tuple(low[i].core.shape) for i in (0, 2)] == [(3, 2, 27), (3, 4, 4)]
    for i in (0, 2):
        assert_close(low[i].weight, given[i].weight)


def test_noise_that_is_cut_short_of_the_error_keeps_its_norm():
    """Fully connected layers that begin at random have no low rank: activations keep their size."""
    layer = nn.Linear(64, 48, bias=False)
    cut = to_low_rank(nn.Sequential(layer), error=0.1, max_rank=8)[0]
    assert cut.weight.norm().item() == pytest.approx(layer.weight.norm().item())
    assert torch.linalg.matrix_rank(cut.weight) == 8
    x = torch.randn(4096, 64, generator=torch.Generator().manual_seed(0))
    assert cut(x).std().item() == pytest.approx(layer(x).std().item(), rel=0.1)


def test_the_rank_is_the_least_that_the_error_allows():
    w = torch.linalg.qr(torch.randn(6, 6))[0] @ torch.diag(torch.tensor([5.0, 4, 3, 2, 1, 0.5]))
    total = 25 + 16 + 9 + 4 + 1 + 0.25
    for rank, lost in ((6, 0.0), (5, 0.25), (4, 1.25), (2, 14.25)):
        error = (lost / total) ** 0.5
        assert leading(w, error + 1e-6, max_rank=9).shape[1] == rank
    u = leading(w, 0.0, max_rank=2)
    assert_close(u.T @ u, torch.eye(2))
    assert_close((w - u @ (u.T @ w)).square().sum(), torch.tensor(14.25))


def test_many_rows_by_the_power_method_are_close_to_the_best(monkeypatch):
    w = torch.randn(60, 5) @ torch.randn(5, 40) + 0.01 * torch.randn(60, 40)
    best = leading(w, 0.0, max_rank=5)
    monkeypatch.setattr(sys.modules[leading.__module__], "EXACT", 8)
    u = leading(w, 0.0, max_rank=5)
    assert_close(u.T @ u, torch.eye(5))
    left, least = ((w - v @ (v.T @ w)).norm() for v in (u, best))
    assert (1 - 1e-9) * least <= left < 1.001 * least and not torch.equal(u, best)


def test_each_domain_trains_its_own_network(net, pool):
    method = l_cnn()
    assert isinstance(method.loss, EachDomain)
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(15))
    want = []
    for place, d in enumerate(sorted(IDS)):
        z = torch.eye(4)[place] + AGNOSTIC
        with describing(net, z):
            want.append(cross_entropy(net(batch.x[batch.domain == d]), batch.y[batch.domain == d]))
    got = method.loss(net, batch, Context(parts=training.parts))
    assert_close(got, sum(want) / 3)


def test_a_domain_moves_its_own_slice_and_the_common_one(pool):
    """By the gradient at the beginning, where U_domain is the identity."""
    net, method = to_low_rank(plain(), domains=3), l_cnn()
    training = begin(net, pool, method, SGD)
    batch = pool.batch((pool.domains == 40).nonzero().flatten())
    method.loss(net, batch, Context(parts=training.parts)).backward()
    core = net[3].core.grad.flatten(1).norm(dim=1)
    assert core[2] > 1e-6 and core[3] > 1e-6 and core[:2].max() == 0
    assert_close(core[2], core[3])


def test_it_is_seen_climbed_and_embedded_like_any_network(net):
    x, y = torch.rand(4, 3, 8, 8), torch.arange(4)
    with embedding_passes(net) as forward:
        assert forward(x)[1].shape == (4, 9)  # the input of the last Linear
    before = deepcopy(net.state_dict())
    settings = {"beta": 1.0, "gamma": 0.1, "step_size": 0.01, "steps": 2}
    moved = meada.perturb(net, x, y, **settings)
    dense = plain()  # the agnostic weights written out
    with torch.no_grad():
        for i in (0, 3, 5):
            dense[i].weight.copy_(net[i].weight)
        for i in (3, 5):
            dense[i].bias.copy_(net[i].bias)
    assert_close(moved, meada.perturb(dense, x, y, **settings))
    assert_close(net.state_dict(), before, rtol=0, atol=0)


def test_weights_of_other_ranks_can_be_loaded(net, tmp_path):
    """A saved model is rebuilt on fresh weights, whose ranks may differ."""
    other = to_low_rank(plain(), domains=3, error=0.0)
    assert other[3].u_out.shape != net[3].u_out.shape
    held = dict(other.named_parameters())
    save_weights(tmp_path / "w.safetensors", net)
    other.load_state_dict(load_file(tmp_path / "w.safetensors"))
    x = torch.rand(2, 3, 8, 8)
    assert_close(other(x), net(x), rtol=0, atol=0)
    assert all(held[name] is p for name, p in other.named_parameters())
    with pytest.raises(RuntimeError, match="u_domain"):
        to_low_rank(plain(), domains=2).load_state_dict(net.state_dict())


@pytest.mark.parametrize("cut", [1, 5])
def test_killed_and_resumed_it_is_the_same_training(pool, tmp_path, cut):
    plan = Plan(rounds=1, min_steps=3, total_steps=6, batch_size=2)
    method, start = l_cnn(), plain()
    fresh = lambda: (begin(method.adapt(deepcopy(start)), pool, method, SGD), pool, method)

    whole, resumed = killed_and_resumed(fresh, plan, SGD, tmp_path, cut)
    assert_close(whole.net.state_dict(), resumed.net.state_dict(), rtol=0, atol=0)


def test_a_run_is_stopped_resumed_and_its_model_rebuilt(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path, method="l-cnn", settings="error = 0.2"))
    whole, cut = stopped_and_resumed(recipe, tmp_path, step=9)
    assert cut["results"] == whole["results"]
    a, b = (load_model(RunFolder(tmp_path / d), 10, trust=[recipe.network["name"]]).eval() for d in ("whole", "cut"))
    x = torch.rand(2, 3, 32, 32)
    assert_close(a(x), b(x), rtol=0, atol=0)
    assert_close(a.state_dict(), load_file(tmp_path / "whole" / "model.safetensors"))


def test_it_learns(pool):
    net, method = to_low_rank(plain(), domains=3), l_cnn()
    training = begin(net, pool, method, SGD)
    losses: list[float] = []
    plan = Plan(rounds=0, min_steps=0, total_steps=60, batch_size=5)
    watch = Watch(stepped=lambda _, loss: losses.append(loss.item()))
    train(training, pool, method, plan, SGD, watch=watch)
    assert losses[-1] < 0.7 * losses[0]


def test_what_cannot_be_is_refused(net, pool):
    with pytest.raises(MeadaError, match="method.domains must be 3, the number of sources, got 2"):
        begin(net, pool, l_cnn(domains=2), SGD)
    with pytest.raises(MeadaError, match="adapt it first"):
        begin(plain(), pool, l_cnn(), SGD)
    with pytest.raises(MeadaError, match="no Linear and no Conv2d"):
        to_low_rank(nn.Sequential(nn.ReLU()))
    training = begin(net, pool, l_cnn(), SGD)
    with pytest.raises(MeadaError, match="domain must be one of those trained on, -2, 7, 40, got 3"):
        training.parts.modules["descriptors"](3)
    for bad in ({"domains": 0}, {"error": 1.0}, {"max_rank": 0}):
        with pytest.raises(MeadaError, match=next(iter(bad))):
            l_cnn(**bad)
    assert to_low_rank(net) is net
