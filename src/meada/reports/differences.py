"""Digits: what is known of the differences between methods from a few seeds."""

import math
from collections.abc import Sequence

from meada.evaluation.statistics import Summary, summarise, t_interval
from meada.reports.digits import COLUMNS, TITLES, Groups, score_of, summary
from meada.reports.runs import Run
from meada.reports.text import head, line

PAIRS = (("ada", "erm"), ("meada", "erm"), ("meada", "ada"), ("meada", "par"), ("par", "erm"),
         ("meada-bnn", "erm"), ("meada-bnn", "meada"), ("meada", "noise"), ("noise", "erm"),
         ("ada", "noise"))  # fmt: skip
ORDER = ("meada", "ada", "erm")  # best first, as Table 1 has them
ORDERED = ("svhn", "mnist_m")  # where it does


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


def order(chosen: Groups) -> list[str]:
    """Whether ME-ADA > ADA > ERM on SVHN and MNIST-M, for the last step and for the oracle's.

    Nothing where two of them that are compared have fewer than two seeds in common.
    """
    pairs = [*zip(ORDER, ORDER[1:], strict=False)]
    seeds = [{run.seed for run in chosen.get(method, ())} for method in ORDER]
    if any(len(a & b) < 2 for a, b in zip(seeds, seeds[1:], strict=False)):
        return []
    lines = head("difference", "on", "checkpoint", "mean", "95 % interval", "above 0")
    said = []
    for rule in ("last", "oracle"):
        found = {(better, worse, domain): by_seed(chosen[better], chosen[worse], rule, domain)
                 for better, worse in pairs for domain in ORDERED}  # fmt: skip
        intervals = [i for i in map(t_interval, found.values()) if i]
        said.append(f"{rule}: {judged([(i.low, i.high) for i in intervals])}")
        for at, values, i in zip(found, found.values(), intervals, strict=True):
            better, worse, domain = at
            lines.append(line(f"{better} - {worse}", TITLES[domain], rule,
                              f"{summarise(values).mean:+.2f}", f"{i.low:+.2f} to {i.high:+.2f}",
                              f"{sum(v > 0 for v in values)} of {len(values)}"))  # fmt: skip
    return [
        "The paper has ME-ADA > ADA > ERM on SVHN and on MNIST-M. Ours, paired by seed (the same "
        f"first weights), by Student's t: {'; '.join(said)}.",
        "",
        *lines,
    ]


def judged(intervals: Sequence[tuple[float, float]]) -> str:
    """
    >>> judged([(1.0, 2.0), (0.5, 3.0)]), judged([(1.0, 2.0), (-3.0, -1.0)])
    ('**confirmed** (2 of 2 intervals above 0)', '**refuted** (1 of 2 intervals below 0)')
    >>> judged([(1.0, 2.0), (-1.0, 3.0)])
    '**neither confirmed nor refuted** (1 of 2 intervals above 0, none below)'
    """
    n = len(intervals)
    above, below = sum(low > 0 for low, _ in intervals), sum(high < 0 for _, high in intervals)
    if below:
        return f"**refuted** ({below} of {n} intervals below 0)"
    if above == n:
        return f"**confirmed** ({n} of {n} intervals above 0)"
    return f"**neither confirmed nor refuted** ({above} of {n} intervals above 0, none below)"
