"""Sections on training: curves, and pictures of each round (source, adversarial image, difference)."""

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO

import numpy as np
from PIL import Image
from torch import Tensor

from meada.evaluation.rounds import rounds_kept
from meada.reports.page.blocks import Block, Cell, Chart, Gallery, Picture, Section, Series, Table, Text, band
from meada.reports.page.groups import Experiment, Group
from meada.reports.runs import Run

SCORES = {
    "source_val": "Held-out source images",
    "crafted": "Source images under crafted shifts",
    "oracle": "The targets themselves (oracle)",
}


def training(experiment: Experiment) -> Section | None:
    groups = [g for g in experiment.groups if any(run.log for run in g.runs)]
    if not groups:
        return None
    runs = [(g, run) for g in experiment.groups for run in g.runs]
    ended = max(([x for x in run.log if "round" in x and "ce" in x] for _, run in runs), key=len)
    marks = tuple((int(line["step"]), f"round {line['round']}") for line in ended)
    chart = partial(Chart, "lines", x_label="step", marks=marks, small=True)
    blocks: list[Block] = [
        Text("The network every N steps. Vertical lines mark maximisation rounds; bars and bands span the seeds."),
        chart("Loss", _curves(groups, "loss"), y_label="loss"),
    ]
    for rule, title in SCORES.items():
        if series := _curves(groups, "scores", rule):
            name = f"{title}: accuracy of the candidates"
            blocks.append(chart(name, series, y_label="accuracy (%)", y_range=(0, 100)))
    lists = {g.label: " or ".join(", ".join(one) or "a list before 0.2.0" for one in g.crafted) for g in groups}
    if len(set(filter(None, lists.values()))) > 1:
        told = "; ".join(f"{label}: {shifts}" for label, shifts in lists.items() if shifts)
        why = "Crafted shifts are of families not trained on, so methods are scored on different ones and their levels"
        blocks.append(Text(f"{why} cannot be compared. {told}."))
    if rows := tuple(row for g, run in runs for row in _rounds(g, run)):
        columns = (
            "method", "seed", "round", "step", "pool", "CE before", "CE after", "entropy before",
            "entropy after", "cost", "largest change (of 255)", "seconds",
        )  # fmt: skip
        blocks.append(Table("Maximisation rounds", columns, rows, {name: 3 for name in columns[5:10]}))
        lines = [(f"{g.label}, seed {run.seed}", line) for g, run in runs for line in run.record.get("rounds", [])]
        notes = dict.fromkeys(f"{who}: {text}." for who, line in lines for text in line.get("warnings", []))
        blocks += [Text(text, "warning") for text in notes]
    return Section("Training", tuple(blocks))


def _curves(groups: Sequence[Group], key: str, rule: str = "") -> tuple[Series, ...]:
    """Mean over the seeds at each step, from the lowest to the highest; ``rule``: the key of a table in a line."""
    curves = []
    for group in groups:
        at: dict[int, list[float]] = {}
        for line in (line for run in group.runs for line in run.log):
            if (value := line.get(key, {}).get(rule) if rule else line.get(key)) is not None:
                at.setdefault(int(line["step"]), []).append(float(value))
        if at:
            steps = sorted(at)
            values = [at[s] for s in steps]
            curves.append(band(group.label, values, steps, group.colour, several=len(group.runs) > 1))
    return tuple(curves)


def _rounds(group: Group, run: Run) -> list[tuple[Cell, ...]]:
    steps = run.round_steps
    return [
        (
            group.label, run.seed, line["round"], steps.get(line["round"]), line["pool"],
            *line["ce"], *line["entropy"], float(line["cost"]),
            255 * float(line.get("linf_max", line["linf"])), float(line["seconds"]),
        )
        for line in run.record.get("rounds", [])
        if "ce" in line
    ]  # fmt: skip


COLUMNS = 8
PIXELS = 128  # the longest side of a picture in the page
ROWS = ("source", "adversarial", "difference")


def galleries(experiment: Experiment) -> Section | None:
    """One run of each group: the first that kept pictures."""
    found: list[Block] = []
    classes = next((run.classes for run in experiment.runs() if run.classes), ())
    for group in experiment.groups:
        if run := next((run for run in group.runs if run.folder.load_gallery()), None):
            found += rounds(f"{group.label}, seed {run.seed}", run.folder.load_gallery(), classes)
    if not found:
        return None
    intro = Text(
        "Each source image was changed so that the network errs or becomes unsure. The difference is amplified around "
        "grey, by the factor below it. Below an image: its label and, where the run recorded it, its prediction."
    )
    return Section("Samples of each round", (intro, *found))


def rounds(label: str, kept: Mapping[str, Tensor], classes: Sequence[str] = ()) -> list[Gallery]:
    """One gallery per round of a run's saved pictures."""
    return [_gallery(label, kept, number, classes) for number in rounds_kept(kept, "source")]


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
        captions = [name(int(labels[i]))] * 2
        for row, guess in enumerate(guesses):
            if guess is not None:
                captions[row] += f", predicted {name(int(guess[i]))}"
        gain, change = amplified(made[i] - source[i])
        images = tuple(map(png, (source[i], made[i], change)))
        pictures.append(Picture(images, (*captions, f"x {gain:.1f}")))
    missing = "" if guesses[0] is not None else "This run did not write predictions down."
    return Gallery(f"{label}, round {number}", ROWS, tuple(pictures), missing)


def amplified(change: Tensor) -> tuple[float, Tensor]:
    """Amplify around grey so that nearly all values fit; a few pixels may be clipped."""
    most = float(change.abs().flatten().double().quantile(0.99))
    gain = min(100.0, max(1.0, 0.5 / max(most, 1e-8)))
    return gain, 0.5 + gain * change


def png(image: Tensor) -> bytes:
    """PNG bytes of an image (C, H, W) in [0, 1], shrunk to the page's size if larger."""
    levels = (image.clamp(0, 1) * 255).round().to("cpu").numpy().astype(np.uint8)
    picture = Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0))
    picture.thumbnail((PIXELS, PIXELS))
    buffer = BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
