"""The published networks compute what the package's own compute, laid out as published."""

import pytest
import torch
from benchmarks.published_networks import Block, Network
from benchmarks.subjects import SUBJECTS
from torch import nn

from meada.networks.embedding import embedding_passes
from meada.networks.plain import alexnet, lenet
from meada.networks.resnet import wideresnet


@pytest.fixture(params=["lenet", "wideresnet", "alexnet"])
def net(request):
    make = {
        "lenet": lenet,
        "wideresnet": lambda: wideresnet(depth=10, widen=1),
        "alexnet": lambda: alexnet(7),
    }[request.param]
    return make().eval().to(memory_format=torch.channels_last)


def test_values_and_input_gradients_are_the_same(net):
    side = 64 if isinstance(net[1], nn.Sequential) else 32
    x = torch.rand(2, 3, side, side, requires_grad=True)
    made = Network(net)
    made.whole.eval()
    logits, z = made((x - made.mean) / made.std)
    with embedding_passes(net) as forward:
        wanted, wanted_z = forward(x)
    assert torch.allclose(logits, wanted, atol=1e-10) and torch.allclose(z, wanted_z, atol=1e-10)
    (one,) = torch.autograd.grad(logits.logsumexp(1).sum(), x)
    (two,) = torch.autograd.grad(wanted.logsumexp(1).sum(), x)
    assert torch.allclose(one, two, atol=1e-10)


def test_weights_are_copies_in_the_plain_layout(net):
    made = Network(net)
    mine = list(made.whole.parameters())
    assert len(mine) == len(list(net.parameters()))
    assert all(w.is_contiguous() for w in mine)
    theirs = {w.data_ptr() for w in net.parameters()}
    assert not any(w.data_ptr() in theirs for w in mine)


def test_activations_are_in_place_and_come_before_pooling(net):
    made = Network(net)
    relus = [m for m in made.whole.modules() if isinstance(m, nn.ReLU)]
    assert relus and all(relu.inplace for relu in relus)
    chains = [list(m) for m in made.whole.modules() if isinstance(m, nn.Sequential)]
    for chain in chains:
        for one, two in zip(chain, chain[1:], strict=False):
            assert not (isinstance(one, nn.MaxPool2d) and isinstance(two, nn.ReLU))


def test_wide_blocks_take_the_published_form():
    made = Network(wideresnet(depth=10, widen=1))
    assert sum(isinstance(m, Block) for m in made.whole.modules()) == 3


@pytest.mark.parametrize("name", ["lenet", "wideresnet"])
def test_a_run_s_network_is_the_package_s(name, single):
    """The side that is called meada has what a run builds: channels-last weights."""
    weight = next(m for m in SUBJECTS[name]().net.modules() if isinstance(m, nn.Conv2d)).weight
    assert weight.is_contiguous(memory_format=torch.channels_last)


def test_the_embedding_may_lie_further_down():
    """AlexNet of the published code: its cost is on the features of the last convolution."""
    net, x = alexnet(7).eval(), torch.rand(2, 3, 64, 64)
    made = Network(net, "avgpool")
    made.whole.eval()
    with embedding_passes(net, "avgpool") as forward:
        wanted, z = forward(x)
    got = made((x - made.mean) / made.std)
    assert torch.allclose(got[0], wanted) and torch.allclose(got[1], z) and z.shape == (2, 9216)
