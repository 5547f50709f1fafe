import pytest


@pytest.fixture(autouse=True)
def _in_single_precision(single):
    """Other libraries' loops run in float32."""
