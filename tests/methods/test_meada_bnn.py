"""ME-ADA with a Bayesian network: the free energy, its share a batch, and the ascent over draws."""

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import load_tiny, write_recipe
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

import meada
from meada.errors import MeadaError
from meada.maximise import perturb
from meada.methods import METHODS
from meada.methods.meada_bnn import SHARES, blundell_share, free_energy
from meada.methods.method import Context
from meada.networks import to_bayesian
from meada.networks.bayesian import divergence
from meada.networks.bayesian.variational import WeightSample, using_weights
from meada.networks.posterior import Posterior
from meada.runs.recipe import load_recipe
from meada.runs.run import run
from meada.types import Batch


def small() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.Tanh(), nn.Linear(8, 5))


@pytest.fixture
def net() -> nn.Module:
    return to_bayesian(small(), rho=-2.0)


@pytest.mark.parametrize("m", [1, 2, 7, 40])
def test_blundells_shares_are_the_printed_ones(m):
    for i in range(m):
        want = Fraction(2 ** (m - i - 1), 2**m - 1)
        assert blundell_share(i, m) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.parametrize("share", SHARES.values())
@pytest.mark.parametrize("m", [1, 3, 313, 5000])
def test_a_pass_carries_the_divergence_once(share, m):
    assert sum(share(i, m) for i in range(m)) == pytest.approx(1, rel=1e-12)


def draws_of(seed: int, n: int) -> list[WeightSample]:
    generator = torch.Generator().manual_seed(seed)
    return [WeightSample(int(torch.randint(2**62, (), generator=generator))) for _ in range(n)]


def energy(net, batch, *, seed=0, draws=1, share=SHARES["uniform"], temperature=1.0, **context):
    context = Context(generator=torch.Generator().manual_seed(seed), **context)
    return free_energy(net, batch, context, draws=draws, share=share, temperature=temperature)


def test_free_energy_is_a_mean_over_draws_worked_out_apart(net, batch):
    x, y = batch
    got = energy(net, Batch(x, y), draws=3, pool_size=90, batches=15, temperature=0.5)
    want = 0.0
    for draw in draws_of(0, 3):
        with using_weights(net, draw):
            want += (cross_entropy(net(x), y) + 0.5 * divergence(net, draw) / 90) / 3
    assert_close(got, want)


@pytest.mark.parametrize("name", SHARES)
def test_over_a_pass_it_is_the_free_energy_of_the_pool(net, name):
    """With the same draw for all batches: KL - log p(D | theta), over N."""
    x, y = torch.rand(12, 3, 4, 4), torch.arange(12) % 5
    parts = [
        energy(net, Batch(x[i : i + 3], y[i : i + 3]), share=SHARES[name], batch_index=i // 3,
               batches=4, pool_size=12)
        for i in range(0, 12, 3)
    ]  # fmt: skip
    (draw,) = draws_of(0, 1)
    with using_weights(net, draw):
        nll = cross_entropy(net(x), y, reduction="sum")
    assert_close(torch.stack(parts).mean(), (divergence(net, draw) + nll) / 12)


def test_its_draws_come_from_the_contexts_generator(net, batch):
    go = lambda seed: energy(net, Batch(*batch), seed=seed, pool_size=6)
    torch.manual_seed(1)
    first = go(0)
    torch.rand(3)
    assert torch.equal(first, go(0)) and not torch.equal(first, go(1))


def climbed(net, x0, y, *, count, number, uncertainty, steps, beta, gamma, eta):
    """The supplement's update, draw by draw, with weights taken out of the twins by hand."""
    x = x0.clone()
    for step in range(steps):
        x = x.detach().requires_grad_()
        ps, ce, cost = [], 0.0, 0.0
        for j in range(count):
            draw = WeightSample(0, "draw", number(step), j)
            w = {
                (k, kind): draw.weight(
                    f"{k}.{kind}", getattr(net[k], f"{kind}_mu"), getattr(net[k], f"{kind}_rho")
                ).theta.detach()
                for k in (1, 3)
                for kind in ("weight", "bias")
            }
            hidden = lambda x, w=w: torch.tanh(x.flatten(1) @ w[1, "weight"].T + w[1, "bias"])
            z = hidden(x)
            p = torch.softmax(z @ w[3, "weight"].T + w[3, "bias"], 1)
            ps.append(p)
            ce = ce - p[torch.arange(len(y)), y].log() / count
            cost = cost + (z - hidden(x0)).square().sum(1) / count
        mean = sum(ps) / count
        h = {
            "expected": sum(-(p * p.log()).sum(1) for p in ps) / count,
            "of_mean": -(mean * mean.log()).sum(1),
        }[uncertainty]
        (g,) = torch.autograd.grad((ce + beta * h - gamma * cost).sum(), x)
        x = x + eta * g
    return x.detach().clamp(0, 1)


