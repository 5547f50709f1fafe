"""A picture file as the network sees it: 8-bit RGB of one size, or a sentence on why it cannot be.

What would be guesswork is refused: CMYK without its profile, and more than 8 bits a channel.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from meada.errors import MeadaError

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
EXACT = ("RGB", "L", "1", "P")  # become RGB without loss
TRANSPARENT = ("RGBA", "LA", "PA")
ADVICE = "save it as 8-bit RGB"


def decode(path: Path, side: int) -> NDArray[np.uint8]:
    """(3, side, side) by Pillow's bilinear filter; the aspect ratio is not kept.

    A photograph is turned as its EXIF tag says; transparency is laid over white.
    """
    try:
        with Image.open(path) as image:
            refuse(image)
            upright = ImageOps.exif_transpose(image)
            small = flat(upright).resize((side, side), Image.Resampling.BILINEAR)
    except MeadaError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        what = " ".join(str(error).replace(str(path), "the file").split()) or type(error).__name__
        raise MeadaError(f"is no picture that can be read ({what})") from None
    return np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1))


def refuse(image: Image.Image) -> None:
    """Names what is wrong with a kind of picture that has no exact 8-bit RGB form."""
    # A 16-bit colour PNG opens as "RGB" and loses its lower bytes: only the tile tells.
    if image.mode.startswith(("I", "F")) or ";16" in str(getattr(image, "tile", "")):
        raise MeadaError(f"has more than 8 bits a channel: {ADVICE}")
    if image.mode == "CMYK":
        raise MeadaError(f"is CMYK, whose colours depend on a profile: {ADVICE}")
    if image.mode not in (*EXACT, *TRANSPARENT):
        raise MeadaError(f"is of mode {image.mode}: {ADVICE}")


def flat(image: Image.Image) -> Image.Image:
    """RGB; what is transparent shows white."""
    if image.mode not in TRANSPARENT and "transparency" not in image.info:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    white = Image.new("RGBA", clear.size, "white")
    return Image.alpha_composite(white, clear).convert("RGB")
