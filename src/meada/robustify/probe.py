"""Logistic regression on frozen features: the head that a pretrained network starts from."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.errors import MeadaError
from meada.networks.embedding import watching
from meada.networks.freezing import at_rest
from meada.pool import as_float
from meada.types import Embedding, Labels

BATCH = 32
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the squared weights of standardised features, beside the mean loss
Tell = Callable[[int, int], None]


def readout(net: nn.Module, x: Tensor) -> nn.Linear:
    """The last ``nn.Linear`` that a forward pass reaches.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 5))
    >>> readout(net, torch.rand(1, 3, 2, 2)) is net[-1]
    True
    """
    reached: list[nn.Linear] = []
    hooks = [
        m.register_forward_hook(lambda m, *_: reached.append(m)) for m in net.modules() if isinstance(m, nn.Linear)
    ]
    try:
        with at_rest(net), torch.no_grad():
            net(as_float(x))
    finally:
        for hook in hooks:
            hook.remove()
    if not reached:
        raise MeadaError("the network must end in an nn.Linear for its head to be fitted, got none")
    return reached[-1]


def features(net: nn.Module, images: Tensor, tell: Tell = lambda done, n: None) -> Embedding:
    """What the read-out is given, in eval mode."""
    parts = []
    with at_rest(net), torch.inference_mode(), watching(net) as forward:
        for batch in images.split(BATCH):
            parts.append(forward(as_float(batch))[1])
            tell(sum(map(len, parts)), len(images))
    return torch.cat(parts)


Head = tuple[Float[Tensor, "K D"], Float[Tensor, " K"]]  # weight and bias


def fit_head(z: Embedding, y: Labels, classes: int, penalty: float) -> Head:
    """L2 logistic regression by LBFGS in float64; the weights are for features as they come."""
    z = z.double()
    mean, scale = z.mean(0), z.std(0).clamp_min(1e-6)
    z = (z - mean) / scale
    weight = torch.zeros(classes, z.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=100, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(z @ weight.T + bias, y) + penalty * weight.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    w = (weight / scale).detach()
    return w, (bias - w @ mean).detach()


Labelled = tuple[Tensor, Tensor]  # features (B, D) and their labels (B,)


def best_head(
    train: Labelled, held: Labelled, classes: int, penalties: Sequence[float] = PENALTIES
) -> tuple[Head, float]:
    """The head whose penalty reads the held-out pictures best (lowest NLL), and that penalty."""
    z, y = held[0].double(), held[1]
    heads = {p: fit_head(*train, classes, p) for p in penalties}
    nll = {p: float(cross_entropy(z @ w.T + b, y)) for p, (w, b) in heads.items()}
    best = min(penalties, key=nll.__getitem__)
    return heads[best], best


@torch.no_grad()
def set_head(linear: nn.Linear, head: Head) -> None:
    weight, bias = head
    if linear.weight.shape != weight.shape or linear.bias is None:
        raise MeadaError(f"the read-out must be {tuple(weight.shape)} with a bias, got {tuple(linear.weight.shape)}")
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)
