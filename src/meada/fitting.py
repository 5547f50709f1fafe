"""Algorithm 1 in a library user's hands: any network, any images, no folder."""

from typing import Any

from torch import Tensor, nn

from meada.algorithm import Plan, Watch, begin, train
from meada.clock import Clock
from meada.environment import environment
from meada.errors import MeadaError, nearest
from meada.evaluation.rounds import diagnose
from meada.methods import METHODS, Method
from meada.minimise import Training, refuse_non_finite
from meada.optimise import Descent
from meada.pool import Pool
from meada.types import Labels
from meada.version import __version__


def fit(
    net: nn.Module,
    data: Pool | tuple[Tensor, Labels],
    method: str | Method = "meada",
    *,
    plan: Plan | None = None,
    descent: Descent | None = None,
    seed: int = 0,
    embedding: str | None = None,
) -> dict[str, Any]:
    """Train ``net`` in place; gives back a record of the rounds, steps and seconds.

    >>> import torch
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> images, labels = torch.rand(8, 3, 2, 2), torch.tensor([0, 1] * 4)
    >>> plan = Plan(rounds=1, min_steps=2, total_steps=4, batch_size=4)
    >>> record = fit(net, (images, labels), plan=plan)
    >>> record["steps"], [r["pool"] for r in record["rounds"]]
    (4, [16])
    """
    pool = data if isinstance(data, Pool) else Pool(*data)
    plan, descent = plan or Plan(), descent or Descent()
    name, chosen = _method(method)
    if chosen.adapt(net) is not net:
        raise MeadaError(f"method '{name}' trains a network of its own: adapt it first, then fit")
    training = begin(net, pool, chosen, descent, seed=seed, embedding=embedding)
    clock = Clock()
    rounds: list[dict[str, Any]] = []

    def grown(training: Training, pool: Pool) -> None:
        seconds = clock.switch("evaluate")
        what = diagnose(net, pool, embedding=embedding) if pool.rounds else {}
        rounds.append({"round": training.round, "pool": len(pool), **what, "seconds": seconds})
        clock.switch("minimise")

    def ascending(training: Training) -> None:
        clock.switch("maximise")

    def stepped(training: Training, loss: Tensor) -> None:
        refuse_non_finite(float(loss), training.step)

    watch = Watch(stepped=stepped, ascending=ascending, grown=grown)
    train(training, pool, chosen, plan, descent, seed=seed, embedding=embedding, watch=watch)
    clock.switch("minimise")
    return {
        "meada": __version__,
        "method": name,
        "network": type(net).__name__,
        "seed": seed,
        "environment": environment(),
        "rounds": rounds,
        "seconds": clock.seconds,
        "steps": training.step,
    }


def _method(method: str | Method) -> tuple[str, Method]:
    if isinstance(method, Method):
        return "custom", method
    if method not in METHODS:
        raise MeadaError(f"unknown method '{method}': " + nearest(method, METHODS))
    return method, METHODS[method]()
