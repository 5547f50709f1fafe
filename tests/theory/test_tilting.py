"""The variational formula of the tilted score, by brute force on small spaces."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from meada.errors import MeadaError
from meada.theory import expected_finite_value, penalised_score, surrogate_losses, tilted_law, tilted_value

TAUS = [0.0, 0.05, 0.5, 3.0, math.inf]


def problem(seed: int, n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    prior = torch.rand(n, generator=g)
    return 3 * torch.randn(n, generator=g), prior / prior.sum()


@pytest.mark.parametrize("tau", [0.05, 0.5, 3.0])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_no_law_does_better_than_the_tilted_one(seed, tau):
    scores, prior = problem(seed)
    value = tilted_value(scores, prior, tau)
    assert penalised_score(tilted_law(scores, prior, tau), scores, prior, tau) == pytest.approx(value, abs=1e-9)
    torch.manual_seed(seed)
    for law in torch.distributions.Dirichlet(torch.full((5,), 0.5)).sample((50,)):
        assert penalised_score(law, scores, prior, tau) <= value + 1e-9


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50)
def test_it_falls_with_tau_between_the_maximum_and_the_mean(seed):
    scores, prior = problem(seed)
    values = [tilted_value(scores, prior, tau) for tau in TAUS]
    assert values[0] == pytest.approx(float(scores.max()))
    assert values[-1] == pytest.approx(float((prior * scores).sum()))
    assert all(a >= b - 1e-9 for a, b in zip(values, values[1:], strict=False))


def test_the_limits_are_reached():
    scores, prior = problem(1)
    assert tilted_value(scores, prior, 1e-6) == pytest.approx(tilted_value(scores, prior, 0.0), abs=1e-4)
    assert tilted_value(scores, prior, 1e6) == pytest.approx(tilted_value(scores, prior, math.inf), abs=1e-4)


@pytest.mark.parametrize("tau", [1e-300, 1e-38, 1e-3, 1.0, 1e5, 1e7, 1e12, 1e300])
def test_it_is_exact_at_any_size_of_tau(tau):
    """Scores of 0 and d under a fair prior: d / 2 + tau log cosh(d / 2 tau); log cosh is near u^2 / 2 or u - log 2."""
    scores, prior = torch.tensor([0.0, 10.0]), torch.tensor([0.5, 0.5])
    u = 5 / tau
    expected = 5 + (tau * (u - math.log(2)) if u > 30 else tau * (u * u / 2 if u < 1e-4 else math.log(math.cosh(u))))
    assert tilted_value(scores, prior, tau) == pytest.approx(expected, rel=1e-9)
    assert float(tilted_law(scores, prior, tau).sum()) == pytest.approx(1, abs=1e-6)


def test_what_is_no_law_is_refused():
    scores = torch.tensor([0.0, 1.0])
    for call in (tilted_value, tilted_law):
        with pytest.raises(MeadaError, match=r"the prior must sum to 1, got sums off by 0\.1"):
            call(scores, torch.tensor([0.5, 0.6]), 1.0)
        with pytest.raises(MeadaError, match="the prior must be probabilities, got a negative number or NaN"):
            call(scores, torch.tensor([math.nan, 1.0]), 1.0)
        with pytest.raises(MeadaError, match="the prior must sum to 1"):
            call(scores, torch.tensor([0.5, 0.501]), 1.0)  # half precision's tolerance is not a prior's
    outside = penalised_score(torch.tensor([0.0, 1.0]), scores, torch.tensor([1.0, 0.0]), 0.0)
    assert outside == -math.inf


@pytest.mark.parametrize("tau", TAUS)
def test_finitely_many_candidates_bound_it_from_below_and_grow_with_k(tau):
    scores, prior = problem(2, n=4)
    values = [expected_finite_value(scores, prior, tau, k) for k in (1, 2, 3, 4)]
    assert values[0] == pytest.approx(float((prior * scores).sum()))
    assert all(a <= b + 1e-9 for a, b in zip(values, values[1:], strict=False))
    assert values[-1] <= tilted_value(scores, prior, tau) + 1e-9


def test_at_temperature_zero_it_is_the_papers_surrogate():
    """Proposition 2's sup over x of loss - gamma c, where the candidates are all the points there are."""
    losses = torch.tensor([0.3, 1.2, 0.7])
    cost = torch.tensor([[0.0, 4.0, 1.0], [4.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    gamma, uniform = 0.25, torch.full((3,), 1 / 3)
    paper = surrogate_losses(losses.numpy(), cost.numpy(), gamma)
    ours = [tilted_value(losses - gamma * cost[i], uniform, 0.0) for i in range(3)]
    assert ours == pytest.approx(paper.tolist())


def test_bad_numbers_are_refused():
    scores, prior = problem(3)
    with pytest.raises(MeadaError, match="tau must be 0 or more, got -1"):
        tilted_value(scores, prior, -1.0)
    with pytest.raises(MeadaError, match="k must be 1 or more, got 0"):
        expected_finite_value(scores, prior, 1.0, 0)
