"""Draw README's picture: digits, their harder copies, and hard views: scripts/draw_harder.py docs/harder.png.

A small network is trained on 400 digits of the quickstart's data for half a minute; then `perturb` climbs on the
pixels of eight of them and `hard_views` picks the hardest of eight random changes.
"""

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import nn

import meada


def trained() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    task = meada.DATASETS["embedded"](train=400, validation=100, test=100)
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    plan = meada.Plan(rounds=0, min_steps=0, total_steps=300, batch_size=32)
    meada.fit(net, (task.train.images, task.train.labels), method="erm", plan=plan, seed=0)
    first = [int((task.train.labels == digit).nonzero()[0]) for digit in range(8)]
    return net, task.train.images[first] / 255, task.train.labels[first]


def draw(out: str) -> None:
    net, x, y = trained()
    rows = {
        "training image": x,
        "perturb: gradient\nsteps on its pixels": meada.perturb(
            net, x, y, beta=10.0, gamma=1 / 1024, step_size=1 / 8, steps=15
        ),
        "hard_views: hardest of\neight random changes": meada.hard_views(net, x, y, k=8, hardness=1.0, seed=0),
    }
    figure, axes = plt.subplots(len(rows), len(x), figsize=(9, 2.9), dpi=100)
    for line, (title, images) in zip(axes, rows.items(), strict=True):
        wrong = net(images).argmax(1)
        for cell, image, said, true in zip(line, images, wrong, y, strict=True):
            cell.imshow(image.permute(1, 2, 0))
            cell.set_xticks([]), cell.set_yticks([])
            cell.set_title(f"read as {said}", fontsize=7, color="black" if said == true else "#b3261e", pad=2)
        line[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=8)
    figure.subplots_adjust(left=0.19, right=0.995, top=0.94, bottom=0.01, wspace=0.06, hspace=0.2)
    figure.savefig(out)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out")
    draw(options.parse_args().out)
