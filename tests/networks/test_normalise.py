"""Normalisation is a layer; so every network of the tables takes pixels in [0, 1] as they are."""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.densenet import densenet, densenet40
from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise
from meada.networks.plain import alexnet, allconv
from meada.networks.resnet import resnet18, resnet50, resnext, resnext29_4x32, wideresnet, wideresnet16_1

HALVES = (0.5, 0.5, 0.5)
CIFAR: dict[str, tuple[Callable[..., nn.Module], int]] = {  # and the width of z
    "allconv": (allconv, 192),
    "densenet": (densenet, 342),
    "densenet40": (densenet40, 456),
    "wideresnet": (wideresnet, 128),
    "wideresnet16_1": (wideresnet16_1, 64),
    "resnext": (resnext, 1024),
    "resnext29_4x32": (resnext29_4x32, 1024),
}
IMAGENET: dict[str, tuple[Callable[..., nn.Module], int]] = {
    "alexnet": (alexnet, 4096),
    "resnet18": (resnet18, 512),
    "resnet50": (resnet50, 2048),
}
NETS = CIFAR | IMAGENET

# Side of the image and first three logits with the weights of ``fill``: by torchvision 0.28.0 for
# AlexNet and the ResNets, by the CIFAR networks of AugMix (the published code has the same) else.
ELSEWHERE: dict[str, tuple[int, list[float]]] = {
    "allconv": (32, [0.1529180627, 0.1418863464, 0.04781395213]),
    "densenet": (32, [-0.3632981979, 0.7914134896, -0.5719711899]),
    "densenet40": (32, [0.1798798414, 0.2465765999, 0.3675293563]),
    "wideresnet": (32, [13.75146188, -287.7211283, 188.8881428]),
    "wideresnet16_1": (32, [0.2362808449, 1.562844478, 0.3350046007]),
    "resnext": (32, [7.095231626, 18.31615004, 3.030919073]),
    "resnext29_4x32": (32, [-95.60756409, -100.9114456, 52.51173491]),
    "alexnet": (288, [-0.3657397188, -2.486174199, -0.7087769207]),
    "resnet18": (64, [8.703605507, 9.158393895, 3.19099162]),
    "resnet50": (64, [3510.435794, -8812.226348, -561.1321649]),
}


