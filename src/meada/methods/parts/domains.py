"""Shared by methods that compare source domains: batches per domain; a network split into features and head."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.func import functional_call

from meada.errors import MeadaError
from meada.methods.method import Context, Loss
from meada.networks.embedding import head_name, head_of, set_head
from meada.networks.freezing import frozen
from meada.types import Batch, Embedding, Images, Logits, PerSample, Scalar


@dataclass(frozen=True)
class EachDomain:
    """The minimisation phase then draws ``batch_size`` samples from each domain, not from all."""

    loss: Loss

    def __call__(self, net: nn.Module, batch: Batch, context: Context) -> Scalar:
        return self.loss(net, batch, context)


Places = list[Int[Tensor, " _"]]  # for each domain, where its samples are in the batch


def members(batch: Batch, method: str, domains: int | None = None) -> Places:
    """Indices of each domain's samples in the batch, sorted by domain number.

    A loss in :class:`meada.methods.parts.domains.EachDomain` sees all domains in every batch, so the
    k-th is the same one in each step. ``domains`` is how many the method has parts for.

    >>> x, y = torch.rand(4, 3, 1, 1), torch.zeros(4, dtype=torch.int64)
    >>> members(Batch(x, y, torch.tensor([7, 2, 7, 2])), "mldg")
    [tensor([1, 3]), tensor([0, 2])]
    """
    places = places_of(batch)
    at_least_two(len(places), method)
    if domains is not None and len(places) != domains:
        raise MeadaError(
            f"{method}: the batch must have {domains} source domains, got {len(places)}: "
            "it is made for the domains that it trains on (a setting 'domains' says how many)"
        )
    return places


def places_of(batch: Batch) -> Places:
    """The same for any number of domains; a batch without domains counts as one domain."""
    found = torch.zeros_like(batch.y) if batch.domain is None else batch.domain
    return [(found == number).nonzero().flatten() for number in found.unique()]


def at_least_two(n: int, method: str) -> None:
    if n < 2:
        raise MeadaError(f"{method}: the data must have two source domains or more, got one")


def summed(ce: PerSample, places: Places) -> Scalar:
    r"""Sum over domains of the mean loss: :math:`\sum_d \mathrm{mean}_{i \in d}\, CE_i`.

    >>> ce = torch.tensor([1.0, 2.0, 4.0])
    >>> summed(ce, [torch.tensor([0]), torch.tensor([1, 2])])
    tensor(4.)
    """
    return torch.stack([ce[of_one].mean() for of_one in places]).sum()


def shuffled(n: int, generator: torch.Generator) -> list[int]:
    """The numbers 0, ..., n - 1 of the domains in a random order."""
    order: list[int] = torch.randperm(n, generator=generator).tolist()
    return order


def without_head(net: nn.Module) -> nn.Module:
    """F, a copy of the network without its head: images to z.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> without_head(net)(torch.rand(5, 1, 2, 2)).shape
    torch.Size([5, 3])
    """
    return set_head(deepcopy(net), nn.Identity())


def new_head(net: nn.Module) -> nn.Linear:
    """A head of the shape of the network's own, with new random weights."""
    fresh = deepcopy(head_of(net))
    fresh.reset_parameters()
    return fresh


def head_per_domain(net: nn.Module, x: Images, domains: int, method: str) -> nn.ModuleList:
    """A new head for each of ``domains``; one domain, or a network that cannot be split, is refused."""
    at_least_two(domains, method)
    check_splits(net, x)
    return nn.ModuleList(new_head(net) for _ in range(domains))


def with_fixed_weights(layer: nn.Module, z: Embedding) -> Logits:
    """The output of ``layer`` with a gradient for z and none for its weights."""
    weights = {name: weight.detach() for name, weight in layer.named_parameters()}
    out: Logits = functional_call(layer, weights, (z,))
    return out


def check_splits(net: nn.Module, x: Images) -> None:
    """Refuse a network whose logits are not what its last ``nn.Linear`` gives."""
    seen: list[Logits] = []
    hook = head_of(net).register_forward_hook(lambda _m, _x, out: seen.append(out))
    with hook, torch.no_grad(), frozen(net):
        logits = net(x)
    if len(seen) != 1 or not torch.equal(seen[0].to(logits), logits):
        raise MeadaError(
            f"the logits of {type(net).__name__} must be the output of its last nn.Linear, "
            f"'{head_name(net)}', called once; got something else"
        )
