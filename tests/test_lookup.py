"""Things by name: built in, somebody's own, timm's; code only where a person named it; each fault one sentence."""

import re
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from meada.errors import MeadaError
from meada.lookup import Trusted, lookup
from meada.networks.normalise import Normalise
from meada.runs.functions import find, make
from meada.runs.network import build_network
from meada.runs.recipe import load_recipe, resolve
from meada.spaces import find_space
from meada.units import sigma


def network(name):
    return find("network", name, trust=[name])


def linear(num_classes: int, inputs: int = 12) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, num_classes))


@pytest.fixture
def module(monkeypatch):
    made = ModuleType("somebodys")
    made.linear = linear
    made.fixed = lambda: linear(4)
    made.number = 3
    monkeypatch.setitem(sys.modules, "somebodys", made)


def test_a_function_of_a_module_makes_a_network(module):
    assert network("somebodys:linear")(num_classes=5)(torch.rand(2, 3, 2, 2)).shape == (2, 5)


def test_a_function_with_classes_of_its_own_is_not_told_of_others(module):
    assert network("somebodys:fixed")(num_classes=3)(torch.rand(2, 3, 2, 2)).shape == (2, 4)


def test_a_recipe_takes_arguments_without_annotation(tmp_path):
    (tmp_path / "n.py").write_text(
        "from torch import nn\ndef net(num_classes, width=3, *rest, **more):\n"
        "    last = nn.Linear(width, num_classes)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(12, width), last)\n"
    )
    name = f"{tmp_path / 'n.py'}:net"
    recipe = resolve({
        "name": "x", "data": {"name": "embedded"}, "method": {"name": "erm"},
        "network": {"name": name, "width": 7},
    }, trust=[name])  # fmt: skip
    assert make("network", recipe.network, num_classes=2)[1].out_features == 7


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("lenett", "did you mean 'lenet'"),
        ("nowhere.py:net", "must be in an existing file, got nowhere.py"),
        ("no.such.module:net", "importing no.such.module fails with ModuleNotFoundError"),
        ("somebodys:nothing", "somebodys has no function 'nothing'"),
        ("somebodys:number", "has no function 'number'"),
        (":net", "unknown network ':net'"),
    ],
)
def test_faults_are_one_sentence(module, name, sentence):
    with pytest.raises(MeadaError, match=sentence):
        network(name)


def test_a_file_that_fails_is_told_with_its_error(tmp_path):
    (tmp_path / "bad.py").write_text("1 / 0")
    with pytest.raises(MeadaError, match="bad.py fails with ZeroDivisionError"):
        network(f"{tmp_path / 'bad.py'}:net")


class Fake(nn.Module):
    """As timm makes them: a network on normalised images, which says how they are normalised."""

    def __init__(self, classes):
        super().__init__()
        self.fc = nn.Linear(12, classes)
        self.pretrained_cfg = {"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.25, 0.2)}

    def forward(self, x):
        return self.fc(x.flatten(1))


@pytest.fixture
def timm(monkeypatch):
    asked = []

    def create_model(name, *, pretrained, num_classes):
        asked.append((name, pretrained, num_classes))
        return Fake(num_classes)

    fake = SimpleNamespace(list_models=lambda: ["resnet18", "vit_tiny"], create_model=create_model)
    monkeypatch.setitem(sys.modules, "timm", fake)
    return asked


def test_timm_networks_take_pixels_and_keep_their_names(timm):
    net = network("timm:resnet18")(num_classes=4, pretrained=True)
    assert timm == [("resnet18", True, 4)]
    assert list(net.state_dict()) == ["fc.weight", "fc.bias"]  # as in its published files
    x = torch.rand(2, 3, 2, 2)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ((0.1, 0.2, 0.3), (0.5, 0.25, 0.2)))
    assert torch.allclose(net(x), net.fc(((x - mean) / std).flatten(1)))
    assert sigma(net).tolist() == pytest.approx([0.5, 0.25, 0.2])
    assert any(isinstance(m, Normalise) for m in net.modules())


def test_timm_is_asked_for_by_name(timm, monkeypatch):
    with pytest.raises(MeadaError, match="unknown to timm: did you mean 'resnet18'"):
        network("timm:resnet81")
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MeadaError, match="needs timm, which cannot be imported here"):
        network("timm:resnet18")


def test_a_hubs_name_or_a_folder_is_code(timm):
    for name in ("timm:hf-hub:somebody/net", "timm:local-dir:/tmp/net"):
        with pytest.raises(MeadaError, match="this model needs code from timm:"):
            find("network", name)