@pytest.fixture(params=NETS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")  # drawn once, since the large ones take a second
def drawn(name: str) -> nn.Module:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    return NETS[name][0](num_classes=7)


@pytest.fixture
def net(drawn: nn.Module) -> nn.Module:
    return deepcopy(drawn)


@pytest.fixture
def x(name: str) -> Tensor:
    size = {"allconv": 24, "alexnet": 64, "resnet18": 48, "resnet50": 48}.get(name, 16)  # quick
    return torch.rand(2, 3, size, size)


def settle(net: nn.Module, x: Tensor) -> nn.Module:
    """Give batch norm the statistics of ``x``, which are not its initial 0 and 1, and fix them."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        net.train()(x)
    return net.eval()


# ---- the layer


def test_pixels_are_shifted_and_scaled_channel_by_channel() -> None:
    x = torch.tensor([0.485, 0.456 + 0.224, 0.406 - 2 * 0.225]).reshape(1, 3, 1, 1)
    z = Normalise(IMAGENET_MEAN, IMAGENET_STD)(x)
    assert z.flatten().tolist() == pytest.approx([0, 1, -2])


def test_one_number_serves_any_number_of_channels() -> None:
    x = torch.rand(2, 5, 3, 3)
    assert torch.equal(Normalise(0.25, 0.5)(x), 2 * x - 0.5)


def test_a_mean_for_each_channel_goes_with_one_standard_deviation_for_all() -> None:
    x = torch.full((1, 2, 1, 1), 1.0)
    assert Normalise((0.0, 0.5), 0.25)(x).flatten().tolist() == [4, 2]


def test_a_step_in_normalised_space_is_sigma_squared_of_one_on_pixels() -> None:
    normalise, x = Normalise(IMAGENET_MEAN, IMAGENET_STD), torch.rand(1, 3, 2, 2)
    loss = lambda z: (z**3).sum()
    z = normalise(x).requires_grad_()
    (grad_z,) = torch.autograd.grad(loss(z), z)
    x.requires_grad_()
    (grad_x,) = torch.autograd.grad(loss(normalise(x)), x)
    climbed_there = (z + 0.1 * grad_z) * normalise.std + normalise.mean
    climbed_here = x + 0.1 * normalise.std**2 * grad_x
    assert torch.allclose(climbed_there, climbed_here, rtol=0, atol=1e-13)


def test_the_values_follow_the_module_and_stay_out_of_its_state_dict() -> None:
    normalise = Normalise(0.5, 0.5)
    assert not normalise.state_dict()
    assert normalise.to(torch.float32).std.dtype == torch.float32


@pytest.mark.parametrize(("mean", "std"), [((0.1, 0.2), (1.0, 1.0, 1.0)), ((), 1.0)])
def test_numbers_that_do_not_pair_up_are_refused(mean: tuple[float, ...], std: float) -> None:
    with pytest.raises(MeadaError, match=f"{len(mean)} means and"):
        Normalise(mean, std)


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan, math.inf])
def test_a_standard_deviation_that_cannot_divide_is_refused(std: float) -> None:
    with pytest.raises(MeadaError, match="must be positive and finite"):
        Normalise(0.0, (1.0, std))


def test_a_grey_image_does_not_pass_for_three_channels() -> None:
    with pytest.raises(MeadaError, match="must have 3 channels, got 1"):
        Normalise(IMAGENET_MEAN, IMAGENET_STD)(torch.rand(2, 1, 4, 4))


# ---- the networks of the tables, each held to the same contract


def test_the_first_convolution_sees_normalised_pixels(name: str, net: nn.Module, x: Tensor) -> None:
    mean, std = (HALVES, HALVES) if name in CIFAR else (IMAGENET_MEAN, IMAGENET_STD)
    seen: list[Tensor] = []
    first = next(m for m in net.modules() if isinstance(m, nn.Conv2d))
    first.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    net.eval()(x)
    mu, sigma = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
    assert torch.allclose(seen[0], (x - mu) / sigma)
    assert torch.equal(next(m for m in net.modules() if isinstance(m, Normalise)).std, sigma)


def test_z_is_the_input_of_one_last_linear_layer(name: str, net: nn.Module, x: Tensor) -> None:
    seen: list[tuple[nn.Module, Tensor]] = []
    for module in net.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(lambda m, inputs: seen.append((m, inputs[0])))
    logits = net.eval()(x)
    head, z = seen[-1]
    assert z.shape == (2, NETS[name][1])
    assert torch.allclose(logits, head(z), rtol=0, atol=1e-12)
    assert logits.shape == (2, 7)


def spread(shape: tuple[int, ...], start: int) -> Tensor:
    """Numbers in [0, 1) without pattern, the same on every machine."""
    n = torch.arange(65537) + start  # a prime, so that rows of weights do not repeat each other
    pattern = (n * n * 40503 + n * 2654435761) % 2**32 / 2**32
    size = math.prod(shape)
    return pattern.repeat(size // len(pattern) + 1)[:size].reshape(shape)


def fill(net: nn.Module) -> nn.Module:
    """Weights and statistics for a network, by their order in its state dict."""
    for i, (name, value) in enumerate(net.state_dict().items()):
        u = spread(tuple(value.shape), 1000 * i)
        if value.ndim > 1:
            value.copy_((2 * u - 1) * math.sqrt(6 / value[0].numel()))
        elif name.endswith(("weight", "running_var")):
            value.copy_(0.5 + u)
        elif value.is_floating_point():
            value.copy_(0.2 * u - 0.1)
    return net.eval()


def test_logits_are_those_of_the_published_networks(name: str, net: nn.Module) -> None:
    size, expected = ELSEWHERE[name]
    with torch.no_grad():
        logits = fill(net)(spread((2, 3, size, size), 7))
    assert logits[0, :3].tolist() == pytest.approx(expected, rel=1e-8)


def test_first_logits_neither_vanish_nor_explode(net: nn.Module, x: Tensor) -> None:
    logits = net.train()(x)
    assert 1e-3 < logits.std() < 10  # a NaN is not between them either


def test_every_weight_and_pixel_gets_a_gradient(net: nn.Module, x: Tensor) -> None:
    for norm in net.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.ones_(norm.weight)  # ResNeXt's branches begin at zero and learn from step 2 on
    x.requires_grad_()
    settle(net, x)(x).square().sum().backward()
    without = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert without == []
    assert x.grad is not None and (x.grad != 0).float().mean() > 0.9


def test_in_eval_mode_a_sample_does_not_depend_on_its_batch(net: nn.Module, x: Tensor) -> None:
    settle(net, x)
    with torch.no_grad():
        together, again = net(x), net(x)
        alone = torch.cat([net(sample[None]) for sample in x])
    assert torch.equal(together, again)
    assert torch.allclose(together, alone, rtol=1e-9, atol=1e-9)


def test_channels_last_gives_the_same_logits(net: nn.Module, x: Tensor) -> None:
    settle(net, x)
    with torch.no_grad():
        expected = net(x)
        net.to(memory_format=torch.channels_last)
        logits = net(x.to(memory_format=torch.channels_last))
    assert torch.allclose(logits, expected, rtol=1e-9, atol=1e-9)


def test_no_layer_changes_what_another_has_put_out(net: nn.Module, x: Tensor) -> None:
    """An embedding may be the output of any layer, so nothing works in place."""
    outputs: list[tuple[str, Tensor, Tensor]] = []

    def keep(of: str, _: nn.Module, __: object, out: Tensor) -> None:
        outputs.append((of, out, out.clone()))

    for of, module in net.named_modules():
        module.register_forward_hook(partial(keep, of))
    net.eval()(x)
    assert [of for of, now, then in outputs if not torch.equal(now, then)] == []


@pytest.mark.parametrize("name", [n for n in NETS if n != "alexnet"], scope="module")
def test_convolutions_start_as_he_et_al_draw_them(net: nn.Module) -> None:
    for weight in (m.weight for m in net.modules() if isinstance(m, nn.Conv2d)):
        outputs, _, height, width = weight.shape
        expected = math.sqrt(2 / (outputs * height * width))
        slack = 6 / math.sqrt(2 * weight.numel())  # six standard errors
        assert weight.std().item() == pytest.approx(expected, rel=slack)


@pytest.mark.parametrize("name", CIFAR, scope="module")
def test_the_head_starts_without_a_preference(net: nn.Module) -> None:
    head = [m for m in net.modules() if isinstance(m, nn.Linear)][-1]
    assert not head.bias.any()
