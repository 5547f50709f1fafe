"""Which checkpoint to keep: four rules, and what each of them is allowed to know."""

from dataclasses import dataclass, field
from typing import Any

RULES = ("last", "source_val", "crafted", "oracle")
KNOWS = {  # how each rule chooses, as reports say it
    "last": "the last training step; no data was used to choose it",
    "source_val": "the best on held-out source images",
    "crafted": "the best on held-out source images under crafted shifts",
    "oracle": "the best on the targets themselves, as the published code does",
}


@dataclass
class Chosen:
    """For each rule the step and score of the best candidate so far; the latest on a tie."""

    steps: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)

    def consider(self, step: int, scores: dict[str, float]) -> bool:
        """Whether some rule prefers this candidate to the one that it had.

        >>> chosen = Chosen()
        >>> chosen.consider(100, {"oracle": 50.0}), chosen.consider(200, {"oracle": 50.0})
        (True, True)
        >>> chosen.consider(300, {"oracle": 49.0}), chosen.steps
        (False, {'oracle': 200})
        """
        better = [r for r, value in scores.items() if value >= self.scores.get(r, float("-inf"))]
        for rule in better:
            self.steps[rule], self.scores[rule] = step, scores[rule]
        return bool(better)

    def state(self) -> dict[str, Any]:
        return {"steps": dict(self.steps), "scores": dict(self.scores)}
