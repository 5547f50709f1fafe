"""What holds for every corruption: type, shape, range, and an image's independence of its batch."""

import numpy as np
import pytest
import torch

from meada.corruptions import CORRUPTIONS, SEVERITIES, VALIDATION, corrupt, table_for
from meada.errors import MeadaError

ALL = CORRUPTIONS + VALIDATION
FIXED = {  # no random number in them
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
}


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_fifteen_and_the_four_in_the_order_of_the_benchmark() -> None:
    assert CORRUPTIONS[:4] == ("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur")
    assert CORRUPTIONS[4:9] == ("glass_blur", "motion_blur", "zoom_blur", "snow", "frost")
    assert CORRUPTIONS[9:12] == ("fog", "brightness", "contrast")
    assert CORRUPTIONS[12:] == ("elastic_transform", "pixelate", "jpeg_compression")
    assert VALIDATION == ("speckle_noise", "gaussian_blur", "spatter", "saturate")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_type_shape_and_range_stay(name, dtype, photographs) -> None:
    pixels = torch.from_numpy(photographs(3))
    images = pixels if dtype == torch.uint8 else (pixels / 255).to(dtype)
    before = images.clone()
    result = corrupt(images, name, 3)
    assert result.dtype == dtype
    assert result.shape == images.shape
    assert result.isfinite().all()
    assert result.min() >= 0
    assert result.max() <= (255 if dtype == torch.uint8 else 1)
    assert (result != images).any()
    assert torch.equal(images, before)  # the caller's images are the caller's


@pytest.mark.parametrize("shape", [(28, 28), (33, 60), (100, 41)])
@pytest.mark.parametrize("channels", [1, 3])
def test_any_size_and_one_channel(name, shape, channels, photographs) -> None:
    images = photographs(2, *shape)[:, :channels]
    for table in ("cifar", "imagenet"):
        for severity in SEVERITIES:
            assert corrupt(images, name, severity, constants=table).shape == images.shape


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
def test_an_image_gets_the_same_pixels_in_any_batch(name, kind, photographs) -> None:
    """Bit for bit, alone, in another order, and over the borders of blocks."""
    images = photographs(60)
    images = images if kind == "uint8" else (images / 255).astype(kind)
    index = 1000 + np.arange(60)
    whole = corrupt(images, name, 4, seed=7, index=index)
    order = np.random.default_rng(0).permutation(60)
    assert (corrupt(images[order], name, 4, seed=7, index=index[order]) == whole[order]).all()
    for one in (0, 42, 59):
        alone = corrupt(images[one : one + 1], name, 4, seed=7, index=[one + 1000])
        assert (alone[0] == whole[one]).all()


def test_so_does_a_larger_one(name, photographs) -> None:
    """Filters of large images go another way, and several of these are worked on at once."""
    images = photographs(5, 100, 96)
    whole = corrupt(images, name, 5)
    for one in range(5):
        assert (corrupt(images[one : one + 1], name, 5, index=[one]) == whole[one]).all()


def test_seed_and_index_change_the_random_ones_alone(name, photographs) -> None:
    images = photographs(2)
    first = corrupt(images, name, 3)
    assert (corrupt(images, name, 3) == first).all()
    for other in (corrupt(images, name, 3, seed=1), corrupt(images, name, 3, index=[8, 9])):
        assert (other == first).all() == (name in FIXED)


def test_two_copies_of_an_image_are_corrupted_differently(name, photographs) -> None:
    images = np.repeat(photographs(1), 2, axis=0)
    first, second = corrupt(images, name, 5)
    assert (first == second).all() == (name in FIXED)


def test_floats_agree_with_8_bits(name, photographs) -> None:
    """8-bit results are the float ones truncated: below them, by less than a level."""
    images = photographs(4)
    eight = corrupt(images, name, 4).astype(int)
    for kind in ("float32", "float64"):
        real = corrupt((images / 255).astype(kind), name, 4) * 255.0
        assert (real - eight).min() > -0.01
        assert (real - eight).max() < 1.01


