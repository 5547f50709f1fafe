"""CE + beta*h - gamma*c: one value a sample, each term with its sign."""

import math

import torch
from torch.testing import assert_close

from meada.objective import Objective, semantic_cost


def test_each_term_has_its_weight_and_sign():
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    z, z0 = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0]])
    y = torch.tensor([1])
    ce, h, c = math.log(4), 1.5 * math.log(2), 5.0
    got = Objective(beta=10.0, gamma=0.1)(logits, z, z0, y)
    assert_close(got, torch.tensor([ce + 10 * h - 0.1 * c]))


def test_ada_is_a_number():
    logits, z, y = torch.randn(4, 3), torch.randn(4, 2), torch.tensor([0, 1, 2, 0])
    plain = torch.nn.functional.cross_entropy(logits, y, reduction="none")
    assert_close(Objective(beta=0.0, gamma=0.0)(logits, z, z, y), plain)


def test_the_cost_is_a_sum_over_coordinates_not_a_mean():
    z = torch.ones(1, 1024)
    assert semantic_cost(z, torch.zeros_like(z)).item() == 1024
