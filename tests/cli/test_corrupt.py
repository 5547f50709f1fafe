"""``meada corrupt`` from the outside."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from meada.cli.data import corrupt
from meada.errors import MeadaError

app = typer.Typer()
app.command()(corrupt)


def meada(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words], standalone_mode=False)
    if isinstance(result.exception, MeadaError):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def images(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "images.npy", rng.integers(0, 256, (4, 32, 32, 3)).astype(np.uint8))
    np.save(tmp_path / "labels.npy", np.arange(4))
    return tmp_path / "images.npy"


def test_writes_and_says_so(images, tmp_path) -> None:
    out = tmp_path / "c"
    names = "--corruptions=fog,contrast"
    code, output = meada(images, "--out", out, names, "--severity=3,1", "--workers=1")
    assert code == 0
    assert "16 corrupted images in" in output  # 4 images x 2 corruptions x 2 severities
    assert np.load(out / "fog.npy").shape == (8, 32, 32, 3)
    assert json.loads((out / "corruptions.json").read_text())["severities"] == [1, 3]


def test_json_is_the_sidecar(images, tmp_path) -> None:
    out = tmp_path / "c"
    _, output = meada(images, "--out", out, "--corruptions=contrast", "--json", "--workers=1")
    assert json.loads(output) == json.loads((out / "corruptions.json").read_text())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--corruptions=fogg"], "did you mean 'fog'"),
        (["--severity=1,x"], "--severity must be numbers separated by commas, such as 1,3,5, got 1,x"),
        (["--severity=7"], "severities must be from 1 to 5, got"),
        (["--constants=cifar100"], "did you mean 'cifar'"),
    ],
)
def test_bad_options_are_named(images, tmp_path, words, sentence) -> None:
    with pytest.raises(MeadaError) as error:
        meada(images, "--out", tmp_path / "c", *words)
    assert sentence in str(error.value)
    assert not (tmp_path / "c").exists()


def test_help_gives_an_example() -> None:
    _, output = meada("--help")
    assert "meada corrupt photos/" in output


def test_the_pictures_themselves_are_left_alone(tmp_path) -> None:
    """Else a second command would corrupt the copies, and a training would take fog for a class."""
    source = tmp_path / "photos"
    (source / "cat").mkdir(parents=True)
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(source / "cat" / "0.png")
    for out in (source, source / "foggy", tmp_path / "x" / ".." / "photos"):
        with pytest.raises(MeadaError, match="--out must be outside of the pictures to corrupt"):
            meada(source, "--out", out, "--corruptions=fog", "--severity=1", "--workers=1")
    assert [path.name for path in source.rglob("*")] == ["cat", "0.png"]
    (tmp_path / "file").write_text("")
    with pytest.raises(MeadaError, match="--out must be a folder, got the file"):
        meada(source, "--out", tmp_path / "file", "--corruptions=fog", "--workers=1")


@pytest.mark.parametrize("words", [["--size=-5"], ["--size=0"], ["--seed=-1"]])
def test_sizes_and_seeds_have_a_range(images, tmp_path, words) -> None:
    with pytest.raises(typer.BadParameter) as error:
        CliRunner().invoke(
            app, [str(images), "--out", str(tmp_path / "c"), *words], standalone_mode=False, catch_exceptions=False
        )
    assert "greater than or equal to" in str(error.value) and not (tmp_path / "c").exists()
