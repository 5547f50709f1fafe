"""Proposition 2 on finite spaces, by linear programme and pointwise; the gradient identity."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.theory import (
    dual_value,
    mean_prediction_entropy,
    plug_in_entropy,
    primal_value,
    surrogate,
    surrogate_gradient,
    surrogate_losses,
    transport_distance,
)

GAMMAS = [0.0, 0.05, 1.0, 20.0]


class Instance:
    """Random inputs, labels, latent codes and predictions; atoms are the pairs (x, y)."""

    def __init__(self, seed: int, inputs: int = 6, labels: int = 3, beta: float = 2.0) -> None:
        self.rng = np.random.default_rng(seed)
        z = self.rng.normal(size=(inputs, 2))
        p = self.rng.dirichlet(np.full(labels, 0.5), inputs)
        self.x, self.y = (a.ravel() for a in np.indices((inputs, labels)))
        h = -(p * np.log(p)).sum(1)
        self.value = -np.log(p[self.x, self.y]) + beta * h[self.x]
        squared = ((z[self.x, None] - z[None, self.x]) ** 2).sum(-1)
        self.cost = np.where(self.y[:, None] == self.y[None], squared, np.inf)
        self.p0 = self.rng.dirichlet(np.full(inputs * labels, 0.3))

    def any_law_with_the_same_labels(self) -> np.ndarray:
        p = np.zeros_like(self.p0)
        for label in np.unique(self.y):
            atoms = self.y == label
            p[atoms] = self.p0[atoms].sum() * self.rng.dirichlet(np.full(atoms.sum(), 0.3))
        return p


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(6))
def test_the_linear_programme_equals_the_pointwise_supremum(seed: int, gamma: float) -> None:
    case = Instance(seed)
    worst = primal_value(case.p0, case.value, case.cost, gamma)
    assert worst.value == pytest.approx(dual_value(case.p0, case.value, case.cost, gamma), abs=1e-9)
    assert worst.law.sum() == pytest.approx(1)
    # and the law it returns is worth that much, its distance computed on its own
    distance = transport_distance(worst.law, case.p0, case.cost)
    assert worst.law @ case.value - gamma * distance == pytest.approx(worst.value, abs=1e-8)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("seed", range(3))
def test_no_law_does_better_than_the_dual(seed: int, gamma: float) -> None:
    case = Instance(seed)
    dual = dual_value(case.p0, case.value, case.cost, gamma)
    for _ in range(10):
        p = case.any_law_with_the_same_labels()
        assert p @ case.value - gamma * transport_distance(p, case.p0, case.cost) <= dual + 1e-9


@pytest.mark.parametrize("gamma", GAMMAS)
def test_moving_each_atom_to_its_own_maximiser_reaches_the_supremum(gamma: float) -> None:
    case = Instance(7)
    scores = case.value - np.where(np.isinf(case.cost), np.inf, gamma * np.where(np.isinf(case.cost), 0, case.cost))
    worst = np.bincount(scores.argmax(1), weights=case.p0, minlength=len(case.p0))
    reached = worst @ case.value - gamma * transport_distance(worst, case.p0, case.cost)
    assert reached == pytest.approx(dual_value(case.p0, case.value, case.cost, gamma), abs=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_mass_pays_to_go_from_p0_to_p_where_the_way_back_costs_otherwise(gamma: float) -> None:
    rng = np.random.default_rng(0)
    value, p0 = rng.normal(size=8), rng.dirichlet(np.ones(8))
    one_way = rng.random((8, 8)) * (1 - np.eye(8))
    assert primal_value(p0, value, one_way, gamma).value == pytest.approx(
        dual_value(p0, value, one_way, gamma), abs=1e-9
    )
    a, b = np.eye(8)[:2]
    assert transport_distance(b, a, one_way) == pytest.approx(one_way[0, 1])


def test_a_large_gamma_leaves_every_atom_in_place() -> None:
    case = Instance(1)
    np.testing.assert_allclose(surrogate_losses(case.value, case.cost, 1e9), case.value)
    assert primal_value(case.p0, case.value, case.cost, 1e6).value == pytest.approx(case.p0 @ case.value, rel=1e-9)


def test_at_gamma_0_the_proposition_needs_labels_to_stay_all_the_same() -> None:
    case = Instance(2)
    barred = dual_value(case.p0, case.value, case.cost, gamma=0)
    free = primal_value(case.p0, case.value, np.where(np.isinf(case.cost), 0, case.cost), gamma=0)
    assert free.value == pytest.approx(case.value.max())  # 0 * infinity read as 0
    assert free.value > barred + 0.1
    best_per_label = np.array([case.value[case.y == y].max() for y in range(3)])
    assert barred == pytest.approx(case.p0 @ best_per_label[case.y])


def test_mass_cannot_change_its_label() -> None:
    case = Instance(3)
    moved = np.zeros_like(case.p0)
    moved[0] = 1.0
    assert transport_distance(moved, case.p0, case.cost) == math.inf
    with pytest.raises(MeadaError, match="gamma"):
        dual_value(case.p0, case.value, case.cost, gamma=-1.0)


def test_the_distance_is_no_metric_since_its_cost_is_a_square() -> None:
    line = np.array([0.0, 1.0, 2.0])
    cost = (line[:, None] - line[None]) ** 2
    a, b, c = np.eye(3)
    there = transport_distance(a, c, cost)
    by_the_middle = transport_distance(a, b, cost) + transport_distance(b, c, cost)
    assert (there, by_the_middle) == (4.0, 2.0)


def test_points_that_share_a_latent_code_are_at_distance_zero() -> None:
    assert transport_distance(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.zeros((2, 2))) == 0


def test_the_duality_is_for_mean_h_and_not_for_the_entropy_of_the_label() -> None:
    """Two sure predictions of different classes: h = 0 at each, H(Yhat) of a mixture log 2."""
    p, h = torch.eye(2), np.zeros(2)
    assert float(mean_prediction_entropy(p)) == 0
    assert primal_value(np.array([1.0, 0.0]), h, np.zeros((2, 2)), gamma=0).value == 0
    best = max(float(plug_in_entropy(t * p[:1] + (1 - t) * p[1:])) for t in torch.linspace(0, 1, 5))
    assert best == pytest.approx(math.log(2))


# --- the gradient identity, on a network with ten weights ---

BETA, GAMMA = 2.0, 0.7


def latent(theta: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(theta[:4].reshape(2, 2) @ x)


def gain(theta: Tensor, x: Tensor) -> Tensor:
    """CE of class 0 plus beta h."""
    log_p = (theta[4:].reshape(3, 2) @ latent(theta, x)).log_softmax(-1)
    return -log_p[0] - BETA * (log_p.exp() * log_p).sum()


def cost(theta: Tensor, x: Tensor, x0: Tensor) -> Tensor:
    return (latent(theta, x) - latent(theta, x0)).square().sum()


def setting(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    theta = torch.randn(10, generator=generator)
    return theta, torch.randn(12, 2, generator=generator), torch.randn(2, generator=generator)


def finite_differences(function, theta: Tensor, step: float = 1e-6) -> Tensor:  # type: ignore[no-untyped-def]
    nudges = step * torch.eye(len(theta))
    return torch.stack([(function(theta + e) - function(theta - e)) / (2 * step) for e in nudges])


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_identity_by_finite_differences(seed: int) -> None:
    theta, candidates, x0 = setting(seed)
    objective = lambda t, x: gain(t, x) - GAMMA * cost(t, x, x0)
    values = torch.stack([objective(theta, x) for x in candidates]).sort().values
    assert values[-1] - values[-2] > 1e-4  # one maximiser, and the nudges do not change it
    by_differences = finite_differences(lambda t: surrogate(objective, t, candidates), theta)
    torch.testing.assert_close(surrogate_gradient(objective, theta, candidates), by_differences, atol=1e-8, rtol=1e-7)


def test_the_printed_identity_drops_the_gradient_of_the_cost() -> None:
    theta, candidates, x0 = setting(0)
    objective = lambda t, x: gain(t, x) - GAMMA * cost(t, x, x0)
    star = candidates[torch.stack([objective(theta, x) for x in candidates]).argmax()]
    printed = torch.func.grad(gain)(theta, star)
    dropped = -GAMMA * torch.func.grad(cost)(theta, star, x0)
    true = finite_differences(lambda t: surrogate(objective, t, candidates), theta)
    torch.testing.assert_close(true, printed + dropped, atol=1e-8, rtol=1e-7)
    assert dropped.norm() > 0.1 * true.norm()


def test_the_printed_identity_is_true_for_a_cost_frozen_at_the_current_weights() -> None:
    theta, candidates, x0 = setting(0)
    frozen = lambda t, x: gain(t, x) - GAMMA * cost(theta, x, x0)
    star = candidates[torch.stack([frozen(theta, x) for x in candidates]).argmax()]
    printed = torch.func.grad(gain)(theta, star)
    true = finite_differences(lambda t: surrogate(frozen, t, candidates), theta)
    torch.testing.assert_close(printed, true, atol=1e-8, rtol=1e-7)
    torch.testing.assert_close(surrogate_gradient(frozen, theta, candidates), printed)


def test_with_two_maximisers_there_are_only_one_sided_derivatives() -> None:
    objective = lambda t, x: t * x
    theta, candidates = torch.tensor(0.0), torch.tensor([-1.0, 1.0])
    step = torch.tensor(1e-6)
    right = (surrogate(objective, theta + step, candidates)) / step
    left = -(surrogate(objective, theta - step, candidates)) / step
    assert (float(left), float(right)) == (-1.0, 1.0)
    assert float(surrogate_gradient(objective, theta, candidates)) in (-1.0, 1.0)
