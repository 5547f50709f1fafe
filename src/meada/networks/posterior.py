"""Forward passes of a frozen network under several samples of its weights or dropout masks."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from meada.entropy import UNCERTAINTY, Uncertainty
from meada.errors import MeadaError, check_count, nearest
from meada.networks.bayesian.variational import Stochastic, WeightSample, using_weights
from meada.networks.embedding import embedding_passes
from meada.networks.freezing import channels_last, frozen
from meada.streams import key
from meada.types import Images

PosteriorOutputs = tuple[Float[Tensor, "S B K"], Float[Tensor, "S B D"]]  # logits and z of each sample
Passes = Callable[[Images, int], PosteriorOutputs]
Renewal = Literal["shared", "renewed"]
Dropout = nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d  # the last three by channels


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """How to sample a Bayesian network or one with MC dropout.

    Args:
        samples: posterior samples, T of the supplement; a network without randomness is its own only sample.
        stochastic: submodules that stay random, such as MC-dropout; all others are in eval mode.
        draws: one set of samples for the whole ascent, or a new one at each step.
        uncertainty: h is the ``expected`` entropy over the samples (the supplement's), or the entropy
            ``of_mean``, of the mean prediction.
        seed: of the samples.
    """

    samples: int = 5
    stochastic: Collection[str] = ()
    draws: Renewal = "shared"
    uncertainty: Uncertainty = "expected"
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("posterior samples", self.samples, least=1)
        if self.draws not in ("shared", "renewed"):
            raise MeadaError(f"draws must be 'shared' or 'renewed', got '{self.draws}'")
        if self.uncertainty not in UNCERTAINTY:
            raise MeadaError(f"unknown uncertainty '{self.uncertainty}': {nearest(self.uncertainty, UNCERTAINTY)}")


@contextmanager
def posterior_passes(
    net: nn.Module, embedding: str | None = None, *, count: int = 1, stochastic: Collection[str] = (), seed: int = 0
) -> Iterator[Passes]:
    """A function ``(x, number)`` to the logits and z under ``count`` posterior samples: the ``number``-th set.

    A plain network is its own only sample. Of a Bayesian one a sample is a set of weights; of one with
    MC-dropout layers, named in ``stochastic``, it is a set of masks: the same for every image of
    every batch, so the result for an image does not depend on its batch.

    >>> from meada.networks.bayesian import to_bayesian
    >>> net = to_bayesian(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))
    >>> with posterior_passes(net, count=3) as passes:
    ...     logits, z = passes(torch.rand(5, 1, 2, 2), 0)
    >>> logits.shape, z.shape
    (torch.Size([3, 5, 2]), torch.Size([3, 5, 4]))
    """
    with frozen(net, stochastic), channels_last(net), embedding_passes(net, embedding) as forward:
        if not stochastic and not any(isinstance(module, Stochastic) for module in net.modules()):
            yield lambda x, number: _stack([forward(x)])
            return
        # Dropout layers that are named or inside a named module: in eval mode, since hooks apply the masks.
        named = [
            (f"{chosen}.{name}", m) for chosen in stochastic for name, m in net.get_submodule(chosen).named_modules()
        ]
        layers = {module: name for name, module in named if isinstance(module, Dropout)}
        for layer in layers:
            layer.eval()
        held: dict[int, list[WeightSample]] = {}

        def under(sample: WeightSample, x: Images) -> tuple[Tensor, Tensor]:
            with using_weights(net, sample), _masking(layers, sample), _seeded(sample, stochastic):
                return forward(x)

        def passes(x: Images, number: int) -> PosteriorOutputs:
            if number not in held:
                held.clear()  # one set at a time: each sample holds all the weights
                held[number] = [WeightSample(seed, "draw", number, j, lean=True) for j in range(count)]
            return _stack([under(sample, x) for sample in held[number]])

        yield passes


@contextmanager
def _masking(layers: dict[Dropout, str], sample: WeightSample) -> Iterator[None]:
    calls: Counter[Dropout] = Counter()

    def masked(layer: Dropout, args: tuple[Tensor], x: Tensor) -> Tensor:
        calls[layer] += 1  # a layer that is called twice has two masks
        rest = x.shape[2:] if isinstance(layer, nn.Dropout) else [1] * (x.ndim - 2)
        place = f"{layers[layer]} {calls[layer]}"
        return x * sample.mask(place, (1, *x.shape[1:2], *rest), layer.p, like=x)

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_hook(masked))
        yield


@contextmanager
def _seeded(sample: WeightSample, stochastic: Collection[str]) -> Iterator[None]:
    """Seed other random layers: the same numbers for the same sample and batch."""
    with torch.random.fork_rng(enabled=bool(stochastic)):
        if stochastic:
            torch.manual_seed(key(*sample.names))
        yield


def _stack(pairs: list[tuple[Tensor, Tensor]]) -> PosteriorOutputs:
    logits, z = zip(*pairs, strict=True)
    return torch.stack(logits), torch.stack(z)
