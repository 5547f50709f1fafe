"""Which samples of a batch come from which source domain, whatever numbers the domains go by."""

import torch
from jaxtyping import Int
from torch import Tensor

from meada.errors import MeadaError
from meada.types import Batch, Labels, PerSample, Scalar

Places = list[Int[Tensor, " _"]]  # for each domain, where its samples are in the batch


def members(batch: Batch, method: str, domains: int | None = None) -> Places:
    """The places of each domain's samples in the batch, in the order of the domains' numbers.

    A loss in :class:`meada.methods.parts.each_domain.EachDomain` sees all domains in every batch, so the
    k-th is the same one in each step. ``domains`` is how many the method has parts for.

    >>> x, y = torch.rand(4, 3, 1, 1), torch.zeros(4, dtype=torch.int64)
    >>> members(Batch(x, y, torch.tensor([7, 2, 7, 2])), "mldg")
    [tensor([1, 3]), tensor([0, 2])]
    """
    places = places_of(batch)
    at_least_two(len(places), method)
    if domains is not None and len(places) != domains:
        raise MeadaError(
            f"{method} has parts for {domains} source domains and the batch has {len(places)}: "
            "it is made for the domains that it trains on (a setting 'domains' says how many)"
        )
    return places


def places_of(batch: Batch) -> Places:
    """The same for any number of domains; a batch without domains is all of one."""
    found = torch.zeros_like(batch.y) if batch.domain is None else batch.domain
    return [(found == number).nonzero().flatten() for number in found.unique()]


def at_least_two(n: int, method: str) -> None:
    if n < 2:
        raise MeadaError(f"{method} compares source domains: it needs two or more, and the data has one")


def numbered(places: Places) -> Labels:
    """Each sample's domain as 0, 1, ..., the place of that domain in the list.

    >>> numbered([torch.tensor([1, 3]), torch.tensor([0, 2])])
    tensor([1, 0, 1, 0])
    """
    order = torch.cat(places)
    rank = torch.cat([torch.full_like(of_one, k) for k, of_one in enumerate(places)])
    return torch.empty_like(order).scatter_(0, order, rank)


def summed(ce: PerSample, places: Places) -> Scalar:
    r"""One mean for each domain, added up: :math:`\sum_d \mathrm{mean}_{i \in d}\, CE_i`.

    >>> ce = torch.tensor([1.0, 2.0, 4.0])
    >>> summed(ce, [torch.tensor([0]), torch.tensor([1, 2])])
    tensor(4.)
    """
    return torch.stack([ce[of_one].mean() for of_one in places]).sum()


def shuffled(n: int, generator: torch.Generator) -> list[int]:
    """The numbers 0, ..., n - 1 of the domains in a random order."""
    order: list[int] = torch.randperm(n, generator=generator).tolist()
    return order
