"""Pictures: what each round made (source, adversarial image, amplified difference), and examples of each domain."""

from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
from PIL import Image
from torch import Tensor

from meada.reports.page.blocks import Block, Gallery, Picture, Section, Text
from meada.reports.page.groups import Experiment

COLUMNS = 8
PIXELS = 128  # the longest side of a picture in the page
ROWS = ("source", "adversarial", "difference")


def galleries(experiment: Experiment) -> Section | None:
    """One run of each group: the first that kept pictures."""
    found: list[Block] = []
    for group in experiment.groups:
        run = next((run for run in group.runs if run.gallery()), None)
        if run is not None:
            classes = next((run.classes for run in experiment.runs() if run.classes), ())
            found += rounds(f"{group.label}, seed {run.seed}", run.gallery(), classes)
    if not found:
        return None
    intro = Text(
        "Each source image was changed so that the network errs or becomes unsure. The difference is amplified around "
        "grey, by the factor below it. Below an image: its label and, where the run recorded it, its prediction."
    )
    return Section("What the rounds made", (intro, *found))


def rounds(label: str, kept: Mapping[str, Tensor], classes: Sequence[str] = ()) -> list[Gallery]:
    """One gallery per round of what a run kept."""
    numbers = sorted(
        int(name.removeprefix("round-").removesuffix(".source")) for name in kept if name.endswith(".source")
    )
    return [_gallery(label, kept, number, classes) for number in numbers]


def stacked(title: str, parts: Sequence[Gallery], name: str = "") -> Gallery:
    """Galleries of the same width below each other."""
    rows = tuple(f"{part.title.rpartition(', ')[2]}\n{row}" for part in parts for row in part.rows)
    columns = zip(*(part.pictures for part in parts), strict=True)
    pictures = (Picture(sum((p.images for p in c), ()), sum((p.captions for p in c), ())) for c in columns)
    return Gallery(title, rows, tuple(pictures), name=name)


def examples(title: str, domains: Mapping[str, Tensor], name: str = "") -> Gallery:
    """A row per domain: images in [0, 1] of the same classes, (N, C, H, W)."""
    columns = zip(*domains.values(), strict=True)
    pictures = tuple(Picture(tuple(map(png, column)), ("",) * len(column)) for column in columns)
    return Gallery(title, tuple(domains), pictures, name=name)


def _gallery(label: str, kept: Mapping[str, Tensor], number: int, classes: Sequence[str]) -> Gallery:
    source, made, labels = (kept[f"round-{number}.{n}"] for n in ("source", "adversarial", "label"))
    guesses = [kept.get(f"round-{number}.{n}_guess") for n in ("source", "adversarial")]
    name = lambda k: classes[k] if k < len(classes) else str(k)
    pictures = []
    for i in range(min(COLUMNS, len(labels))):
        told = [name(int(labels[i]))] * 2
        for row, guess in enumerate(guesses):
            if guess is not None:
                told[row] += f", predicted {name(int(guess[i]))}"
        gain, change = amplified(made[i] - source[i])
        images = tuple(map(png, (source[i], made[i], change)))
        pictures.append(Picture(images, (*told, f"x {gain:.1f}")))
    missing = "" if guesses[0] is not None else "This run did not write predictions down."
    return Gallery(f"{label}, round {number}", ROWS, tuple(pictures), missing)


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
