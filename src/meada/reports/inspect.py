"""Show the maximisation rounds of a run: a table, pictures of the samples, and spectra."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table
from torch import Tensor

from meada.errors import MeadaError
from meada.evaluation.rounds import rounds_kept
from meada.machine.terminal import SafeConsole
from meada.reports.page.charts import save, sheet
from meada.reports.page.training import rounds as galleries
from meada.reports.page.training import stacked
from meada.reports.runs import ROUND, check
from meada.runs.run_folder import RunFolder

Lines = Sequence[Mapping[str, Any]]  # of a log
HIGH = 4  # bands from here up lie at a quarter of a cycle a pixel and above


def load_rounds(folder: RunFolder) -> list[dict[str, Any]]:
    """Rounds from the record, or from the log of an unfinished run."""
    if not folder.finished and not folder.log.exists():
        raise MeadaError(f"{folder.path} must hold a run to inspect, got neither record.json nor log.jsonl")
    lines = folder.load_record().get("rounds", []) if folder.finished else list(folder.read_log())
    check({"rounds": lines}, {"rounds": [ROUND]}, folder.record if folder.finished else folder.log)
    rounds = [line for line in lines if "round" in line and "ce" in line]
    if not rounds:
        raise MeadaError(f"{folder.path}: no maximisation round has ended, or the method has none")
    return rounds


def print_rounds(rounds: Lines, *, title: str) -> None:
    table, cells = Table("", title=title), [_cells(line) for line in rounds]
    for line in rounds:
        table.add_column(f"round {line['round']}", justify="right")
    for name in cells[0]:
        if any(row := [of[name] for of in cells]):
            table.add_row(name, *row)
    console = SafeConsole()
    console.print(table)
    warnings = (f"Warning: {text}" for line in rounds for text in line.get("warnings", []))
    for sentence in (*_spectrum(rounds), *warnings):
        console.print(sentence)


def draw(rounds: Lines, folder: RunFolder, out: Path) -> list[Path]:
    """Write ``rounds.png`` (source, adversarial image and difference) and ``spectrum.png``."""
    if not (kept := folder.load_gallery()):
        raise MeadaError(f"{folder.gallery} does not exist: it is written when a round ends")
    files = {out / "rounds.png": sheet(stacked("Samples of each round", galleries("", kept)))}
    powers = {number: kept[f"round-{number}.spectrum"] for number in rounds_kept(kept, "spectrum")}
    if powers and (known := [line for line in rounds if "spectrum" in line]):
        files[out / "spectrum.png"] = spectrum(known, powers)
    for path, figure in files.items():
        save(figure, path)
    return list(files)


def spectrum(rounds: Lines, powers: Mapping[int, Tensor]) -> Figure:
    """Plot radial profiles relative to white noise, then the mean 2D power spectrum of each round."""
    figure = Figure(figsize=(4 + 2.2 * len(powers), 3))
    profile, *planes = figure.subplots(1, 1 + len(powers), width_ratios=[1.8, *[1] * len(powers)], squeeze=False)[0]
    bands = rounds[0]["spectrum"]
    middle = np.add(bands["edges"], bands["edges"][1] / 2)
    for line in rounds:
        ratio = np.divide(line["spectrum"]["perturbation"], bands["white"])
        profile.plot(middle, ratio, marker="o", label=f"change of round {line['round']}")
    ratio = np.divide(bands["images"], bands["white"])
    profile.plot(middle, ratio, "k:", marker=".", label="the images")
    profile.axhline(1, color="grey", linewidth=0.8)
    profile.set_yscale("log")
    profile.set_xlabel("frequency (cycles a pixel)")
    profile.set_ylabel("energy / white noise")
    profile.legend(fontsize=7)
    for axes, (number, power) in zip(planes, powers.items(), strict=True):
        axes.imshow(np.log10(power.numpy() + 1e-12), extent=(-0.5, 0.5, 0.5, -0.5))
        axes.set_title(f"round {number}, log energy", fontsize=8)
        axes.tick_params(labelsize=6)
    figure.tight_layout()
    return figure


def _cells(line: Mapping[str, Any]) -> dict[str, str]:
    """Rows of a round's column, with short names so that three rounds fit on a terminal."""
    bound, share = line.get("bound", {}), line.get("rise", {}).get("share_of_ce")
    pair = lambda key: "from {:.3f} to {:.3f}".format(*line[key]) if line.get(key) else ""
    number = lambda value: "" if value is None else f"{value:.3f}"
    return {
        "samples in the pool": f"{line['pool']:,}",
        "cross-entropy": pair("ce"),
        "h, mean prediction entropy": pair("entropy"),
        "H of the mean prediction": pair("plug_in_entropy"),
        "  bound of Proposition 3": number(bound.get("proposition_3")),
        "  a sharper bound": number(bound.get("sharper")),
        "rise: share of CE, of beta h": "" if share is None else f"{100 * share:.0f} %, {100 * (1 - share):.0f} %",
        "transport cost": f"{line['cost']:.3g}",
        "change of 255: median, max": f"{255 * line['linf_median']:.1f}, {255 * line['linf_max']:.1f}",
    }


def _spectrum(rounds: Lines) -> list[str]:
    known = [line for line in rounds if "spectrum" in line]
    if not known:
        return []
    high = {name: 100 * sum(known[0]["spectrum"][name][HIGH:]) for name in ("images", "white")}
    each = ", ".join(f"{100 * sum(r['spectrum']['perturbation'][HIGH:]):.0f} %" for r in known)
    return [
        f"Energy of the change at a quarter of a cycle a pixel and above, round by round: {each} "
        f"(the images themselves: {high['images']:.0f} %; white noise: {high['white']:.0f} %)."
    ]
