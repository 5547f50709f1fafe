"""DSN: private codes apart from the shared one, domains alike in it, and it alone predicts."""

from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file
from tests_resume import killed_and_resumed, stopped_and_resumed
from tests_tiny import load_tiny, write_recipe
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import Plan, begin, train
from meada.errors import MeadaError
from meada.methods.dsn import difference, domain_numbers, dsn, private_codes, scale_invariant_mse
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain
from meada.pool import Pool
from meada.types import Batch

SGD = Descent(name="sgd", lr=0.05, momentum=0.9)
IDS = (7, -2, 40)  # domains may go by any numbers


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 6), nn.Tanh(), nn.Linear(6, 5))


@pytest.fixture
def pool() -> Pool:
    return Pool(torch.rand(15, 3, 8, 8), torch.arange(15) % 5, torch.tensor(IDS).repeat(5))


def test_orthogonal_codes_cost_nothing_and_others_something():
    c = torch.tensor([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    p = torch.tensor([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [-0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    assert_close(difference(c, p), torch.tensor(0.0), rtol=0, atol=1e-15)
    q = p.clone()
    q[1:3] = q[[2, 1]]  # now c and q rise and fall together: sum c_i q_i' has norm 4
    assert_close(difference(c, q), torch.tensor(1.0))
    r = torch.tensor([[1.0], [-1.0], [0.0], [0.0]])
    # centred c has rows (+-1, +-2) / sqrt 5, r stays: the sum is c_1 - c_2, of squared norm 4
    assert_close(difference(c, r), torch.tensor(4.0 / 16))


def test_the_difference_is_the_printed_norm():
    h_c, h_p = torch.randn(9, 7) + 3, torch.randn(9, 4) - 1
    c, p = h_c - h_c.mean(0), h_p - h_p.mean(0)
    c, p = c / c.norm(dim=1, keepdim=True), p / p.norm(dim=1, keepdim=True)
    assert_close(difference(h_c, h_p), torch.linalg.matrix_norm(c.T @ p).square() / 81)
    assert difference(h_c, h_p) > 0
    assert_close(difference(5 * h_c, h_p - 2), difference(h_c, h_p))


def test_codes_that_are_all_the_same_stay_finite():
    h = torch.ones(4, 3).mul(1 / 3).requires_grad_()
    difference(torch.randn(4, 3), h).backward()
    assert h.grad.abs().max() < 1e-6


def test_reconstruction_does_not_mind_a_common_error():
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]]).view(1, 1, 2, 2)
    e = torch.tensor([[1.0, 0.0], [-1.0, 2.0]]).view(1, 1, 2, 2)
    # (1 + 0 + 1 + 4) / 4 - (2 / 4)^2
    assert_close(scale_invariant_mse(x - e, x), torch.tensor([1.25]))
    assert_close(scale_invariant_mse(x - e + 9.0, x), torch.tensor([1.25]))
    found = x.log() + torch.log(torch.tensor(3.0))  # an image three times as bright
    assert_close(scale_invariant_mse(found, x.log()), torch.tensor([0.0]), rtol=0, atol=1e-15)


def gradients(net, pool, method, **where):
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(15))
    net.zero_grad()
    value = method.loss(net, batch, Context(parts=training.parts, **where))
    value.backward()
    return value.detach(), batch, training.parts, [p.grad.clone() for p in net.parameters()]


def place(batch: Batch) -> torch.Tensor:
    """The pool's domains in order are -2, 7, 40."""
    return torch.tensor([sorted(IDS).index(int(d)) for d in batch.domain])


@pytest.mark.parametrize("gamma", [0.0, 0.3, 2.0])
def test_the_shared_encoder_sees_the_domain_classifiers_gradient_reversed(net, pool, gamma):
    _, batch, parts, found = gradients(net, pool, dsn(alpha=0.0, beta=0.0, gamma=gamma))
    critic = parts.modules["domain"]
    own = [p.grad.clone() for p in critic.parameters()]
    risk = torch.autograd.grad(cross_entropy(net(batch.x), batch.y), list(net.parameters()))
    guess = cross_entropy(critic(net[:5](batch.x)), place(batch))
    shared = list(net[:5].parameters())
    towards = torch.autograd.grad(guess, shared, retain_graph=True)
    for got, ce, domain in zip(found[:4], risk[:4], towards, strict=True):
        assert_close(got, ce - gamma * domain)
        assert domain.abs().max() > 1e-6
    assert_close(found[4:], list(risk[4:]))  # the read-out does not hear of domains
    straight = torch.autograd.grad(gamma * guess, list(critic.parameters()))
    assert_close(own, list(straight))  # not reversed for the classifier itself


def test_the_loss_is_the_sum_of_its_four_terms(net, pool):
    value, batch, parts, found = gradients(net, pool, dsn(alpha=0.7, beta=1.3, gamma=0.4, side=8))
    h_c, m = net[:5](batch.x), parts.modules
    h_p = torch.empty_like(h_c)
    for d in IDS:
        h_p[batch.domain == d] = m["private"][str(d)](batch.x[batch.domain == d])
    e = (batch.x - m["decoder"](h_c + h_p)).flatten(1)
    recon = (e.square().mean(1) - e.mean(1).square()).mean()
    apart = sum(difference(h_c[batch.domain == d], h_p[batch.domain == d]) for d in IDS)
    alike = cross_entropy(m["domain"](h_c), place(batch))
    ce = cross_entropy(net(batch.x), batch.y)
    assert_close(value, ce + 0.7 * recon + 1.3 * apart + 0.4 * alike)
    descended = ce + 0.7 * recon + 1.3 * apart - 0.4 * alike
    assert_close(found, list(torch.autograd.grad(descended, list(net.parameters()))))


def test_the_similarity_is_switched_on_after_its_share_of_the_steps(net, pool):
    method = dsn(alpha=0.0, beta=0.0, gamma=1.0, after=0.5)
    early, late = (gradients(net, pool, method, step=s, total_steps=10)[0] for s in (4, 5))
    batch = pool.batch(torch.arange(15))
    assert_close(early, cross_entropy(net(batch.x), batch.y))
    assert late > early + 0.5


def test_the_shared_part_alone_predicts(net, pool):
    method = dsn()
    assert method.adapt(net) is net
    training = begin(net, pool, method, SGD)
    x = pool.batch(torch.arange(15)).x
    before = net(x)
    with torch.no_grad():
        for weight in training.parts.modules.parameters():
            weight.fill_(3.0)
    assert_close(net(x), before, rtol=0, atol=0)
    adam = training.parts.optimisers["dsn"].param_groups[0]["params"]
    assert {id(p) for p in adam} == {id(p) for p in training.parts.modules.parameters()}


def test_the_code_is_taken_where_the_recipe_puts_z(net, pool):
    training = begin(net, pool, dsn(width=9), SGD, embedding="2")
    assert training.parts.modules["domain"][0].in_features == 144
    assert list(training.parts.modules["private"]) == ["-2", "7", "40"]


def test_each_image_goes_to_its_own_domains_encoder():
    twice, thrice = nn.Flatten(), nn.Sequential(nn.Flatten(), nn.Threshold(1e9, 3.0))
    x, domain = torch.rand(4, 1, 1, 2), torch.tensor([1, 0, 0, 1])
    found = private_codes(nn.ModuleDict({"5": twice, "6": thrice}), x, domain, torch.zeros(4, 2))
    want = torch.where(domain[:, None] == 1, torch.tensor(3.0), x.flatten(1))
    assert_close(found, want)


def test_a_domain_that_the_pool_has_not_is_named():
    batch = Batch(torch.rand(2, 3, 2, 2), torch.zeros(2, dtype=torch.long), torch.tensor([7, 8]))
    with pytest.raises(MeadaError, match="domain must be one of those trained on, 7, -2, got 8"):
        domain_numbers(batch, ["7", "-2"])
    assert domain_numbers(batch._replace(domain=None), ["0"]).tolist() == [0, 0]


def test_private_and_shared_codes_part_in_training(net, pool):
    """With the difference alone in play it falls, for every domain."""
    method = dsn(alpha=0.0, beta=1.0, gamma=0.0, lr=0.01, side=8)
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(15))

    def apart() -> float:
        private = training.parts.modules["private"]
        domain = domain_numbers(batch, list(private))
        h_c = net[:5](batch.x)
        small = nn.functional.adaptive_avg_pool2d(batch.x, 8)
        h_p = private_codes(private, small, domain, h_c)
        return sum(difference(h_c[domain == d], h_p[domain == d]).item() for d in range(3))

    before = apart()
    train(training, pool, method, Plan(rounds=0, min_steps=0, total_steps=25, batch_size=5), SGD)
    assert apart() < 0.2 * before


