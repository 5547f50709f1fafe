"""Table 1: digits, ours beside the paper's, with spread, n, and how each number was chosen."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from meada.errors import MeadaError
from meada.evaluation.selection import KNOWS, RULES
from meada.files import write_text
from meada.reports import budget, sensitivity
from meada.reports.beside_paper import PAPER, beside_paper, closer, looked_closer, paper
from meada.reports.differences import comparisons
from meada.reports.digits import (
    COLUMNS,
    TITLES,
    Groups,
    by_method,
    in_figure_1,
    in_table_1,
    on_digits,
    rounds,
    score_of,
    summary,
)
from meada.reports.figure1 import by_rounds, figure1
from meada.reports.order import order
from meada.reports.pictures import save
from meada.reports.runs import Run
from meada.reports.stand_in import stand_in
from meada.reports.text import SAME_BITS, head, line, machine, spread


def of_table_1(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """By method in the paper's order, then the controls."""
    chosen = by_method(run for run in runs if in_table_1(run))
    order = [*PAPER, *sorted(chosen.keys() - PAPER.keys())]
    return {method: chosen[method] for method in order if method in chosen}


def markdown(chosen: Groups) -> list[str]:
    """The table itself: four rules of choice, each beside the paper's line."""
    titles = [TITLES[d] for d in COLUMNS]
    lines = head("method", "checkpoint chosen by", *titles, "n")
    for method, runs in chosen.items():
        if method in PAPER:
            cells = [f"{paper(method, d):.2f}" for d in COLUMNS]
            lines.append(line(method, "*paper* (oracle)", *cells, "10"))
        for rule in RULES:
            cells = [spread(summary(runs, rule, d)) for d in COLUMNS]
            lines.append(line(method, rule, *cells, str(len(runs))))
    known = "; ".join(f"*{rule}*: {what}" for rule, what in KNOWS.items())
    return [*lines, "", f"Ours: mean ± standard deviation over n seeds. {known}."]


def calibration(chosen: Groups, rule: str = "last") -> list[str]:
    """ECE and NLL on each unseen domain: the Bayesian network's stand below the plain one's."""
    titles = [f"{score.upper()} {TITLES[d]}" for score in ("ece", "nll") for d in COLUMNS]
    lines = head("method", *titles, "n")
    for method, runs in chosen.items():
        cells = [spread(summary(runs, rule, d, score), 3) for score in ("ece", "nll")
                 for d in COLUMNS]  # fmt: skip
        lines.append(line(method, *cells, str(len(runs))))
    note = "ECE of 15 equal bins, from 0 to 1; NLL in nats; less is better for both."
    return [f"Checkpoint: {rule}. {note} `meada-bnn` is `meada` on a Bayesian network.", "", *lines]


def against_rounds(runs: Sequence[Run], rule: str = "last") -> list[str]:
    """Accuracy against K: mean, and the range of the runs as the paper draws it."""
    lines = head("method", "K", *(TITLES[d] for d in COLUMNS), "n")
    for (method, k), group in by_rounds(runs).items():
        cells = []
        for domain in COLUMNS:
            values = [score_of(run, rule, domain) for run in group]
            span = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
            cells.append(f"{sum(values) / len(values):.2f}{span}")
        lines.append(line(method, str(k), *cells, str(len(group))))
    return [f"Checkpoint: {rule}. Mean, and the range of the runs. K = 0 is ERM.", "", *lines]


def spent(runs: Sequence[Run]) -> list[str]:
    """Every record that this page is made of, what it cost, and how to make it again."""
    lines = head("record", "steps", "minutes: minimise, maximise, evaluate", "on", "command")
    for run in runs:
        took = [f"{run.record['seconds'].get(k, 0.0) / 60:.0f}"
                for k in ("minimise", "maximise", "evaluate")]  # fmt: skip
        lines.append(line(f"`{run.name}`", f"{run.record['steps']:,}", ", ".join(took),
                          machine(run.record["environment"]), f"`{run.command}`"))  # fmt: skip
    return [*lines, "", SAME_BITS]


def parts(runs: Sequence[Run]) -> Iterator[tuple[str, list[str]]]:
    """The page's sections: a title and its lines."""
    chosen, varied = of_table_1(runs), [run for run in runs if in_figure_1(run)]
    looked = [run for run in runs if looked_closer(run, chosen)]
    if chosen:
        yield "Table 1", markdown(chosen)
        yield "Beside the paper", beside_paper(chosen)
        if looked:
            yield "Where the oracle looks more closely", closer(chosen, looked)
        yield "Differences between methods", comparisons(chosen)
        if ranked := order(chosen):
            yield "The paper's order", ranked
        yield "At equal steps and at equal seconds", budget.section(chosen)
        yield "Calibration on unseen domains", calibration(chosen)
        if apart := stand_in(chosen, by_method(looked)):
            yield "A stand-in for SYN", apart
    if len({rounds(run) for run in varied}) > 1:
        yield (
            "Figure 1",
            [*against_rounds(varied), "", "![Accuracy against K](figures/figure1.png)"],
        )
    study = sensitivity.of_study(runs)
    if study:
        yield "Which settings to touch first", sensitivity.section(study)
    used = [r for r in runs if r in (*varied, *looked, *study)]
    yield "Records", spent(used)
    if rest := [r for r in runs if r not in used]:
        names = ", ".join(f"`{r.name}`" for r in rest)
        yield "Left out", [f"Neither a shipped recipe nor of the study: {names}."]


def page(runs: Sequence[Run], command: str) -> str:
    """``results/README.md``, from finished runs; those that are not on digits are passed over."""
    runs = on_digits(runs)
    if not runs:
        raise MeadaError("none of the runs is on digits: Table 1 has nothing to show")
    text = [f"# Digits\n\nMade of {len(runs)} records by `meada report`; run with `{command}`. "
            "SYN cannot be had here: means are over SVHN, MNIST-M and USPS, within a run first and "
            "then over runs, ours and the paper's alike."]  # fmt: skip
    text += [f"## {title}\n\n" + "\n".join(lines) for title, lines in parts(runs)]
    return "\n\n".join(text) + "\n"


def write(runs: Sequence[Run], path: Path, command: str) -> None:
    """The page at ``path``, and its figures in ``figures`` beside it."""
    write_text(path, page(runs, command))
    runs = on_digits(runs)
    varied = [run for run in runs if in_figure_1(run)]
    if len({rounds(run) for run in varied}) > 1:
        save(figure1(varied), path.parent / "figures" / "figure1.png")
    for setting, figure in sensitivity.pictures(sensitivity.of_study(runs)).items():
        save(figure, path.parent / "figures" / f"sensitivity-{setting}.png")
