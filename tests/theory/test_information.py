"""Proposition 1, computed exactly for random finite networks."""

import math

import pytest
import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.theory import (
    conditional_entropy,
    graph_law,
    mutual_information,
    proposition_1,
    shannon_entropy,
)


def random_law(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    mass = torch.rand(size, generator=generator) ** 4  # some atoms nearly without mass
    return mass / mass.sum()


@pytest.mark.parametrize("seed", range(40))
def test_proposition_1_for_random_deterministic_networks(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    inputs, codes, classes = (int(n) for n in torch.randint(1, 12, (3,), generator=generator))
    p = random_law((inputs,), generator)
    z = torch.randint(codes, (inputs,), generator=generator)
    y = torch.randint(classes, (codes,), generator=generator)
    terms = proposition_1(p, z, y, classes)
    assert terms.i_x_z >= terms.i_x_y - 1e-12
    assert terms.i_x_y == pytest.approx(terms.h_y, abs=1e-12)
    assert terms.h_y_given_x == pytest.approx(0, abs=1e-12)
    # Deterministic Z: I(X;Z) = H(Z), as in the Deterministic Information Bottleneck.
    assert terms.i_x_z == pytest.approx(float(shannon_entropy(graph_law(p, z, codes).sum(0))), abs=1e-12)


def test_data_processing_is_strict_when_the_classifier_merges_codes() -> None:
    p, z = torch.full((4,), 0.25), torch.arange(4)
    terms = proposition_1(p, z, torch.tensor([0, 0, 1, 1]), classes=2)
    assert terms.i_x_z == pytest.approx(math.log(4)) and terms.i_x_y == pytest.approx(math.log(2))


@pytest.mark.parametrize("seed", range(10))
def test_mutual_information_agrees_with_both_differences_of_entropies(seed: int) -> None:
    joint = random_law((5, 4), torch.Generator().manual_seed(seed))
    a, b = joint.sum(1), joint.sum(0)
    by_b = shannon_entropy(b) - conditional_entropy(joint)
    by_a = shannon_entropy(a) - conditional_entropy(joint.T)
    torch.testing.assert_close(mutual_information(joint), by_b, atol=1e-13, rtol=0)
    torch.testing.assert_close(mutual_information(joint), by_a, atol=1e-13, rtol=0)


def test_mutual_information_is_not_the_uncertainty_in_x_given_z() -> None:
    p = torch.full((6,), 1 / 6)
    same = graph_law(p, torch.arange(6), 6)
    assert float(mutual_information(same)) == pytest.approx(math.log(6))
    assert float(conditional_entropy(same.T)) == pytest.approx(0, abs=1e-14)


def test_an_injective_network_has_information_without_limit() -> None:
    for n in (10, 100, 1000):
        terms = proposition_1(torch.full((n,), 1 / n), torch.arange(n), torch.arange(n) % 2, 2)
        assert terms.i_x_z == pytest.approx(math.log(n))
        assert terms.h_y == pytest.approx(math.log(2))


def test_a_joint_law_must_sum_to_one() -> None:
    with pytest.raises(MeadaError, match="joint law"):
        mutual_information(torch.ones(2, 2))
