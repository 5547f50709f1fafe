"""A part of a batch becomes harder, whatever normalisation lies before the network, and the network stays."""

from copy import deepcopy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError
from meada.integrations import HardViewsMixin, harden_batch, hardened

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 5))


@pytest.fixture
def data():
    torch.manual_seed(1)
    return torch.rand(8, 3, 8, 8), torch.arange(8) % 5


def normalised(x):
    return (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


def test_normalisation_is_undone_and_applied_again(net, data):
    x, y = data
    views = harden_batch(net, normalised(x), y, mean=MEAN, std=STD, share=1.0, seed=3)
    plain = meada.hard_views(meada.with_normalisation(net, MEAN, STD), x, y, seed=3)
    torch.testing.assert_close(views, normalised(plain), atol=1e-4, rtol=0)


def test_a_share_of_the_batch_is_replaced(net, data):
    x, y = data
    views = harden_batch(net, x, y, share=0.25)
    moved = (views != x).flatten(1).any(1)
    assert torch.equal(views[2:], x[2:]) and moved[:2].any()
    assert harden_batch(net, x, y, share=0.0) is x


def test_the_network_is_left_as_it_was(net, data):
    net.train()
    net[1].eval()  # a frozen layer stays frozen
    before, modes = deepcopy(net.state_dict()), [m.training for m in net.modules()]
    harden_batch(net, *data, mean=0.0, std=1.0)
    assert modes == [m.training for m in net.modules()]
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())


def test_views_are_harder_than_random_ones(net, data):
    """With hardness 1 the mean cross-entropy rises over that of one random candidate."""
    x, y = data
    loss = lambda v: nn.functional.cross_entropy(net.eval()(v), y).item()
    hard = [loss(harden_batch(net, x, y, share=1.0, k=8, hardness=1.0, beta=0.0, seed=s)) for s in range(4)]
    random = [loss(harden_batch(net, x, y, share=1.0, k=1, seed=s)) for s in range(4)]
    assert sum(hard) > sum(random)


def test_another_normalisation_than_was_applied_is_told(net, data):
    with pytest.raises(MeadaError, match="mean and std must be those that the pipeline applied"):
        harden_batch(net, normalised(data[0]), data[1])
    with pytest.raises(MeadaError, match="share must be from 0 to 1"):
        harden_batch(net, *data, share=2.0)


def test_a_loader_keeps_whatever_else_its_batches_hold(net, data):
    x, y = data
    (batch,) = hardened([(x, y, "names")], net, share=1.0)
    assert batch[2] == "names" and torch.equal(batch[1], y) and not torch.equal(batch[0], x)


class Seen:
    """Stands in for Hugging Face's Trainer: keeps what the loss is computed of."""

    def compute_loss(self, model, inputs, *args, **kwargs):
        self.inputs = inputs
        return model(inputs["pixel_values"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))

    def forward(self, pixel_values):
        return {"logits": self.net(pixel_values)}


@pytest.mark.parametrize("mean, std", [(None, None), ([0.5] * 3, [0.25] * 3)])
def test_the_mixin_takes_the_normalisation_of_the_image_processor(mean, std):
    class Trainer(HardViewsMixin, Seen):
        image_mean, image_std, share = mean, std, 1.0
        processing_class = SimpleNamespace(image_mean=[0.5] * 3, image_std=[0.25] * 3, do_normalize=True)

    trainer, x = Trainer(), (torch.rand(4, 3, 8, 8) - 0.5) / 0.25
    trainer.compute_loss(Model(), {"pixel_values": x, "labels": torch.tensor([0, 1, 2, 0])})
    views = trainer.inputs["pixel_values"] * 0.25 + 0.5
    assert views.shape == x.shape and views.min() >= -1e-6 and views.max() <= 1 + 1e-6
    assert not torch.equal(trainer.inputs["pixel_values"], x)


def test_the_mixin_names_what_is_missing():
    class Trainer(HardViewsMixin, Seen):
        image_mean = 0.5

    batch = {"pixel_values": torch.rand(4, 3, 8, 8), "labels": torch.tensor([0, 1, 2, 0])}
    with pytest.raises(MeadaError, match="image_mean and image_std must both be given, got 0.5 and None"):
        Trainer().compute_loss(Model(), batch)
    Trainer.image_std = 0.5
    with pytest.raises(MeadaError, match="must have pixel_values and labels, got image"):
        Trainer().compute_loss(Model(), {"image": batch["pixel_values"]})
