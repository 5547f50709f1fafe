"""Test splits that ``meada corrupt`` knows by name, as the stacks of images it takes."""

from collections.abc import Callable
from functools import partial

from meada.corruptions.sources import Stack
from meada.datasets.cifar import CIFAR10, CIFAR100, Published, read_test


def _stack(published: Published) -> Stack:
    samples = read_test(published)
    images = samples.images.permute(0, 2, 3, 1).contiguous().numpy()
    return Stack(published.name, images, samples.labels.numpy())


TEST_SPLITS: dict[str, Callable[[], Stack]] = {
    published.name: partial(_stack, published) for published in (CIFAR10, CIFAR100)
}
