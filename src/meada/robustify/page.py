"""The report page of ``robustify``: whether the delivered model is better, then the details."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from meada.maximise import tilted_views
from meada.objective import Objective
from meada.pool import as_float
from meada.reports.page import write
from meada.reports.page.blocks import Block, Chart, Gallery, Page, Picture, Section, Series, Table, Text
from meada.reports.page.training import png
from meada.robustify.families import space_of
from meada.robustify.labels import names_of
from meada.robustify.outcome import Outcome
from meada.robustify.plan import duration
from meada.robustify.rule import CLEAN
from meada.robustify.scoring import Scores
from meada.robustify.sections import GROUPS, calibration, classes, confusion, corruptions
from meada.robustify.stages import Work
from meada.types import Images, Labels

SHOWN = 8  # pictures in the gallery


def training_views(work: Work) -> Gallery:
    """A few training pictures, each with a view of the kind that hardened was trained on.

    Views are chosen by the network that hardened started from.
    """
    train, plan = work.task.train, work.plan
    index = _one_of_each(train.labels if train.labels.ndim == 1 else train.labels.argmax(-1))
    x, y = as_float(train.images[index]), train.labels[index]
    net = work.load("probe") if plan.pretrained else work.load("plain")
    space = space_of(work.facts["families"]["colour"])
    views = tilted_views(
        net, x, y, space, Objective(beta=1.0, gamma=0.0), k=plan.views, hardness=plan.hardness,
        seed=work.request.seed, step=0, rows=index.numpy(),
    )  # fmt: skip
    how = (
        f"one of {plan.views} random changes, more often one that the network finds hard (hardness {plan.hardness:g})"
        if plan.views > 1 and plan.hardness > 0
        else "a random change"
    )
    about = f"The hardened candidate is trained on each picture and on a view of it ({how}), drawn again at every step."
    return gallery(x, views, [names_of(label, work.task.classes) for label in y], about)


def gallery(pictures: Images, views: Images, names: Sequence[str], about: str) -> Gallery:
    shown = zip(pictures, views, names, strict=True)
    columns = tuple(Picture((png(x), png(view)), (name, name)) for x, view, name in shown)
    return Gallery("Training pictures and a view of each", ("picture", "view"), columns, about)


def _one_of_each(labels: Labels) -> Tensor:
    """Positions of the first picture of each class, then of the second, up to SHOWN.

    >>> _one_of_each(torch.tensor([0, 0, 1]))
    tensor([0, 2, 1])
    """
    order = sorted(range(len(labels)), key=lambda i: (int((labels[:i] == labels[i]).sum()), int(labels[i])))
    return torch.tensor(order[:SHOWN])


def write_report(outcome: Outcome, scores: Scores, views: Gallery | None = None) -> None:
    """Write ``report.html``, one self-contained file."""
    page = Page(f"Delivered: {outcome.delivered}", tuple(sections(outcome, scores, views)))
    write(page, out=outcome.out / "report.html")


def sections(outcome: Outcome, scores: Scores, views: Gallery | None = None) -> Iterator[Section]:
    held = outcome.content
    yield Section("Is it better?", (Text(answer(outcome)), _picture(outcome), Text(held["about"], "warning")))
    yield Section("Candidates", tuple(_candidates(outcome)))
    if views is not None:
        yield Section("Hard views", (views,))
    yield corruptions(outcome)
    yield classes(outcome, scores)
    if scores.labels("held_out").ndim == 1:
        yield confusion(outcome, scores)
    yield calibration(outcome, scores)
    yield Section("Time", (_time(held["seconds"]),))


def answer(outcome: Outcome) -> str:
    """Whether the delivered model is better, by how much and at what cost, in one or two sentences."""
    held, name = outcome.content, outcome.delivered
    total = held["seconds"]["total"]
    if name == "plain":
        return f"{outcome.verdict} The comparison took {duration(total)}.{_own(held)}"
    of = [held["candidates"][one] for one in (name, "plain")]
    found = {
        "under corruptions": (*(one["corruptions"]["mean"] for one in of), held["differences"][name]["corruptions"]),
        "on unchanged pictures": (*(one["held_out"]["accuracy"] for one in of), held["differences"][name]["held_out"]),
    }
    (where, first), (elsewhere, second) = sorted(found.items(), key=lambda one: -one[1][2]["mean"])
    but = "" if second[2]["mean"] > -CLEAN else f" {where}, not {elsewhere}"
    return (
        f"Yes{but}: {where}, the accuracy of {name} on held-out pictures is {first[0]:.1f} %, that of plain "
        f"fine-tuning {first[1]:.1f} % ({_interval(first[2])}); {elsewhere}, it is {second[0]:.1f} % against "
        f"{second[1]:.1f} % ({_interval(second[2])}). The comparison took {duration(total)}; the model has the same "
        f"size and speed as plain.{_own(held)}"
    )


def _own(held: dict[str, Any]) -> str:
    """The accuracy of the model given as ``--model``."""
    one = held["candidates"].get("own")
    if one is None:
        return ""
    return (
        f" The accuracy of your own model is {one['corruptions']['mean']:.1f} % under corruptions and "
        f"{one['held_out']['accuracy']:.1f} % on unchanged pictures, some of which it may have been trained on."
    )


def _interval(found: dict[str, float]) -> str:
    """
    >>> _interval({"mean": 8.25, "low": 6.0, "high": 10.5})
    '+8.2 points, 95 % interval +6.0 to +10.5'
    """
    return f"{found['mean']:+.1f} points, 95 % interval {found['low']:+.1f} to {found['high']:+.1f}"


def _picture(outcome: Outcome) -> Block:
    """Accuracy of plain and of the delivered model on every group of pictures."""
    head, *lines = outcome.rows()
    shown = [line for line in lines if line[0].split()[0] in ("plain", outcome.delivered)]
    series = tuple(
        Series(line[0].removesuffix(" *"), tuple(map(float, line[1:])), colour=k) for k, line in enumerate(shown)
    )
    return Chart(
        "bars", "Accuracy (%)", series, "pictures", "accuracy (%)", tuple(head[1:]), y_range=(0, 100), small=True
    )


def _candidates(outcome: Outcome) -> Iterator[Block]:
    held = outcome.content
    head, *lines = outcome.rows()
    yield Table(
        "Accuracy (%); the delivered model is marked with *", head, tuple((a, *map(float, b)) for a, *b in lines)
    )
    yield Text(f"Pictures: {outcome.counts()}. Rule: {held['rule']}")
    rows = tuple(
        (name, title, one[group]["mean"], one[group]["low"], one[group]["high"])
        for name, one in held["differences"].items()
        for group, title in GROUPS.items()
        if group in one
    )
    columns = ("candidate", "pictures", "difference", "low", "high")
    yield Table("Difference from plain (points), with 95 % intervals over pictures", columns, rows)


def _time(seconds: dict[str, float]) -> Table:
    total = seconds["total"] or 1.0
    rows = tuple((name, value, 100 * value / total) for name, value in seconds.items())
    return Table("Time spent", ("stage", "seconds", "share (%)"), rows)
