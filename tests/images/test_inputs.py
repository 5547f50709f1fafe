"""Images and labels from outside: what is meant is taken, the rest is refused with its cause."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from meada.errors import MeadaError
from meada.images.inputs import as_images, as_labels, check_classes, images_and_labels

X = torch.rand(6, 3, 8, 8)
Y = torch.arange(6) % 3


def refused(x, y, *words):
    with pytest.raises(MeadaError) as error:
        images_and_labels(x, y)
    for word in words:
        assert word in str(error.value), error.value
    assert "must" in str(error.value) and "got" in str(error.value)


def test_images_in_range_are_taken_as_they_are():
    x, y = images_and_labels(X, Y)
    assert x is X and y is Y


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_arrays_are_taken(kind):
    array = (X.numpy() * 255).astype(kind) if kind == np.uint8 else X.numpy().astype(kind)
    x, _ = images_and_labels(array, Y.numpy())
    torch.testing.assert_close(x.float(), X, atol=1 / 255 if kind == np.uint8 else 1e-7, rtol=0)


def test_eight_bits_are_divided_by_255():
    x, _ = images_and_labels(torch.tensor([0, 51, 255], dtype=torch.uint8).view(3, 1, 1, 1), [0, 0, 0])
    assert x.flatten().tolist() == [0, 0.2, 1]


def test_a_rounding_outside_is_clamped():
    x, _ = images_and_labels(X * 1.0016 - 0.0008, Y)
    assert 0 <= x.min() <= x.max() <= 1
    refused(X * 1.01 - 0.0055 - 0.002, Y, "[0, 1]")


def test_read_only_arrays_and_reversed_ones_are_taken():
    array = X.numpy()[:, :, ::-1]
    array.flags.writeable = False
    torch.testing.assert_close(images_and_labels(array, Y)[0], X.flip(2))


@pytest.mark.parametrize(
    "x, words",
    [
        ((X - 0.45) / 0.22, ["normalised", "meada.with_normalisation(net, mean, std)"]),
        (X * 255, ["divide by 255"]),
        (X * 3, ["scaled"]),
        (X.where(X < 0.9, torch.tensor(float("nan"))), ["finite", "NaN"]),
        (X.permute(0, 2, 3, 1), ["(N, H, W, C)", "permute(0, 3, 1, 2)"]),
        (X[:, 0], ["grey", "images[:, None]"]),
        (X[0], ["image[None]"]),
        (X[0].permute(1, 2, 0), ["(H, W, C)"]),
        (X[0, 0], ["(N, C, H, W)"]),
        ((X * 255).long(), ["int64", "torch.uint8"]),
        (X > 0.5, ["bool"]),
        (X[:, :0], ["at least one channel"]),
        ("pictures", ["images must be a tensor", "str"]),
        ([X[0], X[0, :, :4]], ["different shapes"]),
    ],
)
def test_other_images_are_refused_with_their_likely_cause(x, words):
    refused(x, Y, *words)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_labels_of_any_width(kind):
    _, y = images_and_labels(X, Y.numpy().astype(kind))
    assert y.dtype == torch.int64 and torch.equal(y, Y)
    assert torch.equal(images_and_labels(X, Y.to(getattr(torch, kind)))[1], Y)


@pytest.mark.parametrize("labels", [Y.tolist(), tuple(Y.tolist()), list(Y), [np.int32(v) for v in Y.tolist()]])
def test_labels_as_a_list(labels):
    assert torch.equal(images_and_labels(X, labels)[1], Y)


@pytest.mark.parametrize(
    "y, words",
    [
        (torch.eye(3)[Y], ["one-hot", "labels.argmax(1)"]),
        (torch.eye(3)[Y].long(), ["one-hot"]),
        (torch.full((6, 3), 1 / 3), ["probabilities"]),
        (Y[:, None], ["labels[:, 0]"]),
        (Y.double(), ["labels.long()"]),
        (Y[:5], ["6 images and 5 labels"]),
        (Y - 1, ["zero or more", "-1"]),
        (["cat"] * 6, ["labels must be a tensor", "str"]),
        (None, ["labels must be", "NoneType"]),
        (Y[0], ["shape (N,)"]),
    ],
)
def test_other_labels_are_refused_by_name(y, words):
    refused(X, y, *words)


def test_they_come_in_the_precision_of_the_network():
    net = nn.Linear(2, 2).float()
    x, y = images_and_labels(X.double(), Y.int(), net)
    assert x.dtype == torch.float32 and y.dtype == torch.int64
    x, _ = images_and_labels((X * 255).byte(), Y, net)
    assert x.dtype == torch.float32


def test_a_network_without_weights_leaves_the_precision():
    assert images_and_labels(X.float(), Y, nn.Flatten())[0].dtype == torch.float32


def test_none_at_all_are_taken():
    x, y = images_and_labels(X[:0], Y[:0])
    assert len(x) == len(y) == 0


def test_eight_bits_stay_eight_bits_for_a_pool():
    assert as_images((X * 255).byte()).dtype == torch.uint8
    assert as_labels([1, 2], 2).tolist() == [1, 2]


def test_classes_that_the_network_does_not_know():
    check_classes(Y, 3)
    with pytest.raises(MeadaError, match=r"labels must be in 0\.\.1, .* got 0 to 2"):
        check_classes(Y, 2)


def test_pil_images_are_taken():
    pixels = (X * 255).byte()
    pictures = [Image.fromarray(one.permute(1, 2, 0).numpy()) for one in pixels]
    assert torch.equal(as_images(pictures), pixels)
    assert as_images([one.convert("L") for one in pictures]).shape == (6, 1, 8, 8)
    refused([pictures[0], pictures[1].resize((4, 4))], [0, 1], "a list of Image")


def test_big_endian_arrays_and_columns_of_objects_are_taken():
    assert torch.equal(as_images(X.numpy().astype(">f4")).float(), X.float())
    assert as_labels(np.array([2, 0, 1], dtype=object), 3).tolist() == [2, 0, 1]
    refused(X, np.array([None] * 6, dtype=object), "labels", "ndarray of object")


def test_names_of_classes_are_refused_by_name():
    refused(X, ["cat", "dog"] * 3, "got the text 'cat': number the classes")
    refused(X, np.array(["cat", "dog"] * 3), "got the text 'cat': number the classes")


def test_masks_and_a_single_output_are_named():
    refused(X > 0.5, Y, "bool: use images.float()")
    with pytest.raises(MeadaError, match="got 0 to 1: give a network of two classes two outputs"):
        check_classes(torch.tensor([0, 1]), 1)
