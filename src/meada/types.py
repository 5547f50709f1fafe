"""Types of arrays. B: batch, K: classes, D: embedding width, S: posterior draws."""

from typing import Literal, NamedTuple

from jaxtyping import Float, Int, UInt8
from torch import Tensor

Images = Float[Tensor, "B C H W"]  # pixels in [0, 1]
Images8 = UInt8[Tensor, "B C H W"]  # the same in 8 bits, 0..255
Labels = Int[Tensor, " B"]
LabelMatrix = Float[Tensor, "B K"]  # 0.0 and 1.0: which of K independent labels each sample has
Logits = Float[Tensor, "B K"]
Embedding = Float[Tensor, "B D"]
PerSample = Float[Tensor, " B"]
Scalar = Float[Tensor, ""]

# Kinds of change to an image. Methods and spaces name those that they train on, so that validation can use the others.
Family = Literal[
    "tone", "colour", "geometry", "occlusion", "filter", "edges", "blur", "noise", "frequency", "compression", "weather"
]
Families = frozenset[Family]


class Batch(NamedTuple):
    """The batch of one minimisation step."""

    x: Images
    y: Labels
    domain: Labels | None = None  # which source each sample comes from; few methods look at it
    sample_index: Labels | None = None  # positions of the samples in the pool; keys per-sample random numbers
