"""The published loop: the same maths as the package's by another way, and all of its habits."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import torch
from benchmarks import agreement as agreement_module
from benchmarks import published
from benchmarks.agreement import agreement, alike, perturbed_by_meada, perturbed_by_published
from benchmarks.phases import held
from benchmarks.pillow_images import Pictures, keep, loader
from torch.nn.functional import cross_entropy

from meada.evaluation import evaluate
from meada.images.augment import mirror_and_cut
from meada.methods.parts.descent import Descent
from meada.pool import as_float


def climb(subject, n, log=None):
    net = subject.published()
    return published.maximise(net, held(subject, n), subject.labels(n), subject.ascent, log or StringIO())


def test_both_sides_perturb_alike(subject):
    """Batch means and sums come to the same; the pool rounds to float32, and that is all."""
    assert agreement(subject, 8, 4, within=1e-7) == {
        "agreement": 1.0,
        "published_with_itself": 1.0,
        "agreement_float64": 1.0,
    }
    theirs = perturbed_by_published(subject, 8)
    assert torch.allclose(theirs, perturbed_by_meada(subject, 8), atol=1e-7)
    assert float((theirs - as_float(subject.images(8))).abs().mean()) > 1e-3  # they do move


def test_a_step_of_another_size_is_no_agreement(subject, monkeypatch):
    monkeypatch.setattr(type(subject), "ascent", replace(subject.ascent, lr_max=1.1))
    other = perturbed_by_published(subject, 8)
    monkeypatch.undo()
    assert alike(other, perturbed_by_meada(subject, 8)) < 0.9


def test_float64_is_compared_in_float64_and_left_again(subject, single, monkeypatch):
    seen = []

    def spy(subject, n):
        seen.append((next(subject.net.parameters()).dtype, n))
        return perturbed_by_meada(subject, n)

    monkeypatch.setattr(agreement_module, "perturbed_by_meada", spy)
    agreement(subject, 4, 2)
    assert seen == [(torch.float32, 4), (torch.float64, 2)]
    assert torch.get_default_dtype() is torch.float32


def test_weight_gradients_are_computed_and_every_step_is_logged(subject, monkeypatch):
    net, log = subject.published(), StringIO()
    monkeypatch.setattr(type(subject), "published", lambda self: net)
    climb(subject, 11, log)
    assert len(log.getvalue().splitlines()) == 2 * subject.ascent.loops_adv  # 2 whole batches
    assert all(w.grad is not None and w.grad.any() for w in net.whole.parameters())


def test_the_last_partial_batch_is_left_out(subject):
    assert sum(len(x) for x in climb(subject, 11)) == 8


def test_perturbed_pictures_are_kept_as_pictures(subject):
    images = held(subject, 4)
    born = published.maximise(subject.published(), images, subject.labels(4), subject.ascent, StringIO())
    if not isinstance(images, Pictures):
        return
    assert len(images.grown) == 4
    expected = (born[0][2] * 255).floor().permute(1, 2, 0).numpy()  # truncated, not rounded
    assert np.array_equal(images.grown[2], expected)


def test_a_minimisation_step_descends_the_batch_mean(subject):
    """Plain SGD without augmentation, against the gradient of the network as a whole."""
    net = subject.published()
    images, labels = as_float(subject.images(4)), subject.labels(4)
    before = [w.detach().clone() for w in subject.net.parameters()]
    loss = cross_entropy(subject.net.train()(images), labels)
    wanted = torch.autograd.grad(loss, list(subject.net.parameters()))
    log, how = StringIO(), Descent(name="sgd", lr=0.1)
    published.minimise(net, published.optimiser(net, how), images, labels, [torch.arange(4)], log)
    for w, w0, g in zip(net.whole.parameters(), before, wanted, strict=True):
        assert torch.allclose(w, w0 - 0.1 * g, atol=1e-12)
    assert float(log.getvalue().split(":")[1]) == pytest.approx(loss.item())


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_the_optimiser_has_the_recipe_s_numbers_and_torch_s_own_loop(subject, name):
    how = Descent(name=name, lr=0.3, weight_decay=0.01, momentum=0.5, nesterov=True)
    made = published.optimiser(subject.published(), how)
    wanted = how.build(subject.net.parameters()).defaults
    assert {k: v for k, v in made.defaults.items() if k != "fused"} == {k: v for k, v in wanted.items() if k != "fused"}
    assert not made.defaults["fused"]


def test_both_sides_score_alike(subject):
    theirs = published.evaluate(subject.published(), held(subject, 30), subject.labels(30), 7)
    ours = evaluate(subject.net, {"x": (subject.images(30), subject.labels(30))})
    assert theirs == pytest.approx(ours["x"]["accuracy"])


@pytest.fixture
def pictures():
    images = torch.randint(256, (6, 3, 9, 9), dtype=torch.uint8)
    mean, std = torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.5, 0.2, 0.1])
    return images, Pictures.of(images, mean.view(3, 1, 1), std.view(3, 1, 1))


def test_a_picture_becomes_a_normalised_tensor(pictures):
    images, held_ = pictures
    expected = (images[4] / 255 - held_.mean) / held_.std
    assert torch.allclose(held_.plain(4), expected)


def test_an_augmented_picture_is_a_cut_of_it_or_of_its_mirror(pictures):
    images, held_ = pictures
    places = torch.cartesian_prod(torch.arange(2), torch.arange(9), torch.arange(9))
    cuts = mirror_and_cut(
        images[:1].expand(len(places), -1, -1, -1), places[:, 0].bool(), places[:, 1], places[:, 2],
        padding=4,
    )  # fmt: skip
    every = (cuts / 255 - held_.mean) / held_.std
    seen = set()
    for _ in range(30):
        same = (every - held_.augmented(0)).abs().flatten(1).amax(1) < 1e-12
        assert same.any()
        seen.add(int(same.nonzero()[0]))
    assert len(seen) > 10


def test_an_image_survives_being_kept():
    image = torch.rand(3, 5, 4)
    assert np.array_equal(keep(image), (image * 255).byte().permute(1, 2, 0).numpy())


def test_the_loader_gives_whole_batches(pictures):
    batches = list(loader(pictures[1], 8, batch=4, workers=0))
    assert [tuple(b.shape) for b in batches] == [(4, 3, 9, 9)] * 2
