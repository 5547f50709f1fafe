"""Families of validation shifts: keyed by sample, in range, strong enough, left out where trained on."""

from typing import get_args

import pytest
import torch

from meada.errors import MeadaError
from meada.evaluation.validation_shifts import (
    SHIFTS,
    cross_score,
    shifted,
    shifted_once,
    two_folds,
    validation_families,
)  # fmt: skip
from meada.evaluation.validation_shifts import filters as codes
from meada.methods import METHODS
from meada.runs.recipe import load_recipe, method_of
from meada.types import Family

EVERY = get_args(Family)
WIDE = frozenset({"tone", "colour", "geometry", "filter", "edges", "blur", "frequency"})
NO_COLOUR = {"colour/cast", "colour/hue"}  # do nothing to an image of one channel


def test_every_family_has_several_operations():
    assert tuple(SHIFTS) == EVERY and all(len(shifts) >= 3 for shifts in SHIFTS.values())


@pytest.mark.parametrize("shape", [(4, 3, 32, 32), (3, 1, 28, 31), (2, 3, 8, 8), (2, 3, 131, 90)])
def test_shifts_repeat_stay_in_range_and_change_every_image(shape):
    x = torch.rand(shape)
    one, two = shifted(x, EVERY), shifted(x, EVERY)
    assert len(one) == sum(map(len, SHIFTS.values()))
    for name, images in one.items():
        assert torch.equal(images, two[name]) and images.shape == x.shape and images.dtype == x.dtype
        assert images.min() >= 0 and images.max() <= 1
        changed = (images - x).abs().flatten(1).amax(1) > 0.05
        assert changed.all() or (shape[1] == 1 and name in NO_COLOUR), name


def test_another_seed_gives_other_pixels_but_for_what_is_not_random():
    x = torch.rand(2, 3, 32, 32)
    one, two = shifted(x, EVERY, seed=0), shifted(x, EVERY, seed=1)
    alike = {name for name in one if torch.equal(one[name], two[name])}
    assert alike == {
        "tone/invert",
        "filter/emboss",
        "edges/sketch",
        "edges/contour",
        "edges/etching",
        "blur/median",
        "frequency/flatten",
    }


def test_an_image_is_shifted_alike_in_any_batch():
    x, index = torch.rand(6, 3, 32, 32), torch.tensor([9, 4, 7, 0, 12, 5])
    whole, part = (shifted(x[rows], EVERY, index=index[rows]) for rows in (slice(None), slice(3, 5)))
    once, some = (shifted_once(x[rows], EVERY, index=index[rows]) for rows in (slice(None), slice(3, 5)))
    for name in whole:
        assert torch.allclose(whole[name][3:5], part[name], rtol=0, atol=1e-12), name
    for name in once:
        assert torch.allclose(once[name][3:5], some[name], rtol=0, atol=1e-12), name


def test_large_images_go_through_in_blocks(monkeypatch):
    x = torch.rand(5, 3, 16, 16)
    whole = shifted(x, EVERY)
    monkeypatch.setattr("meada.evaluation.validation_shifts.PIXELS", 2 * x[0].numel())
    for name, images in shifted(x, EVERY).items():
        assert torch.allclose(images, whole[name], rtol=0, atol=1e-12), name


def test_each_image_gets_one_operation_of_each_family():
    x = torch.rand(40, 3, 16, 16)
    each, once = shifted(x, EVERY), shifted_once(x, EVERY)
    assert tuple(once) == EVERY
    for family, images in once.items():
        same = torch.stack([
            (images - v).abs().flatten(1).amax(1) < 1e-12 for k, v in each.items() if k.startswith(family + "/")
        ])  # fmt: skip
        assert (same.sum(0) == 1).all() and (same.sum(1) > 0).all(), family  # one each, and all are used


def test_what_is_left_for_a_space_that_trains_on_nearly_everything():
    assert validation_families(WIDE) == ("occlusion", "noise", "compression", "weather")
    assert validation_families(()) == EVERY


