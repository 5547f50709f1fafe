"""The timed functions: both phases of Algorithm 1 and scoring, for the published loop and for meada."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from io import TextIOBase
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks import published
from benchmarks.measure import Side, Work, work
from benchmarks.pillow_images import Pictures
from benchmarks.subjects import Subject
from meada.algorithm import begin
from meada.evaluation import evaluate
from meada.methods.method import Context
from meada.minimise import minimise
from meada.pool import Pool, as_float
from meada.streams import stream
from meada.types import Images

SEED = 0


@dataclass(frozen=True)
class Space:
    """The folders of a case: the log of the published side, and pools."""

    folder: Path
    log: TextIOBase


@contextmanager
def space() -> Iterator[Space]:
    with TemporaryDirectory(prefix="meada-bench-") as name:
        folder = Path(name)
        # A minimisation step seeds torch's own generator; the caller's is left alone.
        with open(folder / "log.txt", "w", encoding="utf-8") as log, torch.random.fork_rng():
            yield Space(folder, log)


def published_ascent(where: Space, subject: Subject, n: int) -> Side:
    net, images, labels = subject.published(), held(subject, n), subject.labels(n)
    return work(published.maximise, net, images, labels, subject.ascent, where.log)


def meada_ascent(where: Space, subject: Subject, n: int) -> Side:
    """The ascent as in a run: block by block, into a file in the run's folder."""
    method, images, labels = subject.method, subject.images(n), subject.labels(n)
    store, numbers = subject.recipe.pool.store, count()
    context = Context(seed=SEED, pool_size=n, embedding=subject.embedding)

    def side() -> Work:
        folder = where.folder / f"pool-{id(method)}-{next(numbers)}"
        pool = Pool(images, labels, store=store, folder=folder)
        return lambda: method.grow(subject.net, pool, context)

    return side


def published_descent(where: Space, subject: Subject, n: int, steps: int) -> Side:
    net, images, labels = subject.published(), held(subject, n), subject.labels(n)
    optimiser = published.optimiser(net, subject.recipe.descent)
    generator = stream("bench", "order")

    def side() -> Work:
        order = torch.randperm(n, generator=generator).split(subject.batch)
        these = [order[i % (n // subject.batch)] for i in range(steps)]
        return lambda: published.minimise(net, optimiser, images, labels, these, where.log)

    return side


def meada_descent(subject: Subject, n: int, steps: int) -> Side:
    """Minimisation steps on a pool that has grown once."""
    method, descent, pool = subject.method, subject.recipe.descent, subject.pool(n)
    pool.append(as_float(subject.images(n)), parents=torch.arange(n))
    training = begin(deepcopy(subject.net), pool, method, descent, seed=SEED)
    context = Context(seed=SEED, total_steps=1_000_000)

    def descend() -> None:
        until = training.step + steps
        for _ in minimise(
            training, pool, method.loss, descent, context,
            augment=method.augment, until=until, batch_size=subject.batch,
        ):  # fmt: skip
            pass

    return work(descend)


def published_scores(subject: Subject, n: int) -> Side:
    return work(published.evaluate, subject.published(), held(subject, n), subject.labels(n))


def meada_scores(subject: Subject, n: int) -> Side:
    return work(evaluate, subject.net, {"target": (subject.images(n), subject.labels(n))})


def held(subject: Subject, n: int) -> Images | Pictures:
    """The data as in the published code: float arrays or Pillow pictures."""
    if not subject.pictures:
        return as_float(subject.images(n))
    net = subject.published()
    return Pictures.of(subject.images(n), net.mean, net.std)
