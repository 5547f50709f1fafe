"""Published weights: taken by name and shape, refused with the names, never executed."""

import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.plain import alexnet
from meada.networks.pretrained import LoadReport, load_weights
from meada.networks.resnet import resnet18


def small(num_classes: int = 5) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, num_classes))


def copied(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def source() -> dict[str, Tensor]:
    """Another draw of the same network, with batch-norm statistics other than the initial ones."""
    net = small()
    net[1](torch.randn(8, 4, 2, 2))
    return copied(net)


@pytest.fixture
def net() -> nn.Sequential:
    return small()


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".safetensors"])
def test_all_that_was_written_is_read(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor], suffix: str
) -> None:
    path = tmp_path / f"weights{suffix}"
    save_file(source, path) if suffix == ".safetensors" else torch.save(source, path)
    report = load_weights(net, path)
    assert same(copied(net), source)
    assert report == LoadReport(loaded=tuple(source), left=(), unused=())


def test_the_old_format_of_torch_is_read(tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor]) -> None:
    path = tmp_path / "old.pth"
    torch.save(source, path, _use_new_zipfile_serialization=False)
    load_weights(net, str(path))
    assert same(copied(net), source)


def test_the_network_keeps_its_precision(tmp_path: Path, net: nn.Sequential) -> None:
    torch.save({n: v.float() if v.ndim else v for n, v in copied(small()).items()}, tmp_path / "w")
    load_weights(net, tmp_path / "w")
    assert {p.dtype for p in net.parameters()} == {torch.float64}


def test_files_from_before_batch_norm_counted_are_read(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor]
) -> None:
    """torchvision's first ResNet files have no num_batches_tracked."""
    del source["1.num_batches_tracked"]
    torch.save(source, tmp_path / "w.pth")
    report = load_weights(net, tmp_path / "w.pth")
    assert report.left == ()
    assert torch.equal(net[1].running_var, source["1.running_var"])


def refused(net: nn.Module, path: Path, *, partial: bool = False) -> str:
    before = copied(net)
    with pytest.raises(MeadaError) as caught:
        load_weights(net, path, partial=partial)
    assert same(copied(net), before), "a refused file must leave the network as it was"
    sentence = str(caught.value)
    assert str(path) in sentence and "\n" not in sentence
    return sentence


def test_a_head_for_other_classes_is_refused_with_both_shapes(tmp_path: Path, source: dict[str, Tensor]) -> None:
    torch.save(source, tmp_path / "w.pth")
    sentence = refused(small(num_classes=7), tmp_path / "w.pth")
    assert "3.weight (5, 4) where the network has (7, 4)" in sentence
    assert "3.bias (5,) where the network has (7,)" in sentence
    assert "0.weight" not in sentence


def test_missing_and_unknown_names_are_refused_by_name_and_number(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor]
) -> None:
    torch.save({f"module.{name}": value for name, value in source.items()}, tmp_path / "w.pth")
    sentence = refused(net, tmp_path / "w.pth")
    assert "lacks 0.weight, 0.bias, 1.weight and 5 more" in sentence  # the counter is no loss
    assert "has module.0.weight, module.0.bias, module.1.weight and 6 more" in sentence


def test_partial_loading_takes_what_fits_and_says_what_is_left(tmp_path: Path, source: dict[str, Tensor]) -> None:
    source["extra"] = torch.zeros(3)
    del source["0.bias"]
    torch.save(source, tmp_path / "w.pth")
    net = small(num_classes=7)
    before = copied(net)
    report = load_weights(net, tmp_path / "w.pth", partial=True)
    assert report.left == ("0.bias", "3.weight", "3.bias")
    assert report.unused == ("3.weight", "3.bias", "extra")
    after = copied(net)
    assert all(torch.equal(after[name], before[name]) for name in report.left)
    assert all(torch.equal(after[name], source[name]) for name in report.loaded)
    assert set(report.loaded) | set(report.left) == set(before)


def test_partial_loading_of_nothing_is_refused(tmp_path: Path, net: nn.Sequential) -> None:
    counter = {"1.num_batches_tracked": torch.tensor(3)}  # fits any batch norm, and helps none
    torch.save({"encoder.weight": torch.zeros(2), **counter}, tmp_path / "w.pth")
    assert "encoder.weight" in refused(net, tmp_path / "w.pth", partial=True)


