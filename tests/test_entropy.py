"""h and its expectation over weight draws."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from meada.entropy import expected_entropy, softmax_entropy


def test_a_prediction_worked_out_by_hand():
    p = torch.tensor([[0.5, 0.25, 0.25]])
    assert_close(softmax_entropy(p.log()), torch.tensor([1.5 * math.log(2)]))


@given(st.integers(2, 50), st.floats(-5, 5))
@settings(max_examples=25)
def test_entropy_lies_between_nothing_and_log_k(classes, scale):
    h = softmax_entropy(scale * torch.randn(4, classes))
    assert (h >= -1e-9).all() and (h <= math.log(classes) + 1e-9).all()


def test_huge_logits_give_numbers():
    assert_close(softmax_entropy(torch.tensor([[1e6, 0.0, -1e6]])), torch.zeros(1))


def test_one_draw_is_the_plain_entropy():
    logits = torch.randn(6, 5)
    assert_close(expected_entropy(logits[None]), softmax_entropy(logits))


def test_draws_are_averaged_after_their_entropies():
    sure = torch.tensor([[[50.0, 0.0]], [[0.0, 50.0]]])  # two draws, sure of different classes
    assert_close(expected_entropy(sure), torch.zeros(1))
