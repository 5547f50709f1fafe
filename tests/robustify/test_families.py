"""Whether views may change colour, by what the probe reads without it."""

import torch
from torch import nn

from meada.datasets import Samples
from meada.robustify.training import choose_families, grey, luminance, space_of
from meada.spaces import view_random
from meada.spaces.wide import MEMBERS


class Reads(nn.Module):
    """A classifier of two classes by one linear measurement of the mean colour."""

    def __init__(self, weights: list[float], limit: float) -> None:
        super().__init__()
        self.head, self.limit = nn.Linear(3, 1), limit
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([weights]))
            self.head.bias.fill_(-limit)

    def forward(self, x):
        score = self.head(x.mean((2, 3)))
        return torch.cat([-score, score], 1)


def pictures(by_colour: bool) -> Samples:
    """Class 1 is red and class 0 blue, or class 1 is bright and class 0 dark."""
    y = torch.arange(40) % 2
    images = torch.full((40, 3, 8, 8), 40, dtype=torch.uint8)
    images[y == 1] = 40 if by_colour else 200
    if by_colour:
        images[y == 1, 0], images[y == 0, 2] = 200, 200
    return Samples(images, y)


def test_colour_is_left_alone_where_it_is_the_label():
    found = choose_families(Reads([1.0, 0.0, -1.0], 0.0), pictures(by_colour=True))
    assert found["probe"] == 100 and found["lost"] > 0.9 and not found["colour"]


def test_colour_is_changed_where_brightness_is_the_label():
    found = choose_families(Reads([1.0, 1.0, 1.0], 1.4), pictures(by_colour=False))
    assert found["probe"] == found["probe_on_grey"] == 100 and found["colour"]


def test_without_colour_no_family_of_colour_is_trained_on():
    assert "colour" in space_of(colour=True).families and "colour" not in space_of(colour=False).families
    assert {"filter", "geometry", "frequency"} <= space_of(colour=False).families


def test_luminance_leaves_the_differences_between_channels():
    x = 0.4 + 0.2 * torch.rand(6, 3, 12, 12)
    space = luminance(MEMBERS["colour_curve"]())
    y = space.transform(x, space.draw(view_random(0, 0, 0, range(6)), x.shape))
    assert not torch.allclose(grey(y), grey(x), atol=0.01)  # brightness has changed
    torch.testing.assert_close(y - grey(y), x - grey(x), rtol=0, atol=1e-5)
