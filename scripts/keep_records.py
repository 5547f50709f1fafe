"""Copy what is committed of finished runs: scripts/keep_records.py RUN ... --out results/digits.

Recipe, record and log as they are; of the predictions those of the last training step, in four bytes an image: enough
to compute accuracy and calibration error again.
"""

import argparse
from pathlib import Path

import torch

from meada.evaluation.predictions import load_predictions, save_predictions
from meada.files import write_bytes
from meada.runs.run_folder import RunFolder

RULE = "last"
SMALL = {"label": torch.uint8, "guess": torch.uint8, "confidence": torch.float16}


def keep(run: RunFolder, out: Path) -> None:
    if not (run.finished and run.predictions.exists()):
        raise SystemExit(f"{run.path} must be a finished run with predictions, got none")
    kept = RunFolder(out / run.path.name)
    for file in (run.recipe, run.record, run.log):
        write_bytes(kept.path / file.name, file.read_bytes())
    by_rule, classes = load_predictions(run.predictions)
    domains = {
        name: {part: value.to(SMALL[part]) for part, value in parts.items()} for name, parts in by_rule[RULE].items()
    }
    save_predictions(kept.predictions, {RULE: domains}, classes)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("runs", type=Path, nargs="+")
    options.add_argument("--out", type=Path, required=True)
    chosen = options.parse_args()
    for path in chosen.runs:
        keep(RunFolder(path), chosen.out)
        print(chosen.out / path.name)


if __name__ == "__main__":
    main()
