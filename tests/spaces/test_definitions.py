"""Each space against its definition, computed another way."""

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import correlate
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.images import tones, warps
from meada.spaces import SPACES, view_random
from meada.spaces.operations import OPERATIONS


def drawn(space, x, candidate=0):
    theta = space.draw(view_random(0, 0, candidate, np.arange(len(x))), x.shape)
    return theta, space.transform(x, theta)


@pytest.mark.parametrize("bank", [0, 2])
def test_random_convolution_is_a_convolution_about_mid_grey(bank):
    x = torch.rand(6, 3, 9, 11)
    theta, y = drawn(SPACES["random_convolution"](bank=bank), x)
    for i in range(6):
        k = int(theta["size"][i])
        cut = slice((7 - k) // 2, (7 + k) // 2)
        kernel = theta["kernel"][i][..., cut, cut].double().numpy()
        for out in range(3):
            want = sum(correlate(x[i, c].numpy() - 0.5, kernel[out, c], mode="constant") for c in range(3))
            assert_close(y[i, out].numpy(), want + 0.5)
    outside = theta["kernel"].double()
    outside[:, :, :, 3, 3] = 0
    assert not outside[theta["size"] == 1].any()


def test_random_convolution_keeps_the_variance_of_white_noise():
    x = torch.rand(2000, 1, 9, 9)
    theta, y = drawn(SPACES["random_convolution"](bank=0), x)
    middle = y[:, :, 4, 4] - 0.5  # away from the border
    assert float(middle.var() / (x - 0.5).var()) == pytest.approx(1, rel=0.1)


def test_a_bank_has_that_many_kernels_per_candidate():
    x = torch.rand(200, 3, 8, 8)
    theta, _ = drawn(SPACES["random_convolution"](bank=4), x)
    assert len(theta["kernel"].flatten(1).unique(dim=0)) == 4
    theta, _ = drawn(SPACES["random_convolution"](bank=0), x)
    assert len(theta["kernel"].flatten(1).unique(dim=0)) == 200


def test_samples_of_one_kernel_are_drawn_once_and_alike():
    random = view_random(0, 3, 1, np.arange(50)).bank("kernel", 8)
    some, group = random.distinct()
    assert len(some) == len(np.unique(random.own.state[0])) <= 8
    assert some.normal("weights", 3, 3)[group].equal(random.normal("weights", 3, 3))


def test_colour_curve_is_the_sum_of_sines():
    x = (torch.arange(256.0) / 255).view(1, 1, 16, 16).expand(3, 2, 16, 16).double()
    theta, y = drawn(SPACES["colour_curve"](), x)
    f = torch.arange(1.0, 21.0)
    a = theta["coefficients"].double()[:, :, :, None, None]
    want = x + (a * torch.sin(math.pi * f.view(20, 1, 1) * x[:, :, None])).sum(2)
    assert_close(y, want, rtol=0, atol=1e-6)
    between = torch.rand(3, 2, 8, 8)
    want = between + (a * torch.sin(math.pi * f.view(20, 1, 1) * between[:, :, None])).sum(2)
    assert_close(SPACES["colour_curve"]().transform(between, theta), want, rtol=0, atol=2e-3)


def test_filter_is_a_correlation_with_repeated_borders():
    x = torch.rand(4, 3, 7, 9)
    theta, y = drawn(SPACES["filter"](), x)
    for i in range(4):
        for c in range(3):
            want = correlate(x[i, c].numpy(), theta["kernel"][i].double().numpy(), mode="nearest")
            assert_close(y[i, c].numpy(), want)


def test_wave_is_one_planar_wave_per_channel():
    x = torch.full((2, 3, 16, 24), 0.5)
    theta, y = drawn(SPACES["wave"](), x)
    a, f, phi, psi = (theta[k][1, 2].double() for k in ("amplitude", "frequency", "angle", "phase"))
    want = 0.5 + a * torch.sin(2 * math.pi * f * (5 * phi.sin() + 7 * phi.cos()) + psi)
    assert float(y[1, 2, 5, 7]) == pytest.approx(float(want), abs=1e-6)
    assert 1 / 24 <= float(theta["frequency"].min()) <= float(theta["frequency"].max()) <= 0.5


def test_warp_leaves_the_border_and_has_the_size_it_says():
    x = torch.rand(400, 1, 16, 16)
    space = SPACES["warp"]()
    theta = space.draw(view_random(0, 0, 0, np.arange(400)), x.shape)
    u = (torch.arange(64.0) + 0.5) / 64
    sines = torch.sin(math.pi * torch.arange(1.0, 7.0)[:, None] * u)
    shift = sines.T @ theta["coefficients"].double() @ sines
    size = shift.square().mean((1, 2, 3)).sqrt()
    assert float(size.mean()) == pytest.approx(0.02, rel=0.15)  # uniform in 0..0.04
    ramp = torch.linspace(0, 1, 32).expand(1, 1, 32, 32)
    theta = {"coefficients": torch.zeros(1, 2, 6, 6)}
    assert_close(space.transform(ramp, theta), ramp)
    theta["coefficients"][0, 0, 0, 0] = 1 / 32  # one pixel to the right in the middle, in x alone
    moved = space.transform(ramp, theta)
    assert float(moved[0, 0, 16, 16] - ramp[0, 0, 16, 16]) == pytest.approx(1 / 31, rel=0.05)


def test_deep_is_wide_several_times_in_a_row():
    x = torch.rand(60, 3, 16, 16)
    theta, y = drawn(SPACES["deep"](), x)
    for part in theta["parts"].values():
        x = SPACES["wide"]().apply(x, part)
    assert len(theta["parts"]) == 3 and y.equal(x)
    mixes = [part["mix"] for part in theta["parts"].values()]
    assert not mixes[0].equal(mixes[1]) and not mixes[1].equal(mixes[2])
    assert SPACES["deep"]().families == SPACES["wide"]().families


def test_operations_stay_within_their_limits():
    x = torch.rand(300, 3, 16, 16)
    theta, y = drawn(SPACES["operations"](strength=0.5), x)
    assert float(theta["strength"].abs().max()) <= 0.5
    assert set(theta["operation"].tolist()) == set(range(13))


def test_bad_settings_are_refused():
    with pytest.raises(MeadaError, match="sizes must be odd"):
        SPACES["random_convolution"](sizes=(2,))
    with pytest.raises(MeadaError, match="bank must be 0 or more, got -1"):
        SPACES["random_convolution"](bank=-1)
    with pytest.raises(MeadaError, match="frequencies must be 1 or more, got 0"):
        SPACES["colour_curve"](frequencies=0)
    with pytest.raises(MeadaError, match="modes must be 1 or more, got 0"):
        SPACES["warp"](modes=0)
    with pytest.raises(MeadaError, match="depth must be 1 or more, got 0"):
        SPACES["deep"](depth=0)
    with pytest.raises(MeadaError, match="unknown member 'wawe': did you mean 'wave'"):
        SPACES["wide"](without=["wawe"])
    assert "colour" not in SPACES["wide"](without=["colour_curve", "random_convolution", "operations"]).families


ONE_BY_ONE = {  # each on the pixels themselves, without tables and without the others
    "shear_x": lambda v, s: warps.shear_x(v, 0.5 * s, smooth=True),
    "shear_y": lambda v, s: warps.shear_y(v, 0.5 * s, smooth=True),
    "translate_x": lambda v, s: warps.translate_x(v, s * v.shape[3] / 3, smooth=True),
    "translate_y": lambda v, s: warps.translate_y(v, s * v.shape[2] / 3, smooth=True),
    "rotate": lambda v, s: warps.rotate(v, 30 * s, smooth=True),
    "brightness": lambda v, s: tones.brightness(v, 1 + 0.9 * s),
    "colour": lambda v, s: tones.colour(v, 1 + 0.9 * s),
    "contrast": lambda v, s: tones.contrast(v, 1 + 0.9 * s),
    "sharpness": lambda v, s: tones.sharpness(v, 1 + 0.9 * s),
    "posterise": lambda v, s: tones.posterise(v, (8 - 6 * s.abs()).round()),
    "solarise": lambda v, s: tones.solarise(v, 256 * (1 - s.abs())),
    "autocontrast": lambda v, s: tones.autocontrast(v),
    "equalise": lambda v, s: tones.equalise(v),
}


@pytest.mark.parametrize("channels", [1, 3])
def test_operations_in_one_go_are_the_operations_one_by_one(channels):
    """Moves and tables of all images are made together; each image is as if it were alone, to the bit."""
    assert [*ONE_BY_ONE] == [*OPERATIONS]
    n = 4 * len(OPERATIONS)
    x = torch.rand(n, channels, 17, 12, generator=torch.Generator().manual_seed(0))
    which, strength = torch.arange(n) % len(OPERATIONS), torch.linspace(-1, 1, n)
    made = SPACES["operations"]().apply(x, {"operation": which, "strength": strength})
    for i, operation in enumerate([*ONE_BY_ONE.values()] * 4):
        alone = operation(x[i : i + 1].mul(255).round(), strength[i : i + 1]) / 255
        assert made[i : i + 1].equal(alone)
