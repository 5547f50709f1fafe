"""Time a training step, a prediction and a corruption on this machine, before training."""

import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

from torch import nn

from meada.corruptions import CORRUPTIONS, corrupt
from meada.evaluation import predict
from meada.methods.method import Method
from meada.robustify import training
from meada.robustify.families import space_of
from meada.robustify.plan import Costs
from meada.robustify.stages import Work
from meada.types import Images8

STEPS = 3  # timed, after one warm-up step
LOOKED, CORRUPTED = 64, 4  # pictures


def measure(work: Work) -> Costs:
    plan, task = work.plan, work.task
    net = work.fresh()
    hard = training.hardened(plan.side, space_of(colour=True), views=plan.views, hardness=plan.hardness)
    some = task.train.images[:LOOKED]
    predict(net, some[:2])
    return Costs(
        plain=_step(work, net, training.plain(plan.side)),
        hardened=_step(work, net, hard, frozen=plan.pretrained, average_from=0.0),
        look=_seconds(lambda: predict(net, some, batch_size=LOOKED)) / len(some),
        corrupt=corrupting(task.validation.images),
    )


def _step(work: Work, net: nn.Module, method: Method, **how: Any) -> float:
    """Median seconds of a few real training steps."""
    marks: list[float] = []
    plan = work.plan
    tuning = training.Tuning(method, plan.descent(1e-9), STEPS + 1, plan.batch_size, seed=0, **how)
    training.tune(net, work.task.train, tuning, tell=lambda done, n: marks.append(time.perf_counter()))
    return median(after - before for before, after in pairwise(marks))


def corrupting(images: Images8) -> float:
    """Seconds to corrupt one picture, averaged over the fifteen corruptions."""
    few = images[:CORRUPTED]

    def all_of_them() -> None:
        for name in CORRUPTIONS:
            corrupt(few, name, 3)

    all_of_them()  # warm-up: filters and maps are cached
    return _seconds(all_of_them) / (len(few) * len(CORRUPTIONS))


def _seconds(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since
