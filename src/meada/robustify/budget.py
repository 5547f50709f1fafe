"""Keep to the time: before a long stage, fit what is left of the plan to what is left of the time.

A decision uses only what is on disk (the plan, and the seconds of the stages that ended) and is written before its
stage begins, so a killed run repeats it.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from meada.machine.terminal import Count
from meada.robustify.plan import SLACK, Costs, Facts, Plan, estimate, largest, shrunk

# Before these stages, what may still change; plain and its repetition always have the same steps.
OPEN: dict[str, tuple[str, ...]] = {
    "plain": ("steps", "shifted", "test"),
    "hardened": ("hardened_steps", "shifted", "test"),
    "interpolated": ("shifted", "test"),
    "score": ("shifted", "test"),
}
CLOSE = 0.03  # share of the limit by which a forecast may miss its aim before anything is changed
RECENT = 0.05  # share of the limit whose last measured stages tell the pace of the machine
QUICKEST = 0.4  # a pace below it is an accident of a stage that was stopped just before its end


@dataclass(frozen=True)
class Budget:
    """The time, and what is known of the costs."""

    limit: float  # seconds in all
    prepared: float  # seconds before the first stage: reading, timing
    whole: Plan  # the plan that time does not limit
    costs: Costs
    train: int
    held_out: int
    tests: tuple[int, ...]
    pinned: tuple[str, ...] = ()  # settings that were asked for

    @classmethod
    def read(cls, held: Mapping[str, Any]) -> "Budget":
        lists = {key: tuple(held[key]) for key in ("tests", "pinned")}
        return cls(**{**held, "whole": Plan(**held["whole"]), "costs": Costs(**held["costs"]), **lists})

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "whole": self.whole.model_dump()}

    def seconds(self, plan: Plan) -> dict[str, float]:
        """Of every stage, by the costs that were measured at the start."""
        return estimate(plan, self.costs, Facts(self.train, self.held_out, plan.side), self.tests)

    def pace(self, plan: Plan, done: Mapping[str, float]) -> float:
        """Seconds that the last stages took for one that was expected.

        A stage that needs something different (scoring after training) is expected to slow down by as much.
        """
        expected, took, by_stage = 0.0, 0.0, self.seconds(plan)
        for name in reversed(list(done)):
            expected, took = expected + by_stage[name], took + done[name]
            if expected >= RECENT * self.limit:
                return max(took / expected, QUICKEST)
        return 1.0  # too little to tell

    def forecast(self, plan: Plan, done: Mapping[str, float]) -> dict[str, float]:
        """Seconds of each stage: what it took, or should take at the present pace."""
        pace = self.pace(plan, done)
        return {name: done.get(name, pace * value) for name, value in self.seconds(plan).items()}

    def revised(self, plan: Plan, stage: str, done: Mapping[str, float]) -> Plan:
        """The plan as it is if it keeps to the time, or with what is still open before ``stage`` fitted to it."""
        takes = lambda p: self.prepared + sum(self.forecast(p, done).values())
        aim, miss = SLACK * self.limit, CLOSE * self.limit
        free = [key for key in OPEN.get(stage, ()) if key not in self.pinned]
        if "steps" in self.pinned:
            free = [key for key in free if key != "hardened_steps"]
        if not free or abs(takes(plan) - aim) <= miss:
            return plan
        return largest(lambda s: self._with(plan, free, s), lambda p: takes(p) <= aim)

    def _with(self, plan: Plan, free: Collection[str], s: float) -> Plan:
        """``plan`` with its open settings at a share ``s`` of the whole plan's."""
        small = shrunk(self.whole, s, self.tests, self.pinned)
        steps = min(small.steps, plan.steps)
        found = {"steps": small.steps, "hardened_steps": 0 if steps == plan.steps else steps,
                 "shifted": small.shifted, "test": small.test}  # fmt: skip
        return plan.model_copy(update={key: found[key] for key in free})


class Stopwatch:
    """Seconds of a whole stage, also where an earlier start did a part of it."""

    def __init__(self, tell: Count) -> None:
        self._tell, self._began = tell, time.monotonic()
        self._before: float | None = None  # share that was done already

    def tell(self, done: int, n: int) -> None:
        if self._before is None:
            self._before = max(done - 1, 0) / n
        self._tell(done, n)

    def seconds(self) -> float:
        return (time.monotonic() - self._began) / (1 - (self._before or 0.0))
