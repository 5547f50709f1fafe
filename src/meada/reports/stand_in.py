"""Digits: a stand-in for SYN, apart from Table 1 and from every mean."""

from collections.abc import Mapping, Sequence

from meada.evaluation.statistics import summarise
from meada.reports.digits import Groups
from meada.reports.runs import Run
from meada.reports.text import head, line, spread

STAND_IN = "printed_numbers"


def tried(runs: Sequence[Run], rule: str) -> dict[int, float]:
    """Seed -> accuracy, of the runs whose models were tried; the same training counts once."""
    told = [(run.seed, run.apart().get(STAND_IN, {})) for run in runs]
    return {seed: float(of[rule]["accuracy"]) for seed, of in told if rule in of}


def stand_in(chosen: Groups, again: Mapping[str, Sequence[Run]]) -> list[str]:
    """Nothing where no model was tried.

    ``again``: the same trainings, looked at more closely; their last step is that of ``chosen``.
    """
    lines = head("method", "checkpoint", "accuracy (%)", "seeds")
    known = len(lines)
    for method, runs in chosen.items():
        for rule in ("last", "oracle"):
            same = again.get(method, ()) if rule == "last" else ()
            if values := tried([*same, *runs], rule):
                seeds = ", ".join(map(str, sorted(values)))
                told = spread(summarise([values[s] for s in sorted(values)]))
                lines.append(line(method, rule, told, seeds))
    if len(lines) == known:
        return []
    return [
        "SYN's file cannot be had. `printed_numbers` is drawn here to its description: one to "
        "three figures in the fonts of matplotlib, any place, tilt, colours and blur; 9,553 "
        "pictures, as SYN has. It is not SYN, counts in no mean, and is not comparable with the "
        "paper's column. From `meada evaluate RUN --on printed_numbers`, for the runs whose "
        "weights were at hand.",
        "",
        *lines,
    ]
