"""The embedding of any network: found, or told, or missed with a sentence."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.networks.embedding import embedding_passes, embedding_width, plain_output, unwrap

X = torch.rand(3, 3, 4, 4, dtype=torch.float64)


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 7), nn.Tanh(), nn.Linear(7, 5))


class Wrapped(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


class Backwards(nn.Module):
    """Its Linear layers are called in another order than they were made in; one never is."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 5)
        self.first = nn.Linear(48, 6)
        self.unused = nn.Linear(9, 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(input=self.first(x.flatten(1)).relu())


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(48, 48)
        self.head = nn.Linear(48, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.mix(self.mix(x.flatten(1)).tanh()))


@pytest.mark.parametrize("wrap", [lambda n: n, Wrapped, lambda n: nn.Sequential(n)])
def test_it_is_the_input_of_the_last_linear(wrap):
    net = two_layers()
    with embedding_passes(wrap(net)) as forward:
        logits, z = forward(X)
    assert_close(z, net[:3](X))
    assert_close(logits, net(X))


def test_the_last_linear_that_is_reached_not_the_last_that_was_made():
    net = Backwards()
    with embedding_passes(net) as forward:
        _, z = forward(X)
    assert_close(z, net.first(X.flatten(1)).relu())


def test_a_named_submodule_gives_the_output_of_its_last_call():
    net = Twice()
    with embedding_passes(net, "mix") as forward:
        _, z = forward(X)
    assert_close(z, net.mix(net.mix(X.flatten(1)).tanh()))


def test_a_map_of_features_is_flattened():
    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(8, 5))
    assert embedding_width(net, X, "0") == 8


def test_hooks_are_gone_afterwards():
    net = two_layers()
    with pytest.raises(ZeroDivisionError), embedding_passes(net):
        raise ZeroDivisionError
    assert not any(m._forward_pre_hooks or m._forward_hooks for m in net.modules())


def test_no_linear_is_said():
    net = nn.Sequential(nn.Conv2d(3, 5, 4), nn.Flatten())
    with embedding_passes(net) as forward, pytest.raises(MeadaError, match="must reach an nn.Linear"):
        forward(X)
    with embedding_passes(net, "0") as forward:
        assert forward(X)[1].shape == (3, 5)


def test_a_wrong_name_gives_the_nearest():
    with pytest.raises(MeadaError, match="'mixx' must be a submodule of Twice: did you mean 'mix'"):
        embedding_passes(Twice(), "mixx").__enter__()


def test_an_output_that_is_no_logits_is_said():
    class Pair(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x, x

    wanted = r"must be logits of shape \(3, classes\), got shape \(3, 3, 4, 4\)"
    with embedding_passes(Pair(), "") as forward, pytest.raises(MeadaError, match=wanted):
        forward(X)


class Wrapped(nn.Module):
    """Returns its logits as networks of other libraries do."""

    def __init__(self, form: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.net, self.form = two_layers(), form

    def forward(self, x: torch.Tensor) -> object:
        return self.form(self.net(x))


FORMS = {
    "dict": lambda y: {"loss": None, "logits": y},
    "object": lambda y: SimpleNamespace(loss=None, logits=y),
    "tuple": lambda y: (y, y.sum(1)),
    "list": lambda y: [y, y],
}


@pytest.mark.parametrize("form", FORMS)
def test_logits_are_found_in_the_outputs_of_other_libraries(form):
    net = Wrapped(FORMS[form])
    with embedding_passes(net) as forward:
        assert torch.equal(forward(X)[0], net.net(X))
    with plain_output(net):
        assert torch.equal(net(X), net.net(X))
    assert not isinstance(net(X), torch.Tensor)


@pytest.mark.parametrize("form", [lambda y: None, lambda y: {"scores": y}, lambda y: (), lambda y: y[0]])
def test_other_outputs_are_refused(form):
    with embedding_passes(Wrapped(form)) as forward, pytest.raises(MeadaError, match="must be logits of shape"):
        forward(X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused_with_its_own_reason():
    net = torch.jit.trace(two_layers(), X)
    with pytest.raises(MeadaError, match="must be an ordinary nn.Module, got TorchScript"):
        embedding_passes(net).__enter__()


def test_wrappers_are_taken_off():
    net = two_layers()
    assert unwrap(nn.DataParallel(net)) is net
    assert unwrap(torch.compile(net)) is net


def test_pooling_before_the_relu_changes_no_value_and_no_gradient():
    """LeNet pools first, which is a quarter of the work; the paper's order gives the same."""
    from meada.networks.plain import lenet

    net = lenet().double()
    order = [0, 2, 1, 3, 5, 4, 6, 7, 8, 9, 10, 11]
    textbook = nn.Sequential(*(net[i] for i in order))
    x = torch.rand(4, 3, 32, 32)
    results = []
    for model in (net, textbook):
        pixels = x.clone().requires_grad_()
        logits = model(pixels)
        (gradient,) = torch.autograd.grad(logits.logsumexp(1).sum(), pixels)
        results.append((logits.detach(), gradient))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
