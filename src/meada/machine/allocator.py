"""Keep freed memory for the next step instead of giving it back to the system after each one.

A training step frees and asks for the same big blocks again and again. glibc hands blocks above a
threshold to the system at once, and the next step pays for a page fault every 4 KB of them. It is
the process's own business, so the command line does it and ``import meada`` does not.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
KEPT = 256 << 20  # bytes: the largest activations of a step, not the pool or a data set


def keep_freed_memory() -> bool:
    """Whether the C library took it; any but glibc is left as it is."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return all(library.mallopt(name, KEPT) == 1 for name in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD))
