"""A program for ``torchrun``: several recipes one after the other, in float64."""

import sys
from pathlib import Path

import torch
from tests_tiny import load_tiny

from meada.machine.distributed import process_group
from meada.runs.run import run


def main() -> None:
    """All in one process each: a start of torch is what costs."""
    torch.set_default_dtype(torch.float64)
    with process_group(torch.device("cpu")):
        for recipe in sys.argv[2:]:
            run(load_tiny(recipe), Path(sys.argv[1]) / Path(recipe).stem)
    print("threads left:", *threads())


def threads() -> list[str]:
    """Names of this process's threads, as Linux keeps them."""
    return sorted((task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir())


if __name__ == "__main__":
    main()
