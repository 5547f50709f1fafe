"""Logistic regression on frozen features: the head that a pretrained network starts from."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.embedding import head_of
from meada.robustify.labels import Truth, loss
from meada.types import Embedding

LARGE = 1e9  # features x classes above which an iteration takes a second or more
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # of the squared weights of scaled features, next to the mean loss
Head = tuple[Float[Tensor, "K D"], Float[Tensor, " K"]]  # weight and bias
Labelled = tuple[Tensor, Tensor]  # features (B, D) and their labels, (B,) or (B, K)


def fit_head(z: Embedding, y: Truth, classes: int, penalty: float) -> Head:
    """L2 logistic regression by LBFGS in float64; the returned weights apply to unscaled features.

    All features share one scale. With a scale per feature, features that hardly vary on the training pictures would
    get huge weights, which break predictions on shifted pictures and the first gradient steps (decision 87).
    """
    z = z.double()
    mean, scale = z.mean(0), z.var(0).mean().sqrt().clamp_min(1e-6)
    z = (z - mean) / scale
    weight = torch.zeros(classes, z.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
    most = 100 if z.numel() * classes < LARGE else 30
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=most, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(z @ weight.T + bias, y) + penalty * weight.square().sum()
        value.backward()
        return value

    optimiser.step(closure)
    w = (weight / scale).detach()
    return w, (bias - w @ mean).detach()


def best_head(train: Labelled, held: Labelled, classes: int) -> tuple[Head, float]:
    """The head with the lowest NLL on held-out pictures over the penalties, and its penalty."""
    z, y = held[0].double(), held[1]
    heads = {p: fit_head(*train, classes, p) for p in PENALTIES}
    nll = {p: float(loss(z @ w.T + b, y)) for p, (w, b) in heads.items()}
    best = min(PENALTIES, key=nll.__getitem__)
    return heads[best], best


@torch.no_grad()
def fit_into(net: nn.Module, head: Head) -> None:
    """Copy the head into the network's last layer."""
    (weight, bias), linear = head, head_of(net)
    if linear.weight.shape != weight.shape or linear.bias is None:
        raise MeadaError(f"the last layer must be {tuple(weight.shape)} with a bias, got {tuple(linear.weight.shape)}")
    linear.weight.copy_(weight)
    linear.bias.copy_(bias)
