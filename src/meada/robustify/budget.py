"""Keep to the time budget: time a few steps, fit the plan at the start, and revise it before each long stage.

A decision depends only on files (the plan and the durations of finished stages) and is saved before its stage begins,
so a resumed run repeats it.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from meada.corruptions import CORRUPTIONS, corrupt
from meada.datasets import Task
from meada.evaluation import predict
from meada.machine.clock import median_gap, seconds_of
from meada.machine.terminal import Count
from meada.methods.method import Method
from meada.robustify import training
from meada.robustify.plan import Plan, trial_length

CANDIDATES = 6  # models that are scored: plain, plain_repeat, probe, hardened, averaged, interpolated
SCORED_SHIFTS = 15 + 4  # approximate number of corruptions and validation shifts
FEWEST_STEPS, FEWEST_PICTURES, FEWEST_PROBED = 20, 40, 2000  # of the smallest plan
SLACK = 0.97  # share of the budget that is planned for; with 0.93, runs took 84 to 92 % of their budget
# Settings that may change before each stage; plain and plain_repeat always have the same steps.
OPEN: dict[str, tuple[str, ...]] = {
    "plain": ("steps", "shifted", "test"), "hardened": ("hardened_steps", "shifted", "test"),
    "interpolated": ("shifted", "test"), "score": ("shifted", "test"),
}  # fmt: skip
STEPS, LOOKED, CORRUPTED = 3, 64, 4  # training steps (after one to warm up) and pictures that are timed
FORECAST_TOLERANCE = 0.03  # share of the limit by which a forecast may be off before the plan is changed
PACE_WINDOW = 0.05  # share of the limit over which the pace is measured
MIN_PACE = 0.4  # lower bound of the pace, for a stage that was interrupted just before its end


@dataclass(frozen=True)
class Costs:
    """Seconds, measured on this machine with this network."""

    plain: float  # one step of ordinary fine-tuning
    hardened: float  # one step on clean pictures and views
    look: float  # predicting one picture
    corrupt: float  # corrupting one picture, averaged over the fifteen corruptions


def measure(net: nn.Module, task: Task, plan: Plan) -> Costs:
    """Time training steps, a prediction and the corruptions of a few pictures."""
    some, few = task.train.images[:LOOKED], task.validation.images[:CORRUPTED]
    hard = training.hardened(plan.side, training.space_of(colour=True), views=plan.views, hardness=plan.hardness)
    corrupt_all = lambda: [corrupt(few, name, 3) for name in CORRUPTIONS]
    predict(net, some[:2])  # warm-up, as below: filters and maps are cached
    corrupt_all()
    return Costs(
        plain=_step(net, task, plan, training.plain(plan.side)),
        hardened=_step(net, task, plan, hard, frozen=plan.pretrained, average_from=0.0),
        look=seconds_of(lambda: predict(net, some, batch_size=LOOKED)) / len(some),
        corrupt=seconds_of(corrupt_all) / (len(few) * len(CORRUPTIONS)),
    )


def _step(net: nn.Module, task: Task, plan: Plan, method: Method, **how: Any) -> float:
    """Median seconds of a few real training steps."""
    marks: list[float] = []
    tuning = training.Tuning(method, plan.descent(1e-9), STEPS + 1, plan.batch_size, seed=0, **how)
    training.tune(net, task.train, tuning, tell=lambda done, n: marks.append(time.perf_counter()))
    return median_gap(marks)


@dataclass(frozen=True)
class Budget:
    """The time limit, the measured costs and the numbers of pictures; the plans that keep to the limit."""

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
        looks = lambda n: n * self.costs.look
        tested = sum(min(n, plan.test or n) for n in self.tests)
        rows, plain = SCORED_SHIFTS * plan.shifted, plan.steps * self.costs.plain
        probed, trials = min(self.train, plan.probe or self.train), len(plan.rates) if plan.trial_steps else 0
        return {
            "probe": looks(2 * probed + self.held_out) if plan.pretrained else 0.0,
            "families": looks(2 * self.held_out) if plan.pretrained else 0.0,
            "rate": trials * (plan.trial_steps * self.costs.plain + looks(self.held_out)),
            "plain": plain,
            "plain_repeat": plain,
            "hardened": plan.steps_of("hardened") * self.costs.hardened,
            "interpolated": looks(len(plan.interpolation) * (self.held_out + 4 * plan.shifted)),
            "score": looks(CANDIDATES * (self.held_out + tested + rows)) + self.costs.corrupt * rows,
        }

    def fitted(self) -> Plan:
        """The largest plan that fits into the time, or the smallest possible one; pinned settings do not change.

        Where useful trials of learning rates do not fit, there are none, and their time goes into the rest.
        """
        aim = SLACK * (self.limit - self.prepared)
        fits = lambda p: sum(self.seconds(p).values()) <= aim
        plan = largest(self.shrunk, fits)
        if plan.trial_steps or not self.whole.trial_steps:
            return plan
        return largest(lambda s: self.shrunk(s).model_copy(update={"trial_steps": 0}), fits)

    def shrunk(self, s: float) -> Plan:
        """A plan of about ``s`` times the cost: fewer steps and, to a lesser degree, fewer pictures to score."""
        plan, most = self.whole, self.whole.test or max(self.tests, default=0)
        steps = max(round(plan.steps * s), min(FEWEST_STEPS, plan.steps))
        less = {
            "probe": max(round(plan.probe * s), min(FEWEST_PROBED, plan.probe)),
            "steps": steps,
            "trial_steps": trial_length(steps) if plan.trial_steps else 0,
            "shifted": max(round(plan.shifted * s**0.5), min(FEWEST_PICTURES, plan.shifted)),
            "test": max(round(most * s**0.5), min(100, most)) if s < 1 else plan.test,
        }
        return plan.model_copy(update={key: value for key, value in less.items() if key not in self.pinned})

    def pace(self, plan: Plan, done: Mapping[str, float]) -> float:
        """Actual over expected seconds of the last stages; all later stages are assumed to have the same ratio."""
        expected, took, by_stage = 0.0, 0.0, self.seconds(plan)
        for name in reversed(list(done)):
            expected, took = expected + by_stage[name], took + done[name]
            if expected >= PACE_WINDOW * self.limit:
                return max(took / expected, MIN_PACE)
        return 1.0  # too little measured

    def forecast(self, plan: Plan, done: Mapping[str, float]) -> dict[str, float]:
        """Seconds of each stage: measured, or expected at the current pace."""
        pace = self.pace(plan, done)
        return {name: done.get(name, pace * value) for name, value in self.seconds(plan).items()}

    def revised(self, plan: Plan, stage: str, done: Mapping[str, float]) -> Plan:
        """The same plan if it fits the time, else one with the settings that are open before ``stage`` changed."""
        takes = lambda p: self.prepared + sum(self.forecast(p, done).values())
        aim, miss = SLACK * self.limit, FORECAST_TOLERANCE * self.limit
        free = [key for key in OPEN.get(stage, ()) if key not in self.pinned]
        if "steps" in self.pinned:
            free = [key for key in free if key != "hardened_steps"]
        if not free or abs(takes(plan) - aim) <= miss:
            return plan
        return largest(lambda s: self._with(plan, free, s), lambda p: takes(p) <= aim)

    def _with(self, plan: Plan, free: Collection[str], s: float) -> Plan:
        """``plan`` with its open settings at a share ``s`` of those of the whole plan."""
        small = self.shrunk(s)
        steps = min(small.steps, plan.steps)
        found = {**small.model_dump(), "hardened_steps": 0 if steps == plan.steps else steps}
        return plan.model_copy(update={key: found[key] for key in free})


def largest(make: Callable[[float], Plan], fits: Callable[[Plan], bool]) -> Plan:
    """The plan for the largest share that fits, found by bisection; for share 0 if none fits."""
    low, high = 0.0, 1.0
    if fits(make(high)):
        return make(high)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(make(middle)) else (low, middle)
    return make(low)


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
