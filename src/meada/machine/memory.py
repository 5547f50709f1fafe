"""Ask the C library to keep freed memory, which makes training steps on a CPU faster."""

import ctypes
import sys
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
KEPT_BYTES = 256 << 20  # the largest activations of a step, not the pool or a data set


def keep_freed_memory() -> bool:
    """Keep freed memory for the next step instead of giving it back to the system; whether the C library took it.

    A training step frees and asks for the same big blocks again and again. glibc hands blocks above a threshold to the
    system at once, and the next step pays for a page fault every 4 KB of them. Other C libraries are left as they are.
    """
    library: Any = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    return hasattr(library, "gnu_get_libc_version") and all(
        library.mallopt(name, KEPT_BYTES) == 1 for name in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD)
    )
