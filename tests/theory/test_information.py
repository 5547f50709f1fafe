"""Proposition 1, computed exactly for random finite networks."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import one_hot

from meada.errors import MeadaError
from meada.theory import information


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
    terms = information.proposition_1(p, z, y, classes)
    assert terms.i_x_z >= terms.i_x_y - 1e-12
    assert terms.i_x_y == pytest.approx(terms.h_y, abs=1e-12)
    assert terms.h_y_given_x == pytest.approx(0, abs=1e-12)
    # Deterministic Z: I(X;Z) = H(Z), as in the Deterministic Information Bottleneck.
    assert terms.i_x_z == pytest.approx(
        float(information.shannon_entropy(information.graph_law(p, z, codes).sum(0))), abs=1e-12
    )


def test_data_processing_is_strict_when_the_classifier_merges_codes() -> None:
    p, z = torch.full((4,), 0.25), torch.arange(4)
    terms = information.proposition_1(p, z, torch.tensor([0, 0, 1, 1]), classes=2)
    assert terms.i_x_z == pytest.approx(math.log(4)) and terms.i_x_y == pytest.approx(math.log(2))


@pytest.mark.parametrize("seed", range(10))
def test_mutual_information_agrees_with_both_differences_of_entropies(seed: int) -> None:
    joint = random_law((5, 4), torch.Generator().manual_seed(seed))
    a, b = joint.sum(1), joint.sum(0)
    by_b = information.shannon_entropy(b) - information.conditional_entropy(joint)
    by_a = information.shannon_entropy(a) - information.conditional_entropy(joint.T)
    torch.testing.assert_close(information.mutual_information(joint), by_b, atol=1e-13, rtol=0)
    torch.testing.assert_close(information.mutual_information(joint), by_a, atol=1e-13, rtol=0)


def test_mutual_information_is_not_the_uncertainty_in_x_given_z() -> None:
    p = torch.full((6,), 1 / 6)
    same = information.graph_law(p, torch.arange(6), 6)
    assert float(information.mutual_information(same)) == pytest.approx(math.log(6))
    assert float(information.conditional_entropy(same.T)) == pytest.approx(0, abs=1e-14)


def test_an_injective_network_has_information_without_limit() -> None:
    for n in (10, 100, 1000):
        terms = information.proposition_1(torch.full((n,), 1 / n), torch.arange(n), torch.arange(n) % 2, 2)
        assert terms.i_x_z == pytest.approx(math.log(n))
        assert terms.h_y == pytest.approx(math.log(2))


def test_a_joint_law_must_sum_to_one() -> None:
    with pytest.raises(MeadaError, match="joint law"):
        information.mutual_information(torch.ones(2, 2))


def predictions(seed: int, n: int = 40, classes: int = 6, scale: float = 3.0) -> Tensor:
    noise = torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))
    return (scale * noise).softmax(-1)


def test_both_sides_worked_out_by_hand() -> None:
    p = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    mean = -(2 * 0.375 * math.log(0.375) + 0.25 * math.log(0.25))
    assert float(information.plug_in_entropy(p)) == pytest.approx(mean, abs=1e-15)
    assert float(information.mean_prediction_entropy(p)) == pytest.approx(1.25 * math.log(2), abs=1e-15)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12), st.floats(0, 20))
def test_the_mean_of_entropies_is_a_lower_bound_of_the_entropy_of_the_mean(
    seed: int, n: int, classes: int, scale: float
) -> None:
    p = predictions(seed, n, classes, scale)
    assert float(information.mean_prediction_entropy(p)) <= float(information.plug_in_entropy(p)) + 1e-12
    assert 0 <= float(information.entropy_gap(p)) <= min(math.log(n), math.log(classes)) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_is_the_mutual_information_of_x_and_the_softmax_label(seed: int) -> None:
    p = predictions(seed)
    joint = p / len(p)  # X uniform over the data set, the label drawn from the softmax
    torch.testing.assert_close(information.entropy_gap(p), information.mutual_information(joint), atol=1e-13, rtol=0)
    assert float(information.entropy_gap(p)) > 1e-3  # zero for equal predictions only
    kl_to_the_mean = (p * (p / p.mean(0)).log()).sum(-1).mean()
    torch.testing.assert_close(information.entropy_gap(p), kl_to_the_mean, atol=1e-13, rtol=0)


def test_the_two_sides_can_be_as_far_apart_as_log_k() -> None:
    sure = torch.eye(10)
    assert float(information.mean_prediction_entropy(sure)) == 0
    assert float(information.plug_in_entropy(sure)) == pytest.approx(math.log(10), abs=1e-14)


def test_a_constant_uniform_predictor_has_h_of_log_k_and_no_information() -> None:
    uniform = torch.full((8, 10), 0.1)
    assert float(information.mean_prediction_entropy(uniform)) == pytest.approx(math.log(10), abs=1e-14)
    assert float(information.plug_in_entropy(uniform)) == pytest.approx(math.log(10), abs=1e-14)
    assert float(information.entropy_gap(uniform)) == pytest.approx(0, abs=1e-14)
    assert float(information.argmax_entropy(uniform)) == 0
    z, y = torch.zeros(8, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    assert information.proposition_1(torch.full((8,), 1 / 8), z, y, classes=10).i_x_z == 0


def test_climbing_h_at_a_fixed_plug_in_entropy_lowers_the_information() -> None:
    sure, torn = torch.eye(4), torch.full((4, 4), 0.25)
    path = [(1 - t) * sure + t * torn for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    h = [float(information.mean_prediction_entropy(p)) for p in path]
    gap = [float(information.entropy_gap(p)) for p in path]
    assert h == sorted(h) and gap == sorted(gap, reverse=True) and h[0] < h[-1]
    assert all(float(information.plug_in_entropy(p)) == pytest.approx(math.log(4)) for p in path)


@pytest.mark.parametrize("seed", range(3))
def test_the_argmax_label_is_the_plug_in_entropy_of_sure_predictions(seed: int) -> None:
    p = predictions(seed)
    sure = one_hot(p.argmax(-1), 6).to(p.dtype)
    torch.testing.assert_close(information.argmax_entropy(p), information.plug_in_entropy(sure))
    share = torch.tensor([(p.argmax(-1) == k).double().mean().item() for k in range(6)])
    torch.testing.assert_close(information.argmax_entropy(p), information.shannon_entropy(share))


def test_single_precision_is_close_to_double(single: None) -> None:
    p = predictions(0, n=1000).float()
    for estimate in (
        information.plug_in_entropy,
        information.mean_prediction_entropy,
        information.entropy_gap,
        information.argmax_entropy,
    ):
        torch.testing.assert_close(estimate(p).double(), estimate(p.double()), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "wrong",
    [
        torch.randn(4, 3),
        torch.ones(4, 3),
        torch.full((4, 3), torch.nan),
        torch.full((4, 3), torch.inf),
        torch.zeros(0, 3),
    ],
    ids=["logits", "unnormalised", "nan", "infinite", "empty"],
)
def test_what_is_no_prediction_is_refused(wrong: Tensor) -> None:
    for estimate in (
        information.plug_in_entropy,
        information.mean_prediction_entropy,
        information.entropy_gap,
        information.argmax_entropy,
    ):
        with pytest.raises(MeadaError, match="probabilities"):
            estimate(wrong.double())
