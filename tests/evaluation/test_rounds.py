"""What a round did, against the terms of the objective computed apart."""

import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.entropy import softmax_entropy
from meada.evaluation.rounds import diagnose
from meada.pool import Pool


def test_terms_before_and_after(linear_net):
    x, y = torch.rand(6, 3, 4, 4), torch.randint(5, (6,))
    pool = Pool(x, y)
    harder = (x + 0.1).clamp(0, 1)
    pool.append(harder, parents=torch.arange(6))
    got = diagnose(linear_net, pool, block=4)
    for name, images in (("0", x), ("1", harder)):
        i = int(name)
        assert_close(got["ce"][i], cross_entropy(linear_net(images), y).item())
        assert_close(got["entropy"][i], softmax_entropy(linear_net(images)).mean().item())
    assert_close(got["cost"], float((harder - x).square().flatten(1).sum(1).mean()))
    assert_close(got["linf_max"], float((harder - x).abs().max()))


def test_children_are_compared_with_their_own_parents(linear_net):
    x, y = torch.rand(4, 3, 4, 4), torch.randint(5, (4,))
    pool = Pool(x, y)
    pool.append(x.flip(0), parents=torch.tensor([3, 2, 1, 0]))
    assert diagnose(linear_net, pool)["linf"] == 0
