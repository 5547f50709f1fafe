"""Transport cost c_theta: the squared distance between embeddings of an image and of its perturbed copy."""

from meada.types import Embedding, PerSample


def semantic_cost(z: Embedding, z0: Embedding) -> PerSample:
    r"""Squared distance of embeddings, :math:`c = \lVert z - z_0 \rVert_2^2`.

    The paper adds an infinite cost for a changed label; labels never change here.

    >>> import torch
    >>> semantic_cost(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([25.])
    """
    return (z - z0).square().sum(-1)
