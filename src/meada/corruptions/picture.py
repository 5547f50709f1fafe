"""Draw one picture of all corruptions: a row per corruption, severity growing to the right."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from meada.corruptions.batch import CORRUPTIONS, SEVERITIES, corrupt

LABELS = 150  # pixels for the names
GAP = 4
SIDE = 96  # small images are enlarged by a whole factor to at least this


def picture(
    image: UInt8[np.ndarray, "C H W"],
    names: Sequence[str] = CORRUPTIONS,
    *,
    seed: int = 0,
    constants: str | None = None,
) -> Image.Image:
    """The clean image and its five severities for each of ``names``."""
    factor = -(-SIDE // min(image.shape[1:]))
    height, width = (side * factor + GAP for side in image.shape[1:])
    columns = 1 + len(SEVERITIES)
    size = (LABELS + columns * width, 20 + len(names) * height)
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
    for column, title in enumerate(("clean", *(f"severity {s}" for s in SEVERITIES))):
        draw.text((LABELS + column * width, 2), title, fill="black", font=font)
    for row, name in enumerate(names):
        top = 20 + row * height
        draw.text((4, top + height // 2 - 8), name, fill="black", font=font)
        shown = [corrupt(image[None], name, s, seed=seed, constants=constants)[0] for s in SEVERITIES]
        for column, cell in enumerate((image, *shown)):
            sheet.paste(as_pillow(cell.repeat(factor, 1).repeat(factor, 2)), (LABELS + column * width, top))
    return sheet


def as_pillow(image: UInt8[np.ndarray, "C H W"]) -> Image.Image:
    return Image.fromarray(image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)))
