"""The examples of docs/loops.md: files that run as they stand, short, and shown as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "examples"))
from insert import BLOCK, filled  # noqa: E402

NEEDS = {
    "lightning_loop": "pytorch_lightning",
    "hugging_face_loop": "transformers",
    "other_augmentations": "kornia",
    "tracking": "tensorboard",
}
FILES = sorted(p for p in (DOCS / "examples").glob("*.py") if p.stem != "insert")
PAGE = (DOCS / "loops.md").read_text()


def test_the_page_shows_every_file_as_it_is():
    assert {found[1] for found in BLOCK.findall(PAGE)} == {f"examples/{p.name}" for p in FILES}
    assert filled(PAGE) == PAGE, "run python docs/examples/insert.py"


def glue(path: Path) -> int:
    lines = [line.strip() for line in path.read_text().splitlines()]
    return sum(1 for line in lines if line and not line.startswith(("import ", "from ", "#")))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_is_short(path):
    assert glue(path) <= 20


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_runs_as_it_stands(path, tmp_path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem], reason="an extra is not installed")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
