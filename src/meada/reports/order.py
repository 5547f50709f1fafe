"""Digits: the paper's order of methods, confirmed or refuted with its statistics."""

from collections.abc import Collection, Mapping

from meada.evaluation.statistics import LEVEL, Verdict, over_seeds, page_trend, verdicts
from meada.reports.differences import by_seed, cell
from meada.reports.digits import TITLES, Groups, score_of
from meada.reports.text import head, line

ORDER = ("meada", "ada", "erm")  # best first, as Table 1 has them
ORDERED = ("svhn", "mnist_m")  # where it does
PAIRS = [*zip(ORDER, ORDER[1:], strict=False)]


def order(chosen: Groups) -> list[str]:
    """Whether ME-ADA > ADA > ERM on SVHN and MNIST-M, for the last step and for the oracle's.

    Nothing with fewer than two seeds that all three have.
    """
    runs = {method: {run.seed: run for run in chosen.get(method, ())} for method in ORDER}
    seeds = sorted(set.intersection(*(set(of) for of in runs.values())))
    if len(seeds) < 2:
        return []
    same = {method: [runs[method][seed] for seed in seeds] for method in ORDER}
    whole = head("on", "checkpoint", "seeds in the whole order", "p")
    single = head("difference", "on", "checkpoint", "points (95 % interval)", "above 0")
    said = []
    for rule in ("last", "oracle"):
        chances = {}
        places = [(domain, *pair) for domain in ORDERED for pair in PAIRS]
        for domain in ORDERED:
            values = [[score_of(run, rule, domain) for run in same[m]] for m in ORDER]
            chances[domain] = page_trend(values)
            kept = sum(best > middle > least for best, middle, least in zip(*values, strict=True))
            told = f"{kept} of {len(seeds)}", f"{chances[domain]:.4f}"
            whole.append(line(TITLES[domain], rule, *told))
        by = [[by_seed(same[m], rule, d) for m in pair] for d, *pair in places]
        steps = verdicts([over_seeds(*pair) for pair in by])
        for (domain, better, worse), (a, b), step in zip(places, by, steps, strict=True):
            above = f"{sum(a[seed] > b[seed] for seed in seeds)} of {len(seeds)}"
            single.append(line(f"{better} - {worse}", TITLES[domain], rule, cell(step), above))
        said.append(f"{rule}: {judged(chances, steps)}")
    return [
        "The paper has ME-ADA > ADA > ERM on SVHN and on MNIST-M. Ours, by seed (the same first "
        f"weights, the same batches until the pools differ), {len(seeds)} seeds: "
        f"{'; '.join(said)}.",
        "",
        "The whole order, by Page's test for ordered alternatives, exact: p is how often seeds "
        "would come as close to it if the methods did not differ. It may be small where only one "
        "of the two steps is real, so each is looked at by itself below.",
        "",
        *whole,
        "",
        "Each step by its size, by Student's t. **Bold**: more than chance, corrected by Holm over the four steps.",
        "",
        *single,
    ]


def judged(chances: Mapping[str, float], steps: Collection[Verdict]) -> str:
    """Confirmed: the order is there in every domain. Refuted: one step of it is the other way, by more than chance.

    >>> from meada.evaluation.statistics import Difference
    >>> up, unsure, down = (Verdict(Difference(v), p) for v, p in ((2.0, 0.01), (1.0, 0.4), (-2.0, 0.01)))
    >>> judged({"svhn": 0.005}, [up, unsure])
    '**confirmed** (p = 0.0050 on SVHN; 1 of 2 steps above 0 beyond chance, 0 below)'
    >>> [judged({"svhn": p}, [step]).split(" (")[0] for p, step in ((0.06, up), (0.0, down))]
    ['**neither confirmed nor refuted**', '**refuted**']
    """
    sure = [step.difference.value for step in steps if step.beyond_chance]
    above, below = sum(v > 0 for v in sure), sum(v < 0 for v in sure)
    confirmed = all(p <= 1 - LEVEL for p in chances.values())
    word = "refuted" if below else "confirmed" if confirmed else "neither confirmed nor refuted"
    ps = ", ".join(f"{p:.4f} on {TITLES[domain]}" for domain, p in chances.items())
    counts = f"{above} of {len(steps)} steps above 0 beyond chance, {below} below"
    return f"**{word}** (p = {ps}; {counts})"
