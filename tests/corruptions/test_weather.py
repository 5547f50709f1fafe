"""Snow, frost and fog, against slower computations with the same random numbers."""

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage, stats

from meada.corruptions import corrupt, frost_source
from meada.corruptions.blur import motion
from meada.corruptions.constants import CIFAR, TABLES
from meada.corruptions.weather import PHOTOGRAPHS, TONES, crop, ice_texture, plasma, textures
from meada.streams import sample_streams


def diamond_square(size: int, decay: float, uniform: np.ndarray) -> np.ndarray:
    """Point by point, every neighbour looked up modulo the size."""
    m, draw = np.zeros((size, size)), iter(uniform)
    step, wibble = size, 100.0
    while step >= 2:
        half = step // 2
        corners = range(0, size, step)
        mean = lambda *at: sum(m[i % size, j % size] for i, j in at) / 4
        for i in corners:
            for j in corners:
                around = ((i, j), (i + step, j), (i, j + step), (i + step, j + step))
                m[i + half, j + half] = mean(*around) + wibble**2 * next(draw)
        for i in corners:
            for j in corners:
                around = ((i, j), (i, j + step), (i + half, j + half), (i - half, j + half))
                m[i, j + half] = mean(*around) + wibble**2 * next(draw)
        for i in corners:
            for j in corners:
                around = ((i, j), (i + step, j), (i + half, j + half), (i + half, j - half))
                m[i + half, j] = mean(*around) + wibble**2 * next(draw)
        step, wibble = half, wibble / decay
    return (m - m.min()) / (m.max() - m.min())


@pytest.mark.parametrize(("height", "width"), [(32, 32), (28, 33)])
def test_fog_is_a_diamond_square_map(height, width) -> None:
    rng = sample_streams(0, "fog", 1, np.arange(2))
    ours = plasma(rng, height, width, 1.75)
    size = 32 if width == 32 else 64
    uniform = (rng.sixteen((size * size,)) + 0.5) / 32768 - 1
    for image in range(2):
        theirs = diamond_square(size, 1.75, uniform[image])[:height, :width]
        np.testing.assert_allclose(ours[image], theirs, atol=1e-5)


def test_fog_lightens_black_up_to_white_and_keeps_the_maximum(photographs) -> None:
    """x' = (x + c m) b / (b + c) with b the brightest value, m in [0, 1] the map."""
    images = photographs(4) / 255
    rng = sample_streams(0, "fog", 5, np.arange(4))
    banks = plasma(rng, 32, 32, 1.75)[:, None]
    bright = images.max((1, 2, 3), keepdims=True)
    expected = (images + 1.5 * banks) * bright / (bright + 1.5)
    np.testing.assert_allclose(corrupt(images, "fog", 5), expected, atol=1e-6)
    assert (expected.max((1, 2, 3)) <= bright.ravel() + 1e-9).all()


def test_rougher_fog_at_smaller_decay() -> None:
    """A decay nearer to one leaves more of the small scales."""
    rng = sample_streams(0, "fog", 1, np.arange(50))
    rough = [np.abs(np.diff(plasma(rng, 32, 32, decay))).mean() for decay in (3.0, 2.0, 1.5)]
    assert rough == sorted(rough)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_snow_step_by_step(table, severity, photographs) -> None:
    """The layer enlarged by SciPy, cut at the threshold, blurred, laid on with its half turn."""
    images = photographs(2, 40, 32)
    mean, deviation, zoom, threshold, radius, sigma, keep = TABLES[table]["snow"][severity - 1]
    rng = sample_streams(0, "snow", severity, np.arange(2))
    small = [ceil(side / zoom) for side in (40, 32)]
    noise = mean + deviation * rng.normal(small).astype(float)
    large = np.stack([ndimage.zoom(layer, zoom, order=1) for layer in noise])
    top, left = (large.shape[1] - 40) // 2, (large.shape[2] - 32) // 2
    large = large[:, top : top + 40, left : left + 32]
    layer = np.floor(255 * np.clip(np.where(large < threshold, 0, large), 0, 1))
    fallen = motion(layer[:, None], rng.uniform((), -135.0, -45.0, lane=1), radius, sigma)
    x = images.astype(float)
    grey = 0.299 * x[:, 0:1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]
    pale = keep * x + (1 - keep) * np.maximum(x, 1.5 * grey + 127.5)
    expected = np.clip(pale + fallen + np.rot90(fallen, 2, axes=(2, 3)), 0, 255)
    ours = corrupt(images, "snow", severity, constants=table)
    assert np.mean(np.abs(ours - np.floor(expected)) <= 1) > 0.999  # a flake on the threshold


def test_snow_only_lightens(photographs) -> None:
    images = photographs(8)
    for severity in range(1, 6):
        assert (corrupt(images, "snow", severity).astype(int) - images).min() >= -1