class Hostile:
    """Unpickled in the usual way, it would leave a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("partial", [True, False])
def test_a_hostile_pickle_is_refused_and_does_nothing(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor], zipped: bool, partial: bool
) -> None:
    mark, path = tmp_path / "mark", tmp_path / "w.pth"
    torch.save({**source, "x": Hostile(mark)}, path, _use_new_zipfile_serialization=zipped)
    torch.load(path, weights_only=False)
    assert mark.exists(), "the trap works where it is sprung"
    mark.unlink()
    assert "never loaded" in refused(net, path, partial=partial)
    assert not mark.exists()


def test_a_plain_hostile_pickle_is_refused_and_does_nothing(tmp_path: Path, net: nn.Sequential) -> None:
    path = tmp_path / "w.pt"
    path.write_bytes(pickle.dumps(Hostile(tmp_path / "mark"), protocol=2))
    refused(net, path)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("keep", [0, 1, 100, -10])
def test_a_truncated_file_is_refused(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor], suffix: str, keep: int
) -> None:
    path = tmp_path / f"w{suffix}"
    save_file(source, path) if suffix == ".safetensors" else torch.save(source, path)
    path.write_bytes(path.read_bytes()[:keep])
    assert "damaged" in refused(net, path)


@pytest.mark.parametrize("content", [b"an html page, say", b"\x80\x02}q\x00.", bytes(1000)])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_another_kind_of_file_is_refused(tmp_path: Path, net: nn.Sequential, content: bytes, suffix: str) -> None:
    path = tmp_path / f"w{suffix}"
    path.write_bytes(content)
    refused(net, path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([torch.zeros(2)], "holds a list"),
        (torch.zeros(2), "holds a Tensor"),
        ({}, "holds nothing"),
        ({"epoch": 3, "state_dict": {"0.weight": torch.zeros(2)}}, "epoch, state_dict"),
        ({0: torch.zeros(2)}, "holds 0"),
        ({"0.weight": torch.zeros(4, 3, 3, 3).to_sparse()}, "holds 0.weight"),
        ({"0.weight": torch.zeros(4, 3, 3, 3, device="meta")}, "holds 0.weight"),
    ],
)
def test_anything_but_tensors_by_name_is_refused(
    tmp_path: Path, net: nn.Sequential, content: object, said: str
) -> None:
    torch.save(content, tmp_path / "w.pth")
    assert said in refused(net, tmp_path / "w.pth", partial=True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.full((4,), float("nan")), "must hold finite numbers, got NaN or infinity in 0.bias"),
        (torch.ones(4, dtype=torch.int64), "got torch.int64 instead of torch.float64 in 0.bias"),
        (torch.ones(4, dtype=torch.complex64), "got torch.complex64 instead of torch.float64 in 0.bias"),
    ],
)
def test_numbers_that_copying_would_hide_are_refused(
    tmp_path: Path, net: nn.Sequential, source: dict[str, Tensor], value: Tensor, said: str
) -> None:
    torch.save(source | {"0.bias": value}, tmp_path / "w.pth")
    assert said in refused(net, tmp_path / "w.pth", partial=True)


@pytest.mark.parametrize("name", ["missing.pth", "."])
def test_a_path_without_a_file_is_refused(tmp_path: Path, net: nn.Sequential, name: str) -> None:
    assert "must be a file of weights" in refused(net, tmp_path / name)


def test_a_classifier_of_another_set_starts_from_a_trained_body(tmp_path: Path, single: None) -> None:
    trained = resnet18(num_classes=10)
    torch.save(trained.state_dict(), tmp_path / "r.pth")
    net = resnet18(num_classes=7)
    assert load_weights(net, tmp_path / "r.pth", partial=True).left == ("fc.weight", "fc.bias")
    body = lambda of: of[:-1].eval()(torch.full((1, 3, 32, 32), 0.25))
    assert torch.equal(body(net), body(trained))


def test_the_published_alexnet_convolutions(real_data: Path, single: None) -> None:
    """The five convolutions alone; their first filters are smooth, as random ones are not."""
    net = alexnet(num_classes=7)
    path = real_data / "weights" / "alexnet_imagenet_conv.pth"
    random = net.features[0].weight.detach().clone()
    report = load_weights(net, path, partial=True)
    assert report.left == tuple(f"classifier.{layer}.{part}" for layer in (1, 4, 6) for part in ("weight", "bias"))
    assert report.unused == ()
    assert roughness(random) == pytest.approx(1, abs=0.05)
    assert roughness(net.features[0].weight.detach()) < 0.6  # it is 0.499
    assert "lacks classifier.1.weight" in refused(net, path)


def roughness(filters: Tensor) -> float:
    """Mean square of neighbours' difference over twice the variance: 1 where they are unrelated."""
    steps = torch.cat([filters.diff(dim=2).flatten(), filters.diff(dim=3).flatten()])
    return float(steps.square().mean() / (2 * filters.var()))
