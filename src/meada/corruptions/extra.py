"""The four corruptions reserved for validation, so that nothing is tuned on the fifteen of the benchmark."""

from meada.corruptions.arrays import Levels
from meada.corruptions.blur import gaussian_blur
from meada.corruptions.colour import with_saturation
from meada.corruptions.noise import speckle_noise
from meada.corruptions.spatter import spatter
from meada.streams import Streams

__all__ = ["gaussian_blur", "saturate", "spatter", "speckle_noise"]


def saturate(x: Levels, rng: Streams, factor: float, more: float) -> Levels:
    """Less or more of HSV's saturation."""
    return with_saturation(x, factor, more)
