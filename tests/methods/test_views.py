"""Methods that train on views: what the network is shown, and the loss worked out from it."""

from inspect import signature

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

import meada
from meada.errors import MeadaError
from meada.images import tones, warps
from meada.images.random_ops import as_levels
from meada.methods import METHODS
from meada.methods.augmax import hardest_mixture
from meada.methods.augmix import chain as augmix_chain
from meada.methods.method import Context
from meada.methods.parts.views import divergence
from meada.methods.trivialaugment import WIDE, _bin
from meada.spaces import SPACES, skip_mix, view_random
from meada.spaces.mixture import blend, mixture
from meada.types import Batch


class Seen(nn.Module):
    """A small network that remembers what it was shown in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 5))
        self.x: list[torch.Tensor] = []
        self.scored = 0

    def forward(self, x):
        if self.training:
            self.x.append(x.detach().clone())
        else:
            self.scored += 1
        return self.layers(x)


@pytest.fixture
def net() -> Seen:
    return Seen().train()


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.rand(6, 3, 8, 8), torch.arange(6) % 5, None, torch.tensor([40, 3, 17, 8, 21, 99]))


CONTEXT = Context(seed=4, step=11)


def parts(net: Seen, n: int) -> tuple[torch.Tensor, ...]:
    assert len(net.x) == 1, "one forward pass over all views"
    return net.x[0].chunk(n)


@pytest.mark.parametrize("consistency", [0.0, 3.0])
@pytest.mark.parametrize("views", [1, 2])
def test_tilted_by_hand(net, batch, views, consistency):
    settings = {"k": 3, "hardness": 0.7, "beta": 2.0}
    loss = METHODS["tilted"](views=views, consistency=consistency, **settings).loss(net, batch, CONTEXT)
    shown = parts(net, 1 + views)
    assert net.scored == 3
    want = meada.hard_views(net, batch.x, batch.y, seed=4, step=11, index=batch.sample_index, **settings)
    assert_close(shown[0], batch.x)
    assert_close(shown[1], want, rtol=0, atol=1e-12)
    if views == 2:
        random = SPACES["wide"]().view(batch.x, view_random(4, 11, 3, batch.sample_index.numpy()))
        assert_close(shown[2], random, rtol=0, atol=1e-12)
    logits = [net.layers(x) for x in shown]
    ce = sum(cross_entropy(one, batch.y) for one in logits) / len(logits)
    assert_close(loss, ce + consistency * divergence(*logits))


def test_the_control_gives_each_image_what_was_chosen_for_another(net, batch):
    settings = dict(space="wave", k=3, hardness=1.0)
    METHODS["tilted"](handed_on=True, **settings).loss(net, batch, CONTEXT)
    (shown,) = net.x
    views = shown[len(batch.x) :]
    with torch.no_grad():  # for every image the hardest candidate of the image before it, made on its own pixels
        rows = batch.sample_index.numpy()
        made = [SPACES["wave"]().view(batch.x, view_random(CONTEXT.seed, CONTEXT.step, j, rows)) for j in range(3)]
        logits = [net.eval()(x) for x in made]
        scores = torch.stack([meada.Objective(beta=1.0, gamma=0.0)(z, z[:, :0], z[:, :0], batch.y) for z in logits], 1)
        best = scores.argmax(1).roll(1).numpy()
        expected = SPACES["wave"]().view(batch.x, view_random(CONTEXT.seed, CONTEXT.step, best, np.roll(rows, 1)))
    assert_close(views, expected)


def test_tilted_without_hardness_scores_nothing(net, batch):
    method = METHODS["tilted"](hardness=0.0)
    method.loss(net, batch, CONTEXT)
    assert net.scored == 0 and method.passes == (2.0, 2.0)
    assert METHODS["tilted"](hardness=0.5).passes == (6.0, 2.0)
    assert METHODS["tilted"]().passes == method.passes  # the default is a random view


def test_tilted_takes_a_space_and_counts_the_pass_that_a_cost_needs(net, batch):
    own = SPACES["wave"]()
    method = METHODS["tilted"](space=own, hardness=1.0, k=3, gamma=0.1)
    method.loss(net, batch, CONTEXT)
    assert method.passes == (2 + net.scored, 2) and net.scored == 4  # three candidates and the image itself
    plan = meada.Plan(rounds=0, min_steps=0, total_steps=2, batch_size=3)
    assert meada.fit(net, (batch.x, batch.y), "tilted", plan=plan, space=own)["steps"] == 2


def test_operations_declare_what_sharpness_does():
    assert {"filter", "blur"} <= METHODS["trivialaugment"]().families & SPACES["operations"]().families


def test_tilted_sees_new_views_at_every_step(net, batch):
    for step in (1, 2):
        METHODS["tilted"](hardness=0.0).loss(net, batch, Context(seed=4, step=step))
    assert torch.equal(net.x[0][:6], net.x[1][:6]) and not torch.equal(net.x[0][6:], net.x[1][6:])


def test_randconv_trains_on_three_views_and_no_clean_image(net, batch):
    loss = METHODS["randconv"](consistency=2.0).loss(net, batch, CONTEXT)
    shown = parts(net, 3)
    assert all(not torch.allclose(x, batch.x) for x in shown)
    assert not torch.allclose(shown[0], shown[1]) and not torch.allclose(shown[1], shown[2])
    logits = [net.layers(x) for x in shown]
    assert_close(loss, cross_entropy(logits[0], batch.y) + 2.0 * divergence(*logits))


def test_prime_trains_on_the_clean_image_and_two_mixtures(net, batch):
    loss = METHODS["prime"](consistency=12.0).loss(net, batch, CONTEXT)
    shown = parts(net, 3)
    assert_close(shown[0], batch.x)
    space = mixture(*(SPACES[name]() for name in ("filter", "colour_curve", "warp")))
    for number, got in enumerate(shown[1:]):
        want = space.view(batch.x, view_random(4, 11, number, batch.sample_index.numpy()))
        assert_close(got, want, rtol=0, atol=1e-12)
    logits = [net.layers(x) for x in shown]
    assert_close(loss, cross_entropy(logits[0], batch.y) + 12.0 * divergence(*logits))


def test_trivialaugment_trains_on_changed_images_alone(net, batch):
    loss = METHODS["trivialaugment"]().loss(net, batch, CONTEXT)
    (shown,) = parts(net, 1)
    assert not torch.allclose(shown, batch.x)
    assert_close(loss, cross_entropy(net.layers(shown), batch.y))


def test_trivialaugment_has_the_published_operations_and_ranges():
    from meada.methods.trivialaugment import WIDE

    v, one = torch.rand(1, 3, 40, 40).mul(255).round(), torch.ones(1)
    assert len(WIDE) == 14 and torch.equal(WIDE["identity"](v, one), v)
    assert torch.equal(WIDE["translate_x"](v, one)[..., :8], v[..., 32:])
    assert torch.equal(WIDE["posterise"](v, one), v - v % 64)
    assert torch.equal(WIDE["solarise"](v, one), 255 - v)
    assert torch.equal(WIDE["brightness"](v, torch.tensor([0.5])), (v * (1 + 0.99 * 0.5)).clamp(0, 255).floor())


def test_mixture_by_hand():
    x = torch.rand(5, 3, 8, 8)
    space = mixture(SPACES["wave"](), SPACES["warp"](), width=2, depth=3)
    theta = space.draw(view_random(0, 0, 0, np.arange(5)), x.shape)
    assert_close(theta["weights"].sum(1), torch.ones(5, dtype=torch.float32))
    assert set(theta["length"].flatten().tolist()) <= {0, 1, 2}
    got = space.transform(x, theta)
    i = 3
    one = {"wave": SPACES["wave"](), "warp": SPACES["warp"]()}
    total = torch.zeros_like(x[:1])
    for c in range(2):
        view = x[i : i + 1]
        for d in range(int(theta["length"][i, c]) + 1):
            link = theta["parts"][f"{c} {d}"]
            for number, name in enumerate(one):
                mine = link["rows"].get(str(number), torch.tensor([]))
                place = (mine == i).nonzero().flatten()
                if len(place):
                    part = {k: v[place] for k, v in link["parts"][str(number)].items()}
                    view = one[name].apply(view, part)
        total += float(theta["weights"][i, c]) * view
    m = float(theta["mix"][i])
    assert_close(got[i : i + 1], (1 - m) * x[i : i + 1] + m * total, rtol=0, atol=1e-6)


def test_blend_is_smooth_in_its_weights_and_stays_in_the_simplex():
    x, vertices = torch.rand(2, 3, 4, 4), torch.rand(3, 2, 3, 4, 4)
    space = blend(list(vertices))
    theta = {"mix": torch.tensor([1.0, 0.0]), "weights": torch.tensor([[0.0, 50.0, 0.0], [0.0, 0.0, 0.0]])}
    assert_close(space.transform(x, theta), torch.stack([vertices[1, 0], x[1]]))
    assert space.project({"mix": torch.tensor([1.4, -0.2])})["mix"].tolist() == [1.0, 0.0]


def test_augmax_climbs_the_loss_and_stops_where_the_network_is_wrong(net, batch):
    settings = {"chains": {"width": 3, "depth": 3, "severity": 3.0}}
    go = lambda steps, y: hardest_mixture(
        net,
        batch._replace(y=y),
        Context(seed=4, step=11, generator=torch.Generator().manual_seed(0)),
        steps=steps,
        **settings,
    )
    guess = net.layers(batch.x).argmax(-1)
    right, harder = go(0, guess), go(5, guess)
    ce = lambda x: float(cross_entropy(net.layers(x), guess).detach())
    assert ce(harder) > ce(right)
    wrong = (net.layers(right).argmax(-1) + 1) % 5
    assert torch.equal(go(5, wrong), go(0, wrong))  # misclassified from the first: nothing moves


def test_augmax_loss_by_hand(net, batch):
    loss = METHODS["augmax"](consistency=3.0).loss(net, batch, Context(seed=4, step=11))
    shown = parts(net, 3)
    assert_close(shown[0], batch.x)
    logits = [net.layers(x) for x in shown]
    assert_close(loss, cross_entropy(logits[0], batch.y) + 3.0 * divergence(*logits))
    assert not torch.allclose(shown[1], shown[2])


@pytest.mark.parametrize(
    ("name", "settings", "what"),
    [
        ("tilted", {"k": 0}, "k must be 1 or more, got 0"),
        ("tilted", {"hardness": -0.1}, "hardness must be in 0..1, got -0.1"),
        ("tilted", {"views": 3}, "views must be 1 or 2, got 3"),
        ("tilted", {"consistency": -1.0}, "consistency must be 0 or more, got -1.0"),
        ("tilted", {"space": "wid"}, "unknown space 'wid': did you mean 'wide'"),
        ("prime", {"width": 0}, "width and depth must be 1 or more, got 0 and 3"),
        ("randconv", {"bank": -1}, "bank must be 0 or more, got -1"),
        ("augmax", {"steps": -1}, "steps must be 0 or more, got -1"),
    ],
)
def test_bad_settings_are_refused(name, settings, what):
    with pytest.raises(MeadaError, match=what):
        METHODS[name](**settings)


def test_randconv_blends_each_view_with_its_image_one_kernel_a_view(net, batch):
    METHODS["randconv"]().loss(net, batch, CONTEXT)
    space = skip_mix(SPACES["random_convolution"](bank=1))
    rows = batch.sample_index.numpy()
    for j, shown in enumerate(parts(net, 3)):
        assert_close(shown, space.view(batch.x, view_random(CONTEXT.seed, CONTEXT.step, j, rows)), rtol=0, atol=1e-12)
    assert signature(METHODS["randconv"]).parameters["consistency"].default == 10.0


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_augmax_climbs_by_signs_of_a_tenth_until_it_is_misclassified(batch, steps):
    """Against a loop written out: vertices of AugMix chains, m and q uniform, m kept in [0, 1]."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.Tanh(), nn.Linear(16, 5)).double()
    x = (batch.x.double() * 255).round() / 255
    y = net(x).argmax(1)
    y[0] = (y[0] + 1) % 5  # misclassified from the start
    own = Batch(x, y, None, batch.sample_index)
    chains = {"width": 3, "depth": 3, "severity": 3.0}
    context = lambda: Context(generator=torch.Generator().manual_seed(4), seed=2, step=8)
    got = hardest_mixture(net, own, context(), chains=chains, steps=steps)
    generator = context().each
    vertices = [augmix_chain(as_levels(x), generator, 3, 3.0) / 255 for _ in range(3)]
    random = view_random(2, 8, 0, own.sample_index.numpy())
    m, q = random.uniform("mix").double(), random.uniform("weights", 3).double()

    def made(m, q):
        share = q.softmax(1)
        total = sum(share[:, i].view(-1, 1, 1, 1) * vertices[i] for i in range(3))
        return (1 - m).view(-1, 1, 1, 1) * x + m.view(-1, 1, 1, 1) * total

    fooled = torch.zeros(len(x), dtype=torch.bool)
    for _ in range(steps):
        m, q = m.detach().requires_grad_(), q.detach().requires_grad_()
        logits = net(made(m, q))
        fooled |= logits.argmax(1) != y
        gm, gq = torch.autograd.grad(cross_entropy(logits, y, reduction="sum"), (m, q))
        live = (~fooled).double()
        m, q = (m + 0.1 * gm.sign() * live).clamp(0, 1), q + 0.1 * gq.sign() * live[:, None]
    assert_close(got, made(m, q).detach().clamp(0, 1), rtol=0, atol=1e-9)


def test_trivialaugment_has_the_published_ranges_in_31_steps():
    strengths = torch.linspace(-1, 1, 6201)
    bins = (30 * _bin(strengths)).round()
    counts = torch.stack([(bins.abs() == k).sum() for k in range(31)])
    assert len(bins.unique()) == 61 and int(counts.max()) - int(counts.min()) <= 3  # all alike likely
    v = (torch.rand(2, 3, 12, 12) * 255).round()
    ends = torch.tensor([1.0, -1.0])
    assert_close(WIDE["rotate"](v, ends), warps.rotate(v, 135 * ends))
    assert_close(WIDE["translate_x"](v, ends), warps.translate_x(v, 32 * ends))
    assert_close(WIDE["brightness"](v, ends), tones.brightness(v, 1 + 0.99 * ends))
