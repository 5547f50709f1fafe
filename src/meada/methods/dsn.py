"""DSN (Bousmalis et al., 2016): separate features shared by all domains from features private to each.

The network up to z is the shared encoder E_c; every source domain has a small private encoder E_p;
one decoder puts an image together again from both codes. The network descends
CE + alpha L_recon + beta L_difference + gamma L_similarity and predicts from the shared code alone.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy, normalize

from meada.errors import MeadaError, check_range
from meada.methods.method import Context, Method, Parts
from meada.methods.par import reverse
from meada.methods.parts.domains import EachDomain
from meada.networks.embedding import embedding_passes
from meada.networks.freezing import frozen
from meada.types import Batch, Embedding, Images, Labels, PerSample, Scalar

Code = Float[Tensor, "B P"]  # a private one; as wide as the shared one where they are added
EPSILON = 1e-3  # a code shorter than this is not stretched to length 1: its direction is rounding


def dsn(
    *, alpha: float = 0.01, beta: float = 0.05, gamma: float = 0.25, after: float = 0.0, lr: float = 1e-3,
    side: int = 32, width: int = 100,
) -> Method:  # fmt: skip
    """Domain separation networks, for any number of source domains.

    Args:
        alpha: weight of the reconstruction.
        beta: weight of the difference between shared and private codes.
        gamma: weight of the similarity between the domains' shared codes.
        after: share of the steps before which the similarity is switched off.
        lr: of the Adam that trains private encoders, decoder and domain classifier.
        side: width and height at which private encoders read, and the decoder writes, an image.
        width: of the hidden layers of these modules.
    """
    check_range("dsn", "[0, inf)", alpha=alpha, beta=beta, gamma=gamma)
    check_range("dsn", "[0, 1)", after=after)
    check_range("dsn", "(0, inf)", lr=lr)
    check_range("dsn", "[4, inf)", side=side)
    check_range("dsn", "[1, inf)", width=width)

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        with torch.no_grad(), frozen(net), embedding_passes(net, context.embedding) as forward:
            z = forward(example.x)[1]
        channels, code, domains = example.x.shape[1], z.shape[1], context.domains or (0,)
        modules = nn.ModuleDict({
            "private": nn.ModuleDict({str(d): private_encoder(channels, side, width, code) for d in domains}),
            "decoder": decoder(channels, side, width, code),
            "domain": nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, len(domains))),
        }).to(z)  # fmt: skip
        return Parts(modules, {"dsn": torch.optim.Adam(modules.parameters(), lr)})

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        parts = context.parts.modules
        small = adaptive_avg_pool2d(batch.x, side)
        with embedding_passes(net, context.embedding) as forward:
            logits, h_c = forward(batch.x)
        private = parts["private"]
        assert isinstance(private, nn.ModuleDict)
        domain = domain_numbers(batch, list(private))
        h_p = private_codes(private, small, domain, h_c)
        recon = scale_invariant_mse(parts["decoder"](h_c + h_p), small).mean()
        apart = torch.stack([difference(h_c[domain == d], h_p[domain == d]) for d in domain.unique()])
        on = context.step >= after * context.total_steps
        alike = cross_entropy(parts["domain"](reverse(h_c, 1.0)), domain)
        return cross_entropy(logits, batch.y) + alpha * recon + beta * apart.sum() + (gamma if on else 0.0) * alike

    return Method(
        loss=EachDomain(loss),
        build=build,
        title="DSN",
        about="Split the representation into a part shared by all domains and a private part for each.",
    )


def domain_numbers(batch: Batch, names: list[str]) -> Labels:
    """Index in ``names`` of each sample's domain; domain numbers are arbitrary."""
    given = torch.zeros_like(batch.y) if batch.domain is None else batch.domain
    known = torch.tensor([int(name) for name in names], device=given.device)
    same = given[:, None] == known
    if not same.any(1).all():
        stranger = int(given[~same.any(1)][0])
        raise MeadaError(f"domain must be one of those trained on, {', '.join(names)}, got {stranger}")
    return same.int().argmax(1)


def private_codes(private: nn.ModuleDict, x: Images, domain: Labels, like: Embedding) -> Code:
    """Private code of each image, from the encoder of its domain."""
    codes = like.new_zeros(like.shape)
    for d, encoder in enumerate(private.values()):
        if len(mine := (domain == d).nonzero().flatten()):
            codes = codes.index_copy(0, mine, encoder(x[mine]))
    return codes


def scale_invariant_mse(found: Images, x: Images) -> PerSample:
    r""":math:`\|e\|^2 / k - (\mathbf 1^\top e)^2 / k^2` with e = x - x^ and k numbers in an image.

    An error that all pixels share costs nothing, which in logarithms is a scale.

    >>> x = torch.tensor([0.0, 2.0]).view(1, 1, 1, 2)
    >>> scale_invariant_mse(torch.zeros(1, 1, 1, 2), x), scale_invariant_mse(x + 7, x)
    (tensor([1.]), tensor([0.]))
    """
    e = (x - found).flatten(1)
    return e.square().mean(1) - e.mean(1).square()


def difference(h_c: Embedding, h_p: Code) -> Scalar:
    r""":math:`\|H_c^\top H_p\|_F^2 / B^2`, rows centred over the batch and of length 1.

    Written as the mean over pairs of samples of (c_i . c_j)(p_i . p_j): as wide as a code may be,
    the matrices stay B x B; and the number depends neither on the width nor on the batch's size.

    >>> c = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> p = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    >>> difference(c, p), difference(c, c)  # orthogonal over the samples; the same code
    (tensor(0.), tensor(1.))
    """
    c, p = (normalize(h - h.mean(0), dim=1, eps=EPSILON) for h in (h_c, h_p))
    return ((c @ c.T) * (p @ p.T)).mean()


def private_encoder(channels: int, side: int, width: int, code: int) -> nn.Sequential:
    """Two convolutional and two linear layers, as in the authors' network for digits."""
    end = -(-side // 4)  # halved twice, rounded up
    return nn.Sequential(
        *(nn.Conv2d(channels, 32, 5, stride=2, padding=2), nn.ReLU()),
        *(nn.Conv2d(32, 64, 5, stride=2, padding=2), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(64 * end * end, width), nn.ReLU(), nn.Linear(width, code)),
    )


def decoder(channels: int, side: int, width: int, code: int) -> nn.Sequential:
    """From a code to an image of ``side`` x ``side``."""
    start = side // 4
    return nn.Sequential(
        *(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 16 * start * start), nn.ReLU()),
        *(nn.Unflatten(1, (16, start, start)), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()),
        *(nn.Upsample(size=side), nn.Conv2d(16, channels, 3, padding=1)),
    )
