"""Pictures from what runs leave on disk."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from safetensors.torch import load_file
from torch import Tensor

from meada.datasets import DATASETS, Task
from meada.files import write_bytes
from meada.pool import as_float

matplotlib.use("Agg")
COLUMNS = 10
COLOURS = {"erm": "#7f7f7f", "ada": "#e07b39", "meada": "#3b6fb6"}


def save(figure: Figure, path: Path) -> None:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    write_bytes(path, buffer.getvalue())


def domains(data: Mapping[str, Any]) -> Figure:
    """One image of each class from the source and from every unseen domain."""
    settings = dict(data)
    task: Task = DATASETS[settings.pop("name")](**settings)
    parts = {"learnt from": task.train, **task.targets}
    rows = {}
    for name, samples in parts.items():
        classes = range(min(COLUMNS, len(task.classes)))
        first = [int((samples.labels == k).nonzero()[0]) for k in classes]
        rows[name] = as_float(samples.images[first])
    return _sheet(rows)


def adversarial(gallery: Path) -> Figure:
    """Source, adversarial image and their difference, round by round."""
    tensors = load_file(gallery)
    rounds = sorted({name.split(".")[0] for name in tensors})
    rows: dict[str, Tensor] = {}
    for number in rounds:
        source, made = tensors[f"{number}.source"], tensors[f"{number}.adversarial"]
        change = made - source
        strength = max(float(change.abs().max()), 1e-8)
        title = number.replace("-", " ")
        rows[f"{title}\nsource"] = source
        rows[f"{title}\nadversarial"] = made
        rows[f"{title}\nchange x{0.5 / strength:.1f}"] = 0.5 + 0.5 * change / strength
    return _sheet(rows)


def accuracy(records: Mapping[str, dict[str, Any]], titles: Mapping[str, str]) -> Figure:
    """Bars of accuracy by domain, a colour a method."""
    names = list(next(iter(records.values()))["results"]["last"])
    figure = Figure(figsize=(9, 3.5))
    axes = figure.add_subplot()
    width = 0.8 / len(records)
    for place, (method, record) in enumerate(records.items()):
        values = [record["results"]["last"][d]["accuracy"] for d in names]
        values.append(sum(values) / len(values))
        where = np.arange(len(values)) + (place - (len(records) - 1) / 2) * width
        bars = axes.bar(where, values, width, label=titles[method], color=COLOURS.get(method))
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.set_xticks(range(len(names) + 1), [*names, "mean"])
    axes.set_ylabel("accuracy (%)")
    axes.set_ylim(0, 100)
    axes.axhline(10, color="black", linewidth=0.8, linestyle=":")
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=1)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _sheet(rows: Mapping[str, Tensor]) -> Figure:
    columns = max(len(images) for images in rows.values())
    figure = Figure(figsize=(0.85 * columns + 1.5, 0.95 * len(rows)))
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for (name, images), line in zip(rows.items(), grid, strict=True):
        for axes in line:
            axes.axis("off")
        for axes, image in zip(line, images.clamp(0, 1), strict=False):
            axes.imshow(image.permute(1, 2, 0).to(torch.float32).numpy().squeeze(), cmap="gray")
        line[0].text(-0.15, 0.5, name, transform=line[0].transAxes, ha="right", va="center", fontsize=8)
    figure.subplots_adjust(wspace=0.04, hspace=0.06)
    return figure
