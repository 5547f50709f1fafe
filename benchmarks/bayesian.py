"""Cost of the Bayesian LeNet relative to the plain one, and the effect of its number of weight samples.

    python -m benchmarks.bayesian --out benchmarks/bayesian.json

Cost: a minimisation step, a step of the ascent and a prediction, each in turn with the plain
network's; peak memory of each in a process of its own. Draws: a network trained for 300 steps on
the digits experiment's 10,000 images climbs with T shared or renewed draws; every result is judged
by the same 16 draws that took no part, and by its distance from the ascent with T = 10.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.measure import interleave, speedup, work
from meada.algorithm import Plan, begin, train
from meada.datasets import DATASETS
from meada.entropy import entropy_of_mean, expected_entropy
from meada.evaluation import evaluate
from meada.files import write_json
from meada.machine.environment import environment
from meada.maximise import perturb
from meada.methods import METHODS
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.networks.plain import lenet
from meada.networks.posterior import Posterior, posterior_passes
from meada.pool import Pool, as_float
from meada.types import Batch

PAPER = {"beta": 10.0, "gamma": 1 / 1024, "step_size": 1 / 32, "steps": 15}
KINDS = {"plain": "meada", "bayesian": "meada-bnn"}
CLIMBED, JUDGES = 64, 16
TEMPERATURE = 1e-3  # digits/meada-bnn's


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=300, help="training steps before the ascents")
    options.add_argument("--out", type=Path)
    options.add_argument("--child", choices=KINDS, help="measure the peak memory of this kind in this process")
    chosen = options.parse_args()
    if chosen.child:
        print(peak_megabytes(chosen.child))
        return
    record = {
        "command": f"python -m benchmarks.bayesian --steps {chosen.steps}",
        "environment": environment(),
        "cost": cost(),
        "megabytes": {kind: _in_a_process(kind) for kind in KINDS},
        **draws(chosen.steps),
    }
    print(json.dumps(record, indent=2))
    if chosen.out:
        write_json(chosen.out, record)


def network(kind: str) -> nn.Module:
    torch.manual_seed(0)
    net = METHODS[KINDS[kind]]().adapt(lenet())
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def stepper(kind: str) -> Any:
    """A function that takes one minimisation step on 32 random images."""
    net, loss = network(kind).train(), METHODS[KINDS[kind]]().loss
    optimiser = Descent().build(net.parameters())
    batch = Batch(torch.rand(32, 3, 32, 32), torch.randint(10, (32,)))

    def step() -> None:
        optimiser.zero_grad()
        loss(net, batch, Context(pool_size=10_000, batches=313)).backward()
        optimiser.step()

    return step


def climber(kind: str, T: int) -> Any:
    net, x, y = network(kind), torch.rand(128, 3, 32, 32), torch.randint(10, (128,))
    settings: dict[str, Any] = {**PAPER, "steps": 3, "posterior": Posterior(samples=T)}
    return lambda: perturb(net, x, y, **settings)


def predictor(kind: str) -> Any:
    net, pair = network(kind).eval(), (torch.rand(256, 3, 32, 32), torch.randint(10, (256,)))
    return lambda: evaluate(net, {"some": pair})


def cost(rounds: int = 5) -> dict[str, float]:
    """Time relative to the plain network: medians of the ratios of interleaved rounds."""
    pairs = {
        "minimisation step": (stepper("plain"), stepper("bayesian")),
        "ascent step, T = 2": (climber("plain", 1), climber("bayesian", 2)),
        "ascent step, T = 5": (climber("plain", 1), climber("bayesian", 5)),
        "prediction": (predictor("plain"), predictor("bayesian")),
    }
    ratios = {}
    for name, (plain, bayesian) in pairs.items():
        times = interleave({"bayesian": work(bayesian), "plain": work(plain)}, rounds=rounds)
        ratios[name] = round(speedup(times["bayesian"], times["plain"]).median, 2)
    return ratios


def peak_megabytes(kind: str) -> float:
    """Peak memory of ten minimisation steps, less that of Python and torch."""
    before = _high_water()
    step = stepper(kind)
    for _ in range(10):
        step()
    return round((_high_water() - before) / 1024)


def _high_water() -> int:
    """Peak memory of this process in kilobytes; ``ru_maxrss`` would include its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _in_a_process(kind: str) -> float:
    command = [sys.executable, "-m", "benchmarks.bayesian", "--child", kind]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def draws(steps: int) -> dict[str, Any]:
    """Compare numbers of weight samples: S for predictions, T (fixed or renewed) for the ascent."""
    task = DATASETS["digits"](train=10_000, validation=5_000, targets=["mnist_m"])
    pool, net = Pool(task.train.images, task.train.labels), network("bayesian")
    method, descent = METHODS["meada-bnn"](temperature=TEMPERATURE), Descent()
    plan = Plan(rounds=0, min_steps=0, total_steps=steps)
    train(begin(net, pool, method, descent), pool, method, plan, descent)
    net.eval()
    batch = pool.batch(torch.arange(CLIMBED))
    return {"predictions": predictions(net, task), "ascents": ascents(net, batch.x, batch.y)}


def predictions(net: Any, task: Any) -> dict[str, Any]:
    some = {"source": task.validation, "mnist_m": task.targets["mnist_m"]}
    sets = {name: (as_float(s.images[:1000]), s.labels[:1000]) for name, s in some.items()}
    scores = {}
    for S in (1, 2, 4, 8, 16):
        net.samples = S
        scores[f"S = {S}"] = _rounded(evaluate(net, sets))
    net.samples = 4
    return scores


def ascents(net: nn.Module, x0: Tensor, y: Tensor) -> list[dict[str, Any]]:
    reference, rows = None, []
    kinds = [(10, "shared", "expected"), *((T, d, "expected") for T in (1, 2, 5)
             for d in ("shared", "renewed")), (5, "shared", "of_mean")]  # fmt: skip
    for T, renewal, uncertainty in kinds:
        began = time.perf_counter()
        posterior = Posterior(samples=T, draws=renewal, uncertainty=uncertainty)  # type: ignore[arg-type]
        x = perturb(net, x0, y, posterior=posterior, **PAPER)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        reference = x if reference is None else reference
        off = (x - reference).flatten(1).norm(dim=1) / (reference - x0).flatten(1).norm(dim=1)
        rows.append({
            "T": T, "draws": renewal, "uncertainty": uncertainty, "seconds": round(seconds, 2),
            "distance": round(float(off.mean()), 3), **judged(net, x0, x, y),
        })  # fmt: skip
    return rows


def judged(net: nn.Module, x0: Tensor, x: Tensor, y: Tensor) -> dict[str, float]:
    """Terms of the objective under weight samples that the ascent did not use."""
    with torch.inference_mode(), posterior_passes(net, count=JUDGES, seed=999) as passes:
        (_, z0), (logits, z) = passes(x0, 0), passes(x, 0)
    ce = cross_entropy(logits.flatten(0, 1), y.repeat(JUDGES))
    terms = {
        "ce": ce,
        "expected entropy": expected_entropy(logits).mean(),
        "entropy of mean": entropy_of_mean(logits).mean(),
        "cost": (z - z0).square().sum(-1).mean(),
    }
    return {name: round(float(value), 3) for name, value in terms.items()}


def _rounded(scores: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    return {domain: {m: round(float(one[m]), 3) for m in ("accuracy", "nll", "ece")} for domain, one in scores.items()}


if __name__ == "__main__":
    main()