@pytest.mark.parametrize("cut", [1, 5])
def test_killed_and_resumed_it_is_the_same_training(net, pool, tmp_path, cut):
    plan = Plan(rounds=1, min_steps=3, total_steps=6, batch_size=2)
    method = dsn(after=0.5, side=8)
    assert isinstance(method.loss, EachDomain)
    fresh = lambda: (begin(deepcopy(net), pool, method, SGD), pool, method)

    whole, resumed = killed_and_resumed(fresh, plan, SGD, tmp_path, cut)
    for a, b in ((whole.net, resumed.net), (whole.parts.modules, resumed.parts.modules)):
        assert_close(a.state_dict(), b.state_dict(), rtol=0, atol=0)


def test_a_run_of_it_can_be_stopped_and_resumed(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path, method="dsn", settings="side = 8"))
    whole, cut = stopped_and_resumed(recipe, tmp_path, step=9)
    assert cut["results"] == whole["results"]
    a, b = (load_file(tmp_path / d / "model.safetensors") for d in ("whole", "cut"))
    assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize(
    "bad", [{"alpha": -1.0}, {"beta": -1.0}, {"gamma": -0.1}, {"after": 1.0}, {"lr": 0.0},
            {"side": 3}, {"width": 0}],
)  # fmt: skip
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        dsn(**bad)
