"""Maximisation phase: perturb each sample to increase the objective.

Two ways, over any space of transformations: ``ascend`` follows the gradient of the score in the space's
parameters (``perturb`` is the paper's: pixels), and ``hard_views`` draws candidates from the space's prior
and keeps one at random; a higher score makes a candidate more likely.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from meada.entropy import UNCERTAINTY, Uncertainty, expected_entropy
from meada.errors import MeadaError, NonFiniteError, check_count, check_numbers
from meada.images.inputs import check_classes, images_and_labels, per_channel
from meada.networks.embedding import embedding_passes, forward_pass, unwrap
from meada.networks.freezing import channels_last, frozen
from meada.networks.posterior import Passes, Posterior, PosteriorOutputs, posterior_passes
from meada.objective import Objective
from meada.spaces import Space, Theta, find_space, view_random
from meada.spaces.choice import choose
from meada.spaces.pixels import pixels
from meada.spaces.space import unpacked
from meada.streams import positions_of
from meada.types import Images, LabelMatrix, Labels, PerSample

Score = Callable[[Images, int], PerSample]  # of transformed images at a step of the ascent
Direction = Callable[[Tensor], Tensor]  # from a gradient to the step that is taken
Index = Tensor | np.ndarray | Sequence[int] | None  # one integer per sample
PLAIN = Posterior()
BLOCK = 128  # samples climbed at once unless the caller says: bounds the memory, and is faster on LeNet (decision 76)


def perturb(
    net: nn.Module, x: Tensor, y: Tensor, *, beta: float = 10.0, gamma: float = 1 / 1024,
    step_size: float | Tensor = 1 / 32, steps: int = 15, unit: bool = False,
    embedding: str | None = None, block: int | None = None, posterior: Posterior = PLAIN,
) -> Images:  # fmt: skip
    r"""T_max steps of :math:`x \leftarrow x + \eta \nabla_x \{CE + \beta h - \gamma c\}`.

    The objective is summed, not averaged, over the batch: a sample's path does not depend on which
    others share its batch. At the end pixels are clamped to [0, 1]. The network is left as it was:
    weights, gradients, buffers, modes. The defaults are the paper's on digits.

    For a network that is random (Bayesian, or with stochastic layers) the objective is its mean over
    several posterior samples, the same for every image.

    Args:
        net: any module from images in [0, 1] to logits; normalisation is one of its layers.
        step_size: the paper's eta, a number or one number per channel.
        unit: step along each sample's gradient by a fixed length: a step changes the pixels of
            every sample by ``step_size`` in the root mean square.
        embedding: the submodule whose output is z; by default the input of the last ``nn.Linear``.
        block: samples per forward pass, 128 by default; 0 is the whole batch. The same blocks give the same bits.
        posterior: how to sample a network that is random; ignored for any other.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> x, y = torch.full((1, 1, 2, 2), 0.5), torch.tensor([0])
    >>> harder = perturb(net, x, y, beta=0.0, gamma=0.0, step_size=0.1, steps=1)
    >>> bool(nn.functional.cross_entropy(net(harder), y) > nn.functional.cross_entropy(net(x), y))
    True
    """
    x, y = images_and_labels(x, y, net, gradients=True)
    check_count("steps", steps, least=0)
    check_numbers(beta=beta, gamma=gamma)
    check_count("block", block or 0, least=0)
    if not isinstance(posterior, Posterior):
        raise MeadaError(f"posterior must be a meada.Posterior, got {type(posterior).__name__}")
    net, size = unwrap(net), (BLOCK if block is None else block) or max(len(x), 1)
    objective, eta = Objective(beta=beta, gamma=gamma), per_channel(step_size, x)
    direction = unit_rms if unit else torch.positive
    passing = posterior_passes(
        net, embedding, count=posterior.samples, stochastic=posterior.stochastic, seed=posterior.seed
    )
    # Leaves no_grad and inference_mode of the caller behind: the ascent needs a graph.
    with torch.inference_mode(False), torch.enable_grad(), passing as passes:

        def harder(x0: Images, y0: Labels) -> Images:
            score = _paper_score(passes, x0, y0, objective, posterior)
            return ascend(score, pixels(), x0, {"image": x0}, steps=steps, step_size=eta, direction=direction)

        x, y = _ordinary(x), _ordinary(y)
        blocks = zip(x.detach().split(size), y.split(size), strict=True)
        return torch.cat([harder(x0, y0) for x0, y0 in blocks])


def ascend(
    score: Score, space: Space, x0: Images, theta: Theta, *, steps: int, step_size: float | Tensor,
    direction: Direction = torch.positive,
) -> Images:  # fmt: skip
    """Gradient ascent on ``score`` over the parameters of a smooth space; returns the transformed images.

    Over pixels it is the inner loop of Algorithm 1, which clamps pixels once, at the end; the score of another space is
    that of clamped images.
    """
    if not space.smooth:
        raise MeadaError(f"space '{space.name}' cannot be differentiated in its parameters: use hard_views")
    faults: list[Tensor] = []  # read once, after the loop: no synchronisation inside it
    for step in range(steps):
        values, rebuild = unpacked(theta, x0)
        leaves = [value.detach().requires_grad_() for value in values]
        made = space.apply(x0, rebuild(leaves), step) if space.clamped else space.transform(x0, rebuild(leaves))
        if not made.requires_grad:
            raise MeadaError(f"space '{space.name}', step {step}: views must depend on the parameters, but do not")
        scores = score(made, step)
        gradients = torch.autograd.grad(scores.sum(), leaves, allow_unused=True, materialize_grads=True)
        faults.append(_not_finite(scores, gradients))
        pairs = zip(values, gradients, strict=True)
        theta = space.project(rebuild([value + step_size * direction(g) for value, g in pairs]))
    _refuse(faults, len(x0))
    return space.transform(x0, theta).detach().clamp(0, 1)


def hard_views(
    net: nn.Module, x: Tensor, y: Tensor, *, space: str | Space = "wide", k: int = 4, hardness: float = 0.5,
    beta: float = 1.0, gamma: float = 0.0, seed: int | None = None, step: int = 0, index: Index = None,
    embedding: str | None = None,
) -> Images:  # fmt: skip
    r"""One hard random view of each image: a draw from the space's prior tilted towards high scores.

    ``k`` candidates per image are drawn and scored by :math:`s = CE + \beta h - \gamma c` with the network
    in eval mode, without gradients. One is kept with probability proportional to :math:`\exp(s / \tau)`,
    where tau is such that the choice differs from a uniform one by a KL divergence of hardness * log k.
    Threads must not share a network: it changes its mode meanwhile.

    Args:
        net: any module from images in [0, 1] to logits; it is left as it was.
        space: a name in ``meada.SPACES``, or a space.
        k: candidates per image; 1 is a plain draw from the prior.
        hardness: 0 keeps a random candidate, 1 the one with the highest score. Here it is 0.5, since hard views are
            asked for; the method ``tilted`` has 0, which trains as well in the same time (decision 84).
        seed: of the random numbers; by default drawn from torch's default generator.
        step: a further key, so that a training loop with one seed sees new views at every step.
        index: one integer per sample that keys its random numbers; by default 0, 1, 2, ...
        embedding: with ``gamma``, the submodule whose output is z; by default the input of the last ``nn.Linear``.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    >>> x, y = torch.rand(6, 3, 4, 4), torch.arange(6) % 5
    >>> hard_views(net, x, y, seed=0).shape
    torch.Size([6, 3, 4, 4])
    """
    x, y = images_and_labels(x, y, net)
    seed = int(torch.randint(2**62, ())) if seed is None else seed
    check_count("seed", seed, least=0)
    check_count("step", step, least=0)
    rows = positions_of(index, len(x))
    if not len(x):
        return x.clone()
    objective, found = Objective(beta=beta, gamma=gamma), find_space(space)
    with torch.inference_mode(False):  # of the caller, whose images could not be trained on
        x, y = _ordinary(x), _ordinary(y)
        return tilted_views(
            net, x, y, found, objective, k=k, hardness=hardness, seed=seed, step=step, rows=rows, embedding=embedding
        )


@torch.no_grad()
def tilted_views(
    net: nn.Module, x: Images, y: Labels | LabelMatrix, space: Space, objective: Objective, *,
    k: int, hardness: float, seed: int, step: int, rows: Any, embedding: str | None = None,
) -> Images:  # fmt: skip
    """``hard_views`` without input checks; ``y`` may be a matrix of independent labels."""
    chosen = chosen_candidates(
        net, x, y, space, objective, k=k, hardness=hardness, seed=seed, step=step, rows=rows, embedding=embedding
    )
    return space.view(x, view_random(seed, step, chosen, rows), step)


@torch.no_grad()
def chosen_candidates(
    net: nn.Module, x: Images, y: Labels | LabelMatrix, space: Space, objective: Objective, *,
    k: int, hardness: float, seed: int, step: int, rows: Any, embedding: str | None = None,
) -> Any:  # fmt: skip
    """Index of each sample's chosen candidate among ``k``: a draw from the tilted distribution over their scores."""
    check_count("k", k, least=1)
    check_numbers(hardness=hardness, beta=objective.beta, gamma=objective.gamma)
    hardness = float(hardness)
    if not 0 <= hardness <= 1:
        raise MeadaError(f"hardness must be in 0..1, got {hardness}")
    random = [view_random(seed, step, j, rows) for j in range(k)]
    noise = np.stack([one.gumbel("choice") for one in random], 1)
    scores = np.zeros_like(noise)
    if k > 1 and hardness > 0:
        with scoring(net, x, y, objective, embedding) as score:
            scores = np.stack([score(space.view(x, one, step)) for one in random], 1)
    return choose(scores, hardness, noise)


