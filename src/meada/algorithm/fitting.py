"""``meada.fit``: train a network in one call, with any kind of data and any optimiser."""

import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.optim import Optimizer

from meada import __version__
from meada.algorithm import Plan, Watch, begin, nothing, train
from meada.algorithm.callbacks import Callback, Log, as_callbacks, numbers
from meada.datasets.examples import arrays, pool_of, readable
from meada.errors import MeadaError, nearest
from meada.evaluation.rounds import diagnose
from meada.evaluation.score import evaluate
from meada.images.inputs import check_network
from meada.machine.clock import Clock
from meada.machine.device import choose
from meada.machine.environment import environment
from meada.machine.terminal import Tell, bar
from meada.methods import METHODS
from meada.methods.method import Method
from meada.methods.parts.descent import AsGiven, Descent
from meada.minimise import Training, refuse_non_finite
from meada.networks.embedding import plain_output
from meada.pool import Pool
from meada.settings import explain, signature_model

Factory = Callable[[Iterable[nn.Parameter]], Optimizer]
ELSEWHERE = {  # what people look for among the settings
    "lr": "give descent=meada.Descent(lr=...) or an optimiser",
    "epochs": "give plan=meada.Plan(unit='epochs', ...)",
    "batch_size": "give plan=meada.Plan(batch_size=...)",
}
VALIDATIONS = 10  # times that validation data is scored in a run, unless validate_every says otherwise


