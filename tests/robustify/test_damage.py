"""One flipped bit in a folder of ``robustify`` is refused with the file's name, or makes no difference."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import tests_tiny
from tests_tiny import SEED

from meada.errors import MeadaError
from meada.robustify import pipeline, robustify, training

FLIPS = int(os.environ.get("MEADA_FLIPS", "20").split(",")[0])  # in a finished folder; a third of it in a stopped one
TINY: dict[str, Any] = {
    "network": f"{tests_tiny.__file__}:tiny", "side": 32, "say": lambda text: None, "quiet": True,
    "settings": ("steps=4", "trial_steps=1", "shifted=4", "severities=[3]", "rates=[0.01]", "batch_size=8"),
}  # fmt: skip
REWRITTEN = {"outcome.json", "MODEL_CARD.md", "report.html", "model.safetensors"}  # from the rest, by every call


class Stop(Exception):
    pass


def flipped(whole: Path, out: Path, rng: random.Random) -> tuple[Path, str]:
    """A copy with one bit of one file turned over; the file, and what to tell."""
    shutil.copytree(whole, out)
    files = sorted(p for p in out.rglob("*") if p.is_file() and p.stat().st_size)
    path = rng.choice([p for p in files if p.name not in REWRITTEN])
    content = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return path, f"{path.relative_to(out)}, byte {place}, bit {bit}, MEADA_SEED={SEED}"


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_a_flipped_bit_is_named_or_makes_no_difference(photos, tmp_path, monkeypatch, single, state):
    rng = random.Random(f"{SEED} {state}")
    monkeypatch.setattr(training, "SAVE_SECONDS", 0.0)  # a checkpoint every step
    monkeypatch.setattr(pipeline, "write_report", lambda *_: None)
    whole = robustify(photos, tmp_path / "whole", **TINY).content
    begun = tmp_path / "whole"
    if state == "stopped":
        begun, tune = tmp_path / "begun", training.tune

        def cut(net: Any, samples: Any, how: Any, checkpoint: Path | None = None, tell: Any = None) -> Any:
            def stop(done: int, n: int) -> None:
                tell(done, n)
                if done == 3 and "hardened" in str(checkpoint):
                    raise Stop

            return tune(net, samples, how, checkpoint, stop)

        monkeypatch.setattr(training, "tune", cut)
        with pytest.raises(Stop):
            robustify(photos, begun, **TINY)
        monkeypatch.setattr(training, "tune", tune)
        assert (begun / "stages" / "hardened.checkpoint").is_file()
    refused, number = 0, FLIPS if state == "finished" else FLIPS // 3
    for k in range(number):
        path, where = flipped(begun, tmp_path / str(k), rng)
        try:
            found = robustify(photos, tmp_path / str(k), **TINY).content
            for key in ("delivered", "candidates", "differences", "plan"):
                assert found[key] == whole[key], (key, where)
        except MeadaError as error:
            assert path.name in str(error) or "checksums.json" in str(error), (where, str(error))
            refused += 1
    assert refused > number / 2


def test_what_a_killed_process_left_does_not_stand_in_the_way(photos, tmp_path, monkeypatch, single):
    monkeypatch.setattr(pipeline, "write_report", lambda *_: None)
    out = tmp_path / "out"
    out.mkdir()
    (out / ".plan.json.a1b2c3d4").write_text("{")
    robustify(photos, out, **TINY)
    assert not [p.name for p in out.rglob(".*") if p.name != ".lock"]
