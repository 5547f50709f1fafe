"""Digits: the paper's order of methods, confirmed or refuted with its statistics."""

from collections.abc import Collection, Mapping, Sequence

from scipy.stats import page_trend_test

from meada.evaluation.statistics import LEVEL, Interval, summarise, t_interval
from meada.reports.differences import by_seed
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
    single = head("difference", "on", "checkpoint", "mean", "95 % interval", "above 0")
    said = []
    for rule in ("last", "oracle"):
        chances, intervals = {}, []
        for domain in ORDERED:
            values = [[score_of(run, rule, domain) for run in same[m]] for m in ORDER]
            chances[domain] = trend(values)
            kept = sum(best > middle > least for best, middle, least in zip(*values, strict=True))
            told = f"{kept} of {len(seeds)}", f"{chances[domain]:.4f}"
            whole.append(line(TITLES[domain], rule, *told))
            for better, worse in PAIRS:
                by = by_seed(same[better], same[worse], rule, domain)
                intervals += [i := _interval(by)]
                single.append(line(f"{better} - {worse}", TITLES[domain], rule,
                                   f"{summarise(by).mean:+.2f}", f"{i.low:+.2f} to {i.high:+.2f}",
                                   f"{sum(v > 0 for v in by)} of {len(by)}"))  # fmt: skip
        said.append(f"{rule}: {judged(chances, intervals)}")
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
        "Each step by its size, by Student's t (wide with so few seeds):",
        "",
        *single,
    ]


def _interval(values: Sequence[float]) -> Interval:
    found = t_interval(values)
    assert found is not None  # two seeds or more
    return found


def trend(best_first: Sequence[Sequence[float]]) -> float:
    """Page's test: each inner sequence has one method's value for every seed.

    Three seeds that all have the one order of the six come by chance in 1 of 6^3 cases.

    >>> round(trend([[3.0, 3.1, 3.2], [2.0, 2.1, 2.2], [1.0, 1.1, 1.2]]) * 6**3, 6)
    1.0
    """
    table = [list(of_seed)[::-1] for of_seed in zip(*best_first, strict=True)]
    return float(page_trend_test(table, method="exact").pvalue)


def judged(chances: Mapping[str, float], intervals: Collection[Interval]) -> str:
    """Confirmed: the order is there in every domain. Refuted: one step of it is the other way.

    >>> up, unsure, down = Interval(1.0, 2.0, ""), Interval(-1.0, 3.0, ""), Interval(-3.0, -1.0, "")
    >>> judged({"svhn": 0.005}, [up, unsure])
    '**confirmed** (p = 0.0050 on SVHN; 1 of 2 steps above 0 by an interval of its own, 0 below)'
    >>> [judged({"svhn": p}, [step]).split(" (")[0] for p, step in ((0.06, up), (0.0, down))]
    ['**neither confirmed nor refuted**', '**refuted**']
    """
    above, below = sum(i.low > 0 for i in intervals), sum(i.high < 0 for i in intervals)
    sure = all(p <= 1 - LEVEL for p in chances.values())
    word = "refuted" if below else "confirmed" if sure else "neither confirmed nor refuted"
    ps = ", ".join(f"{p:.4f} on {TITLES[domain]}" for domain, p in chances.items())
    steps = f"{above} of {len(intervals)} steps above 0 by an interval of its own, {below} below"
    return f"**{word}** (p = {ps}; {steps})"
