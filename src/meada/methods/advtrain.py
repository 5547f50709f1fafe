"""AdvTrain (Kang et al., 2019): train on images moved towards a wrong label, within a small ball."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.images.random_ops import randint, uniform
from meada.maximise import ascend
from meada.methods.method import Context, Method, cross_entropy_loss
from meada.networks.embedding import unwrap
from meada.networks.freezing import frozen
from meada.spaces.pixels import ball
from meada.types import Batch, Images, Labels, Scalar


def advtrain(*, radius: float = 8.0, steps: int = 10) -> Method:
    """Projected gradient steps in the maximum norm; the loss is on the moved images alone.

    Args:
        radius: the ball's largest radius, in levels of 255; an image's own is uniform below it.
            8 fits the accuracy that Table 3 gives; 1 is the small one that helps corruptions most.
        steps: each of radius / sqrt(steps), towards a random wrong label, from a random start.
    """
    check_range("advtrain", "(0, inf)", radius=radius)
    check_range("advtrain", "[1, inf)", steps=steps)

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        n, generator = len(batch.x), context.each
        epsilon = radius / 255 * uniform(batch.x, n, 1, 1, 1, generator=generator)
        with frozen(unwrap(net)):
            with torch.no_grad():
                classes = net(batch.x[:1]).shape[1]
            wrong = (batch.y + 1 + randint(max(classes - 1, 1), batch.y, n, generator=generator)) % classes
            start = 2 * uniform(batch.x, *batch.x.shape, generator=generator) - 1
            x = approach(unwrap(net), batch.x, wrong, epsilon, start * epsilon, steps)
        return cross_entropy_loss(net, batch._replace(x=x), context)

    return Method(
        loss=loss,
        title="AdvTrain",
        about="Train on images moved by a gradient attack within a small ball (adversarial training).",
        passes=(steps + 1.0, steps + 1.0),
    )


def approach(net: nn.Module, x0: Images, wrong: Labels, epsilon: Tensor, start: Images, steps: int) -> Images:
    """Targeted PGD towards the label ``wrong``: steps of epsilon / sqrt(steps), projected onto the ball and [0, 1]."""
    score = lambda x, step: -cross_entropy(net(x), wrong, reduction="none")
    return ascend(
        score, ball(x0, epsilon), x0, {"image": (x0 + start).clamp(0, 1)},
        steps=steps, step_size=epsilon / math.sqrt(steps), direction=torch.sign,
    )  # fmt: skip
