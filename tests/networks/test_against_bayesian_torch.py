"""Where this package and bayesian-torch define the same thing: a Gaussian prior's divergence.

`make check` installs it without what it depends on itself; where it cannot be had this is skipped.
"""

import pytest
import torch
from torch import nn
from torch.distributions import Normal
from torch.testing import assert_close

from meada.networks import to_bayesian
from meada.networks.bayesian import divergence
from meada.networks.bayesian.variational import WeightSample

layers = pytest.importorskip("bayesian_torch.layers")
PRIOR = 0.5


def pair() -> tuple[nn.Module, nn.Module]:
    theirs = layers.LinearReparameterization(30, 20, prior_variance=PRIOR).double()
    mine = to_bayesian(nn.Linear(30, 20), Normal(0.0, PRIOR))
    with torch.no_grad():
        for kind in ("weight", "bias"):
            getattr(mine, f"{kind}_mu").copy_(getattr(theirs, f"mu_{kind}"))
            getattr(mine, f"{kind}_rho").copy_(getattr(theirs, f"rho_{kind}"))
    return mine, theirs


def test_their_mean_over_the_weights_times_their_number_is_our_divergence():
    """Their KL is a mean over a layer's weights plus one over its biases; an ELBO has the sum.

    Their ``prior_variance`` is used as the standard deviation.
    """
    mine, theirs = pair()
    weights, biases = 30 * 20, 20
    kl_weight = theirs.kl_div(
        theirs.mu_weight, theirs.rho_weight.exp().log1p(), theirs.prior_weight_mu,
        theirs.prior_weight_sigma,
    )  # fmt: skip
    kl_bias = theirs.kl_loss() - kl_weight
    want = weights * kl_weight + biases * kl_bias
    draws = torch.stack([divergence(mine, WeightSample(j)) for j in range(400)])
    error = draws.std() / len(draws) ** 0.5
    assert abs(draws.mean() - want) < 4 * error < 0.01 * want
    assert theirs.kl_loss() < want / 100  # and what their ``get_kl_loss`` adds up is far below it


def test_the_same_noise_gives_the_same_output():
    mine, theirs = pair()
    x = torch.rand(4, 30)
    out, _ = theirs(x)
    want = torch.nn.functional.linear(
        x,
        mine.weight_mu + torch.nn.functional.softplus(mine.weight_rho) * theirs.eps_weight,
        mine.bias_mu + torch.nn.functional.softplus(mine.bias_rho) * theirs.eps_bias,
    )
    assert_close(out, want)
