"""Digits: the paper's numbers, ours beside them, and what the way of choosing has to do with it."""

from collections.abc import Sequence

from meada.evaluation.statistics import Summary, Verdict, over_seeds, verdicts, welch
from meada.reports.differences import by_seed, cell
from meada.reports.digits import COLUMNS, DOMAINS, TITLES, Groups, in_table_1, shipped, summary
from meada.reports.runs import Run
from meada.reports.text import head, line, spread

PAPER: dict[str, dict[str, tuple[float, float]]] = {  # mean and standard deviation of ten runs
    "erm": {"svhn": (31.95, 1.91), "mnist_m": (55.96, 1.39), "syn": (43.85, 1.27),
            "usps": (79.92, 0.98)},
    "par": {"svhn": (36.08, 1.27), "mnist_m": (61.16, 0.21), "syn": (45.48, 0.35),
            "usps": (79.95, 1.18)},
    "ada": {"svhn": (35.70, 2.00), "mnist_m": (58.65, 1.72), "syn": (47.18, 0.61),
            "usps": (80.40, 1.70)},
    "meada": {"svhn": (42.00, 1.74), "mnist_m": (63.98, 1.82), "syn": (49.80, 1.74),
              "usps": (79.10, 1.03)},
    "meada-bnn": {"svhn": (42.56, 1.45), "mnist_m": (63.27, 2.09), "syn": (50.39, 1.29),
                  "usps": (81.04, 0.98)},
}  # fmt: skip
SEEDS = 10  # the paper's
MARGIN = 5.0  # points: half of what ME-ADA gains on SVHN in the paper; a wider interval could hide as much
LOOKS = {"evaluation.every", "evaluation.subset"}  # they choose a checkpoint, and train nothing


def paper(method: str, domain: str) -> float | None:
    """The paper's number; its mean over the three domains that are compared here.

    >>> round(paper("meada", "mean"), 2)
    61.69
    """
    if method not in PAPER:
        return None
    if domain == "mean":
        return sum(PAPER[method][d][0] for d in DOMAINS) / len(DOMAINS)
    return PAPER[method][domain][0]


def less_paper(runs: Sequence[Run], rule: str = "oracle") -> list[Verdict]:
    """Ours less the paper's on each domain, with both sides' errors (Welch), corrected over the domains."""
    printed = (Summary(*PAPER[runs[0].method][d], SEEDS) for d in DOMAINS)
    return verdicts([welch(summary(runs, rule, d), p) for d, p in zip(DOMAINS, printed, strict=True)])


def beside_paper(chosen: Groups) -> list[str]:
    """Each method of the paper on each domain, at the last step and under the oracle."""
    lines = head("method", "ours chosen by", *(TITLES[d] for d in DOMAINS), "n")
    for method, runs in chosen.items():
        for rule in ("last", "oracle") if method in PAPER else ():
            lines.append(line(method, rule, *map(agreement, less_paper(runs, rule)), str(len(runs))))
    return [
        "Ours less the paper's, in points, with a 95 % interval from both sides' errors (Welch; the paper's are of ten "
        "runs, chosen on the test domains). **differs**: p below 0.05 after Holm's correction over a row. "
        f"*reproduced*: no difference is found, and the interval is no wider than {MARGIN:g} points to each side. "
        "*too few seeds*: no difference is found, but one of that size could be hidden.",
        "",
        *lines,
    ]


def agreement(verdict: Verdict) -> str:
    """
    >>> ours, paper = Summary(42.5, 1.7, 4), Summary(42.0, 1.74, 10)
    >>> agreement(verdicts([welch(ours, paper)])[0])
    '+0.50 (-2.01 to +3.01), reproduced'
    """
    gap = verdict.difference
    if gap.interval is None:
        return f"{gap.value:+.2f}, unknown (one run)"
    wide = gap.interval.high - gap.value > MARGIN
    word = "**differs**" if verdict.beyond_chance else "too few seeds" if wide else "reproduced"
    return f"{gap.value:+.2f} ({gap.interval}), {word}"


def looked_closer(run: Run, chosen: Groups) -> bool:
    """Whether it is one of ``chosen`` again, but for how often and at what its oracle looked."""
    again = any(run.seed == other.seed for other in chosen.get(run.method, ()))
    return run.method in PAPER and again and shipped(run, LOOKS) and not in_table_1(run)


def closer(chosen: Groups, runs: Sequence[Run]) -> list[str]:
    """The same training under a finer oracle: how much of a difference is the choice alone.

    ``runs`` have each their like in ``chosen``, of the same seed.
    """
    lines = head("method", "oracle looks", *(TITLES[d] for d in COLUMNS), "seeds")
    same = True
    for method, looks in sorted({(run.method, _looks(run)) for run in runs}):
        group = [run for run in runs if (run.method, _looks(run)) == (method, looks)]
        as_shipped = [run for run in chosen[method] if run.seed in {r.seed for r in group}]
        same &= all(by_seed(group, "last", d) == by_seed(as_shipped, "last", d) for d in DOMAINS)
        for looked in (as_shipped, group):
            cells = [spread(summary(looked, "oracle", d)) for d in COLUMNS]
            lines.append(line(method, _looks(looked[0]), *cells, _seeds(looked)))
        moved = verdicts([over_seeds(*(by_seed(g, "oracle", d) for g in (group, as_shipped))) for d in COLUMNS])
        lines.append(line(method, "difference", *map(cell, moved), f"{len(as_shipped)}, paired"))
        cells = [*map(agreement, less_paper(group)), ""]
        lines.append(line(method, "closer, less the paper's", *cells, _seeds(group)))
    return [
        "The published code looks at every test image of the targets, every 100 steps, and keeps "
        "the step that is best there; the shipped recipes look at fewer. The runs below were "
        "trained as Table 1's and only looked at more closely (2,007 images are the whole of "
        "USPS); their accuracies at the last step are "
        + ("the same to the last image." if same else "**not** the same, though they should be."),
        "",
        *lines,
    ]


def _looks(run: Run) -> str:
    how = run.settings.evaluation
    return f"every {how.every} steps, at {how.subset:,} images a target"


def _seeds(runs: Sequence[Run]) -> str:
    return ", ".join(str(run.seed) for run in runs)
