"""Normalisation as the first layer of a network, so that its input is pixels in [0, 1]."""

from collections.abc import Sequence
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.types import Images

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Of the published code: [0, 1] to [-1, 1], whatever the set's own statistics are.
CIFAR_MEAN = (0.5, 0.5, 0.5)
CIFAR_STD = (0.5, 0.5, 0.5)


class Normalise(nn.Module):
    r"""Map pixels to :math:`(x - \mu) / \sigma` per channel; a single number is used for all channels.

    >>> Normalise(0.5, 0.5)(torch.tensor([0.0, 0.5, 1.0]).reshape(1, 3, 1, 1)).flatten()
    tensor([-1.,  0.,  1.])
    """

    mean: Float[Tensor, "C 1 1"]
    std: Float[Tensor, "C 1 1"]

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        super().__init__()
        mu, sigma = _numbers(mean, "mean"), _numbers(std, "std")
        if not mu or not sigma or len({1, len(mu), len(sigma)}) > 2:
            raise MeadaError(
                "mean and std must have one number per channel, or one for all, "
                f"got {len(mu)} means and {len(sigma)} standard deviations"
            )
        if not all(0 < s < inf for s in sigma):
            raise MeadaError(f"standard deviations must be positive and finite, got {std}")
        # Given by the constructor, so left out of the state dict: its names stay torchvision's.
        self.register_buffer("mean", torch.tensor(mu).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(sigma).reshape(-1, 1, 1), persistent=False)

    def forward(self, x: Images) -> Images:
        channels = max(len(self.mean), len(self.std))
        if channels not in (1, x.shape[1]):  # one grey channel would broadcast to three, unnoticed
            raise MeadaError(f"images must have {channels} channels, got {x.shape[1]}")
        return (x - self.mean) / self.std


def _numbers(given: float | Sequence[float], name: str) -> list[float]:
    try:
        return [float(one) for one in ([given] if isinstance(given, int | float) else given)]
    except (TypeError, ValueError) as error:
        raise MeadaError(f"{name} must be a number or one number per channel, got {given!r}") from error


def with_normalisation(net: nn.Module, mean: float | Sequence[float], std: float | Sequence[float]) -> nn.Module:
    """A network for images in [0, 1] from one trained on normalised images; both share their weights.

    >>> net = with_normalisation(nn.Flatten(), mean=0.5, std=0.5)
    >>> net(torch.tensor([0.0, 0.5, 1.0]).reshape(1, 3, 1, 1))
    tensor([[-1.,  0.,  1.]])
    """
    if not isinstance(net, nn.Module):
        raise MeadaError(f"net must be a torch.nn.Module, got {type(net).__name__}")
    layer = Normalise(mean, std)
    weight = next((p for p in net.parameters() if p.is_floating_point()), layer.mean)
    made = nn.Sequential(layer.to(weight.device, weight.dtype), net)
    made.training = layer.training = net.training  # not by train(), which would set the modes inside ``net``
    return made
