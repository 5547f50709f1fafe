"""Share of pixels in which this package and the published loop agree, in float32 and in float64.

The kink of a ReLU turns a rounding into another gradient, and a deep network has several hundred
thousand of them at every step. So three numbers: both sides as they run; both in float64, where
only a difference of the maths is left; and the published loop against itself in the other memory
layout, which is the same arithmetic in another order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from benchmarks import published
from benchmarks.phases import SEED, held, space
from benchmarks.subjects import Subject, at_size
from meada.methods.method import Context
from meada.types import Images

WITHIN = 1e-5


def agreement(subject: Subject, n: int, exact: int, within: float = WITHIN) -> dict[str, float]:
    """Share of equal pixels on ``n`` images and, in float64, on the first ``exact`` of them."""
    subject = at_size(subject, n)
    theirs = perturbed_by_published(subject, n)
    again = perturbed_by_published(subject, n, torch.channels_last)
    found = {
        "agreement": alike(theirs, perturbed_by_meada(subject, n), within),
        "published_with_itself": alike(theirs, again, within),
    }
    with _double():
        few = replace(at_size(subject, exact))  # a copy builds its network again, in float64
        exactly = alike(perturbed_by_published(few, exact), perturbed_by_meada(few, exact), within)
    return {**found, "agreement_float64": exactly}


def perturbed_by_published(subject: Subject, n: int, layout: torch.memory_format = torch.contiguous_format) -> Images:
    net = subject.published()
    net.whole.to(memory_format=layout)  # type: ignore[call-overload]
    with space() as where:
        born = published.maximise(net, held(subject, n), subject.labels(n), subject.ascent, where.log)
    return torch.cat(born)


def perturbed_by_meada(subject: Subject, n: int) -> Images:
    """Perturbed images of this package, not rounded to 8 bits."""
    pool = subject.pool(n, store="float32")
    context = Context(seed=SEED, pool_size=n, embedding=subject.embedding)
    subject.method.grow(subject.net, pool, context)
    return pool.images(torch.arange(n, 2 * n))


def alike(one: Images, two: Images, within: float = WITHIN) -> float:
    """
    >>> x = torch.zeros(1, 1, 1, 2)
    >>> alike(x, x + torch.tensor([0.9e-5, 1.1e-5]))
    0.5
    """
    return float(((one - two).abs() <= within).double().mean())


@contextmanager
def _double() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
