"""L-CNN (Li et al., 2017): a weight is the product of a low-rank tensor and the domain's descriptor.

W(z) = G x_out U_out x_in U_in x_domain (z' U_domain). Domain i of S trains under z = (e_i, 1); what
all of them share, and what predicts, is the domain-agnostic network of z = (0, ..., 0, 1).
"""

from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.nn.parameter import UninitializedParameter

from meada.errors import MeadaError, check_range
from meada.methods.method import Context, Method, Parts
from meada.methods.parts.domains import EachDomain
from meada.networks.freezing import temporarily
from meada.types import Batch, Scalar

Matrix = Float[Tensor, "_ _"]
Descriptor = Float[Tensor, " S1"]  # S + 1 numbers
EXACT = 1024  # rows up to which a decomposition is exact: a second's work
POWERS = 2  # steps of the power method beyond


def l_cnn(*, domains: int = 3, error: float = 0.1, max_rank: int = 512) -> Method:
    """Low-rank parameterised network, for up to ``domains`` source domains.

    Args:
        domains: S; the network is made before the pool is seen, so the recipe says how many.
        error: of a weight's decomposition, relative in the Frobenius norm; the ranks follow.
        max_rank: no mode of a weight has a higher one, whatever the error.
    """
    check_range("l-cnn", "[1, inf)", domains=domains, max_rank=max_rank)
    check_range("l-cnn", "[0, 1)", error=error)

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        if not any(isinstance(module, LowRank) for module in net.modules()):
            raise MeadaError("l-cnn: net must be a low-rank network, got another: adapt it first (Method.adapt)")
        if len(context.domains) > domains:
            raise MeadaError(f"method.domains must be {len(context.domains)}, the number of sources, got {domains}")
        table = Descriptors(context.domains, domains).to(example.x.device)
        return Parts(nn.ModuleDict({"descriptors": table}))

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        table = context.parts.modules["descriptors"]
        domain = torch.zeros_like(batch.y) if batch.domain is None else batch.domain
        risks = []
        for d in domain.unique().tolist():
            with describing(net, table(d)):
                risks.append(cross_entropy(net(batch.x[domain == d]), batch.y[domain == d]))
        return torch.stack(risks).mean()

    return Method(
        loss=EachDomain(loss),
        build=build,
        adapt=partial(to_low_rank, domains=domains, error=error, max_rank=max_rank),
        title="L-CNN",
        about="Give each domain low-rank changes of shared weights; predict with the shared ones.",
    )


class Descriptors(nn.Module):
    """z = (e_i, 1) for each domain of the pool; domain numbers are arbitrary.

    >>> Descriptors((4, 9), 3)(9)
    tensor([0., 1., 0., 1.])
    """

    ids: Tensor
    z: Tensor

    def __init__(self, ids: tuple[int, ...], domains: int) -> None:
        super().__init__()
        self.register_buffer("ids", torch.tensor(ids or (0,)))
        self.register_buffer("z", torch.cat([torch.eye(domains), torch.ones(domains, 1)], 1))

    def forward(self, domain: int) -> Descriptor:
        found = (self.ids == domain).nonzero()
        if not len(found):
            known = ", ".join(map(str, self.ids.tolist()))
            raise MeadaError(f"domain must be one of those trained on, {known}, got {domain}")
        return self.z[int(found[0])]


class LowRank(nn.Module):
    """Mixin of a layer: its weight is W(z) of the descriptor in use.

    The core is kept flat, (domain rank, out rank, in rank x the rest of the weight).
    """

    core: nn.Parameter
    u_out: nn.Parameter
    u_in: nn.Parameter
    u_domain: nn.Parameter
    rest: tuple[int, ...]  # of the weight's shape, after its first two: a kernel's height, width
    descriptor: Tensor | None = None  # None: the domain-agnostic one

    def _core_of_domain(self) -> Tensor:
        """G x_domain (z' U_domain): (out rank, in rank, rest)."""
        z, u = self.descriptor, self.u_domain
        mix = u[-1] if z is None else z.to(u) @ u
        return torch.einsum("d,dab->ab", mix, self.core).unflatten(1, (self.u_in.shape[1], -1))

    @property
    def weight(self) -> Tensor:
        """The full weight W(z)."""
        w = torch.einsum("oa,abk,ib->oik", self.u_out, self._core_of_domain(), self.u_in)
        return w.view(*w.shape[:2], *self.rest)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *more: Any) -> None:
        """Use the ranks in the file, since the network from which they were computed may be missing."""
        for name, own in self._parameters.items():
            given = state.get(prefix + name)
            if own is not None and given is not None and name in ("core", "u_out", "u_in"):
                own.data = own.new_empty(given.shape)  # the same parameter, to its optimiser
        super()._load_from_state_dict(state, prefix, *more)


class LowRankConv2d(LowRank, nn.Conv2d): ...  # type: ignore[override]


