"""Published file formats, one file each: bytes in, 8-bit images and their labels out."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Raw(NamedTuple):
    """Images as they are stored, (N, H, W) if grey, (N, 3, H, W) if coloured; a label each."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
