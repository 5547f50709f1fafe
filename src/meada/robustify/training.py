"""Choose the image changes to train on; fine-tune for a fixed number of steps, with exact resume and mean weights."""

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from meada.algorithm import Plan as Schedule
from meada.algorithm import Watch, begin, train
from meada.averaging import RunningMean
from meada.datasets import Samples
from meada.evaluation import predict
from meada.evaluation.selection import fixed_subset
from meada.images.augment import flip_and_crop
from meada.machine.terminal import Count
from meada.maximise import tilted_views
from meada.methods.method import Context, Method
from meada.methods.parts.descent import Descent
from meada.minimise import Training, refuse_non_finite
from meada.networks.freezing import batch_norm_frozen
from meada.objective import Objective
from meada.pool import Pool, as_float
from meada.robustify import labels
from meada.runs.checkpoint import load_checkpoint, save_checkpoint
from meada.spaces import Space, Theta, one_of, skip_mix
from meada.spaces.wide import MEMBERS
from meada.types import Batch, Images, Scalar

SAVE_SECONDS = 20.0  # between checkpoints
HELD = 300  # maximum of held-out pictures used for the choice
LIMIT = 0.25  # largest share of the accuracy above chance that the probe may lose on grey pictures
KEEP_COLOUR = ("random_convolution", "colour_curve")  # members that can change brightness only


@dataclass(frozen=True)
class Tuning:
    """One training of one candidate."""

    method: Method
    descent: Descent
    steps: int
    batch_size: int
    seed: int
    frozen: bool = False  # keep the batch-norm statistics fixed
    average_from: float = 1.0  # share of the steps after which weights are averaged; 1: never
    clip: float = math.inf  # maximum gradient norm


def clean_loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
    return labels.loss(net(batch.x), batch.y)


def plain(side: int) -> Method:
    """Ordinary fine-tuning: cross-entropy on randomly flipped and cropped pictures."""
    return Method(loss=clean_loss, augment=partial(flip_and_crop, padding=max(side // 8, 1)))


def hardened(side: int, space: Space, *, views: int, hardness: float) -> Method:
    """CE(clean) + CE(view), where the view of each picture is a tilted draw from ``space``."""

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        view = tilted_views(
            net, batch.x, batch.y, space, Objective(beta=1.0, gamma=0.0), k=views, hardness=hardness,
            seed=context.seed, step=context.step, rows=np.asarray(batch.sample_index),
        )  # fmt: skip
        return 2 * labels.loss(net(torch.cat([batch.x, view])), torch.cat([batch.y, batch.y]))

    return replace(plain(side), loss=loss)


def with_rows(method: Method, rows: Tensor) -> Method:
    """Look up rows of a label matrix by sample index, since a pool holds one class number per picture."""

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        return method.loss(net, batch._replace(y=rows[batch.sample_index]), context)

    return replace(method, loss=loss)


def clip_gradient(net: nn.Module, largest: float, *_: object) -> None:
    """Optimizer pre-step hook: clip the gradient norm."""
    if math.isfinite(largest):
        clip_grad_norm_(net.parameters(), largest)


def tune(
    net: nn.Module, samples: Samples, how: Tuning, checkpoint: Path | None = None, tell: Count = lambda *_: None
) -> RunningMean:
    """Train ``net`` in place; gives the mean of its weights. A checkpoint is resumed with bitwise the same result."""
    method, y, mean = how.method, samples.labels, RunningMean()
    if y.ndim == 2:
        method, y = with_rows(method, y), torch.zeros(len(y), dtype=torch.int64)
    pool = Pool(samples.images, y, store="uint8")
    training = begin(net, pool, method, how.descent, seed=how.seed)
    training.optimiser.register_step_pre_hook(partial(clip_gradient, net, how.clip))
    if checkpoint and checkpoint.is_file():
        mean.load_state_dict(load_checkpoint(checkpoint, training)["mean"])
    saved = time.monotonic()

    def stepped(training: Training, loss: Tensor) -> None:
        nonlocal saved
        refuse_non_finite(float(loss), training.step)
        if training.step > how.average_from * how.steps:
            mean.add(net.state_dict())
        if checkpoint and time.monotonic() - saved > SAVE_SECONDS:
            save_checkpoint(checkpoint, training, {"mean": mean.state_dict()})
            saved = time.monotonic()
        tell(training.step, how.steps)

    plan = Schedule(rounds=0, min_steps=0, total_steps=how.steps, batch_size=how.batch_size)
    watch = Watch(stepped=stepped)
    with batch_norm_frozen(net) if how.frozen else nullcontext():
        train(training, pool, method, plan, how.descent, seed=how.seed, watch=watch)
    return mean


def choose_families(probe: nn.Module, held: Samples) -> dict[str, Any]:
    """Measure how much the probe relies on colour: its loss of accuracy on grey held-out pictures.

    Decision 79 compares this with other signals.
    """
    some = fixed_subset("families", held, HELD)
    read = lambda x: labels.accuracy(predict(probe, x, batch_size=64), some.labels)
    colour, without = read(some.images), read(grey(as_float(some.images)))
    lost = (colour - without) / max(colour - labels.chance(some.labels), 1.0)
    return {"colour": lost <= LIMIT, "lost": lost, "probe": colour, "probe_on_grey": without, "n": len(some)}


def space_of(colour: bool) -> Space:
    """The wide space; without ``colour``, its members change only brightness or are left out."""
    spaces = [member() for member in MEMBERS.values()]
    if not colour:
        spaces = [luminance(s) if s.name in KEEP_COLOUR else s for s in spaces
                  if "colour" not in s.families or s.name in KEEP_COLOUR]  # fmt: skip
    return skip_mix(one_of(*spaces, name="wide" if colour else "wide without colour"))


def luminance(space: Space) -> Space:
    """Change brightness as ``space`` would on a grey picture, and keep the differences between channels."""

    def transform(x: Images, theta: Theta) -> Images:
        base = grey(x)
        return x + grey(space.apply(base, theta)) - base

    return replace(space, transform=transform, families=space.families - {"colour"}, name=f"luminance of {space.name}")


def grey(x: Tensor) -> Images:
    """Replace every channel by the mean of the channels."""
    return x.mean(1, keepdim=True).expand_as(x).contiguous()
