"""Digits: which differences between methods are more than chance."""

from collections.abc import Sequence

from meada.evaluation.statistics import Verdict, over_seeds, verdicts
from meada.reports.digits import COLUMNS, TITLES, Groups, score_of
from meada.reports.runs import Run
from meada.reports.text import head, line

PAIRS = (("ada", "erm"), ("meada", "erm"), ("meada", "ada"), ("meada", "par"), ("par", "erm"),
         ("meada-bnn", "erm"), ("meada-bnn", "meada"), ("meada", "noise"), ("noise", "erm"),
         ("ada", "noise"))  # fmt: skip
HOW = (
    "Difference in points and its 95 % interval: Student's t over the seeds that both have, or Welch's where fewer "
    "than two are common. **Bold**: more than chance, at 0.05 after Holm's correction over the row."
)


def by_seed(runs: Sequence[Run], rule: str, domain: str) -> dict[int, float]:
    return {run.seed: score_of(run, rule, domain) for run in runs}


def against(a: Sequence[Run], b: Sequence[Run], rule: str) -> list[Verdict]:
    """a - b on each column, corrected over the columns."""
    return verdicts([over_seeds(by_seed(a, rule, d), by_seed(b, rule, d)) for d in COLUMNS])


def comparisons(chosen: Groups, rule: str = "last") -> list[str]:
    lines = head("difference", *(TITLES[d] for d in COLUMNS), "seeds")
    for better, worse in PAIRS:
        if better in chosen and worse in chosen:
            found = against(chosen[better], chosen[worse], rule)
            seeds = str(found[0].difference.seeds)
            lines.append(line(f"{better} - {worse}", *map(cell, found), seeds))
    return [f"Checkpoint: {rule}. {HOW}", "", *lines]


def cell(verdict: Verdict) -> str:
    """
    >>> from meada.evaluation.statistics import Difference, Interval
    >>> gap = Difference(3.0, Interval(1.0, 5.0, "t"), 0.01, 4, "methods")
    >>> cell(Verdict(gap, 0.02)), cell(Verdict(gap, 0.2)), cell(Verdict(Difference(1.0), None))
    ('**+3.00** (+1.00 to +5.00)', '+3.00 (+1.00 to +5.00)', '+1.00 (one run: unknown)')
    """
    gap = verdict.difference
    if gap.interval is None:
        return f"{gap.value:+.2f} ({'one run' if gap.about == 'models' else 'no spread'}: unknown)"
    text = f"{gap.value:+.2f}"
    return f"{f'**{text}**' if verdict.beyond_chance else text} ({gap.interval})"
