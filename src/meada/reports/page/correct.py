"""Right or wrong, image by image: what a group's intervals and its differences are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from meada.evaluation.statistics import Interval, t_interval
from meada.reports.page.groups import Group
from meada.reports.page.statistics import (
    Correct,
    Difference,
    Replicates,
    bootstrap_p,
    by_seeds,
    image_means,
    percentile_interval,
    seed_weights,
)
from meada.reports.runs import Run


@dataclass
class Bootstrap:
    """Accuracy in per cent of every run on resampled images; each run is resampled once."""

    rule: str
    domains: tuple[str, ...]
    _images: dict[tuple[int, str], Replicates] = field(default_factory=dict)

    def prepare(self, runs: Sequence[Run]) -> None:
        """All runs of a domain at once: drawing the resamples is what costs."""
        for domain in self.domains:
            having = [run for run in runs if domain in run.predictions(self.rule)]
            by_size: dict[int, list[tuple[Run, Correct]]] = {}
            for run in having:
                right = _right(run, self.rule, domain)
                by_size.setdefault(right.shape[1], []).append((run, right))
            for alike in by_size.values():
                means = image_means(np.concatenate([right for _, right in alike]))
                for (run, _), column in zip(alike, means.T, strict=True):
                    self._images[id(run), domain] = 100 * column

    def has(self, runs: Sequence[Run]) -> bool:
        return all((id(run), domain) in self._images for run in runs for domain in self.domains)

    def replicates(self, runs: Sequence[Run], domain: str) -> Replicates:
        """Resampled means of ``runs`` (a seed each) on a domain, or on the ``mean`` of all."""
        names = self.domains if domain == "mean" else (domain,)
        each = [np.mean([self._images[id(run), name] for name in names], 0) for run in runs]
        return (np.stack(each, 1) * seed_weights(len(runs))).sum(1)

    def interval(self, group: Group, domain: str) -> Interval | None:
        runs = group.scored(self.rule)
        if not runs or not self.has(runs):
            return t_interval(group.values(self.rule, domain))
        how = "bootstrap, images" + (f" and {len(runs)} seeds" if len(runs) > 1 else " of one seed")
        return percentile_interval(self.replicates(runs, domain), how)

    def difference(self, group: Group, base: Group, domain: str) -> Difference:
        """Paired by seed where both groups have the same ones, and by image where it is known."""
        ours, theirs = ({run.seed: run for run in one.scored(self.rule)} for one in (group, base))
        seeds = sorted(ours.keys() & theirs.keys())
        paired = bool(seeds)
        a = [ours[s] for s in seeds] if paired else list(ours.values())
        b = [theirs[s] for s in seeds] if paired else list(theirs.values())
        values = [[_accuracy(run, self.rule, domain) for run in runs] for runs in (a, b)]
        if not paired or not self.has(a) or not self.has(b):
            return by_seeds(*values, paired=paired)
        gaps = self.replicates(a, domain) - self.replicates(b, domain)
        how = "paired bootstrap, images" + (" and seeds" if len(a) > 1 else " of one seed")
        value = float(np.mean(values[0]) - np.mean(values[1]))
        return Difference(value, percentile_interval(gaps, how), bootstrap_p(gaps), len(a))


def _right(run: Run, rule: str, domain: str) -> Correct:
    """One row; where a domain holds severities of the same images, an image's mean over them."""
    parts = run.predictions(rule)[domain]
    right = (parts["guess"] == parts["label"]).numpy().astype(np.float64)
    scores = run.results(rule).get(domain, {})
    severities = len(scores.get("by_severity", {}).get("accuracy", [0]))
    return right.reshape(severities, -1).mean(0)[None]


def _accuracy(run: Run, rule: str, domain: str) -> float:
    results = run.results(rule)
    if domain != "mean":
        return float(results[domain]["accuracy"])
    return float(np.mean([float(s["accuracy"]) for s in results.values()]))
