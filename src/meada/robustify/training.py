"""Fine-tune a network for a fixed number of steps, with exact resume and a running mean of its weights."""

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from meada import algorithm
from meada.averaging import RunningMean
from meada.datasets import Samples
from meada.images.augment import flip_and_crop
from meada.machine.terminal import Count
from meada.maximise import tilted_views
from meada.methods.method import Context, Method
from meada.methods.parts.descent import Descent
from meada.minimise import Training, refuse_non_finite
from meada.networks.freezing import batch_norm_frozen
from meada.objective import Objective
from meada.pool import Pool
from meada.robustify import labels
from meada.runs.checkpoint import load_checkpoint, save_checkpoint
from meada.spaces import Space, find_space
from meada.types import Batch, Scalar

SAVE_SECONDS = 20.0  # between checkpoints


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


def hardened(side: int, space: Space | str, *, views: int, hardness: float) -> Method:
    """Plain fine-tuning plus cross-entropy on a hard view of each picture."""
    loss = partial(clean_and_view, space=space, views=views, hardness=hardness)
    return Method(loss=loss, augment=plain(side).augment)


def clean_and_view(
    net: nn.Module, batch: Batch, context: Context, *, space: Space | str, views: int, hardness: float
) -> Scalar:
    """CE(clean) + CE(view), where the view is a tilted draw from ``space``."""
    view = tilted_views(
        net, batch.x, batch.y, find_space(space), Objective(beta=1.0, gamma=0.0), k=views, hardness=hardness,
        seed=context.seed, step=context.step, rows=np.asarray(batch.sample_index),
    )  # fmt: skip
    return 2 * labels.loss(net(torch.cat([batch.x, view])), torch.cat([batch.y, batch.y]))


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
    training = algorithm.begin(net, pool, method, how.descent, seed=how.seed)
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

    plan = algorithm.Plan(rounds=0, min_steps=0, total_steps=how.steps, batch_size=how.batch_size)
    watch = algorithm.Watch(stepped=stepped)
    with batch_norm_frozen(net) if how.frozen else nullcontext():
        algorithm.train(training, pool, method, plan, how.descent, seed=how.seed, watch=watch)
    return mean
