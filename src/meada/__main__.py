"""``python -m meada``, also under ``torchrun``."""

from meada.cli.main import main

main()
