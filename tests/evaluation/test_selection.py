"""Four rules, each with what it may know; crafted shifts that repeat and change something."""

import torch

from meada.datasets.task import Samples, Task
from meada.evaluation.candidates import Candidates, fixed_subset
from meada.evaluation.selection import KNOWS, RULES, Chosen
from meada.evaluation.validation_shifts import CRAFTED, crafted


def samples(n: int, label: int) -> Samples:
    images = torch.randint(256, (n, 3, 8, 8), dtype=torch.uint8)
    return Samples(images, torch.full((n,), label))


def task() -> Task:
    return Task(("a", "b"), samples(4, 0), samples(6, 0), {"t": samples(5, 1), "u": samples(5, 0)},
                ("s",))  # fmt: skip


class Always(torch.nn.Module):
    def __init__(self, label: int) -> None:
        super().__init__()
        self.readout = torch.nn.Linear(1, 2)
        self.label = label

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.eye(2)[self.label].expand(len(x), 2)


def test_each_rule_looks_at_its_own_images():
    seen = Candidates(task(), subset=5, crafted_size=3).scores(Always(1))
    assert seen == {"source_val": 0.0, "crafted": 0.0, "oracle": 50.0}  # the mean over domains


def test_without_targets_there_is_no_oracle():
    lone = Task(("a", "b"), samples(4, 0), samples(6, 0), {}, ("s",))
    assert set(Candidates(lone, subset=5, crafted_size=3).scores(Always(0))) == {
        "source_val", "crafted"}  # fmt: skip


def test_the_latest_wins_a_tie_and_the_best_stays():
    chosen = Chosen()
    for step, value in ((1, 40.0), (2, 60.0), (3, 60.0), (4, 50.0)):
        chosen.consider(step, {"oracle": value})
    assert chosen.steps == {"oracle": 3}


def test_a_subset_is_the_same_every_time():
    part = samples(50, 0)
    a, b = fixed_subset("x", part, 10), fixed_subset("x", part, 10)
    assert len(a) == 10 and torch.equal(a.images, b.images)
    assert len(fixed_subset("x", part, 99)) == 50


def test_crafted_shifts_repeat_stay_in_range_and_change_every_image():
    x = torch.rand(6, 3, 32, 32)
    one, two = crafted(x), crafted(x)
    assert one.keys() == CRAFTED.keys()
    for name, shifted in one.items():
        assert torch.equal(shifted, two[name]) and shifted.shape == x.shape
        assert shifted.min() >= 0 and shifted.max() <= 1
        assert ((shifted - x).abs().flatten(1).amax(1) > 0.05).all(), name


def test_crafted_shifts_are_none_of_the_reported_targets():
    reported = {"gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur",
                "motion_blur", "zoom_blur", "snow", "frost", "fog", "brightness", "contrast",
                "elastic_transform", "pixelate", "jpeg_compression", "svhn", "mnist_m", "syn",
                "usps"}  # fmt: skip
    assert reported.isdisjoint(CRAFTED) and {"noisy", "blurred"}.isdisjoint(CRAFTED)


def test_every_rule_says_what_it_knows():
    assert KNOWS.keys() == set(RULES) and "oracle" in KNOWS["oracle"]
