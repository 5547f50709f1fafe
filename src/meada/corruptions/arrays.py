"""Array types of the corruptions and constants of their arithmetic."""

import numpy as np
from jaxtyping import Float, UInt8

Levels = Float[np.ndarray, "N C H W"]  # pixels on the scale 0..255, not yet cut to it
Pixels = UInt8[np.ndarray, "N C H W"]
Layer = Float[np.ndarray, "N H W"]  # one value a pixel, whatever the channels

# Truncation to 8 bits turns a rounding error just below a level into a whole level lost, so linear
# filters, which owe a flat area its own level, lift their result by more than their rounding.
LIFT = 1e-7  # of sums in double precision
LIFT_SINGLE = 1e-3  # in single


def eight_bits(x: Levels) -> Pixels:
    """The nearest level of each pixel, for steps that the publication performs on 8-bit images."""
    return np.clip(np.rint(x), 0, 255).astype(np.uint8)
