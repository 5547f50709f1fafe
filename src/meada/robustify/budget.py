"""Keep to the time budget: before each long stage, fit the rest of the plan to the time left.

A decision depends only on files (the plan and the durations of finished stages) and is saved before its stage begins,
so a resumed run repeats it.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from meada.machine.terminal import Count
from meada.robustify.plan import SLACK, Costs, Facts, Plan, estimate, largest, shrunk

# Settings that may change before each stage; plain and plain_repeat always have the same steps.
OPEN: dict[str, tuple[str, ...]] = {
    "plain": ("steps", "shifted", "test"),
    "hardened": ("hardened_steps", "shifted", "test"),
    "interpolated": ("shifted", "test"),
    "score": ("shifted", "test"),
}
CLOSE = 0.03  # share of the limit by which a forecast may be off before the plan is changed
RECENT = 0.05  # share of the limit over which the pace is measured
QUICKEST = 0.4  # lower bound of the pace, for a stage that was interrupted just before its end


@dataclass(frozen=True)
class Budget:
    """The time limit and the measured costs."""

    limit: float  # seconds in total
    prepared: float  # seconds before the first stage: reading, timing
    whole: Plan  # the plan without a time limit
    costs: Costs
    train: int
    held_out: int
    tests: tuple[int, ...]
    pinned: tuple[str, ...] = ()  # settings given by --set

    @classmethod
    def read(cls, held: Mapping[str, Any]) -> "Budget":
        lists = {key: tuple(held[key]) for key in ("tests", "pinned")}
        return cls(**{**held, "whole": Plan(**held["whole"]), "costs": Costs(**held["costs"]), **lists})

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "whole": self.whole.model_dump()}

    def seconds(self, plan: Plan) -> dict[str, float]:
        """Expected seconds of each stage, from the costs measured at the start."""
        return estimate(plan, self.costs, Facts(self.train, self.held_out, plan.side), self.tests)

    def pace(self, plan: Plan, done: Mapping[str, float]) -> float:
        """Actual over expected seconds of the last stages; all later stages are assumed to have the same ratio."""
        expected, took, by_stage = 0.0, 0.0, self.seconds(plan)
        for name in reversed(list(done)):
            expected, took = expected + by_stage[name], took + done[name]
            if expected >= RECENT * self.limit:
                return max(took / expected, QUICKEST)
        return 1.0  # too little measured

    def forecast(self, plan: Plan, done: Mapping[str, float]) -> dict[str, float]:
        """Seconds of each stage: measured, or expected at the current pace."""
        pace = self.pace(plan, done)
        return {name: done.get(name, pace * value) for name, value in self.seconds(plan).items()}

    def revised(self, plan: Plan, stage: str, done: Mapping[str, float]) -> Plan:
        """The same plan if it fits the time, else one with the settings that are open before ``stage`` changed."""
        takes = lambda p: self.prepared + sum(self.forecast(p, done).values())
        aim, miss = SLACK * self.limit, CLOSE * self.limit
        free = [key for key in OPEN.get(stage, ()) if key not in self.pinned]
        if "steps" in self.pinned:
            free = [key for key in free if key != "hardened_steps"]
        if not free or abs(takes(plan) - aim) <= miss:
            return plan
        return largest(lambda s: self._with(plan, free, s), lambda p: takes(p) <= aim)

    def _with(self, plan: Plan, free: Collection[str], s: float) -> Plan:
        """``plan`` with its open settings at a share ``s`` of those of the whole plan."""
        small = shrunk(self.whole, s, self.tests, self.pinned)
        steps = min(small.steps, plan.steps)
        found = {"steps": small.steps, "hardened_steps": 0 if steps == plan.steps else steps,
                 "shifted": small.shifted, "test": small.test}  # fmt: skip
        return plan.model_copy(update={key: found[key] for key in free})


class Stopwatch:
    """Seconds of a stage, extrapolated to the whole stage if it was resumed."""

    def __init__(self, tell: Count) -> None:
        self._tell, self._began = tell, time.monotonic()
        self._before: float | None = None  # share that was done before the resume

    def tell(self, done: int, n: int) -> None:
        if self._before is None:
            self._before = max(done - 1, 0) / n
        self._tell(done, n)

    def seconds(self) -> float:
        return (time.monotonic() - self._began) / (1 - (self._before or 0.0))