@contextmanager
def scoring(
    net: nn.Module, x0: Images, y: Labels | LabelMatrix, objective: Objective, embedding: str | None = None
) -> Iterator[Callable[[Images], Any]]:
    """A function that scores views of ``x0`` as numpy arrays, with the network frozen in eval mode."""
    net = unwrap(net)
    with frozen(net), channels_last(net), ExitStack() as stack:
        if objective.gamma:
            forward = stack.enter_context(embedding_passes(net, embedding))
            z0 = forward(x0)[1]
        else:  # no cost, so no embedding has to be found
            forward = lambda x: (forward_pass(net, x), x0.new_zeros(len(x), 0))
            z0 = x0.new_zeros(len(x0), 0)

        def score(x: Images) -> Any:
            logits, z = forward(x)
            if y.ndim == 1:
                check_classes(y, classes=logits.shape[1])
            values = objective(logits, z, z0, y)
            if not bool(values.isfinite().all()):
                raise NonFiniteError("scores of views must be finite, got NaN or infinity: check the weights")
            return values.double().cpu().numpy()

        yield score


def _ordinary(values: Tensor) -> Tensor:
    """A copy of a tensor made in inference mode, which autograd refuses; any other as it is."""
    return values.clone() if values.is_inference() else values


def _paper_score(passes: Passes, x0: Images, y: Labels, objective: Objective, posterior: Posterior) -> Score:
    """The objective's mean over the posterior samples; the cost is from ``x0`` under the same samples."""
    z0: list[Tensor] = []

    def score(x: Images, step: int) -> PerSample:
        number = step if posterior.draws == "renewed" else 0
        logits, z = drawn = passes(x, number)
        if step == 0:
            z0[:] = [z.detach()]  # the first forward pass is the clean one
            check_classes(y, classes=logits.shape[2])
        elif number:
            with torch.no_grad():
                z0[:] = [passes(x0, number)[1]]
        return over_draws(objective, drawn, z0[0], y, posterior.uncertainty)

    return score


