"""The contract of every space, also of those not yet written."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.spaces import SPACES, chain, one_of, skip_mix, view_random
from meada.spaces.space import Space, unpacked

PRIORS = [name for name in SPACES if name != "pixels"]
SHAPES = [(5, 3, 32, 32), (4, 1, 28, 28), (3, 3, 33, 47)]


@pytest.fixture(params=PRIORS)
def space(request) -> Space:
    return SPACES[request.param]()


def view(space, x, *, seed=0, step=0, candidate=0, index=None):
    rows = np.arange(len(x)) if index is None else index
    return space.view(x, view_random(seed, step, candidate, rows), step)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_views_are_images_of_the_same_shape_and_type(space, shape):
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(shape, dtype=dtype)
        y = view(space, x)
        assert y.shape == x.shape and y.dtype == dtype
        assert 0 <= float(y.min()) <= float(y.max()) <= 1
        assert not torch.equal(x, y)


def test_a_view_depends_on_its_key_alone(space):
    x = torch.rand(8, 3, 32, 32)
    whole = view(space, x, seed=3, step=7, candidate=1, index=np.arange(100, 108))
    rows = [6, 1, 4]
    some = view(space, x[rows], seed=3, step=7, candidate=1, index=np.array([106, 101, 104]))
    assert_close(whole[rows], some, rtol=0, atol=1e-12)
    chosen = view(space, x, seed=3, step=7, candidate=np.array([0, 1] * 4), index=np.arange(100, 108))
    assert_close(chosen[1::2], whole[1::2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("key", ["seed", "step", "candidate"])
def test_each_key_gives_other_views(space, key):
    x = torch.rand(8, 3, 32, 32)
    assert not torch.equal(view(space, x), view(space, x, **{key: 1}))


def test_samples_get_different_views(space):
    x = torch.rand(1, 3, 32, 32).expand(16, -1, -1, -1)
    views = view(space, x)
    assert len({tuple(v.flatten()[:200].tolist()) for v in views}) > 4


def test_the_callers_images_are_left_alone(space):
    x = torch.rand(4, 3, 32, 32)
    before = x.clone()
    view(space, x)
    assert torch.equal(x, before)


def test_the_callers_random_numbers_are_left_alone(space):
    state = torch.random.get_rng_state()
    view(space, torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert torch.equal(state, torch.random.get_rng_state())


def test_families_are_declared(space):
    assert space.families and space.name


def test_smooth_spaces_have_the_gradient_of_a_finite_difference(space):
    """In theta, for one direction, in float64."""
    if not space.smooth:
        pytest.skip(f"{space.name} has no derivative in its parameters")
    # smooth images with values well inside [0, 1]
    u = torch.linspace(0, 3, 12)
    x = 0.5 + 0.2 * torch.sin(u[:, None] + torch.arange(3).view(3, 1, 1) + u).expand(2, 3, 12, 12)
    theta = space.draw(view_random(0, 0, 0, np.arange(2)), x.shape)
    values, rebuild = unpacked(theta, x)
    leaves = [v.detach().requires_grad_() for v in values]
    weights = torch.randn(x.shape)
    total = lambda some: (weights * space.transform(x, rebuild(some))).sum()
    gradients = torch.autograd.grad(total(leaves), leaves)
    steps = [torch.randn_like(v) for v in values]
    slope = sum(float((g * s).sum()) for g, s in zip(gradients, steps, strict=True))
    h = 1e-6
    up, down = ([v + sign * h * s for v, s in zip(values, steps, strict=True)] for sign in (1, -1))
    assert slope == pytest.approx(float(total(up) - total(down)) / (2 * h), rel=1e-3, abs=1e-5)


def test_strength_makes_views_stronger():
    x = torch.rand(32, 3, 32, 32) * 0.5 + 0.25
    for name in PRIORS:
        weak, strong = (SPACES[name](strength=s) for s in (0.1, 1.0))
        far = [float((view(s, x) - x).abs().mean()) for s in (weak, strong)]
        assert far[0] < far[1], name


@pytest.mark.parametrize("name", PRIORS)
def test_bad_strength_is_refused(name):
    with pytest.raises(MeadaError, match="strength must be greater than 0, got 0.0"):
        SPACES[name](strength=0.0)


def test_a_channel_count_that_does_not_fit_is_refused():
    with pytest.raises(MeadaError, match="images must have 1 or 3 channels, got 4"):
        view(SPACES["wide"](), torch.rand(2, 4, 32, 32))


def test_pixels_have_no_prior():
    with pytest.raises(MeadaError, match="no prior"):
        view(SPACES["pixels"](), torch.rand(2, 3, 8, 8))


def test_a_space_that_returns_no_image_is_named():
    wave = SPACES["wave"]()
    bad_values = (lambda x, t: x * torch.nan, lambda x, t: x / 0, lambda x, t: x - torch.inf)
    faults = [(one, "NaN or infinity") for one in bad_values] + [
        (lambda x, t: x[..., 1:], "shape"),
        (lambda x, t: None, "NoneType"),
        (lambda x, t: x.numpy(), "ndarray"),
        (lambda x, t: (255 * x).to(torch.uint8), "uint8"),
        (lambda x, t: x.mul_(0.5), "in place"),
    ]
    for transform, what in faults:
        odd = Space(draw=wave.draw, transform=transform, families=frozenset(), name="odd")
        with pytest.raises(MeadaError, match=f"space 'odd', step 9.*{what}"):
            view(odd, torch.rand(2, 3, 8, 8), step=9)
        for outer in (chain(odd, wave, name="outer"), skip_mix(chain(wave, odd, name="outer"))):
            with pytest.raises(MeadaError, match=f"space 'outer', step 9.*space 'odd'.*{what}"):
                view(outer, torch.rand(2, 3, 8, 8), step=9)


def test_views_have_the_type_of_the_images_whatever_a_space_computes_in(space):
    x = torch.rand(4, 3, 64, 64)
    wide = Space(draw=space.draw, transform=lambda x, t: space.transform(x, t).double(), families=frozenset())
    assert view(wide, x.float()).dtype == torch.float32
    half = x.to(torch.bfloat16)
    assert_close(view(space, half), view(space, half.float()).to(torch.bfloat16), rtol=0, atol=0)


def test_no_images_give_no_views(space):
    assert view(space, torch.rand(0, 3, 8, 8)).shape == (0, 3, 8, 8)


@pytest.mark.parametrize("first", ["colour_curve", "warp", "random_convolution"])
def test_a_chain_has_the_gradient_of_a_finite_difference_in_its_first_parameters(first):
    """Through a colour curve, whose slope the gradient must have; few kinks, since the curve is linear in pieces."""
    second = SPACES["colour_curve"](strength=0.3, frequencies=3)
    head = SPACES[first](strength=0.2, **({"bank": 0} if first == "random_convolution" else {}))
    u = torch.linspace(0, 3, 24)
    x = 0.5 + 0.2 * torch.sin(u[:, None] + torch.arange(3).view(3, 1, 1) + u).expand(2, 3, 24, 24)
    space = chain(head, second)
    theta = space.draw(view_random(0, 0, 0, np.arange(2)), x.shape)
    inner, rebuild = unpacked(theta["parts"]["0"], x)
    total = lambda some: space.transform(x, {"parts": {**theta["parts"], "0": rebuild(some)}}).square().sum()
    leaves = [v.detach().requires_grad_() for v in inner]
    gradients = torch.autograd.grad(total(leaves), leaves)
    steps = [torch.randn_like(v) for v in inner]
    slope = sum(float((g * s).sum()) for g, s in zip(gradients, steps, strict=True))
    h = 1e-4
    up, down = (float(total([v + sign * h * s for v, s in zip(inner, steps, strict=True)])) for sign in (1, -1))
    assert slope == pytest.approx((up - down) / (2 * h), rel=0.05)


def test_combinators_take_spaces_that_fit_each_other():
    wave = SPACES["wave"]()
    grey, colour = (Space(draw=wave.draw, transform=wave.transform, families=frozenset(), channels=c)
                    for c in ((1,), (3,)))  # fmt: skip
    with pytest.raises(MeadaError, match="channels in common"):
        chain(grey, colour)


def test_combinators():
    a, b = SPACES["wave"](), SPACES["warp"]()
    x = torch.rand(64, 3, 16, 16)
    both = one_of(a, b)
    assert both.families == {"frequency", "geometry"} and both.smooth
    theta = both.draw(view_random(0, 0, 0, np.arange(64)), x.shape)
    assert 20 < len(theta["rows"]["0"]) < 44  # uniform choice
    assert not one_of(a, SPACES["operations"]()).smooth
    mixed = skip_mix(a)
    theta = mixed.draw(view_random(0, 0, 0, np.arange(64)), x.shape)
    assert 0 <= float(theta["mix"].min()) < 0.1 and 0.9 < float(theta["mix"].max()) <= 1
    m = theta["mix"].to(x).view(-1, 1, 1, 1)
    assert_close(mixed.apply(x, theta), (1 - m) * x + m * a.apply(x, theta["parts"]["0"]))
    theta = chain(a, b).draw(view_random(0, 0, 0, np.arange(64)), x.shape)
    assert_close(chain(a, b).apply(x, theta), b.apply(a.apply(x, theta["parts"]["0"]), theta["parts"]["1"]))
    with pytest.raises(MeadaError, match="at least one space"):
        one_of()