@pytest.mark.parametrize("name", METHODS)
def test_three_families_or_more_are_left_for_every_method(name):
    assert len(validation_families(METHODS[name]().families)) >= 3


@pytest.mark.parametrize(
    ("recipe", "trained"),
    [
        ("cifar10c-small/erm", {"geometry"}),  # flipping and cropping come from the recipe's augment
        ("cifar10c-small/augmix", {"tone", "geometry"}),
        ("digits/erm", set()),
        ("digits/noise", {"noise"}),
    ],
)
def test_what_a_recipe_trains_on(recipe, trained):
    assert method_of(load_recipe(recipe)).families == trained


def test_two_methods_in_one_run_train_on_what_both_train_on():
    changes = ["loss.name=cutout", "augment.name=flip_crop"]
    assert method_of(load_recipe("digits/noise", changes)).families == {"noise", "occlusion", "geometry"}
    assert "occlusion" in METHODS["autoaugment"](cutout=0.5).families
    assert "occlusion" not in METHODS["autoaugment"]().families


def test_an_unknown_family_gives_the_nearest():
    with pytest.raises(MeadaError, match="got 'color': did you mean 'colour'"):
        validation_families({"color"})
    with pytest.raises(MeadaError, match="got 'nois'"):
        shifted(torch.rand(1, 3, 8, 8), ["nois"])
    with pytest.raises(MeadaError, match=r"one integer per image \(1\), got shape .2,. of int64"):
        shifted(torch.rand(1, 3, 8, 8), ["tone"], index=[0, 1])


def test_two_folds_never_validate_on_what_they_train_on():
    folds = two_folds()
    for train, validate in folds:
        assert not train & validate and train | validate == set(EVERY) and min(len(train), len(validate)) >= 5
    assert folds[0] == folds[1][::-1]
    with pytest.raises(MeadaError, match="must be of both halves, got colour, tone"):
        two_folds(["tone", "colour"])


def test_the_cross_score_is_the_mean_over_families_of_networks_that_did_not_train_on_them():
    calls = []

    def accuracy(train, validate):
        calls.append((train, validate))
        return {family: float(EVERY.index(family)) for family in validate}

    assert cross_score(accuracy) == pytest.approx(5.0)  # the mean of 0 to 10
    assert tuple(calls) == two_folds()
    with pytest.raises(MeadaError, match="scores must be of blur, got tone"):
        cross_score(lambda train, validate: {"tone": 1.0}, families=["tone", "blur"])


def test_a_sobel_map_by_hand():
    x = torch.zeros(1, 3, 8, 8)
    x[..., 4:] = 0.5  # a step between columns 3 and 4: slope 4 * 0.5 on both sides, the steepest
    edges = shifted(x, ["edges"])
    expected = torch.zeros(8, 8)
    expected[:, 3:5] = 1
    assert torch.allclose(edges["edges/contour"][0, 0], expected)
    assert torch.allclose(edges["edges/sketch"][0, 2], 1 - expected)


def test_both_codes_give_the_image_back_if_nothing_is_left_out():
    x = torch.rand(2, 3, 24, 40)
    basis = codes._cosines(codes.BLOCK)
    assert torch.allclose(basis @ basis.T, torch.eye(codes.BLOCK).double())
    assert torch.equal(codes._whole(codes._in_blocks(x, 16), x), x)
    low, details = codes._haar(x)
    assert torch.allclose(codes._unhaar(low, details), x)
    assert torch.allclose(low.square().sum() + details.square().sum(), x.square().sum())  # orthonormal


def test_the_largest_wavelets_are_kept_and_the_others_are_gone():
    clean = torch.zeros(1, 1, 32, 32)
    clean[..., 5:] = 0.8  # an edge inside a pair of pixels
    x = clean + 0.02 * torch.rand(1, 1, 32, 32)
    coded = shifted(x, ["compression"])["compression/few_wavelets"]
    assert (coded - x).abs().max() < 0.03  # the edge is there
    assert (codes._haar(coded)[1].abs() > 1e-9).double().mean() < 0.1  # the noise is not
