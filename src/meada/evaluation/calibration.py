"""Temperature scaling: divide a network's logits by one number, so that its confidence fits its accuracy.

The temperature is fitted on held-out images. Fitted on images like those of training, it makes a network right about
its own source and far too sure of another domain; fitted on several random changes in a row, it comes closer there
(decision 92).
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.datasets.task import Samples
from meada.errors import MeadaError
from meada.evaluation.score import finite_logits
from meada.evaluation.selection import fixed_subset
from meada.networks.embedding import head_name
from meada.pool import as_float
from meada.spaces import SPACES, find_space, view_random

IMAGES, VIEWS = 200, 10  # held-out images at most, and views of each
BOUNDS = (-2.0, 2.0)  # of the temperature's logarithm


def best_temperature(nll: Callable[[float], float]) -> float:
    """The temperature with the lowest negative log-likelihood.

    >>> logits, labels = torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])  # 98 % sure, right in 3 of 4
    >>> round(4 / best_temperature(lambda t: float(cross_entropy(logits / t, labels))), 2)  # log 3
    1.1
    """
    from scipy.optimize import minimize_scalar  # slow to import

    return float(np.exp(minimize_scalar(lambda log_t: nll(float(np.exp(log_t))), bounds=BOUNDS, method="bounded").x))


def temperature_on_views(net: nn.Module, held_out: Samples, space: str, *, seed: int, step: int) -> float:
    """The temperature that fits random views of held-out images; ``seed`` and ``step`` key the views."""
    some, drawn = fixed_subset("validation", held_out, IMAGES), find_space(space)
    x, rows = as_float(some.images), np.arange(len(some))
    views = (drawn.view(x, view_random(seed, step, j, rows), step) for j in range(VIEWS))
    logits = torch.cat([finite_logits(net, one, f"views of {space}") for one in views]).double()
    labels = some.labels.repeat(VIEWS)
    return best_temperature(lambda t: float(cross_entropy(logits / t, labels)))


@torch.no_grad()
def divide_logits(last: nn.Linear, temperature: float) -> None:
    """Divide the last layer's weights, so that every export includes the temperature."""
    for weight in last.parameters():
        weight.div_(temperature)


def check_calibration(net: nn.Module, space: str) -> None:
    """Raise before training what would fail after it: a space without a prior, a network without a linear head."""
    if space not in SPACES or space == "pixels":
        named = ", ".join(name for name in SPACES if name != "pixels")
        raise MeadaError(f"calibrate_on must be empty or one of {named}, got '{space}'")
    head_name(net)
