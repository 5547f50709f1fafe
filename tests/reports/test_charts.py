"""Charts: colours that the colour-blind tell apart, marks that repeat late, panels with gaps."""

from itertools import combinations

import numpy as np

from meada.reports.page.blocks import Chart, Series
from meada.reports.page.charts import COLOURS, MARKERS, plot

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB: nothing, deutan, protan, tritan
SEEN = (
    np.eye(3),
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
)
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, seen):
    """CIELAB of a colour as it is seen; a difference of 2 can just be noticed."""
    v = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    x = XYZ @ np.clip(np.array(seen) @ linear, 0, 1) / (0.9505, 1, 1.089)
    a, b, c = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * b - 16, 500 * (a - b), 200 * (b - c)])


def test_any_two_colours_stay_apart_whoever_looks():
    for seen in SEEN:
        assert all(np.linalg.norm(lab(a, seen) - lab(b, seen)) > 20 for a, b in combinations(COLOURS, 2))
    looks = {(k % len(COLOURS), k % len(MARKERS)) for k in range(40)}
    assert len(looks) == 40 and "D" not in MARKERS  # a diamond is the paper's


def test_panels_have_a_row_for_every_series_and_leave_gaps():
    one = Series("ERM (n=3)", (30.0, None), low=(28.0, None), high=(32.0, None), paper=(31.0, 55.0))
    two = Series("Tilted (n=1)", (60.0, 80.0), colour=6)
    figure = plot(Chart("panels", "Accuracy", (one, two), "domain", "accuracy (%)", ("svhn", "mnist_m")))
    first, second = figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == [one.name, two.name]
    assert (first.get_title(), second.get_title()) == ("svhn", "mnist_m")
    figure.canvas.draw()