@pytest.mark.parametrize("uncertainty", ["expected", "of_mean"])
@pytest.mark.parametrize("draws", ["shared", "renewed"])
def test_the_ascent_is_the_supplements(net, batch, uncertainty, draws):
    got = perturb(
        net, *batch, beta=3.0, gamma=0.5, step_size=0.05, steps=5,
        posterior=Posterior(samples=4, draws=draws, uncertainty=uncertainty),
    )  # fmt: skip
    want = climbed(
        net, *batch, count=4, number=(lambda t: t) if draws == "renewed" else (lambda t: 0),
        uncertainty=uncertainty, steps=5, beta=3.0, gamma=0.5, eta=0.05,
    )  # fmt: skip
    assert_close(got, want, rtol=0, atol=1e-10)


def test_the_two_uncertainties_part_where_the_draws_disagree(net, batch):
    go = lambda net, name: perturb(
        net, *batch, beta=10.0, gamma=0.0, step_size=0.1, steps=5, posterior=Posterior(uncertainty=name)
    )
    assert not torch.allclose(go(net, "expected"), go(net, "of_mean"), atol=1e-4)
    narrow = to_bayesian(small(), rho=-40.0)
    assert_close(go(narrow, "expected"), go(narrow, "of_mean"), rtol=0, atol=1e-9)


def test_unknown_names_and_impossible_numbers_are_refused():
    for bad in ({"uncertainty": "expcted"}, {"draws": "new"}, {"samples": 0}):
        with pytest.raises(Exception, match=next(iter(bad))):  # the type check of the tests comes first
            Posterior(**bad)
    for bad in ({"training_draws": 0}, {"temperature": -1.0}, {"posterior_draws": 0}, {"pi": 2.0}):
        with pytest.raises(MeadaError, match=next(iter(bad))):
            METHODS["meada-bnn"](**bad)
    with pytest.raises(MeadaError, match="'method.draws'"):
        load_recipe("digits/meada-bnn", ["method.draws=new"])


def test_fit_asks_for_the_network_that_it_trains():
    images, labels = torch.rand(8, 3, 4, 4), torch.arange(8) % 5
    plan = meada.Plan(rounds=1, min_steps=1, total_steps=2, batch_size=4)
    with pytest.raises(MeadaError, match="call its adapt"):
        meada.fit(small(), (images, labels), "meada-bnn", plan=plan)
    method = METHODS["meada-bnn"](steps=2, posterior_draws=2)
    net = method.adapt(small())
    record = meada.fit(net, (images, labels), method, plan=plan)
    assert record["rounds"][0]["information"][0] > 0  # its draws disagree


def test_the_recipe_is_the_papers():
    bnn, plain = load_recipe("digits/meada-bnn"), load_recipe("digits/meada")
    assert bnn.method["minus_log_sigma1"] == 0 and bnn.method["minus_log_sigma2"] == 6
    assert bnn.method["pi"] == 0.25 and bnn.method["uncertainty"] == "expected"
    same = ("beta", "gamma", "steps", "step_size", "units", "units_batch", "grow")
    assert [bnn.method[k] for k in same] == [plain.method[k] for k in same]
    assert (bnn.data, bnn.plan, bnn.descent) == (plain.data, plain.plan, plain.descent)


@pytest.mark.parametrize("draws", ["shared", "renewed"])
def test_mc_dropout_goes_through_the_same_door_whatever_the_blocks(batch, draws):
    net = nn.Sequential(*small()[:3], nn.Dropout(0.5), small()[3])
    made = []
    for block in (2, 5, 6):
        pool = meada.Pool(*batch)
        method = METHODS["meada"](stochastic=["3"], posterior_draws=3, draws=draws, steps=3, block=block)
        method.grow(net, pool, Context(seed=4, pool_size=6))
        made.append(pool.images(torch.arange(6, 12)))
    assert_close(made[0], made[1], rtol=0, atol=1e-9)
    assert_close(made[0], made[2], rtol=0, atol=1e-9)
    plain = meada.Pool(*batch)
    METHODS["meada"](steps=3).grow(net, plain, Context(seed=4, pool_size=6))
    assert not torch.allclose(made[0], plain.images(torch.arange(6, 12)), atol=1e-6)


TINY = """steps = 2
step_size = 1.0
block = 7
posterior_draws = 2
prediction_draws = 2
temperature = 1e-3"""


def test_killed_in_both_phases_and_resumed_it_is_the_same_run(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path, method="meada-bnn", settings=TINY))
    whole = run(recipe, tmp_path / "whole")

    class Killed(Exception):
        pass

    def kill(moment: tuple[str, int]) -> Callable[[str, int, int], None]:
        def tell(phase: str, done: int, total: int) -> None:
            if (phase, done) == moment:
                raise Killed

        return tell

    moments = [("round 1 of 2, minimise", 4), ("round 2 of 2, maximise", 56)]
    for number, moment in enumerate(moments):
        with pytest.raises(Killed):
            run(recipe, tmp_path / "killed", resume=number > 0, tell=kill(moment))
    resumed = run(recipe, tmp_path / "killed", resume=True)
    assert resumed["results"] == whole["results"]
    for file in ("model.safetensors", "gallery.safetensors"):
        a, b = (load_file(tmp_path / name / file) for name in ("whole", "killed"))
        assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
