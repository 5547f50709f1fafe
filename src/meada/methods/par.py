"""PAR (Wang et al., 2019): penalise features of small patches from which the class can be predicted.

A patch classifier h looks at every place of the first convolution's map and learns to name the image's class; through a
gradient reversal the network learns to make that impossible: the network descends CE - lambda CE(h), h descends CE(h).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.errors import MeadaError, check_range
from meada.methods.method import Context, Method, Parts
from meada.networks.freezing import frozen, submodule
from meada.types import Batch, Labels, Scalar

Map = Float[Tensor, "B C H W"]  # features or logits at every place of a layer's output


def par(
    *, weight: float = 1.0, lr: float = 1e-3, layer: str = "", kernel: int = 1, hidden: Sequence[int] = ()
) -> Method:
    """Patch-wise adversarial regularisation.

    Args:
        weight: the paper's lambda.
        lr: learning rate of h's own Adam.
        layer: the submodule whose output h looks at; empty: the first convolution (PAR_H: higher).
        kernel: width of a patch in that map (PAR_B: 3).
        hidden: widths of h's hidden layers (PAR_M: 100, 50).
    """
    check_range("par", "[0, inf)", weight=weight)
    check_range("par", "(0, inf)", lr=lr)
    check_range("par", "[1, inf)", kernel=kernel, hidden=min(hidden, default=1))

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        with torch.no_grad(), frozen(net), layer_outputs(net, layer) as seen:
            logits = net(example.x)
        h = patch_classifier(seen[-1].shape[1], [*hidden, logits.shape[1]], kernel).to(logits)
        # weight decay is the network's: h has an optimiser to itself
        return Parts(nn.ModuleDict({"patch": h}), {"patch": torch.optim.Adam(h.parameters(), lr)})

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        h = context.parts.modules["patch"]
        with layer_outputs(net, layer) as seen:
            logits = net(batch.x)
        return cross_entropy(logits, batch.y) + patch_loss(h(reverse(seen[-1], weight)), batch.y)

    return Method(
        loss=loss,
        build=build,
        title="PAR",
        about="Penalise features of small patches from which the class can be predicted.",
    )


def reverse(x: Tensor, weight: float) -> Tensor:
    """Gradient reversal: the identity with a negated and scaled gradient (Ganin and Lempitsky, 2015).

    >>> x = torch.ones(2, requires_grad=True)
    >>> reverse(x, 0.5).sum().backward()
    >>> x.grad
    tensor([-0.5000, -0.5000])
    """
    same = x.view_as(x)
    if same.requires_grad:
        same.register_hook(lambda gradient: -weight * gradient)
    return same


def patch_loss(logits: Map, y: Labels) -> Scalar:
    """Cross-entropy of the image's class, averaged over images and positions."""
    return cross_entropy(logits, y[:, None, None].expand(-1, *logits.shape[2:]))


def patch_classifier(channels: int, widths: Sequence[int], kernel: int) -> nn.Sequential:
    """A ``kernel`` x ``kernel`` convolution, then 1x1 convolutions; ReLU between them."""
    layers: list[nn.Module] = []
    for number, width in enumerate(widths):
        size = kernel if number == 0 else 1
        layers += [nn.ReLU()] * (number > 0) + [nn.Conv2d(channels, width, size)]
        channels = width
    return nn.Sequential(*layers)


@contextmanager
def layer_outputs(net: nn.Module, layer: str) -> Iterator[list[Map]]:
    """Collect the outputs of ``layer`` (default: the first convolution) in the forward passes inside."""
    seen: list[Map] = []
    convolutions = (module for module in net.modules() if isinstance(module, nn.Conv2d))
    chosen = submodule(net, layer, "par: layer") if layer else next(convolutions, None)
    if chosen is None:
        raise MeadaError("par: the network must have an nn.Conv2d, got none: name another layer")
    with chosen.register_forward_hook(lambda _m, _x, out: seen.append(out)):
        yield seen
