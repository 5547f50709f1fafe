"""Maximisation phase: turn each sample into a harder one."""

from collections.abc import Collection
from typing import Literal

import torch
from torch import Tensor, nn

from meada.entropy import UNCERTAINTY, Uncertainty, expected_entropy
from meada.errors import MeadaError, NonFiniteError, nearest
from meada.networks.embedding import bare
from meada.networks.posterior import Drawn, Passes, drawing
from meada.objective import Objective
from meada.types import Images, Labels, PerSample

Renewal = Literal["shared", "renewed"]


def perturb(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    beta: float,
    gamma: float,
    step_size: float | Tensor,
    steps: int,
    unit: bool = False,
    embedding: str | None = None,
    block: int | None = None,
    stochastic: Collection[str] = (),
    posterior_draws: int = 5,
    draws: Renewal = "shared",
    uncertainty: Uncertainty = "expected",
    seed: int = 0,
) -> Images:
    r"""T_max steps of :math:`x \leftarrow x + \eta \nabla_x \{CE + \beta h - \gamma c\}`.

    The objective is summed, not averaged, over the batch: a sample's path does not depend on which
    others share its batch. At the end pixels are clamped to [0, 1]. The network is left as it was:
    weights, gradients, buffers, modes.

    For a network that is random (Bayesian, or with layers named in ``stochastic``) the objective is
    its mean over T posterior draws, the same for every sample.

    Args:
        net: any module from images in [0, 1] to logits; normalisation is one of its layers.
        step_size: the paper's eta, a number or one number a channel.
        unit: go along each sample's gradient by a fixed way, whatever its length: a step changes
            the pixels of every sample by ``step_size`` in the root mean square.
        embedding: the submodule whose output is z; by default the input of the last ``nn.Linear``.
        block: climb at most so many samples at once; the same blocks give the same bits.
        stochastic: submodules that stay random, such as MC-dropout; all others are in eval mode.
        posterior_draws: T of the supplement; a network without randomness is its own only draw.
        draws: one set of draws for the whole ascent, or a new one at each step.
        uncertainty: h is the ``expected`` entropy over the draws (the supplement's), or the entropy
            ``of_mean``, of the mean prediction.
        seed: of the draws.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> x, y = torch.full((1, 1, 2, 2), 0.5), torch.tensor([0])
    >>> harder = perturb(net, x, y, beta=0.0, gamma=0.0, step_size=0.1, steps=1)
    >>> bool(net(harder)[0, 0] < net(x)[0, 0])  # the right class lost ground
    True
    """
    _check(x, y, steps)
    _check_names(draws, uncertainty)
    net, size = bare(net), block or max(len(x), 1)
    objective = Objective(beta=beta, gamma=gamma)
    eta = _per_channel(step_size, x)
    # Leaves no_grad and inference_mode of the caller behind: the ascent needs a graph.
    with torch.inference_mode(False), torch.enable_grad():
        with drawing(net, embedding, count=posterior_draws, stochastic=stochastic, seed=seed) as passes:
            climbed = [
                ascend(passes, x0, y0, objective, eta, steps, draws, uncertainty, unit)
                for x0, y0 in zip(x.detach().split(size), y.split(size), strict=True)
            ]
        return torch.cat(climbed)


def ascend(
    passes: Passes,
    x0: Images,
    y: Labels,
    objective: Objective,
    eta: Tensor,
    steps: int,
    draws: Renewal = "shared",
    uncertainty: Uncertainty = "expected",
    unit: bool = False,
) -> Images:
    """The inner loop of Algorithm 1 for one block of samples."""
    x = x0.clone()
    faults: list[Tensor] = []  # read once, after the loop: no synchronisation inside it
    for step in range(steps):
        number = step if draws == "renewed" else 0
        x = x.detach().requires_grad_()
        logits, z = drawn = passes(x, number)
        if step == 0:
            z0 = z.detach()  # the first forward pass is the clean one
            _check_labels(y, classes=logits.shape[2])
        elif number:
            with torch.no_grad():
                z0 = passes(x0, number)[1]  # the cost is that of the weights that are held
        values = over_draws(objective, drawn, z0, y, uncertainty)
        (gradient,) = torch.autograd.grad(values.sum(), x)
        faults.append(~(values.isfinite() & gradient.flatten(1).sum(1).isfinite()).detach())
        x = x + eta * (of_unit_size(gradient) if unit else gradient)
    _refuse(faults, len(x0))
    return x.detach().clamp(0, 1)


