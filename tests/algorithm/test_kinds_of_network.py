"""Wrapped, compiled and foreign networks: each works like the plain one, or is refused with the reason."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError

X, Y = torch.rand(6, 3, 8, 8), torch.arange(6) % 5
PLAN = meada.Plan(rounds=1, min_steps=1, total_steps=2, batch_size=3)


def plain():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(16, 5)).float()


class Wrapping(nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.net, self.wrap = plain(), wrap

    def forward(self, x):
        return self.wrap(self.net(x))


KINDS = {
    "DataParallel": lambda: nn.DataParallel(plain()),
    "compiled": lambda: torch.compile(plain(), backend="eager"),
    "channels last": lambda: plain().to(memory_format=torch.channels_last),
    "ModelOutput": lambda: Wrapping(lambda z: SimpleNamespace(logits=z)),
    "dict": lambda: Wrapping(lambda z: {"logits": z, "loss": None}),
    "tuple": lambda: Wrapping(lambda z: (z, None)),
}


def done(net):
    return (
        meada.evaluate(net, {"a": (X, Y)})["a"]["nll"],
        meada.perturb(net, X, Y, beta=1.0, gamma=0.1, step_size=0.1, steps=2),
        meada.hard_views(net, X, Y, seed=0),
        meada.fit(net, (X, Y), plan=PLAN, steps=2)["losses"],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_works_like_the_plain_network(kind, single):
    torch.testing.assert_close(done(KINDS[kind]()), done(plain()), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("make", [torch.jit.script, lambda net: torch.jit.trace(net.eval(), X.float())])
def test_torchscript_is_scored_and_not_trained(make, single):
    net = make(plain())
    assert meada.evaluate(net, {"a": (X, Y)}) == meada.evaluate(plain(), {"a": (X, Y)})
    for refused in (
        lambda: meada.fit(net, (X, Y), plan=PLAN),
        lambda: meada.perturb(net, X, Y, beta=1.0, gamma=0.1, step_size=0.1, steps=2),
    ):
        with pytest.raises(MeadaError, match="TorchScript"):
            refused()


def test_images_of_inference_mode_and_images_with_gradients_are_taken(single):
    net = plain()
    with torch.inference_mode():
        x = torch.rand(6, 3, 8, 8)
        inside = meada.perturb(net, (x * 255).byte(), Y, steps=2)
    assert torch.equal(meada.perturb(plain(), x, Y, steps=2), meada.perturb(plain(), x.clone(), Y, steps=2))
    assert inside.shape == x.shape
    assert meada.fit(plain(), (X.clone().requires_grad_(), Y), plan=PLAN, steps=1)["steps"] == 2


def test_a_network_in_double_precision_is_scored(single):
    double = meada.evaluate(plain().double(), (X, Y))
    assert double["nll"] == pytest.approx(meada.evaluate(plain(), (X, Y))["nll"], abs=1e-4)


class Failing(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.net, self.error = plain(), error

    def forward(self, x):
        raise self.error


@pytest.mark.parametrize(
    "error, words",
    [
        (AssertionError("Input height (8) doesn't match model (224)"), "doesn't match model"),
        (AssertionError(), "AssertionError"),
        (KeyError("head"), "KeyError 'head'"),
        (IndexError("index 9 is out of range"), "IndexError index 9"),
        (AttributeError("no attribute 'dim'"), "no attribute"),
    ],
)
def test_what_a_network_raises_is_told_with_the_shape(error, words, single):
    for call in (lambda net: meada.evaluate(net, (X, Y)), lambda net: meada.hard_views(net, X, Y)):
        with pytest.raises(MeadaError, match=rf"Failing does not take images of shape \(3, 8, 8\): .*{words}"):
            call(Failing(error))


def test_weights_of_another_precision_are_named_by_fit(single):
    with pytest.raises(MeadaError, match=r"the weights torch.float64; use net.to\(torch.float32\)"):
        meada.fit(plain().double(), (X, Y), plan=PLAN)


def test_weights_that_take_no_gradients_are_refused(single):
    with torch.inference_mode():
        net = plain()
    for call in (lambda: meada.perturb(net, X, Y), lambda: meada.fit(net, (X, Y), plan=PLAN)):
        with pytest.raises(MeadaError, match=r"made inside torch.inference_mode\(\)"):
            call()
    with pytest.raises(MeadaError, match="meta device"):
        meada.evaluate(plain().to("meta"), (X, Y))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_fit_trains_whatever_mode_the_caller_is_in(mode, single):
    net = plain()
    with mode():
        losses = meada.fit(net, (X, Y), plan=PLAN, steps=1)["losses"]
    assert losses == meada.fit(plain(), (X, Y), plan=PLAN, steps=1)["losses"]


@pytest.mark.parametrize("space", [name for name in meada.SPACES if name != "pixels"])
def test_views_under_autocast_keep_the_precision_of_the_images(space, single):
    options = {"space": space, "seed": 0, "k": 2, "hardness": 0.0}  # a random view: no network has a say
    with torch.autocast("cpu", torch.bfloat16):
        views = meada.hard_views(plain(), X, Y, **options)
        meada.hard_views(plain(), X, Y, space=space, seed=0, k=2, hardness=1.0)
    assert torch.equal(views, meada.hard_views(plain(), X, Y, **options))
