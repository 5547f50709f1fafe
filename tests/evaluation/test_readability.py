"""A network that took no part reads a round's samples: at chance they went too far."""

import re
from math import comb

import pytest
import torch
from torch import nn

from meada.errors import MeadaError
from meada.evaluation.readability import chance_limit, judge


def guess_chances(n: int, classes: int, least: int) -> float:
    """P(at least so many right) of a reader that guesses."""
    p = 1 / classes
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1))


@pytest.mark.parametrize("n, classes", [(10, 10), (256, 10), (256, 7), (100, 100)])
def test_a_guesser_exceeds_the_limit_once_in_a_hundred_times_at_most(n, classes):
    limit = chance_limit(n, classes)
    assert guess_chances(n, classes, limit + 1) <= 0.01 < guess_chances(n, classes, limit)


class Reader(nn.Module):
    """Says the class that the first pixel holds, in 8-bit levels."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return nn.functional.one_hot((x[:, 0, 0, 0] * 255).round().long() % 10, 10).double()


def gallery(source_right: int, made_right: int, n: int = 100) -> dict[str, torch.Tensor]:
    labels = torch.arange(n) % 10

    def images(right: int) -> torch.Tensor:
        shown = torch.where(torch.arange(n) < right, labels, (labels + 1) % 10)
        return shown.to(torch.uint8).view(n, 1, 1, 1).expand(n, 1, 2, 2).contiguous()

    return {
        "round-1.judged_source": images(source_right),
        "round-1.judged": images(made_right),
        "round-1.judged_label": labels,
        "round-1.adversarial": torch.rand(1, 1, 2, 2),
    }


def test_accuracies_are_told_in_per_cent():
    (told,) = judge(Reader(), gallery(97, 61), classes=10)
    assert (told["round"], told["n"], told["source"], told["adversarial"]) == (1, 100, 97.0, 61.0)
    assert told["chance"] == 10 and told["warnings"] == []


@pytest.mark.parametrize("source, made, sentence", [(97, 12, "went too far: .* 12 of 100"), (15, 12, "cannot judge")])
def test_warnings(source, made, sentence):
    (told,) = judge(Reader(), gallery(source, made), classes=10)
    (warning,) = told["warnings"]
    assert re.search(sentence, warning)


def test_rounds_come_in_order():
    both = {**gallery(90, 80), **{k.replace("-1", "-10"): v for k, v in gallery(90, 70).items()},
            **{k.replace("-1", "-2"): v for k, v in gallery(90, 60).items()}}  # fmt: skip
    told = judge(Reader(), both, classes=10)
    assert [(v["round"], v["adversarial"]) for v in told] == [(1, 80.0), (2, 60.0), (10, 70.0)]


def test_an_empty_gallery_is_refused():
    with pytest.raises(MeadaError, match="no samples to judge"):
        judge(Reader(), {}, classes=10)
