"""Random 3x3 filters, one kernel per image for all of its channels (PRIME: Modas et al., 2022)."""

from torch.nn.functional import conv2d, pad

from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Families, Images


def filter(*, strength: float = 1.0) -> Space:
    """Convolve with ``delta + sigma * N(0, 1)``, where sigma is uniform in [0, 4 * strength].

    Borders are repeated, so that they do not turn dark.
    """
    most = 4.0 * positive("strength", strength)

    def draw(random: Random, shape: Shape) -> Theta:
        sigma = random.uniform("sigma", high=most)
        kernel = sigma[:, None, None] * random.normal("kernel", 3, 3)
        kernel[:, 1, 1] += 1
        return {"kernel": kernel}

    def transform(x: Images, theta: Theta) -> Images:
        n, c, h, w = x.shape
        weight = theta["kernel"].to(x)[:, None].expand(n, c, 3, 3).reshape(n * c, 1, 3, 3)
        padded = pad(x, (1, 1, 1, 1), mode="replicate").reshape(1, n * c, h + 2, w + 2)
        return conv2d(padded, weight, groups=n * c).view(n, c, h, w)

    families: Families = frozenset({"filter", "edges", "blur", "tone"})  # tone: a kernel's sum is seldom 1
    return Space(draw=draw, transform=transform, families=families, smooth=True, name="filter")
