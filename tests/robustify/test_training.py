"""Fine-tuning of one candidate."""

import math

import pytest
import torch
from torch import nn

from meada.datasets import Samples
from meada.methods.parts.descent import Descent
from meada.robustify.training import Tuning, plain, tune


@pytest.mark.parametrize("clip, exact", [(0.01, True), (math.inf, False)])
def test_a_step_is_no_longer_than_the_limit_on_the_gradient(clip, exact):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    before = [weight.detach().clone() for weight in net.parameters()]
    samples = Samples(torch.randint(0, 256, (8, 3, 4, 4), dtype=torch.uint8), torch.zeros(8, dtype=torch.int64))
    tune(net, samples, Tuning(plain(4), Descent(name="sgd", lr=1.0), 1, 8, seed=0, clip=clip))
    moved = torch.cat([(a - b).flatten() for a, b in zip(net.parameters(), before, strict=True)])
    assert (float(moved.norm()) == pytest.approx(0.01, rel=1e-4)) == exact
    assert float(moved.norm()) >= 0.00999