def test_a_file_does_not_make_timm_download(timm):
    table = {"name": "timm:resnet18", "pretrained": True}
    with pytest.raises(MeadaError, match="downloads weights; pass --network timm:resnet18"):
        make("network", table, num_classes=2)
    make("network", {**table, "name": Trusted("timm:resnet18")}, num_classes=2)
    assert timm == [("resnet18", True, 2)]


@pytest.mark.parametrize("kind", ["method", "space", "data set", "network"])
def test_code_is_run_only_if_the_person_named_it(kind, tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "c.py").write_text(f"open({str(marker)!r}, 'w').close()\ndef f():\n    return 3\n")
    name = f"{tmp_path / 'c.py'}:f"
    for trust in ((), ["other.py:f"], [f"{tmp_path / 'c.py'}:g"]):
        with pytest.raises(
            MeadaError, match=f"needs code from .*c.py:f; pass --{kind.split()[0]} .*c.py:f to allow it"
        ):
            lookup(kind, name, {}, trust=trust)
    assert not marker.exists()
    assert lookup(kind, name, {}, trust=[name])() == 3 and marker.exists()
    assert lookup(kind, Trusted(name), {})() == 3


def test_the_persons_file_runs_and_not_the_strangers(tmp_path):
    for folder, value in (("theirs", 1), ("mine", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.py").write_text(f"def f():\n    return {value}\n")
    mine = f"{tmp_path / 'mine' / 'net.py'}:f"
    assert lookup("network", f"{tmp_path / 'theirs' / 'net.py'}:f", {}, trust=[mine])() == 2


PARTS = """
from meada.datasets import DATASETS
from meada.methods import METHODS

def data(train: int = 40):
    return DATASETS["embedded"](train=train, validation=20, test=20)

def method(beta: float = 2.0):
    return METHODS["meada"](beta=beta)
"""


def test_a_recipe_takes_data_and_method_from_a_file(tmp_path):
    (tmp_path / "p.py").write_text(PARTS)
    names = {kind: f"{tmp_path / 'p.py'}:{kind}" for kind in ("data", "method")}
    table = {"name": "x", "network": {"name": "lenet"}, **{kind: {"name": name} for kind, name in names.items()}}
    recipe = resolve(table, trust=names.values())
    assert recipe.data["train"] == 40 and recipe.method["beta"] == 2.0
    assert len(make("data", recipe.data).train) == 40
    inert = resolve(table)
    assert inert.method == {"name": names["method"]}  # read, and nothing run
    with pytest.raises(MeadaError, match="this run needs code from .*p.py:data; pass --data "):
        make("data", inert.data)


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("gc:enable", "must give a Module, got NoneType"),
        ("json:dumps", "network 'json:dumps' fails with TypeError"),
        ("os:getcwd", "must give a Module, got str"),
    ],
)
def test_a_function_that_gives_no_network_is_refused(name, sentence):
    with pytest.raises(MeadaError, match=sentence):
        make("network", {"name": Trusted(name)}, num_classes=2)


def test_a_name_that_the_recipe_does_not_have_is_refused():
    with pytest.raises(MeadaError, match="--trust me.py:net must be a name in the recipe, got .*lenet"):
        load_recipe("digits/erm", trust=["me.py:net"])


def test_a_timm_that_fails_to_import_is_one_sentence(tmp_path, monkeypatch):
    """As beside a torchvision of another torch."""
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(MeadaError, match="RuntimeError: operator torchvision::nms does not exist") as caught:
        network("timm:resnet18")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def fn(a): ...", "fails with TypeError"),
        ("def fn(): raise OSError('no')", "fails with OSError: no"),
        ("def fn(): return 3", "must return a meada.Space, got int"),
    ],
)
def test_a_space_that_cannot_be_made_is_named(tmp_path, code, told):
    (tmp_path / "own.py").write_text(code)
    name = f"{tmp_path}/own.py:fn"
    with pytest.raises(MeadaError, match=re.escape(f"space '{name}' ") + f".*{told}"):
        find_space(Trusted(name))


def test_a_network_of_ones_own_keeps_its_layout(tmp_path):
    (tmp_path / "own.py").write_text("from torch import nn\ndef net(): return nn.Sequential(nn.Conv2d(3, 8, 3))")
    code = Trusted(f"{tmp_path}/own.py:net")
    for name, ours in ((code, False), ("lenet", True)):
        recipe = load_recipe("quickstart/erm", [f"network.name={name}"], trust=[name])
        weight = next(build_network(recipe, 10).parameters())
        assert weight.is_contiguous(memory_format=torch.channels_last) == ours
