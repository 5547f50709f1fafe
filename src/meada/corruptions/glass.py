"""Glass blur: swap each pixel with a near one, from the last pixel to the first.

The publication means to swap two pixels, but both sides of its assignment are views of one array,
so the first pixel is overwritten and the second keeps its colour: the published files hold copies,
and so do these. A copy has a closed form. Pixel p takes what q held: q's old colour where q comes
after p in the order of work (or is p), and q's new one where it came before, so the chain goes on.
Chains are followed by doubling, for all pixels of all images at once.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from meada.corruptions.arrays import Levels
from meada.streams import Streams

Sources = Int64[np.ndarray, "N P"]  # for each pixel, the one whose old colour it takes


def shuffle(x: Levels, rng: Streams, reach: int, rounds: int) -> Levels:
    """``rounds`` passes in which a pixel copies one up to ``reach`` rows and columns away."""
    n, channels, height, width = x.shape
    y = x.reshape(n, channels, -1)
    for lane in range(rounds):
        source = sources(rng, height, width, reach, lane)
        y = np.take_along_axis(y, source[:, None], axis=2)
    return y.reshape(x.shape)


def sources(rng: Streams, height: int, width: int, reach: int, lane: int) -> Sources:
    """Where each pixel's colour comes from after one pass; steps run from -reach to reach - 1."""
    draws = rng.sixteen((2, height * width), lane).astype(np.int64)
    down, right = ((draws * (2 * reach)) >> 16).transpose(1, 0, 2) - reach
    here = np.arange(height * width)
    target = np.where(_worked(height, width, reach), here + down * width + right, here)
    return target if reach == 1 else follow(target)  # reach 1 only looks at pixels still to come


def follow(target: Sources) -> Sources:
    """Resolve chains: a target later in memory has been worked on, so its own target counts."""
    here = np.arange(target.shape[1])
    old = target <= here  # the order of work is from the last pixel to the first
    while not old.all():
        # a pixel whose chain has not ended jumps to where its target has got to
        onward = np.take_along_axis(target, target, 1)
        ended = np.take_along_axis(old, target, 1)
        target, old = np.where(old, target, onward), old | ended
    return target


@lru_cache(maxsize=8)
def _worked(height: int, width: int, reach: int) -> Bool[np.ndarray, " P"]:
    """The pixels that look elsewhere: rows and columns from reach + 1 to size - reach."""
    rows, columns = np.zeros(height, bool), np.zeros(width, bool)
    rows[reach + 1 : height - reach + 1] = True
    columns[reach + 1 : width - reach + 1] = True
    return (rows[:, None] & columns).ravel()
