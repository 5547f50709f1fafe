"""Generate frost textures (ferns of ice) for use without the published photographs.

Each of five pictures has the mean colour and the contrast of the photograph that it stands for, so
that the corruption is about as strong; it is another texture all the same, and records say so.
"""

from functools import cache

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from meada.streams import Streams, sample_streams

SIZE = (495, 660)  # rows, columns: those of the fifth photograph
# mean red, green, blue and the deviation of the grey, of the five photographs
TONES = (
    (78, 149, 166, 18),
    (201, 205, 214, 22),
    (201, 205, 214, 22),
    (138, 153, 165, 29),
    (112, 123, 135, 43),
)
FERNS = 260
TWIGS = 24  # on each side of a stem


@cache
def grow(number: int) -> UInt8[np.ndarray, "H W 3"]:
    """Picture ``number`` of five."""
    rng = sample_streams(0, "ferns of ice", number + 1, [0])
    drawn = np.asarray(_draw(_ferns(rng)), np.float32) + 20 * rng.normal(SIZE, lane=1)[0]
    glow = gaussian_filter(drawn, 0.6) + 2 * gaussian_filter(drawn, 12)
    *tone, deviation = TONES[number]
    relief = (glow - glow.mean()) / glow.std() * deviation
    return np.clip(relief[..., None] + np.array(tone), 0, 255).astype(np.uint8)


def _ferns(rng: Streams) -> Float[np.ndarray, "segments 5"]:
    """Segments (x, y, x, y, shade): stems, and twigs at sixty degrees that shorten outwards."""
    x, y, turn, size, shade = rng.uniform((5, FERNS))[0]
    x, y, turn, size = x * SIZE[1], y * SIZE[0], turn * 2 * np.pi, 40 + 140 * size**2
    shade = 70 + 185 * shade
    stems = _segments(x, y, turn, size, shade)
    along = np.linspace(0.05, 0.95, TWIGS)[:, None]
    twigs = [
        _segments(
            x + along * size * np.cos(turn),
            y + along * size * np.sin(turn),
            turn + side * np.pi / 3,
            0.45 * size * (1 - along),
            0.8 * shade,
        )
        for side in (-1, 1)
    ]
    return np.concatenate([stems, *twigs])


def _segments(*parts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "segments 5"]:
    x, y, turn, length, shade = (part.ravel() for part in np.broadcast_arrays(*parts))
    return np.stack([x, y, x + length * np.cos(turn), y + length * np.sin(turn), shade], 1)


def _draw(segments: Float[np.ndarray, "segments 5"]) -> Image.Image:
    """Bright over dark."""
    image = Image.new("L", SIZE[::-1])
    pen = ImageDraw.Draw(image)
    for *line, shade in segments[segments[:, 4].argsort()]:
        pen.line(line, fill=int(shade))
    return image
