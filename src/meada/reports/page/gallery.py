"""What a round made: source, adversarial image and their difference, amplified, with labels."""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from PIL import Image
from torch import Tensor

from meada.reports.page.blocks import Block, Gallery, Picture, Section, Text
from meada.reports.page.groups import Experiment
from meada.reports.runs import Run

COLUMNS = 8
PIXELS = 128  # the longest side of a picture in the page
ROWS = ("source", "adversarial", "difference")


def galleries(experiment: Experiment) -> Section | None:
    """One run of each group: the first that kept pictures."""
    found: list[Block] = []
    for group in experiment.groups:
        run = next((run for run in group.runs if run.gallery()), None)
        if run is not None:
            found += _rounds(group.label, run, _classes(experiment))
    if not found:
        return None
    intro = Text(
        "Each source image was changed so that the network errs or becomes unsure. The difference "
        "is amplified around grey, by the factor under it. Under an image: its label, and, where "
        "the run wrote it down, what the network at that moment took it for."
    )
    return Section("What the rounds made", (intro, *found))


def _classes(experiment: Experiment) -> Sequence[str]:
    return next((run.classes for run in experiment.runs() if run.classes), ())


def _rounds(label: str, run: Run, classes: Sequence[str]) -> list[Block]:
    kept = run.gallery()
    numbers = sorted(
        int(name.removeprefix("round-").removesuffix(".source")) for name in kept if name.endswith(".source")
    )
    return [_gallery(label, run, kept, number, classes) for number in numbers]


def _gallery(label: str, run: Run, kept: dict[str, Tensor], number: int, classes: Sequence[str]) -> Gallery:
    source, made, labels = (kept[f"round-{number}.{n}"] for n in ("source", "adversarial", "label"))
    guesses = [kept.get(f"round-{number}.{n}_guess") for n in ("source", "adversarial")]
    name = lambda k: classes[k] if k < len(classes) else str(k)
    pictures = []
    for i in range(min(COLUMNS, len(labels))):
        told = [name(int(labels[i]))] * 2
        for row, guess in enumerate(guesses):
            if guess is not None:
                told[row] += f", read as {name(int(guess[i]))}"
        gain, change = amplified(made[i] - source[i])
        images = tuple(map(png, (source[i], made[i], change)))
        pictures.append(Picture(images, (*told, f"x {gain:.1f}")))
    missing = "" if guesses[0] is not None else "This run did not write predictions down."
    return Gallery(f"{label}, seed {run.seed}, round {number}", ROWS, tuple(pictures), missing)


def amplified(change: Tensor) -> tuple[float, Tensor]:
    """Around grey, so that nearly all of it fits; a few pixels may be cut off."""
    most = float(change.abs().flatten().double().quantile(0.99))
    gain = min(100.0, max(1.0, 0.5 / max(most, 1e-8)))
    return gain, 0.5 + gain * change


def png(image: Tensor) -> bytes:
    """An image in [0, 1], (C, H, W), no larger than the page needs."""
    levels = (image.clamp(0, 1) * 255).round().to("cpu").numpy().astype(np.uint8)
    picture = Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))
    picture.thumbnail((PIXELS, PIXELS))
    buffer = BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
