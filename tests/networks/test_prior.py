"""The scale mixture: a density, its logarithm far out, and its derivative."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.networks.bayesian.prior import Gaussian, ScaleMixture

PRIOR = ScaleMixture()
PLACES = np.array([0.0, 1e-4, 2e-3, 0.0093, 0.02, 0.5, 3.0, 40.0, 1e3])


def published(theta: np.ndarray) -> np.ndarray:
    """-log sigma1 = 0, -log sigma2 = 6, pi = 0.25, by scipy."""
    parts = [np.log(0.25) + norm.logpdf(theta, scale=1.0),
             np.log(0.75) + norm.logpdf(theta, scale=math.exp(-6))]  # fmt: skip
    return logsumexp(parts, axis=0)


def test_the_defaults_are_the_supplements():
    got = PRIOR.log_prob(torch.from_numpy(PLACES))
    assert_close(got, torch.from_numpy(published(PLACES)), rtol=1e-12, atol=0)


def test_it_is_a_density():
    density = lambda t: float(PRIOR.log_prob(torch.tensor(t)).exp())
    total, _ = quad(density, -8, 8, points=[-0.02, -0.005, 0.0, 0.005, 0.02], limit=200)
    assert total == pytest.approx(1, abs=1e-9)


def test_single_precision_does_not_underflow(single):
    """Far out both densities are 0 in float32; their logarithms are not."""
    got = PRIOR.log_prob(torch.tensor([20.0, 100.0]))
    assert_close(got, torch.tensor(published(np.array([20.0, 100.0])), dtype=torch.float32))


def test_the_derivative_in_closed_form_is_the_derivative():
    theta = torch.tensor([-0.5, -0.01, -1e-3, 0.0, 2e-3, 0.0093, 0.012, 1.5], requires_grad=True)
    assert torch.autograd.gradcheck(PRIOR.log_prob, theta, eps=1e-7, atol=1e-3)
    (got,) = torch.autograd.grad(PRIOR.log_prob(theta).sum(), theta)
    wide = math.log(0.25) - theta.square() / 2
    narrow = math.log(0.75) + 6 - theta.square() / 2 * math.exp(12)
    (want,) = torch.autograd.grad(torch.logaddexp(wide, narrow).sum(), theta)
    assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_two_equal_parts_are_one_gaussian():
    theta = torch.randn(20)
    both = ScaleMixture(pi=0.3, sigma1=0.7, sigma2=0.7)
    assert_close(both.log_prob(theta), Gaussian(sigma=0.7).log_prob(theta))
    assert_close(Gaussian(sigma=0.7).log_prob(theta), torch.distributions.Normal(0.0, 0.7).log_prob(theta))


@pytest.mark.parametrize("bad", [{"pi": 0.0}, {"pi": 1.0}, {"sigma1": 0.0}, {"sigma2": -1.0}])
def test_what_is_no_prior_is_refused(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        ScaleMixture(**bad)
