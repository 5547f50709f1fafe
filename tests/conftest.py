"""Float64, one seed and one tiny network with closed-form gradients, for every test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))  # tests_tiny, for tests that start processes

hypothesis.settings.register_profile("no clock", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("no clock")


@pytest.fixture(autouse=True)
def _exact_and_repeatable() -> Iterator[None]:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def single() -> Iterator[None]:
    """The precision that users run in, where a test needs it."""
    torch.set_default_dtype(torch.float32)
    yield


@pytest.fixture
def linear_net() -> nn.Module:
    """Softmax regression on flat pixels: every gradient has a closed form."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 5))


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(6, 3, 4, 4), torch.randint(5, (6,))


@pytest.fixture
def real_data() -> Path:
    """The folder of published files; tests that need it say so when it is not there."""
    root = os.environ.get("MEADA_DATA")
    if not root or not Path(root).is_dir():
        pytest.skip("needs the published files: set MEADA_DATA to their folder")
    return Path(root)