def of_unit_size(gradient: Images) -> Images:
    """Each sample's over its root mean square; one that is zero stays zero.

    >>> of_unit_size(torch.tensor([[[[3.0, -4.0]]], [[[0.0, 0.0]]]])).flatten(1)  # over sqrt(12.5)
    tensor([[ 0.8485, -1.1314],
            [ 0.0000,  0.0000]])
    """
    largest = gradient.abs().amax((1, 2, 3), keepdim=True).clamp_min(1e-37)
    scaled = gradient / largest  # first, since squares of gradients as small as 1e-30 are zero
    size = scaled.square().mean((1, 2, 3), keepdim=True).sqrt()
    return scaled / size.clamp_min(torch.finfo(size.dtype).tiny)


def over_draws(objective: Objective, drawn: Drawn, z0: Tensor, y: Labels, uncertainty: Uncertainty) -> PerSample:
    """The objective's mean over the draws, with h by name."""
    logits, z = drawn
    each = objective(logits.flatten(0, 1), z.flatten(0, 1), z0.flatten(0, 1), y.repeat(len(z)))
    mean = each.view(len(z), -1).mean(0)
    if uncertainty == "expected":
        return mean
    return mean + objective.beta * (UNCERTAINTY[uncertainty](logits) - expected_entropy(logits))


def _per_channel(step_size: float | Tensor, x: Images) -> Tensor:
    """As a tensor that broadcasts over (B, C, H, W); one number a channel becomes (C, 1, 1)."""
    eta = torch.as_tensor(step_size, dtype=x.dtype, device=x.device)
    return eta.view(-1, 1, 1) if eta.ndim == 1 else eta


def _check(x: Tensor, y: Tensor, steps: int) -> None:
    if not x.is_floating_point():
        raise MeadaError(f"images are {x.dtype}: floats in [0, 1] are needed (divide by 255)")
    if x.ndim != 4:
        raise MeadaError(f"images have shape {tuple(x.shape)}: (N, C, H, W) is needed")
    if len(x) != len(y):
        raise MeadaError(f"{len(x)} images but {len(y)} labels: one label an image is needed")
    if steps < 0:
        raise MeadaError(f"steps is {steps}: zero or more are needed")


def _check_names(draws: str, uncertainty: str) -> None:
    if draws not in ("shared", "renewed"):
        raise MeadaError(f"draws is '{draws}': 'shared' or 'renewed' is needed")
    if uncertainty not in UNCERTAINTY:
        raise MeadaError(f"unknown uncertainty '{uncertainty}': {nearest(uncertainty, UNCERTAINTY)}")


def _check_labels(y: Labels, classes: int) -> None:
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise MeadaError(
            f"labels from {int(y.min())} to {int(y.max())}: the network knows the classes 0 to {classes - 1}"
        )


def _refuse(faults: list[Tensor], n: int) -> None:
    """An error that names the first step at which a sample left the finite numbers."""
    if not faults:
        return
    counts = torch.stack(faults).sum(1)
    bad = counts.nonzero()
    if len(bad):
        step = int(bad[0])
        raise NonFiniteError(
            f"step {step + 1} of {len(faults)}: the loss or gradient of {int(counts[step])} of {n} "
            "samples is not finite; lower step_size, beta or gamma, or look at the weights"
        )
