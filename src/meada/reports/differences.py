"""Digits: what is known of the differences between methods from a few seeds."""

import math
from collections.abc import Sequence

from meada.evaluation.statistics import Summary, summarise
from meada.reports.digits import COLUMNS, TITLES, Groups, score_of, summary
from meada.reports.runs import Run
from meada.reports.text import head, line

PAIRS = (("ada", "erm"), ("meada", "erm"), ("meada", "ada"), ("meada", "par"), ("par", "erm"),
         ("meada-bnn", "erm"), ("meada-bnn", "meada"), ("meada", "noise"), ("noise", "erm"),
         ("ada", "noise"))  # fmt: skip


def by_seed(a: Sequence[Run], b: Sequence[Run], rule: str, domain: str) -> list[float]:
    """a - b for each seed that both have."""
    ours, theirs = ({r.seed: score_of(r, rule, domain) for r in group} for group in (a, b))
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def apart(a: Sequence[Run], b: Sequence[Run], rule: str, domain: str) -> tuple[Summary, bool]:
    """a - b, paired by seed where two seeds are common to both, else as two samples (Welch).

    The summary's error is that of the difference; the flag says whether it was paired.
    """
    paired = by_seed(a, b, rule, domain)
    if len(paired) > 1:
        return summarise(paired), True
    x, y = summary(a, rule, domain), summary(b, rule, domain)
    if x.error is None or y.error is None:
        return Summary(x.mean - y.mean, None, 1), False
    return Summary(x.mean - y.mean, math.hypot(x.error, y.error), 1), False


def comparisons(chosen: Groups, rule: str = "last") -> list[str]:
    """Which differences between methods are within noise: two standard errors."""
    lines = head("difference", *(TITLES[d] for d in COLUMNS), "seeds")
    for better, worse in PAIRS:
        if better not in chosen or worse not in chosen:
            continue
        told = [apart(chosen[better], chosen[worse], rule, d) for d in COLUMNS]
        how = f"{told[0][0].n}, paired" if told[0][1] else (
            f"{len(chosen[better])} and {len(chosen[worse])}"
        )  # fmt: skip
        lines.append(line(f"{better} - {worse}", *(verdict(s) for s, _ in told), how))
    return [
        f"Checkpoint: {rule}. Difference ± its standard error, paired by seed where two seeds or "
        "more are common. **Bold**: more than two standard errors from zero; otherwise within "
        "noise. With three seeds that is a weak bar: two standard errors of a paired difference "
        "come by chance one time in five (t with 2 degrees of freedom).",
        "",
        *lines,
    ]


def verdict(s: Summary) -> str:
    """
    >>> verdict(Summary(3.0, 2.0, 4)), verdict(Summary(1.0, 2.0, 4)), verdict(Summary(1.0, None, 1))
    ('**+3.00 ± 1.00**', '+1.00 ± 1.00 (within noise)', '+1.00 (one seed)')
    """
    if s.error is None:
        return f"{s.mean:+.2f} (one seed)"
    text = f"{s.mean:+.2f} ± {s.error:.2f}"
    return f"**{text}**" if abs(s.mean) > 2 * s.error else f"{text} (within noise)"