def test_tensors_and_arrays_are_treated_alike(name, photographs) -> None:
    images = photographs(2)
    from_tensor = corrupt(torch.from_numpy(images), name, 2, index=torch.tensor([3, 5]))
    assert (from_tensor.numpy() == corrupt(images, name, 2, index=[3, 5])).all()


def test_memory_order_does_not_matter(name, photographs) -> None:
    images = photographs(2)
    channels_last = np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert (corrupt(channels_last, name, 3) == corrupt(images, name, 3)).all()


def test_constants_go_by_size_or_by_name(photographs) -> None:
    images = photographs(1)
    small = corrupt(images, "contrast", 1)
    assert (small == corrupt(images, "contrast", 1, constants="cifar")).all()
    assert (small != corrupt(images, "contrast", 1, constants="imagenet")).any()
    assert table_for(84, 84) == "cifar"
    assert table_for(85, 85) == "imagenet"


def test_an_empty_batch_is_an_empty_batch(name) -> None:
    assert corrupt(np.zeros((0, 3, 32, 32), np.uint8), name, 1).shape == (0, 3, 32, 32)


def test_black_and_white_images_do_not_break_anything(name) -> None:
    images = np.stack([np.zeros((3, 32, 32)), np.ones((3, 32, 32))])
    for severity in SEVERITIES:
        assert np.isfinite(corrupt(images, name, severity)).all()


@pytest.mark.parametrize("blur", ["defocus_blur", "zoom_blur", "gaussian_blur", "pixelate"])
@pytest.mark.parametrize("level", [1, 77, 128, 254, 255])
def test_a_flat_image_keeps_its_level_through_blurs(blur, level) -> None:
    """Truncation does not eat the rounding of a mean."""
    images = np.full((1, 3, 32, 32), level, np.uint8)
    for severity in SEVERITIES:
        assert (corrupt(images, blur, severity) == level).all()


IMAGES = np.zeros((2, 3, 32, 32), np.uint8)


@pytest.mark.parametrize(
    ("sentence", "call"),
    [
        ("unknown corruption 'fogg': did you mean 'fog'?", lambda: corrupt(IMAGES, "fogg", 1)),
        ("got 0 for 'fog'", lambda: corrupt(IMAGES, "fog", 0)),
        ("got 6 for 'fog'", lambda: corrupt(IMAGES, "fog", 6)),
        ("got True for 'fog'", lambda: corrupt(IMAGES, "fog", True)),
        ("unknown constants 'cifra'", lambda: corrupt(IMAGES, "fog", 1, constants="cifra")),
        ("(2, 3, 32)", lambda: corrupt(IMAGES[..., 0], "fog", 1)),
        ("(2, 32, 32, 3)", lambda: corrupt(IMAGES.transpose(0, 2, 3, 1), "fog", 1)),
        ("27x32", lambda: corrupt(IMAGES[:, :, 5:], "fog", 1)),
        ("600x32", lambda: corrupt(np.zeros((1, 3, 600, 32), np.uint8), "fog", 1)),
        ("int64", lambda: corrupt(IMAGES.astype(np.int64), "fog", 1)),
        ("got values from 0 to 255", lambda: corrupt(IMAGES.astype(float) + [0, 255] * 16, "fog", 1)),
        ("must be finite, got 6144 values", lambda: corrupt(IMAGES * np.nan, "fog", 1)),
        ("got shape (3,)", lambda: corrupt(IMAGES, "fog", 1, index=[1, 2, 3])),
        ("index must ", lambda: corrupt(IMAGES, "fog", 1, index=[-1, 2])),
        ("index must ", lambda: corrupt(IMAGES, "fog", 1, index=[0.5, 2])),
    ],
)
def test_bad_input_is_named(sentence, call) -> None:
    with pytest.raises(MeadaError, match=".*") as error:
        call()
    assert sentence in str(error.value)
