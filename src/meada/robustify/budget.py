"""How long a plan takes, from measured costs; and the plan that fits a number of minutes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from meada.corruptions import CORRUPTIONS
from meada.evaluation.attack import STEPS as ATTACK_STEPS
from meada.evaluation.rounds import SAMPLE
from meada.evaluation.validation_shifts import SHIFTS
from meada.robustify.plan import Setting, Settings
from meada.runs.timing_probe import CHOICES, Costs

SLACK = 0.85  # of the budget is planned with: reading, writing and a machine that others use too
MODELS = 2  # ERM and the method
FEW = 500  # pictures to learn from that are not made fewer: they cost the ascent, not the descent
SLOPE = 3  # times reading a picture: following it back to its pixels, as an attack does


@dataclass(frozen=True)
class Sizes:
    """How many pictures there are."""

    train: int
    held_out: int
    tests: tuple[int, ...] = ()


Growth = Callable[[int, int], int]  # a pool of n after so many rounds


def estimate(plan: Settings, costs: Costs, sizes: Sizes, growth: Growth) -> dict[str, float]:
    """Seconds by phase, for both models together.

    >>> plan = {"plan.total_steps": Setting(100, ""), "plan.rounds": Setting(1, ""),
    ...     "method.steps": Setting(5, "")}
    >>> costs, double = Costs(step=0.1, climb=0.01, look=0.0, corrupt=0.0), lambda n, k: n * 2**k
    >>> estimate(plan, costs, Sizes(train=200, held_out=0), double)  # 2 * 10 s; 200 * 5 * 0.01 s
    {'minimise': 20.0, 'maximise': 10.0, 'evaluate': 0.0}
    """
    value = lambda key, default: plan[key].value if key in plan else default
    n = min(value("data.train", sizes.train), sizes.train)
    rounds = value("plan.rounds", 0)
    grown = [growth(n, k + 1) - growth(n, k) for k in range(rounds)]
    return {
        "minimise": MODELS * value("plan.total_steps", 0) * costs.step,
        "maximise": sum(grown) * value("method.steps", 0) * costs.climb,
        "evaluate": costs.look * _looks(plan, sizes, grown) + costs.corrupt * _corrupted(plan, sizes),
    }


def _corrupted(plan: Settings, sizes: Sizes) -> int:
    if "robustness.images" not in plan:
        return 0
    kept = min(plan["robustness.images"].value, sizes.held_out)
    return kept * len(CORRUPTIONS) * len(plan["robustness.severities"].value)


def _looks(plan: Settings, sizes: Sizes, grown: list[int]) -> int:
    """Pictures read by either model: candidates, the chosen ones, corruptions, the rounds' own."""
    value = lambda key, default: plan[key].value if key in plan else default
    tests = [min(size, value("data.test", size)) for size in sizes.tests]
    subset, shifted = value("evaluation.subset", 600), value("evaluation.crafted", 200)
    sets = sum(min(size, subset) for size in (sizes.held_out, *tests))
    sets += min(shifted, sizes.held_out) * len(SHIFTS)
    total = value("plan.total_steps", 0)
    candidates = -(-total // value("evaluation.every", max(total, 1))) if total else 0
    whole = CHOICES * (sizes.held_out + sum(tests))
    kept = min(value("robustness.images", 0), sizes.held_out)
    after = _corrupted(plan, sizes) + kept * (len(SHIFTS) + SLOPE * ATTACK_STEPS)
    return MODELS * (candidates * sets + whole + after) + sum(2 * min(g, SAMPLE) for g in grown)


def shrunk(plan: Settings, sizes: Sizes, s: float, pinned: Collection[str] = ()) -> Settings:
    """The plan at about a part ``s`` of its cost; keys in ``pinned`` stay as they are."""
    said = "for the time given"

    def part(key: str, share: float, least: int) -> dict[str, Setting]:
        if key not in plan or key in pinned:
            return {}
        old = plan[key].value
        new = max(min(least, old), round(old * share))
        return {key: Setting(new, f"{old:,} {said}")} if new != old else {}

    root = s**0.5
    new = {**plan, **part("plan.total_steps", s, 20), **part("method.steps", root, 3)}
    total = new["plan.total_steps"].value
    if "plan.min_steps" not in pinned:
        was = plan["plan.min_steps"].value / max(plan["plan.total_steps"].value, 1)
        new["plan.min_steps"] = Setting(int(total * was), f"the same part of {total:,} steps")
    if "evaluation.every" not in pinned:
        new["evaluation.every"] = Setting(max(-(-total // 3), 1), f"three candidates in {total:,} steps")
    if s < 1 and "data.train" not in pinned:
        most = max(min(FEW, sizes.train), round(sizes.train * root))
        if most < sizes.train:
            new["data.train"] = Setting(most, f"of {sizes.train:,} pictures {said}")
    if s < 1 and sizes.tests and "data.test" not in pinned:
        largest = max(sizes.tests)
        most = max(min(50, largest), round(largest * s))
        new["data.test"] = Setting(most, f"of up to {largest:,} pictures of a test {said}")
    for key, least in (
        ("evaluation.subset", 20),
        ("evaluation.crafted", 20),
        ("robustness.images", 30),
    ):
        new |= part(key, s, least)
    if s < 0.3 and "robustness.severities" not in pinned:
        new["robustness.severities"] = Setting([3], said)
    return new


def fit(
    plan: Settings,
    costs: Costs,
    sizes: Sizes,
    growth: Growth,
    *,
    minutes: float,
    pinned: Collection[str] = (),
) -> Settings:
    """The largest plan that takes about so many minutes, or the smallest there is."""
    seconds = lambda p: sum(estimate(p, costs, sizes, growth).values())
    budget = 60 * minutes * SLACK
    if seconds(plan) <= budget:
        return plan
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        fits = seconds(shrunk(plan, sizes, middle, pinned)) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return shrunk(plan, sizes, low, pinned)


def told(seconds: float) -> str:
    """
    >>> told(42.0), told(160.0), told(7300.0)
    ('42 s', '3 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
