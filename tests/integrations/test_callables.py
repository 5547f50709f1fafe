"""Augmentations of other libraries as spaces: repeatable by seed, and drawn from by hard_views."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError
from meada.integrations import space_from
from meada.integrations.callables import _global_generators_kept

X, Y = torch.rand(6, 3, 12, 12), torch.arange(6) % 4


def kornia():
    K = pytest.importorskip("kornia.augmentation", reason="kornia is not installed")
    return K.AugmentationSequential(K.ColorJitter(0.4, 0.4, 0.4, p=1.0), K.RandomAffine(20.0, p=1.0))


def albumentations():
    A = pytest.importorskip("albumentations", reason="albumentations is not installed")
    return A.Compose([A.RandomBrightnessContrast(p=1.0), A.HorizontalFlip(p=0.5)])


def function():
    return lambda image: image * torch.rand(()) * random.random() * np.random.rand()


@pytest.mark.parametrize("make", [kornia, albumentations, function])
def test_views_repeat_by_seed_and_do_not_depend_on_the_batch(make):
    space = space_from(make(), families={"colour"})
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 4))
    views = lambda seed, n=6: meada.hard_views(net, X[:n], Y[:n], space=space, k=3, seed=seed)
    first = views(1)
    assert first.shape == X.shape and 0 <= first.min() <= first.max() <= 1 and not torch.equal(first, X)
    assert torch.equal(first, views(1)) and not torch.equal(first, views(2))
    assert torch.equal(first[:2], views(1, 2))


def test_the_callers_random_numbers_are_left_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    with _global_generators_kept():  # alone, since the checks of types in tests draw from random themselves
        function()(X)
    assert torch.equal(before[0], torch.get_rng_state()) and random.getstate() == before[2]
    assert (np.random.get_state()[1] == before[1]).all()


def test_what_is_no_view_is_refused():
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 4))
    for augment, sentence in [(lambda x: x[:, :3], "of shape"), (lambda x: None, "NoneType")]:
        with pytest.raises(MeadaError, match=sentence):
            meada.hard_views(net, X, Y, space=space_from(augment), seed=0)
    with pytest.raises(MeadaError, match="augment must be"):
        space_from(nn.Flatten)