def over_draws(
    objective: Objective, drawn: PosteriorOutputs, z0: Tensor, y: Labels, uncertainty: Uncertainty
) -> PerSample:
    """The objective's mean over posterior samples, with h by name."""
    logits, z = drawn
    each = objective(logits.flatten(0, 1), z.flatten(0, 1), z0.flatten(0, 1), y.repeat(len(z)))
    mean = each.view(len(z), -1).mean(0)
    if uncertainty == "expected":
        return mean
    return mean + objective.beta * (UNCERTAINTY[uncertainty](logits) - expected_entropy(logits))


def unit_rms(gradient: Images) -> Images:
    """Divide each sample's gradient by its root mean square; zero gradients stay zero.

    >>> unit_rms(torch.tensor([[[[3.0, -4.0]]], [[[0.0, 0.0]]]])).flatten(1)  # over sqrt(12.5)
    tensor([[ 0.8485, -1.1314],
            [ 0.0000,  0.0000]])
    """
    largest = gradient.abs().amax((1, 2, 3), keepdim=True).clamp_min(1e-37)
    scaled = gradient / largest  # first, since squares of gradients as small as 1e-30 are zero
    size = scaled.square().mean((1, 2, 3), keepdim=True).sqrt()
    return scaled / size.clamp_min(torch.finfo(size.dtype).tiny)


def _not_finite(scores: PerSample, gradients: Sequence[Tensor]) -> Tensor:
    """Which samples have a score or a gradient that is not finite."""
    bad = ~scores.detach().isfinite()
    for gradient in gradients:
        wrong = ~gradient.flatten(1).sum(1).isfinite() if gradient.ndim > 1 else ~gradient.isfinite()
        bad = bad | (wrong if len(wrong) == len(bad) else wrong.any())
    return bad


def _refuse(faults: list[Tensor], n: int) -> None:
    """Raise an error with the first step at which a sample became NaN or infinite."""
    counts = torch.stack(faults).sum(1).tolist() if faults else []
    for step, count in enumerate(counts, 1):
        if count:
            raise NonFiniteError(
                f"step {step} of {len(faults)}: the loss or gradient of {count} of {n} samples is not finite; "
                "lower step_size, beta or gamma, or check the weights"
            )
