"""Change hue, saturation and value directly on RGB.

In HSV a channel is v - v s k, with k in [0, 1] a matter of hue alone. So a change of v scales the
channel's distance from v by v'/v, and a change of s scales it by s'/s; hue is never computed.
"""

import numpy as np
from jaxtyping import Float

from meada.corruptions.arrays import Levels

LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601


def with_value(x: Levels, more: float) -> Levels:
    """Value plus ``more`` (of the whole range), cut at white; hue and saturation stay."""
    x = x / 255.0
    v = x.max(1, keepdims=True)
    brighter = np.clip(v + more, 0, 1)
    return (brighter - (v - x) * _ratio(brighter, v)) * 255


def with_saturation(x: Levels, factor: float, more: float) -> Levels:
    """Saturation times ``factor`` plus ``more``, cut to [0, 1]; a grey has the hue of red."""
    if x.shape[1] == 1:
        return luma(with_saturation(np.repeat(x, 3, axis=1), factor, more))
    x = x / 255.0
    v = x.max(1, keepdims=True)
    s = _ratio(v - x.min(1, keepdims=True), v)
    richer = np.clip(s * factor + more, 0, 1)
    coloured = v - (v - x) * _ratio(richer, s)
    red = v * (1 - richer * np.array([0.0, 1.0, 1.0])[:, None, None])
    return np.where(s > 0, coloured, red) * 255


def luma(x: Levels) -> Float[np.ndarray, "N 1 H W"]:
    """The grey of the same lightness; a single channel is its own."""
    if x.shape[1] == 1:
        return x
    r, g, b = LUMA.astype(x.dtype)
    return r * x[:, 0:1] + g * x[:, 1:2] + b * x[:, 2:3]


def _ratio(top: Levels, bottom: Levels) -> Levels:
    """``top / bottom``, and nought where both are nought."""
    return top / np.where(bottom > 0, bottom, 1)
