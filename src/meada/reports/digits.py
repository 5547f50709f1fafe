"""Runs on digits, and which of them may stand in Table 1 or on Figure 1."""

from collections.abc import Iterable, Mapping, Sequence, Set

from meada.evaluation.statistics import Summary, summarise
from meada.reports.runs import Run

DOMAINS = ("svhn", "mnist_m", "usps")  # SYN is shown where its file can be had
COLUMNS = (*DOMAINS, "mean")
TITLES = {"svhn": "SVHN", "mnist_m": "MNIST-M", "usps": "USPS", "mean": "mean of three"}

Groups = Mapping[str, Sequence[Run]]  # a method's name -> its runs


def on_digits(runs: Iterable[Run]) -> list[Run]:
    """Those that were tested on all three; others are passed over."""
    digits = (run for run in runs if run.record.get("data", "digits") == "digits")
    return [run for run in digits if set(DOMAINS) <= run.results("last").keys()]


def score_of(run: Run, rule: str, domain: str, score: str = "accuracy") -> float:
    """``domain`` may be ``mean``: over the targets within the run."""
    results = run.results(rule)
    if domain != "mean":
        return float(results[domain][score])
    return sum(float(results[d][score]) for d in DOMAINS) / len(DOMAINS)


def candidates(run: Run) -> dict[int, float]:
    """Step -> mean accuracy on the targets' subsets, for each candidate in the log."""
    return {line["step"]: line["scores"]["oracle"] for line in run.log if "scores" in line}


def rounds(run: Run) -> int:
    """The paper's K."""
    return run.settings.plan.rounds


def in_table_1(run: Run) -> bool:
    """Whether its recipe is the shipped one, to the last setting; only the seed is its own."""
    return shipped(run)


def in_figure_1(run: Run) -> bool:
    """The same, at any K."""
    return shipped(run, {"plan.rounds"})


def shipped(run: Run, but: Set[str] = frozenset()) -> bool:
    """Whether its recipe is a shipped one of digits, of full length, but for these settings."""
    whole = run.settings.name.startswith("digits/") and run.settings.scaled == 1
    return whole and run.changed is not None and run.changed.keys() <= but


def by_method(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """One run a seed, in the order of the seeds."""
    chosen: dict[str, dict[int, Run]] = {}
    for run in runs:
        chosen.setdefault(run.method, {}).setdefault(run.seed, run)
    return {method: [group[s] for s in sorted(group)] for method, group in chosen.items()}


def summary(runs: Sequence[Run], rule: str, domain: str, score: str = "accuracy") -> Summary:
    """Over runs; the mean over targets is taken within each run first."""
    return summarise([score_of(run, rule, domain, score) for run in runs])