@torch.inference_mode(False)
@torch.enable_grad()  # whatever the caller is in
def fit(
    net: nn.Module, data: Any, method: str | Method = "meada", *,
    plan: Plan | None = None, descent: Descent | None = None, optimiser: Optimizer | Factory | None = None,
    validation: Any = None, validate_every: int | None = None,
    callbacks: Callback | Log | Iterable[Callback | Log] = (),
    device: str | torch.device | None = None, seed: int = 0, embedding: str | None = None,
    progress: bool | None = None, folder: str | Path | None = None, side: int = 224,
    **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Train ``net`` in place; returns a record of losses, rounds, validation scores, steps and seconds.

    Args:
        net: any module from images in [0, 1] to logits; normalisation is one of its layers
            (:func:`meada.with_normalisation`).
        data: ``(images, labels)``, a ``Dataset``, a ``DataLoader`` (its ``.dataset`` is read once; its batch size and
            order are not used), a Hugging Face dataset, the path of a folder ``CLASS/*.jpg``, or a :class:`meada.Pool`.
        method: a name of ``meada.METHODS``, with its ``settings`` by keyword, or a :class:`meada.Method`.
        plan: rounds, steps and batch size.
        descent: optimiser and learning rate by name, as recipes have them; or
        optimiser: a ``torch.optim`` optimiser of the network's weights, or a function that makes one of them.
        validation: data of the same kinds, or several by name; scored ``validate_every`` steps and at the end.
        callbacks: :class:`meada.Callback` objects or functions of ``(step, values)``.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``; by default wherever the network is.
        embedding: the submodule whose output is z; by default the input of the last ``nn.Linear``.
        progress: show a bar; by default where the output is a terminal.
        folder: where images read from ``data`` and new samples are kept; a temporary folder by default.
        side: width and height that the pictures of a folder are resized to.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> images, labels = torch.rand(8, 3, 2, 2), torch.tensor([0, 1] * 4)
    >>> plan = Plan(rounds=1, min_steps=2, total_steps=4, batch_size=4)
    >>> record = fit(net, (images, labels), plan=plan, beta=1.0)
    >>> record["steps"], len(record["losses"]), [r["pool"] for r in record["rounds"]]
    (4, 4, [16])
    """
    check_network(net, training=True)
    _check(plan, seed, validate_every, embedding)
    name, chosen = _method(method, settings)
    checked = _validation(validation, side)
    listeners, plan, seed = as_callbacks(callbacks), plan or Plan(), int(seed)
    descent_used = _descent(descent, optimiser, net)
    if device is not None:
        net.to(_device(device))
    if chosen.adapt(net) is not net:
        raise MeadaError(f"method '{name}' replaces the network: call its adapt(net) first, then fit the result")
    pool = _pool(data, folder, side)
    passes = dict(zip(("forward", "backward"), chosen.passes, strict=True))
    about = {"meada": __version__, "method": name, "network": type(net).__name__, "seed": seed, "passes": passes}
    with plain_output(net):
        training = begin(net, pool, chosen, descent_used, seed=seed, embedding=embedding)
    total = plan.in_steps(len(pool), chosen.growth)[1]
    shown = bar(name) if (sys.stderr.isatty() if progress is None else progress) else nullcontext(nothing)
    record: dict[str, Any] | None = None
    with shown as tell, plain_output(net):
        history = _History(net, listeners, embedding, total, checked, validate_every, tell)
        watch = Watch(history.stepped, history.ascending, partial(tell, "making harder samples"), history.grown)
        try:
            for listener in listeners:
                listener.on_start({**about, **settings, **plan.model_dump()})
            train(training, pool, chosen, plan, descent_used, seed=seed, embedding=embedding, watch=watch)
            record = {**about, "environment": environment(), **history.result(training)}
        finally:
            for listener in listeners:
                listener.on_end(record)
    return record


class _History:
    """Collects losses, rounds and scores, and passes them on to the callbacks."""

    def __init__(
        self, net: nn.Module, listeners: list[Callback], embedding: str | None, total: int,
        validation: Mapping[str, Any], validate_every: int | None, tell: Tell,
    ) -> None:  # fmt: skip
        self.net, self.listeners, self.embedding, self.total, self.tell = net, listeners, embedding, total, tell
        self.validation, self.every = validation, validate_every or max(total // VALIDATIONS, 1)
        self.clock = Clock()
        self.losses: list[float] = []
        self.rounds: list[dict[str, Any]] = []
        self.scores: list[dict[str, Any]] = []

    def stepped(self, training: Training, loss: Tensor) -> None:
        value, step = float(loss), training.step
        refuse_non_finite(value, step)
        self.losses.append(value)
        self._log(step, {"loss": value})
        self.tell("training", step, self.total)
        if self.validation and (step % self.every == 0 or step == self.total):
            self.clock.switch("evaluate")
            scores = evaluate(self.net, self.validation, step=step)
            self.scores.append({"step": step, "scores": scores})
            self._log(step, numbers(scores, "validation/"))
            self.clock.switch("minimise")

    def ascending(self, training: Training) -> None:
        self.clock.switch("maximise")

    def grown(self, training: Training, pool: Pool) -> None:
        seconds = self.clock.switch("evaluate")
        what = diagnose(self.net, pool, embedding=self.embedding) if pool.rounds else {}
        self.rounds.append({"round": training.round, "pool": len(pool), **what, "seconds": seconds})
        self._log(training.step, numbers(self.rounds[-1], "round/"))
        self.clock.switch("minimise")

    def result(self, training: Training) -> dict[str, Any]:
        self.clock.switch("minimise")
        found = {"rounds": self.rounds, "seconds": self.clock.seconds, "steps": training.step, "losses": self.losses}
        return found | ({"validation": self.scores} if self.validation else {})

    def _log(self, step: int, values: Mapping[str, float]) -> None:
        for listener in self.listeners:
            listener.on_log(step, values)


def _pool(data: Any, folder: str | Path | None, side: int) -> Pool:
    """A pool whose files are deleted with it, unless the caller gives a folder."""
    with ExitStack() as stack:
        home = folder or stack.enter_context(TemporaryDirectory(prefix="meada-data-", ignore_cleanup_errors=True))
        pool = pool_of(data, Path(home), side=side)
        weakref.finalize(pool, stack.pop_all().close)
    return pool


def _validation(data: Any, side: int) -> Mapping[str, Any]:
    """Validation data by name; arrays and folders are read before training, to find errors early."""
    if data is None:
        return {}
    named = data if isinstance(data, Mapping) else {"validation": data}
    return {name: arrays(one, side) or readable(one) for name, one in named.items()}


def _method(method: str | Method, settings: dict[str, Any]) -> tuple[str, Method]:
    if isinstance(method, Method):
        if settings:
            raise MeadaError(f"settings must be given to the Method itself, got {', '.join(settings)} next to it")
        return "custom", method
    if not isinstance(method, str):
        raise MeadaError(f"method must be a name or a meada.Method, got {type(method).__name__}")
    if method not in METHODS:
        raise MeadaError(f"unknown method '{method}': " + nearest(method, METHODS))
    return method, METHODS[method](**_checked_settings(method, settings))


def _checked_settings(method: str, settings: dict[str, Any]) -> dict[str, Any]:
    model = signature_model(inspect.signature(METHODS[method], eval_str=True).parameters)
    known = [*model.model_fields, *inspect.signature(fit).parameters]
    for name in settings:
        if name not in model.model_fields:
            hint = ELSEWHERE.get(name) or nearest(name, known)
            raise MeadaError(f"unknown setting '{name}' of method '{method}': {hint}")
    try:
        values = model(**settings)
    except ValidationError as error:
        raise explain(model, error) from None
    return {name: getattr(values, name) for name in settings}


def _descent(descent: Descent | None, optimiser: Optimizer | Factory | None, net: nn.Module) -> Descent:
    if optimiser is None:
        if descent is not None and not isinstance(descent, Descent):
            raise MeadaError(f"descent must be a meada.Descent, got {type(descent).__name__}: give it as optimiser=")
        return descent or Descent()
    if descent is not None:
        raise MeadaError("descent or optimiser must be given, got both")
    given = callable(optimiser) and not isinstance(optimiser, Optimizer)
    made = optimiser(net.parameters()) if given else optimiser  # type: ignore[operator]
    if not isinstance(made, Optimizer):
        raise MeadaError(f"optimiser must be a torch.optim optimiser or make one, got {type(made).__name__}")
    held = {id(p) for group in made.param_groups for p in group["params"]}
    if not held or held - {id(p) for p in net.parameters()}:
        raise MeadaError("optimiser must hold weights of the network that is trained, got weights of another one")
    return AsGiven(made)


def _check(plan: Any, seed: Any, validate_every: Any, embedding: Any) -> None:
    if plan is not None and not isinstance(plan, Plan):
        raise MeadaError(f"plan must be a meada.Plan, got {type(plan).__name__}")
    if embedding is not None and not isinstance(embedding, str):
        raise MeadaError(f"embedding must be the name of a submodule, got {embedding!r}")
    if not isinstance(seed, Integral) or not 0 <= int(seed) < 1 << 63:
        raise MeadaError(f"seed must be a whole number from 0 to 2^63 - 1, got {seed!r}")
    if validate_every is not None and (not isinstance(validate_every, int) or validate_every < 1):
        raise MeadaError(f"validate_every must be a whole number from 1 up, got {validate_every!r}")


def _device(device: str | torch.device) -> torch.device:
    try:
        wanted = choose("auto") if device == "auto" else torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise MeadaError(f"device must be auto, cpu, cuda, cuda:N or mps, got {device!r}") from error
    choose(wanted.type)  # type: ignore[arg-type]  # refuses what this machine has not
    return wanted