class LowRankLinear(LowRank, nn.Linear):  # type: ignore[override]
    """A linear layer that multiplies by the factors, which is cheaper than computing W(z)."""

    def forward(self, input: Tensor) -> Tensor:
        narrow = linear(input, self.u_in.T)
        return linear(linear(narrow, self._core_of_domain()[..., 0]), self.u_out, self.bias)


LOW_RANK_LAYERS: dict[type[nn.Module], type[LowRank]] = {nn.Linear: LowRankLinear, nn.Conv2d: LowRankConv2d}


def describing(net: nn.Module, z: Descriptor) -> AbstractContextManager[None]:
    """Inside, forward passes use the domain descriptor ``z``."""
    return temporarily([m for m in net.modules() if isinstance(m, LowRank)], "descriptor", z)


def to_low_rank(net: nn.Module, *, domains: int = 3, error: float = 0.1, max_rank: int = 512) -> nn.Module:
    """A copy of ``net`` in which every Linear and Conv2d has the weight W(z).

    It begins as ``net`` up to the decomposition's error, for every descriptor: the agnostic slice
    is the given weight, the domains' own slices are zero. Names of submodules stay; biases are
    common to all domains. A network that is low-rank already is given back as it is.

    >>> net = to_low_rank(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), domains=3, error=0.0)
    >>> {name: tuple(p.shape) for name, p in net.named_parameters()}
    {'1.bias': (2,), '1.core': (4, 2, 2), '1.u_out': (2, 2), '1.u_in': (4, 2), '1.u_domain': (4, 4)}
    """
    if any(isinstance(module, LowRank) for module in net.modules()):
        return net
    layers = {name: m for name, m in net.named_modules() if type(m) in LOW_RANK_LAYERS}
    if not layers:
        raise MeadaError(f"{type(net).__name__} has no Linear and no Conv2d to decompose")
    for name, layer in layers.items():
        if isinstance(layer.weight, UninitializedParameter) or "weight" not in layer._parameters:
            raise MeadaError(f"layer '{name}' must have a weight of its own, got one that is computed or lazy")
    net = deepcopy(net)
    for module in [m for m in net.modules() if type(m) in LOW_RANK_LAYERS]:
        _make_low_rank(module, domains, error, max_rank)
    return net


@torch.no_grad()
def _make_low_rank(layer: nn.Module, domains: int, error: float, max_rank: int) -> None:
    weight = layer._parameters.pop("weight")
    assert weight is not None
    w = weight.flatten(2) if weight.ndim > 2 else weight[..., None]  # (out, in, rest)
    each = error / 2**0.5  # two modes, whose squared errors add up
    u_out = leading(w.flatten(1), each, max_rank)
    u_in = leading(w.transpose(0, 1).flatten(1), each, max_rank)
    agnostic = torch.einsum("oa,oik,ib->abk", u_out, w, u_in).flatten(1)
    if 1 - (agnostic.norm() / w.norm()) ** 2 > 2 * error**2:  # noise cut by max_rank: most of its
        agnostic *= w.norm() / agnostic.norm()  # norm would go, and the activations with it
    core = torch.cat([torch.zeros(domains, *agnostic.shape).to(w), agnostic[None]])
    layer.__class__ = LOW_RANK_LAYERS[type(layer)]
    layer.rest = tuple(weight.shape[2:])  # type: ignore[assignment]
    for name, factor in {"core": core, "u_out": u_out, "u_in": u_in, "u_domain": torch.eye(domains + 1)}.items():
        layer.register_parameter(name, nn.Parameter(factor.to(w).contiguous(), weight.requires_grad))


def leading(w: Matrix, error: float, max_rank: int) -> Matrix:
    r"""The fewest orthonormal columns U with :math:`\|W - U U^\top W\|_F \le` error of W's norm.

    >>> leading(torch.diag(torch.tensor([10.0, 1.0, 0.5])), error=0.2, max_rank=3).shape
    torch.Size([3, 1])
    """
    u = _left_space(w, max_rank)
    energy, order = (u.T @ w).square().sum(1).double().sort(descending=True)
    whole = w.double().square().sum()
    lost = whole - energy.cumsum(0)
    rounding = 8 * torch.finfo(w.dtype).eps * whole
    rank = 1 + int((lost > error**2 * whole + rounding).sum())
    return u[:, order[: min(rank, max_rank)]]


def _left_space(w: Matrix, rank: int) -> Matrix:
    """Left singular vectors: all for few rows, else about the first ``rank``.

    These are found by the power method, from columns of W itself, so that no random numbers are drawn.
    """
    if len(w) <= max(EXACT, 2 * rank):
        return torch.linalg.eigh(w.double() @ w.T.double())[1].to(w)
    u = torch.linalg.qr(w[:, :rank])[0]
    for _ in range(POWERS):
        u = torch.linalg.qr(w @ (w.T @ u))[0]
    return u
