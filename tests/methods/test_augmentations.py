"""The methods of Table 3 that change a batch: what each does to images and labels."""

import inspect
import math
from importlib import import_module  # the package has functions by these names

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.images.augment import flip_and_crop
from meada.images.random_ops import apply_each, beta
from meada.methods import METHODS
from meada.methods.advtrain import advtrain, approach
from meada.methods.augmix import OPERATIONS as CHAIN
from meada.methods.augmix import augmix, mixed
from meada.methods.autoaugment import CIFAR10, OPERATIONS, autoaugment, varied
from meada.methods.cutmix import cutmix, hole
from meada.methods.cutout import cutout, hide
from meada.methods.meada import meada
from meada.methods.method import Context, Method, Parts
from meada.methods.mixup import mixup
from meada.methods.parts.compose import FlipCrop, augmented, compose
from meada.methods.parts.descent import Descent
from meada.methods.parts.views import divergence
from meada.minimise import Training, minimise
from meada.pool import Pool
from meada.streams import stream
from meada.types import Batch


class Seen(nn.Module):
    """Remembers what it was shown; scores are the means of five strips of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.x: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.x.append(x.detach().clone())
        return self.weight * torch.stack([s.mean((1, 2, 3)) for s in x.tensor_split(5, dim=3)], 1)


def some(n: int = 6, side: int = 32) -> Batch:
    return Batch(torch.rand(n, 3, side, side), torch.arange(n) % 5)


def at(seed: int) -> Context:
    return Context(generator=torch.Generator().manual_seed(seed))


# --- mixup and cutmix


def test_mixup_blends_images_and_losses_alike():
    net, batch = Seen(), some()
    loss = mixup().loss(net, batch, at(4))
    (x,) = net.x
    flat, mixture = batch.x.flatten(1), x.flatten(1)
    # every mixture lies on the line of its own image and one other, with the same share
    shares = []
    for i in range(6):
        pairs = torch.stack([flat[i].expand(6, -1), flat], 2)
        fits = torch.linalg.lstsq(pairs, mixture[i].expand(6, -1)[..., None])
        gaps = (pairs @ fits.solution - mixture[i][None, :, None]).norm(dim=(1, 2))
        j = int(gaps.argmin())
        share = 1.0 if i == j else float(fits.solution[j, 0])
        shares.append((i, j, share))
        assert gaps[j] < 1e-9
    share = next(s for i, j, s in shares if i != j)
    assert all(i == j or abs(s - share) < 1e-9 for i, j, s in shares)
    other = batch.y[[j for _, j, _ in shares]]
    logits = net(x)
    each = share * cross_entropy(logits, batch.y, reduction="none")
    each += (1 - share) * cross_entropy(logits, other, reduction="none")
    assert_close(loss, each.mean())


def test_shares_follow_the_beta_distribution():
    generator = torch.Generator().manual_seed(0)
    drawn = torch.tensor([beta(0.3, generator) for _ in range(3000)])
    assert abs(drawn.mean() - 0.5) < 0.03
    assert abs(drawn.var() - 1 / (4 * (2 * 0.3 + 1))) < 0.01  # variance of Beta(a, a)


def test_cutmix_pastes_one_rectangle_and_weighs_labels_by_its_area():
    net, batch = Seen(), some(n=2)
    for seed in range(40):
        net.x.clear()
        loss = cutmix(probability=1.0).loss(net, batch, at(seed))
        (x,) = net.x
        pasted = (x[0] != batch.x[0]).all(0)
        assert torch.equal(x[0][:, pasted], batch.x[1][:, pasted])
        rows, columns = pasted.any(1), pasted.any(0)
        assert torch.equal(pasted, rows[:, None] & columns)  # a rectangle
        if pasted.any():
            area = pasted.double().mean()
            logits = net(x)
            mixture = (1 - area) * cross_entropy(logits, batch.y)
            mixture = mixture + area * cross_entropy(logits, batch.y.flip(0))
            assert_close(loss, mixture)


def test_cutmix_leaves_as_many_steps_alone_as_it_says():
    net, batch = Seen(), some(n=2)
    for seed in range(400):
        cutmix(probability=0.25).loss(net, batch, at(seed))
    untouched = sum(torch.equal(x, batch.x) for x in net.x)
    # a quarter is pasted, of which half has itself as partner
    assert abs(untouched / 400 - (0.75 + 0.25 * 0.5)) < 0.06


def test_a_hole_has_the_size_of_its_share():
    assert hole(16, 32, 0.0) == slice(0, 32) and hole(5, 32, 1.0) == slice(5, 5)
    rows = hole(16, 32, 1 - 0.25)
    assert rows.stop - rows.start == 32 * math.sqrt(0.25)


# --- cutout


def test_cutout_hides_one_square_about_any_pixel():
    x = hide(torch.zeros(4000, 1, 32, 32), torch.Generator(), 0.5)
    hidden = x[:, 0] > 0
    rows, columns = hidden.any(2), hidden.any(1)
    assert torch.equal(hidden, rows[:, :, None] & columns[:, None])
    assert rows.sum(1).max() == columns.sum(1).max() == 16
    assert rows.sum(1).min() == 8  # half of it beyond the edge
    # the first row is hidden by the squares about rows 0 to 8: 9 of 32
    assert abs(rows[:, 0].double().mean() - 9 / 32) < 0.02
    assert x.unique().tolist() == [0.0, 0.5]


# --- autoaugment


def test_the_policy_has_25_pairs_of_known_operations():
    assert len(CIFAR10) == 25
    for pair in CIFAR10:
        for name, probability, magnitude in pair:
            assert name in OPERATIONS and 0 <= probability <= 1 and 0 <= magnitude <= 9


# Table 7 of Cubuk et al. (2019) as its authors' code lists it: operation, probability, magnitude.
# Operations without a strength have a magnitude there too, which does nothing.
PUBLISHED = """
invert .1 7 contrast .2 6 | rotate .7 2 translate_x .3 9 | sharpness .8 1 sharpness .9 3
shear_y .5 8 translate_y .7 9 | autocontrast .5 8 equalise .9 2 | shear_y .2 7 posterise .3 7
colour .4 3 brightness .6 7 | sharpness .3 9 brightness .7 9 | equalise .6 5 equalise .5 1
contrast .6 7 sharpness .6 5 | colour .7 7 translate_x .5 8 | equalise .3 7 autocontrast .4 8
translate_y .4 3 sharpness .2 6 | brightness .9 6 colour .2 8 | solarise .5 2 invert .0 3
equalise .2 0 autocontrast .6 0 | equalise .2 8 equalise .6 4 | colour .9 9 equalise .6 6
autocontrast .8 4 solarise .2 8 | brightness .1 3 colour .7 0 | solarise .4 5 autocontrast .9 3
translate_y .9 9 translate_y .7 9 | autocontrast .9 2 solarise .8 3 | equalise .8 8 invert .1 3
translate_y .7 9 autocontrast .9 1
"""


def test_the_policy_is_the_published_one():
    words = PUBLISHED.replace("|", " ").split()
    steps = [(name, float(p), int(m)) for name, p, m in zip(*[iter(words)] * 3, strict=True)]
    without = {"invert", "equalise", "autocontrast"}
    given = [(name, p, 0 if name in without else m) for name, p, m in steps]
    assert [step for pair in CIFAR10 for step in pair] == given and len(given) == 50


@pytest.mark.parametrize("magnitude", [3, 9])
def test_one_operation_of_a_policy_against_pillow(monkeypatch, magnitude):
    levels = torch.randint(256, (30, 3, 16, 16), dtype=torch.uint8)
    pictures = [Image.fromarray(one.permute(1, 2, 0).numpy()) for one in levels]
    strength = magnitude / 9

    def made(name):
        policy = (((name, 1.0, magnitude), ("invert", 0.0, 0)),)
        monkeypatch.setattr(import_module("meada.methods.autoaugment"), "CIFAR10", policy)
        return (255 * varied(levels / 255, torch.Generator().manual_seed(0))).round().to(torch.uint8)

    for one, picture in zip(made("solarise"), pictures, strict=True):
        expected = ImageOps.solarize(picture, 255 - 255 * strength)
        assert one.permute(1, 2, 0).numpy().tobytes() == expected.tobytes()
    signs = []
    for one, picture in zip(made("brightness"), pictures, strict=True):
        either = [np.asarray(ImageEnhance.Brightness(picture).enhance(1 + s * 0.9 * strength), int) for s in (-1, 1)]
        gaps = [abs(one.permute(1, 2, 0).numpy() - expected).max() for expected in either]
        assert min(gaps) <= 1  # truncated in float32 there
        signs.append(gaps.index(min(gaps)))
    assert 5 < sum(signs) < 25  # either way


def test_each_image_gets_its_own_operation():
    v = torch.randint(256, (6, 3, 8, 8)).double()
    wide = lambda k: k.view(-1, 1, 1, 1)
    ops = [lambda v, k: v + wide(k), lambda v, k: v * wide(k)]
    k = torch.arange(6.0)
    out = apply_each(v, torch.tensor([0, 1, -1, 1, 0, -1]), ops, k)
    expected = [v[0] + 0, v[1] * 1, v[2], v[3] * 3, v[4] + 4, v[5]]
    assert torch.equal(out, torch.stack(expected))


def test_magnitudes_reach_their_ranges():
    v, one = torch.full((1, 3, 32, 32), 100.0), torch.ones(1)
    assert float(OPERATIONS["brightness"](v, one, one).max()) == 190  # 1 + 0.9
    assert float(OPERATIONS["brightness"](v, one, -one).max()) in (9, 10)  # 1 - 0.9
    assert float(OPERATIONS["posterise"](v, one, one).max()) == 96  # 4 bits
    assert float(OPERATIONS["solarise"](v, one, one).max()) == 155  # from level 0 up
    # 14.5 pixels of 32: 150 / 331
    assert int((OPERATIONS["translate_x"](v, one, one)[0, 0, 0] == 0).sum()) in (14, 15)


def test_autoaugment_keeps_8_bit_levels_and_varies():
    x = torch.randint(256, (64, 3, 16, 16)) / 255
    y = varied(x, torch.Generator().manual_seed(1))
    assert_close(y * 255, (y * 255).round())
    assert y.min() >= 0 and y.max() <= 1
    changed = (y != x).flatten(1).any(1).double().mean()
    assert 0.5 < changed <= 1


# --- advtrain


def test_attacks_stay_in_the_ball_of_the_image_and_lower_the_loss_of_the_wrong_label():
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 5))
    x, wrong = torch.rand(8, 3, 8, 8), torch.arange(8) % 5
    epsilon = torch.linspace(0, 8 / 255, 8).view(-1, 1, 1, 1)
    moved = approach(net, x, wrong, epsilon, torch.zeros_like(x), steps=10)
    gap = (moved - x).abs().flatten(1).amax(1)
    assert (gap <= epsilon.flatten() + 1e-12).all() and gap[-1] > 0.9 * 8 / 255
    assert moved.min() >= 0 and moved.max() <= 1
    before, after = (cross_entropy(net(v), wrong, reduction="none") for v in (x, moved))
    assert (after[1:] < before[1:]).all() and after[0] == before[0]


def test_one_attack_step_is_the_sign_of_the_slope():
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16, 2))
    x, wrong = torch.full((1, 3, 4, 4), 0.5), torch.tensor([1])
    epsilon = torch.full((1, 1, 1, 1), 0.01)
    moved = approach(net, x, wrong, epsilon, torch.zeros_like(x), steps=1)
    slope = net[1].weight[1] - net[1].weight[0]  # towards class 1, in a linear net
    assert_close((moved - x).flatten(), 0.01 * slope.sign())


def test_four_attack_steps_of_half_the_radius_cross_the_ball():
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16, 2))
    x, epsilon = torch.full((1, 3, 4, 4), 0.5), torch.full((1, 1, 1, 1), 0.01)
    way = 0.01 * (net[1].weight[1] - net[1].weight[0]).sign().view_as(x)
    moved = approach(net, x, torch.tensor([1]), epsilon, -way.detach(), steps=4)
    assert_close(moved - x, way)  # each is epsilon / sqrt(4), from one edge to the other


def test_advtrain_never_aims_at_the_true_label_and_draws_a_radius_an_image(monkeypatch):
    seen = []
    monkeypatch.setattr(
        import_module("meada.methods.advtrain"),
        "approach",
        lambda net, x, wrong, epsilon, start, steps: seen.append((wrong, epsilon, start)) or x,
    )
    batch = some(n=200, side=8)
    advtrain(radius=8.0).loss(Seen(), batch, at(0))
    wrong, epsilon, start = seen[0]
    assert (wrong != batch.y).all() and set(wrong.tolist()) == set(range(5))
    assert epsilon.min() >= 0 and epsilon.max() <= 8 / 255
    assert abs(float(epsilon.mean()) * 255 - 4) < 0.6
    assert (start.abs() <= epsilon).all() and (start.abs() > 0.9 * epsilon).any()


def test_advtrain_leaves_batch_statistics_to_the_training_pass():
    net = nn.Sequential(nn.BatchNorm2d(3), Seen()).train()
    advtrain(steps=2).loss(net, some(), at(0))
    assert int(net[0].num_batches_tracked) == 1 and net.training


def test_advtrain_trains_on_the_moved_images_alone(monkeypatch):
    net, batch = Seen(), some()
    advtrain(radius=8.0, steps=2).loss(net, batch, at(1))
    moved = (net.x[-1] - batch.x).abs().flatten(1).amax(1)
    assert (moved > 0).all() and (moved <= 8 / 255 + 1e-12).all()
    elsewhere = torch.rand(batch.x.shape)
    monkeypatch.setattr(import_module("meada.methods.advtrain"), "approach", lambda *_: elsewhere)
    loss = advtrain().loss(net, batch, at(1))
    assert_close(loss, cross_entropy(Seen()(elsewhere), batch.y))


@pytest.mark.parametrize(
    ("method", "change"),
    [
        (cutout(side=0.5), lambda x, generator: hide(x, generator, 0.5)),
        (autoaugment(), varied),
        (autoaugment(cutout=0.5), lambda x, generator: hide(varied(x, generator), generator, 0.5)),
    ],
)
def test_the_loss_is_that_of_the_changed_images(method, change):
    net, batch = Seen(), some(20)
    loss = method.loss(net, batch, at(2))
    changed = change(batch.x, at(2).generator)
    assert (changed != batch.x).flatten(1).any(1).double().mean() > 0.5
    assert_close(net.x[-1], changed, rtol=0, atol=0)
    assert_close(loss, cross_entropy(Seen()(changed), batch.y))


# --- augmix


def test_the_loss_of_augmix_by_hand():
    net, batch = Seen(), some()
    loss = augmix(consistency=12.0).loss(net, batch, at(5))
    assert len(net.x) == 1
    logits = [Seen()(view) for view in net.x[0].chunk(3)]
    assert torch.equal(net.x[0][:6], batch.x)
    p = torch.stack([one.softmax(-1) for one in logits])
    kl = (p * (p.log() - p.mean(0).log())).sum(-1)  # view by image
    assert (kl.mean(1) > 0).all()  # each of the three counts
    assert_close(loss, cross_entropy(logits[0], batch.y) + 12 * kl.sum(0).mean() / 3)


def test_every_image_is_mixed_by_a_share_of_its_own(monkeypatch):
    white = tuple(lambda v, level, sign: torch.full_like(v, 255) for _ in CHAIN)
    monkeypatch.setattr(import_module("meada.methods.augmix"), "OPERATIONS", white)
    y = mixed(torch.zeros(400, 1, 2, 2), torch.Generator().manual_seed(0), width=1, depth=1, severity=3.0)
    m = y.flatten(1)
    assert_close(m.amin(1), m.amax(1))  # black to white by m
    assert m[:, 0].unique().numel() == 400
    assert m.mean() == pytest.approx(0.5, abs=0.05) and m.std() == pytest.approx(12**-0.5, abs=0.02)  # uniform


def test_every_image_has_shares_of_chains_of_its_own(monkeypatch):
    lights = iter((0.0, 255.0))  # the first chain is black, the second white
    module = import_module("meada.methods.augmix")
    monkeypatch.setattr(module, "chain", lambda v, *_: torch.full_like(v, next(lights)))
    x = torch.full((400, 1, 2, 2), 0.5)
    y = mixed(x, torch.Generator().manual_seed(0), width=2, depth=1, severity=3.0)
    again = torch.Generator().manual_seed(0)
    torch.rand(2 * 400, generator=again, dtype=torch.float64)
    m = torch.rand(400, generator=again, dtype=torch.float64)
    w = (y[:, 0, 0, 0] - (1 - m) * 0.5) / m  # of the white chain
    assert w.min() > 0 and w.max() < 1 and w.unique().numel() == 400
    assert w.mean() == pytest.approx(0.5, abs=0.05)  # Dirichlet(1, 1) is uniform
    assert w.std() == pytest.approx(12**-0.5, abs=0.02)


def test_strengths_in_a_chain_are_uniform_up_to_the_severity(monkeypatch):
    module = import_module("meada.methods.augmix")
    show = tuple(lambda v, level, sign: level.view(-1, 1, 1, 1).expand_as(v) for _ in CHAIN)
    monkeypatch.setattr(module, "OPERATIONS", show)
    v = module.chain(torch.zeros(500, 1, 1, 1), torch.Generator().manual_seed(0), 1, 3.0).flatten()
    assert v.unique().numel() == 500 and v.min() >= 0.1 and v.max() <= 3
    assert v.mean() == pytest.approx(1.55, abs=0.1) and v.std() == pytest.approx(2.9 / 12**0.5, abs=0.05)


def test_divergence_is_the_mean_of_three_kls():
    views = [torch.randn(4, 5) for _ in range(3)]
    p = torch.stack([v.softmax(-1) for v in views])
    mean = p.mean(0)
    kl = (p * (p / mean).log()).sum(-1)
    assert_close(divergence(*views), kl.mean(0).mean())
    assert float(divergence(views[0], views[0])) == pytest.approx(0, abs=1e-12)


def test_mixed_images_stay_in_range_and_near_their_kind():
    x = torch.rand(32, 3, 32, 32)
    y = mixed(x, torch.Generator().manual_seed(0), width=3, depth=3, severity=3.0)
    assert y.shape == x.shape and y.min() >= 0 and y.max() <= 1
    gap = (y - x).abs().flatten(1).mean(1)
    assert (gap > 0).double().mean() > 0.9 and gap.max() < 0.6


def test_a_chain_of_operations_that_do_nothing_is_the_image(monkeypatch):
    nothing = tuple(lambda v, level, sign: v for _ in CHAIN)
    monkeypatch.setattr(import_module("meada.methods.augmix"), "OPERATIONS", nothing)
    x = torch.randint(256, (16, 3, 8, 8)) / 255
    y = mixed(x, torch.Generator(), width=3, depth=3, severity=3.0)
    assert_close(y, x)  # the shares sum to one


def test_strengths_of_the_chain():
    v, ten, plus = torch.full((1, 3, 30, 30), 250.0), torch.tensor([10.0]), torch.ones(1)
    posterise, solarise, shift = CHAIN[2], CHAIN[4], CHAIN[7]
    assert float(posterise(v, torch.tensor([3.0]), plus).max()) == 224  # 3 bits
    assert float(solarise(v, torch.tensor([3.0]), plus).max()) == 5  # above 180: inverted
    assert int((shift(v, ten, plus)[0, 0, 0] == 0).sum()) == 10  # a third of the side
    assert int((shift(v, torch.tensor([3.0]), plus)[0, 0, 0] == 0).sum()) == 3


def test_augmix_without_consistency_is_the_clean_loss():
    net, batch = Seen(), some()
    loss = augmix(consistency=0.0).loss(net, batch, at(0))
    assert_close(loss, cross_entropy(net(batch.x), batch.y))
    assert len(net.x[0]) == 18  # clean and two copies, in one pass


# --- composing


def test_a_composition_descends_one_and_grows_as_the_other():
    loss, grow = mixup(), meada(grow="latest")
    both = compose(loss=loss, grow=grow)
    assert both.loss is loss.loss and both.grow is grow.grow and both.growth(10, 2) == 30


def test_parts_come_from_either_and_never_from_both():
    own = Method(build=lambda net, example, context: Parts())
    assert compose(loss=own, grow=meada()).build is own.build
    assert compose(loss=mixup(), grow=own).build is own.build
    with pytest.raises(MeadaError, match="at most one of two combined methods may have modules of its own"):
        compose(loss=own, grow=own)


@pytest.mark.parametrize("held", [torch.uint8, torch.float64])
def test_an_augmented_method_sees_the_batch_moved_and_keeps_the_rest(held):
    """Moved as the pool holds it: in 8 bits where it does, and the same pixels either way."""
    x = torch.randint(256, (6, 3, 8, 8), dtype=torch.uint8)
    pool = Pool(x if held == torch.uint8 else x / 255, torch.arange(6) % 4)
    method, seen = augmented(meada(), FlipCrop(padding=2)), []
    assert method.augment is not None and method.growth(10, 1) == 20

    def augment(images, generator):
        seen.append(images.dtype)
        return method.augment(images, generator)

    net, descent = Seen(), Descent()
    training = Training(net, descent.build(net.parameters()))
    context = Context(seed=3, total_steps=1)
    list(minimise(
        training, pool, method.loss, descent, context, augment=augment, until=1, batch_size=6
    ))  # fmt: skip
    order = torch.randperm(6, generator=stream(3, "order", 0))
    moved = flip_and_crop(x[order], stream(3, "loss", 0), 2)
    assert seen == [held] and torch.equal(net.x[0], moved / 255)
    assert not torch.equal(moved, x[order])


@pytest.mark.parametrize(
    "name, settings",
    [
        ("mixup", {"alpha": 0.0}),
        ("cutmix", {"probability": 1.5}),
        ("cutout", {"side": 1.0}),
        ("autoaugment", {"cutout": -1.0}),
        ("advtrain", {"steps": 0}),
        ("augmix", {"depth": 0}),
    ],
)
def test_numbers_that_make_no_sense_are_refused(name, settings):
    with pytest.raises(MeadaError, match=f"^{name}: "):
        METHODS[name](**settings)


def test_defaults_are_the_papers():
    defaults = lambda method: {name: p.default for name, p in inspect.signature(method).parameters.items()}
    assert defaults(cutout) == {"side": 0.5}
    assert defaults(autoaugment) == {"cutout": 0.0}
    assert defaults(advtrain) == {"radius": 8.0, "steps": 10}  # levels of 255
