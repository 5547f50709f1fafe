"""Sections of the report page that need the predictions: corruptions, classes, confusion, calibration."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.robustness import reliability_curve
from meada.robustify.card import some
from meada.robustify.labels import as_classes
from meada.robustify.outcome import Outcome
from meada.robustify.scoring import Scores

GROUPS = {"held_out": "held out", "corruptions": "corruptions", "validation_shifts": "shifts"}  # as in the table
MOST_CLASSES = 20  # maximum for a confusion matrix; for more, the most frequent confusions are listed
MOST_ROWS = 30  # maximum of classes in a table, half of them from each end


def corruptions(outcome: Outcome) -> Section:
    """Accuracy under each corruption and shift: a chart of plain and delivered, a table of all candidates."""
    every = outcome.by_change()
    titles = tuple(name.replace("_", " ") for name in every["plain"])
    bars = tuple(Series(name, tuple(every[name].values()), colour=k) for k, name in enumerate(pair(outcome)))
    rows = tuple(zip(titles, *(one.values() for one in every.values()), strict=True))
    heading = "Accuracy (%) by corruption and shift"
    chart = Chart("bars", heading, bars, "change", "accuracy (%)", titles, y_range=(0, 100), small=True)
    return Section("Corruptions and shifts", (chart, Table("Accuracy (%)", ("change", *every), rows)))


def classes(outcome: Outcome, scores: Scores) -> Section:
    """Accuracy of each class for plain and for the delivered model; the largest loss first."""
    if outcome.delivered == "plain":
        return Section("Classes", (Text("The delivered model is plain fine-tuning, so no class changes."),))
    clean, changed = per_class(outcome, scores, ["held_out"]), per_class(outcome, scores, scores.group("corruption/"))
    by_change = sorted(changed, key=lambda one: one[3] - one[2])
    lookup = {one[0]: one for one in clean}
    rows: list[tuple[Cell, ...]] = []
    for name, n, before, after in ends(by_change):
        _, _, *held = lookup.get(name, (name, 0, None, None))
        rows.append((name, n, before, after, after - before, *held))
    worse = [one[0] for one in by_change if one[3] < one[2]]
    said = (
        f"Under corruptions, the accuracy of {len(worse)} of {len(changed)} classes is lower than with plain "
        f"fine-tuning: {some(worse)}."
        if worse
        else f"Under corruptions, none of the {len(changed)} classes has a lower accuracy than with plain fine-tuning."
    )
    columns = ("class", "pictures", "plain", outcome.delivered, "change", "unchanged: plain", "unchanged: delivered")
    left = f" The table shows {len(rows)} of {len(changed)} classes." if len(rows) < len(changed) else ""
    title = "Accuracy (%) of each class under corruptions, the largest loss first"
    return Section("Classes", (Text(said + left), Table(title, columns, tuple(rows))))


def per_class(outcome: Outcome, scores: Scores, names: Sequence[str]) -> list[tuple[str, int, float, float]]:
    """Class, number of pictures (every corruption counts), accuracy (%) of plain and of the delivered model."""
    labels = torch.cat([scores.labels(name) for name in names])
    before, after = (_logits(scores, candidate, names) for candidate in ("plain", outcome.delivered))
    found = []
    for k, title in enumerate(outcome.content["classes"]):
        mine = labels == k if labels.ndim == 1 else labels[:, k] > 0
        if mine.any():
            both = [_recognised(logits[mine], k, labels) for logits in (before, after)]
            found.append((title, int(mine.sum()), both[0], both[1]))
    return found


def _recognised(logits: Tensor, k: int, labels: Tensor) -> float:
    """Share (%) of pictures that are predicted to be of class ``k``, or to have label ``k``."""
    said = logits.argmax(-1) == k if labels.ndim == 1 else logits[:, k] > 0
    return 100 * float(said.double().mean())


def confusion(outcome: Outcome, scores: Scores) -> Section:
    """Confusion of classes under corruptions, for plain and for the delivered model."""
    titles = outcome.content["classes"]
    tables = {name: counts(scores, name, len(titles)) for name in pair(outcome)}
    if len(titles) <= MOST_CLASSES:
        blocks: tuple[Block, ...] = tuple(_matrix(name, table, titles) for name, table in tables.items())
        about = Text("Each row is a true class: the share (%) of its pictures with each predicted class.")
        return Section("Confusion under corruptions", (about, *blocks))
    rows = []
    for name, table in tables.items():
        share = 100 * table / table.sum(1, keepdims=True).clip(1)
        np.fill_diagonal(share, 0)
        worst = np.argsort(share, axis=None)[::-1][:10]
        rows += [(name, titles[i // len(titles)], titles[i % len(titles)], float(share.flat[i])) for i in worst]
    columns = ("model", "true class", "predicted class", "share (%)")
    return Section("Confusion under corruptions", (Table("Most frequent confusions", columns, tuple(rows)),))


def counts(scores: Scores, candidate: str, classes: int) -> np.ndarray:
    """Pictures of each true class (rows) by predicted class, over all corruptions."""
    table = np.zeros((classes, classes))
    for name in scores.group("corruption/") or ["held_out"]:
        np.add.at(table, (scores.labels(name).numpy(), scores.logits(candidate, name).argmax(-1).numpy()), 1)
    return table


def _matrix(name: str, table: np.ndarray, titles: Sequence[str]) -> Chart:
    share = 100 * table / table.sum(1, keepdims=True).clip(1)
    series = tuple(Series(title, tuple(map(float, row))) for title, row in zip(titles, share, strict=True))
    title = f"{name}: share of the true class (%)"
    return Chart("heat", title, series, "predicted class", "true class", tuple(titles), y_range=(0, 100))


def calibration(outcome: Outcome, scores: Scores) -> Section:
    """Reliability diagrams of plain and of the model as delivered, temperature included."""
    groups = {"unchanged pictures": ["held_out"], "corruptions": scores.group("corruption/")}
    scale = outcome.content["temperature"]["value"]
    blocks: list[Block] = [
        Text("Of predictions with 80 % confidence, 80 % should be correct (diagonal); below it is overconfidence.")
    ]
    for title, names in groups.items():
        if not names:
            continue
        labels = torch.cat([scores.labels(name) for name in names])
        series = tuple(
            reliability(
                name, _logits(scores, name, names) / (scale if name == outcome.delivered else 1), labels, colour
            )
            for colour, name in enumerate(pair(outcome))
        )
        blocks.append(Chart("lines", f"Reliability, {title}", series, "confidence (%)", "accuracy (%)",
                            y_range=(0, 100), diagonal=True, small=True))  # fmt: skip
    blocks += [Text(outcome.about_temperature()), _scores(outcome)]
    return Section("Calibration", tuple(blocks))


def reliability(name: str, logits: Tensor, labels: Tensor, colour: int) -> Series:
    """
    >>> one = reliability("m", torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([1, 0]), 0)
    >>> one.y, [round(x) for x in one.x]
    ((0.0, 100.0), [50, 100])
    """
    logits, labels = as_classes(logits, labels)
    confidence, guess = logits.double().softmax(-1).max(-1)
    return reliability_curve(name, confidence, guess == labels, colour)


def _logits(scores: Scores, candidate: str, names: Sequence[str]) -> Tensor:
    return torch.cat([scores.logits(candidate, name) for name in names])


def _scores(outcome: Outcome) -> Table:
    rows = tuple(
        (name, title, one[group]["ece"], one[group]["nll"])
        for name, one in outcome.content["candidates"].items()
        for group, title in list(GROUPS.items())[:2]
    )
    columns = ("candidate", "pictures", "ECE", "NLL (nats)")
    return Table("Calibration before temperature scaling", columns, rows, {"ECE": 3, "NLL (nats)": 3})


def pair(outcome: Outcome) -> tuple[str, ...]:
    """Plain, and the delivered model if it is another one."""
    return tuple(dict.fromkeys(("plain", outcome.delivered)))


def ends(rows: Sequence[tuple[str, int, float, float]]) -> Sequence[tuple[str, int, float, float]]:
    """All rows, or the first and last ones if there are more than MOST_ROWS."""
    half = MOST_ROWS // 2
    return rows if len(rows) <= MOST_ROWS else [*rows[:half], *rows[-half:]]
