"""The published training loop, rewritten from its description without slowing anything down.

Batches of 32 (digits, PACS) or 128 (CIFAR), contiguous NCHW; a separate forward pass for the clean
embedding; an SGD optimiser on the pixels, in normalised space where the network has one; weight
gradients computed on the way; the loss read back and a log line written at every step. On CIFAR
images are pictures, converted one by one. Data that it holds as arrays lie in memory as tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOBase

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss
from torch.optim import SGD, Adam, Optimizer

from benchmarks.pillow_images import Pictures, keep
from benchmarks.published_networks import Network
from meada.methods.parts.descent import Descent
from meada.types import Images, Labels, Logits, Scalar


@dataclass(frozen=True)
class Ascent:
    """The maximisation phase in the published code's names and units: means over the batch."""

    lr_max: float  # the paper's eta
    eta: float  # the paper's beta
    gamma: float  # of a mean over the coordinates of z
    loops_adv: int  # the paper's T_max
    batch: int


def maximise(net: Network, images: Images | Pictures, labels: Labels, how: Ascent, log: TextIOBase) -> list[Tensor]:
    """Perturb all images in batches; the last partial batch is dropped.

    They are floats in [0, 1]; pictures are also converted to pictures, one by one, and appended to
    those that ``images`` already holds.
    """
    net.whole.eval()
    born = []
    for start in range(0, len(labels) - how.batch + 1, how.batch):
        inputs, targets = _batch(net, images, labels, torch.arange(start, start + how.batch))
        climbed = ascend(net, inputs, targets, how, log)
        harder = (climbed * net.std + net.mean).clamp(0, 1)
        if isinstance(images, Pictures):
            images.grown.extend(keep(x) for x in harder)
        born.append(harder)
    return born


def ascend(net: Network, x0: Tensor, targets: Labels, how: Ascent, log: TextIOBase) -> Tensor:
    z0 = net(x0)[1].detach()
    x = x0.clone().requires_grad_()
    optimiser = SGD([x], lr=how.lr_max)
    for step in range(how.loops_adv):
        logits, z = net(x)
        loss = cross_entropy(logits, targets) + how.eta * entropy(logits)
        loss = loss - how.gamma * mse_loss(z, z0)
        net.whole.zero_grad()
        optimiser.zero_grad()
        (-loss).backward()
        optimiser.step()
        log.write(f"ascent step {step}: {loss.item()}\n")
    return x.detach()


def minimise(
    net: Network,
    optimiser: Optimizer,
    images: Images | Pictures,
    labels: Tensor,
    order: Sequence[Tensor],
    log: TextIOBase,
) -> None:
    """One step on each batch of ``order``."""
    net.whole.train()
    for step, index in enumerate(order):
        inputs, targets = _batch(net, images, labels, index, augment=True)
        loss = cross_entropy(net(inputs)[0], targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        log.write(f"step {step}: {loss.item()}\n")


def optimiser(net: Network, how: Descent) -> Optimizer:
    """The optimiser with torch's defaults except for the method's settings."""
    weights = net.whole.parameters()
    if how.name == "adam":
        return Adam(weights, lr=how.lr, weight_decay=how.weight_decay)
    return SGD(
        weights,
        lr=how.lr,
        momentum=how.momentum,
        nesterov=how.nesterov,
        weight_decay=how.weight_decay,
    )


@torch.no_grad()
def evaluate(net: Network, images: Images | Pictures, labels: Labels, batch: int = 256) -> float:
    """Accuracy in per cent."""
    net.whole.eval()
    right = 0
    for index in torch.arange(len(labels)).split(batch):
        inputs, targets = _batch(net, images, labels, index)
        right += int((net(inputs)[0].argmax(1) == targets).sum())
    return 100 * right / len(labels)


def entropy(logits: Logits) -> Scalar:
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()


def _batch(
    net: Network, images: Tensor | Pictures, labels: Tensor, index: Labels, *, augment: bool = False
) -> tuple[Tensor, Labels]:
    """A normalised batch of pictures or of arrays."""
    if isinstance(images, Pictures):
        load = images.augmented if augment else images.plain
        return torch.stack([load(i) for i in index.tolist()]), labels[index]
    picked = images.index_select(0, index)
    return (picked - net.mean) / net.std if net.normalised else picked, labels[index]