def test_frost_is_the_image_and_a_piece_of_a_picture(photographs, generated_frost) -> None:
    images = photographs(50) / 255
    pieces = crop(textures(0.2, 32, 32), sample_streams(0, "frost", 5, np.arange(50)), 32, 32) / 255
    expected = np.clip(0.75 * images + 0.45 * pieces, 0, 1)
    np.testing.assert_allclose(corrupt(images, "frost", 5), expected, atol=1e-9)


def test_each_picture_of_frost_and_each_place_is_drawn_alike() -> None:
    """Pictures of their own number, row and column: a crop tells where it is from."""
    numbers = np.indices((5, 40, 50)).astype(np.uint8).transpose(1, 0, 2, 3)
    cut = crop(tuple(numbers), sample_streams(0, "frost", 1, np.arange(4000)), 32, 32)
    which, top, left = cut[:, :, 0, 0].T
    assert stats.chisquare(np.bincount(which, minlength=5)).pvalue > 1e-4
    assert stats.chisquare(np.bincount(top, minlength=8)).pvalue > 1e-4
    assert stats.chisquare(np.bincount(left, minlength=18)).pvalue > 1e-4
    assert (cut[:, 1, 31, 31] == top + 31).all()
    for a, b in ((which, top), (which, left), (top, left)):
        assert abs(np.corrcoef(a.astype(float), b.astype(float))[0, 1]) < 5 / np.sqrt(4000)


def test_photographs_are_shrunk_by_taking_every_fifth_pixel(tmp_path: Path, monkeypatch) -> None:
    """Rows and columns as red and green: the third of five, as bilinear sampling takes it."""
    monkeypatch.setenv("MEADA_DATA", str(tmp_path))
    (tmp_path / "frost").mkdir()
    rows, columns = np.indices((198, 240))
    picture = np.stack([rows, columns, 0 * rows], -1).astype(np.uint8)
    for name in PHOTOGRAPHS:
        Image.fromarray(picture).save(tmp_path / "frost" / name, format="PNG")
    small = textures(0.2, 32, 32)[0]
    assert small.shape == (3, 40, 48)  # 198 / 5 = 39.6, rounded
    assert small[0, :, 0].tolist() == list(range(2, 198, 5))
    assert small[1, 0].tolist() == list(range(2, 240, 5))


def test_frost_on_a_grey_image_is_grey(photographs, generated_frost) -> None:
    image = photographs(1)[:, :1] / 255
    pieces = crop(textures(0.2, 32, 32), sample_streams(0, "frost", 2, [0]), 32, 32) / 255
    luma = np.tensordot(pieces[0], [0.299, 0.587, 0.114], axes=(0, 0))
    expected = np.clip(image[0, 0] + 0.3 * luma, 0, 1)
    np.testing.assert_allclose(corrupt(image, "frost", 2)[0, 0], expected, atol=1e-6)


def test_the_source_of_frost_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEADA_DATA", str(tmp_path))
    assert frost_source() == "generated texture"
    (tmp_path / "frost").mkdir()
    for number, name in enumerate(PHOTOGRAPHS):
        picture = np.full((200, 300, 3), 10 * number, np.uint8)
        Image.fromarray(picture).save(tmp_path / "frost" / name)
    assert frost_source() == "published photographs"
    white = corrupt(np.full((60, 3, 32, 32), 1.0), "frost", 5)
    levels = np.rint((white - 0.75) / 0.45 * 255)[:, 0, 0, 0]
    assert set(levels) <= {0, 10, 20, 30, 40}
    assert len(set(levels)) == 5


@pytest.mark.parametrize("number", range(5))
def test_grown_frost_is_as_bright_as_the_photograph_it_stands_for(number) -> None:
    picture = ice_texture(number).astype(float)
    *tone, deviation = TONES[number]
    assert picture.mean((0, 1)) == pytest.approx(tone, abs=2)
    assert picture.mean(2).std() == pytest.approx(deviation, abs=2)


def test_published_frost(real_data: Path) -> None:
    """The photographs, at a fifth of their size: every fifth pixel, from the third."""
    assert frost_source() == "published photographs"
    first = np.asarray(Image.open(real_data / "frost" / "frost1.png").convert("RGB"))
    small = textures(0.2, 32, 32)[0]
    assert small.shape == (3, 120, 180)
    assert (small[:, 7, 9] == first[37, 47]).all()
    for number, name in enumerate(PHOTOGRAPHS):
        tone = np.asarray(Image.open(real_data / "frost" / name).convert("RGB")).mean((0, 1))
        assert tone == pytest.approx(TONES[number][:3], abs=1)


def test_constants_are_those_of_the_paper_in_places() -> None:
    assert CIFAR["snow"][4] == (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8)
    assert TABLES["imagenet"]["fog"][0] == (1.5, 2)
