"""Corrupted sets on disk: the published layout, resumed, shared out, never mixed."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meada.corruptions import CORRUPTIONS, SEVERITIES, corrupt
from meada.corruptions import write as module
from meada.corruptions.sources import Stack, open_source, tree
from meada.corruptions.write import Settings, write
from meada.errors import MeadaError

pytestmark = pytest.mark.usefixtures("generated_frost")
FEW = Settings(corruptions=("gaussian_noise", "contrast"))


@pytest.fixture
def stack(photographs) -> Stack:
    images = photographs(12).transpose(0, 2, 3, 1)
    return Stack("twelve", np.ascontiguousarray(images), np.arange(12) % 10)


@pytest.fixture
def folder(photographs, tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for number, image in enumerate(photographs(5, 40, 50)):
        place = root / ("cat" if number % 2 else "dog")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(place / f"{number}.png")
    return root


def test_the_published_layout(stack, tmp_path: Path, monkeypatch) -> None:
    """NAME.npy holds the images of severity 1, then of 2, ...; labels.npy repeats the labels."""
    monkeypatch.setattr(module, "CHUNK", 5)  # so that a task does not begin at the first image
    out = tmp_path / "c"
    write(stack, out, Settings())
    assert {path.stem for path in out.glob("*.npy")} == {*CORRUPTIONS, "labels"}
    labels = np.load(out / "labels.npy")
    assert labels.dtype == np.uint8
    assert (labels == np.tile(np.arange(12) % 10, 5)).all()
    images = stack.images.transpose(0, 3, 1, 2)
    for name in ("snow", "jpeg_compression"):
        made = np.load(out / f"{name}.npy")
        assert made.shape == (60, 32, 32, 3)
        assert made.dtype == np.uint8
        for severity in SEVERITIES:
            part = made[(severity - 1) * 12 : severity * 12].transpose(0, 3, 1, 2)
            assert (part == corrupt(images, name, severity)).all()


def test_the_sidecar_says_that_and_how_they_were_made(stack, tmp_path: Path) -> None:
    write(stack, tmp_path / "c", Settings(("fog",), (2, 4), seed=5))
    said = json.loads((tmp_path / "c" / "corruptions.json").read_text())
    assert said["generated"] is True
    assert said["complete"] is True
    assert said["seed"] == 5
    assert said["constants"] == "cifar"
    assert said["severities"] == [2, 4]
    assert said["frost"] == "generated texture"
    assert said["images"] == 12
    assert said["by"].startswith("meada ")


def test_processes_share_the_work_and_change_nothing(stack, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)  # three tasks a severity, the last one short
    write(stack, tmp_path / "one", FEW)
    monkeypatch.undo()
    write(stack, tmp_path / "two", FEW, workers=2)
    for name in ("gaussian_noise.npy", "contrast.npy", "labels.npy"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_second_call_makes_what_is_missing_only(stack, tmp_path: Path) -> None:
    write(stack, tmp_path, FEW)
    kept = tmp_path / "contrast.npy"
    before, made = kept.stat().st_mtime_ns, (tmp_path / "gaussian_noise.npy").read_bytes()
    (tmp_path / "gaussian_noise.npy").unlink()
    told: list[str] = []
    write(stack, tmp_path, FEW, tell=lambda phase, done, total: told.append(phase))
    assert set(told) == {"gaussian_noise"}
    assert kept.stat().st_mtime_ns == before
    assert (tmp_path / "gaussian_noise.npy").read_bytes() == made


def test_an_interrupted_file_is_not_there(stack, tmp_path: Path, monkeypatch) -> None:
    def interrupted(*task: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_corrupt_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(stack, tmp_path, FEW)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"corruptions.json", "labels.npy"}
    assert json.loads((tmp_path / "corruptions.json").read_text())["complete"] is False


def test_the_list_of_corruptions_may_grow(stack, tmp_path: Path) -> None:
    write(stack, tmp_path, Settings(("contrast",)))
    said = write(stack, tmp_path, Settings(("fog", "contrast")))
    assert said["corruptions"] == ["contrast", "fog"]
    assert (tmp_path / "fog.npy").exists()


def test_sets_made_otherwise_are_not_mixed(stack, tmp_path: Path) -> None:
    write(stack, tmp_path, FEW)
    other = Stack("twelve", stack.images[::-1], stack.labels)
    for source, settings, key in (
        (stack, Settings(FEW.corruptions, seed=1), "seed"),
        (stack, Settings(FEW.corruptions, constants="imagenet"), "constants"),
        (stack, Settings(FEW.corruptions, (1, 2)), "severities"),
        (other, FEW, "sha256"),
    ):
        with pytest.raises(MeadaError, match=f"{key} must be that of the corruptions in .*choose another --out"):
            write(source, tmp_path, settings)


def test_a_folder_becomes_a_folder_a_corruption_and_severity(folder, tmp_path: Path) -> None:
    out = tmp_path / "c"
    write(tree(folder), out, Settings(("fog", "pixelate"), (1, 5)), workers=1)
    files = {path.relative_to(out).as_posix() for path in out.rglob("*.png")}
    names = {f"{place}/{n}.png" for n in range(5) for place in ["cat" if n % 2 else "dog"]}
    made = {f"{c}/{s}/{name}" for c in ("fog", "pixelate") for s in (1, 5) for name in names}
    assert files == made | {"corruptions.png"}
    clean = np.asarray(Image.open(folder / "dog" / "2.png")).transpose(2, 0, 1)
    place = sorted(path.relative_to(folder) for path in folder.rglob("*.png")).index(Path("dog/2.png"))
    expected = corrupt(clean[None], "fog", 5, index=[place])[0]
    saved = np.asarray(Image.open(out / "fog" / "5" / "dog" / "2.png")).transpose(2, 0, 1)
    assert (saved == expected).all()


def test_a_folder_is_resumed_picture_by_picture(folder, tmp_path: Path) -> None:
    out, settings = tmp_path / "c", Settings(("gaussian_noise",), (3,))
    write(tree(folder), out, settings)
    kept, lost = (out / "gaussian_noise" / "3" / "dog" / f"{n}.png" for n in (0, 2))
    before, content = kept.stat().st_mtime_ns, lost.read_bytes()
    lost.unlink()
    write(tree(folder), out, settings)
    assert kept.stat().st_mtime_ns == before
    assert lost.read_bytes() == content


def test_the_picture_shows_every_corruption_at_every_severity(stack, tmp_path: Path) -> None:
    write(stack, tmp_path, FEW)
    sheet = np.asarray(Image.open(tmp_path / "corruptions.png").convert("RGB"))
    cell = lambda row, column: sheet[20 + row * 100 :, 150 + column * 100 :][:96, :96][::3, ::3]
    images = stack.images[:1].transpose(0, 3, 1, 2)
    assert (cell(0, 0) == stack.images[0]).all()
    for row, name in enumerate(FEW.corruptions):
        for severity in SEVERITIES:
            shown = cell(row, severity).transpose(2, 0, 1)
            assert (shown == corrupt(images, name, severity)[0]).all()


def test_pictures_may_be_cut_to_squares_and_greys_stay_grey(photographs, tmp_path: Path) -> None:
    image = photographs(1, 60, 90)[0].transpose(1, 2, 0)
    Image.fromarray(image).save(tmp_path / "a.jpg")
    Image.fromarray(image).convert("L").save(tmp_path / "b.png")
    cut = tree(tmp_path, size=48)
    assert [cut.read(n).shape for n in (0, 1)] == [(3, 48, 48), (1, 48, 48)]


def test_published_files_are_not_added_to(stack, tmp_path: Path) -> None:
    save(tmp_path / "fog.npy", stack.images)
    with pytest.raises(MeadaError, match=r"holds fog\.npy but no corruptions\.json"):
        write(stack, tmp_path, FEW)
    assert [path.name for path in tmp_path.iterdir()] == ["fog.npy"]


def test_sources_by_name_are_found_first(stack) -> None:
    assert open_source("cifar-test", sources={"cifar-test": lambda: stack}) is stack


def save(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def test_an_array_and_its_labels_are_read(stack, tmp_path: Path) -> None:
    path = save(tmp_path / "images.npy", stack.images)
    save(tmp_path / "labels.npy", stack.labels)
    read = open_source(str(path))
    assert isinstance(read, Stack)
    assert (read.images == stack.images).all()
    other = open_source(str(path), labels=save(tmp_path / "other.npy", stack.labels[::-1]))
    assert isinstance(other, Stack)
    assert (other.labels == stack.labels[::-1]).all()


def test_bad_sources_are_named(stack, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    images = save(tmp_path / "images.npy", stack.images)
    cases = {
        "is neither a folder nor a .npy": lambda: open_source("nowhere"),
        "did you mean 'cifar10'": lambda: open_source("cifar11", sources={"cifar10": lambda: stack}),
        "empty must hold pictures": lambda: open_source(str(tmp_path / "empty")),
        "labels.npy is missing": lambda: open_source(str(images)),
        "12 images and 11 labels": lambda: open_source(str(images), save(tmp_path / "short.npy", stack.labels[:11])),
        "float64 of shape (12,)": lambda: open_source(str(images), save(tmp_path / "real.npy", stack.labels / 2)),
        "(12, 3, 32, 32)": lambda: open_source(str(save(tmp_path / "first.npy", stack.images.transpose(0, 3, 1, 2)))),
        "must be a .npy file of numbers": lambda: open_source(
            str(save(tmp_path / "objects.npy", np.array([{}], dtype=object)))
        ),
        "did you mean 'snow'": lambda: Settings(("snoww",)),
        "severities must be from 1 to 5": lambda: Settings(severities=(0,)),
        "unknown constants 'imagenett'": lambda: Settings(constants="imagenett"),
    }
    for sentence, call in cases.items():
        with pytest.raises(MeadaError) as error:
            call()
        assert sentence in str(error.value)


def test_a_pickle_that_calls_itself_an_array_is_not_run(stack, tmp_path: Path) -> None:
    """NumPy would unpickle whatever does not begin like an array, if it were allowed to."""

    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "run"),)

    for name in ("images.npy", "labels.npy"):
        save(tmp_path / "images.npy", stack.images)
        (tmp_path / name).write_bytes(pickle.dumps(Hostile()))
        with pytest.raises(MeadaError, match=f"{name} must be a .npy file of numbers"):
            open_source(str(tmp_path / "images.npy"))
    assert not (tmp_path / "run").exists()


def test_bad_pictures_are_named(photographs, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(MeadaError, match=r"a\.png cannot be read as a picture"):
        tree(tmp_path).read(0)
    Image.fromarray(photographs(1)[0, 0, :20]).save(tmp_path / "a.png")
    with pytest.raises(MeadaError, match=r"a\.png is 32x20: sides run from 28 to 512"):
        tree(tmp_path).read(0)
    Image.fromarray(photographs(1)[0, 0]).save(tmp_path / "a.jpg")
    with pytest.raises(MeadaError, match="would both become PNG"):
        tree(tmp_path)


def test_a_tree_knows_when_it_has_changed(folder) -> None:
    before = tree(folder).digest()
    assert tree(folder).digest() == before
    (folder / "cat" / "1.png").rename(folder / "cat" / "9.png")
    assert tree(folder).digest() != before


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_below_one_are_refused_before_anything_is_written(stack, tmp_path: Path, workers) -> None:
    with pytest.raises(MeadaError, match=f"workers must be 1 or more, got {workers}"):
        write(stack, tmp_path / "c", FEW, workers=workers)
    assert not (tmp_path / "c").exists()


def test_labels_below_zero_are_refused(stack, tmp_path: Path) -> None:
    images = save(tmp_path / "images.npy", stack.images)
    with pytest.raises(MeadaError, match=r"labels.npy must hold labels from 0 up, got -7"):
        open_source(str(images), save(tmp_path / "labels.npy", stack.labels - 7))


def test_what_a_killed_process_left_is_removed_and_a_second_writer_is_refused(stack, tmp_path: Path) -> None:
    out = tmp_path / "c"
    (out / ".source.abcdefgh").mkdir(parents=True)
    (out / ".source.abcdefgh" / "images.npy").write_bytes(b"half")
    (out / ".fog.npy.partial").write_bytes(b"half")
    (out / ".labels.npy.a1b2c3d4").write_bytes(b"half")
    (out / ".gitignore").write_text("*")
    seen = []

    def tell(phase: str, done: int, total: int) -> None:
        with pytest.raises(MeadaError, match="must be written by one process at a time"):
            write(stack, out, FEW)
        seen.append(done)

    write(stack, out, FEW, tell=tell)
    assert seen and {path.name for path in out.glob(".*")} == {".gitignore"}
