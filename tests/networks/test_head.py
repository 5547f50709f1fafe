"""Features and head: the input of the last linear layer, and another layer in its place."""

import pytest
import torch
from torch import nn

from meada.errors import MeadaError
from meada.networks.embedding import features, head_of, set_head


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 6), nn.Dropout(0.5), nn.Linear(6, 2)
    )


def test_the_head_on_the_features_is_the_network_in_eval_mode(net: nn.Module) -> None:
    x = torch.rand(7, 3, 4, 4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    z = features(net.train(), x, batch_size=3)
    assert z.shape == (7, 6) and not z.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net.training and all(p.requires_grad for p in net.parameters())
    assert torch.allclose(head_of(net)(z), net.eval()(x))


def test_bytes_are_pixels_over_255(net: nn.Module) -> None:
    x = torch.randint(256, (2, 3, 4, 4), dtype=torch.uint8)
    assert torch.allclose(features(net, x), features(net, x / 255))


def test_another_head_takes_its_place(net: nn.Module) -> None:
    inner = nn.ModuleDict({"body": net})
    assert set_head(inner, nn.Linear(6, 9)) is inner
    assert head_of(net).out_features == 9
    assert net.eval()(torch.rand(1, 3, 4, 4)).shape == (1, 9)


def test_a_network_without_a_head_is_refused() -> None:
    with pytest.raises(MeadaError, match="last layer of Flatten must be an nn.Linear"):
        head_of(nn.Flatten())
