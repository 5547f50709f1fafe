"""Where data sets lie: the folder that MEADA_DATA names."""

import os
from pathlib import Path


def data_root(root: str | Path | None = None) -> Path:
    """``root`` if it is given, else ``$MEADA_DATA``, else ``~/.cache/meada``."""
    return Path(root or os.environ.get("MEADA_DATA") or Path.home() / ".cache" / "meada")
