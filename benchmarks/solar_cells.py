"""Copy the pictures of the package elpv-dataset with certain labels to folders MODULE/CLASS.

python -m benchmarks.solar_cells example/cells
"""

import argparse
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

NAMES = {0.0: "functional", 1.0: "defective"}  # probability of a defect; the unsure thirds are left out


def lay_out(source: Path, out: Path) -> int:
    """Copy the pictures whose label in ``labels.csv`` is certain; return how many."""
    lines = [line.split() for line in (source / "labels.csv").read_text(encoding="utf-8").splitlines() if line.strip()]
    sure = [(file, NAMES[float(p)], kind) for file, p, kind in lines if float(p) in NAMES]
    for file, label, kind in sure:
        folder = out / kind / label
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, folder / Path(file).name)
    return len(sure)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=Path)
    out = options.parse_args().out
    spec = find_spec("elpv_dataset")
    if spec is None or spec.origin is None:
        sys.exit("the package elpv-dataset must be installed: pip install elpv-dataset==1.0.0.post1")
    print(f"{lay_out(Path(spec.origin).parent / 'data', out):,} pictures in {out}")


if __name__ == "__main__":
    main()
