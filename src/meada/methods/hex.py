"""HEX (Wang et al., 2019): remove from the prediction what texture alone predicts.

A branch reads the image's texture, a differentiable grey-level co-occurrence matrix (NGLCM), and
classifies by it. Training sees the part of the logits that is orthogonal, over the batch, to that
classifier's; prediction is the network's own, and never looks at the branch.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy, normalize, relu

from meada.errors import check_range
from meada.methods.method import Context, Method, Parts, cross_entropy_loss
from meada.networks.freezing import frozen
from meada.types import Batch, Embedding, Images, Logits, Scalar

RIDGE = 1e-9  # of the mean squared singular value: keeps the inverse finite where texture is flat


def hex_(*, lr: float = 1e-3, levels: int = 16, side: int = 28, width: int = 32, after: float = 0.0) -> Method:
    """Train on F_L, predict with F_P.

    Args:
        lr: learning rate of the texture branch's own Adam.
        levels: grey levels that an image is quantised to.
        side: width and height at which texture is read.
        width: of the texture's representation.
        after: share of the steps that are plain ERM, before texture is projected out.
    """
    check_range("hex", "(0, inf)", lr=lr)
    check_range("hex", "[2, inf)", levels=levels, side=side)
    check_range("hex", "[1, inf)", width=width)
    check_range("hex", "[0, 1)", after=after)

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        with torch.no_grad(), frozen(net):
            logits = net(example.x)
        branch = TextureBranch(logits.shape[1], levels, side, width).to(logits)
        return Parts(nn.ModuleDict({"texture": branch}), {"texture": torch.optim.Adam(branch.parameters(), lr)})

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        if context.step < after * context.total_steps:
            return cross_entropy_loss(net, batch, context)
        f_p, f_g = net(batch.x), context.parts.modules["texture"](batch.x)
        return cross_entropy(without(f_p + f_g, f_g), batch.y)

    return Method(
        loss=loss,
        build=build,
        title="HEX",
        about="Train on the part of the prediction that a texture descriptor cannot explain.",
    )


def without(f_a: Logits, f_g: Logits) -> Logits:
    r""":math:`F_L = F_A - F_G (F_G^\top F_G)^{-1} F_G^\top F_A`, over the batch's rows.

    In float64, since the logits of texture alone are close to one another.

    >>> f_g = torch.tensor([[1.0], [1.0]])
    >>> without(torch.tensor([[3.0], [1.0]]), f_g).round(decimals=4)  # no part along (1, 1) is left
    tensor([[ 1.],
            [-1.]])
    """
    a, g = f_a.double(), f_g.double()
    gram = g.T @ g
    ridge = RIDGE * gram.trace() / len(gram) + torch.finfo(gram.dtype).tiny
    inverse = gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    return (a - g @ torch.linalg.solve(inverse, g.T @ a)).to(f_a.dtype)


class TextureBranch(nn.Module):
    """Image -> NGLCM -> a few features -> F_G, the logits that texture alone gives."""

    def __init__(self, classes: int, levels: int, side: int, width: int) -> None:
        super().__init__()
        self.levels, self.side = levels, side
        self.difference = nn.Parameter(levels * torch.rand(levels))  # the source's lambda
        self.level = nn.Parameter(levels * torch.rand(levels))  # the source's theta
        self.features = nn.Linear(levels * levels, width)
        self.readout = nn.Linear(width, classes)

    def forward(self, x: Images) -> Logits:
        g = relu(self.features(self.nglcm(x)))
        return self.readout(normalize(g, dim=0))  # over the batch, as its source has it

    def nglcm(self, x: Images) -> Embedding:
        """Soft co-occurrence of grey levels with differences to the neighbouring pixel."""
        grey = adaptive_avg_pool2d(x.mean(1, keepdim=True), self.side)[:, 0]
        quantised = (grey * self.levels).floor().clamp(0, self.levels - 1)
        here, there = quantised[:, :-1, :-1], quantised[:, 1:, 1:]  # the neighbour below, right
        rows = _soft_excess((here - there).flatten(1), self.difference)
        columns = _soft_excess(here.flatten(1), self.level)
        return (rows @ columns.mT / rows.shape[-1]).flatten(1)


def _soft_excess(values: Float[Tensor, "B P"], thresholds: Float[Tensor, " L"]) -> Float[Tensor, "B L P"]:
    """How much each pixel exceeds each threshold, clamped to (0, 1]."""
    return (values[:, None] - thresholds[:, None]).clamp(1e-5, 1)
