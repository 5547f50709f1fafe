"""The published networks: contiguous NCHW, ReLU in place and before pooling.

The weights are copies of the package's own, so that both sides compute the same function.
"""

from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn

from meada.networks.normalise import Normalise
from meada.networks.resnet import WideBlock
from meada.types import Embedding, Logits


class Network:
    """Normalised images in, logits and embedding out; normalisation is not one of its layers.

    ``embedding`` names the layer whose output is z; without a name z is the last layer's input.
    """

    def __init__(self, net: nn.Module, embedding: str = "") -> None:
        copy = deepcopy(net).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        names = [name for name, _ in copy.named_children()]
        layers = list(cast(nn.Sequential, copy)) if embedding else _opened(copy)
        end = names.index(embedding) + 1 if embedding else len(layers) - 1
        first, start = layers[0], 0
        self.mean, self.std = torch.zeros(3, 1, 1), torch.ones(3, 1, 1)
        if isinstance(first, Normalise):
            self.mean, self.std, start = first.mean, first.std, 1
        self.normalised = start == 1
        self.body, self.head = _chain(layers[start:end]), _chain(layers[end:])
        self.whole = nn.Sequential(self.body, self.head)

    def __call__(self, x: Tensor) -> tuple[Logits, Embedding]:
        z = self.body(x)
        return self.head(z), z.flatten(1)


class Block(nn.Module):
    """The wide residual block, with its activations in place."""

    def __init__(self, block: WideBlock) -> None:
        super().__init__()
        self.bn1, self.conv1, self.bn2, self.conv2 = block.bn1, block.conv1, block.bn2, block.conv2
        self.relu1, self.relu2 = nn.ReLU(inplace=True), nn.ReLU(inplace=True)
        self.shortcut = block.shortcut

    def forward(self, x: Tensor) -> Tensor:
        a = self.relu1(self.bn1(x))
        f = self.conv2(self.relu2(self.bn2(self.conv1(a))))
        return f + (x if self.shortcut is None else self.shortcut(a))


def _opened(net: nn.Module) -> list[nn.Module]:
    """The layers of an ``nn.Sequential``; a nested one at its end is unpacked to find the last linear layer."""
    layers = list(cast(nn.Sequential, net))
    while isinstance(layers[-1], nn.Sequential):
        layers[-1:] = list(layers[-1])
    return layers


def _chain(layers: list[nn.Module]) -> nn.Sequential:
    made = [_layer(layer) for layer in layers]
    for i, (one, two) in enumerate(zip(made, made[1:], strict=False)):
        if isinstance(one, nn.MaxPool2d) and isinstance(two, nn.ReLU):
            made[i : i + 2] = [two, one]
    return nn.Sequential(*made)


def _layer(layer: nn.Module) -> nn.Module:
    if isinstance(layer, nn.Sequential):
        return _chain(list(layer))
    if isinstance(layer, WideBlock):
        return Block(layer)
    return nn.ReLU(inplace=True) if isinstance(layer, nn.ReLU) else layer
