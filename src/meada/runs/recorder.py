"""Record a run during training: log, candidate checkpoints, rounds, pictures, resume state."""

import sys
import time
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from meada.algorithm import Watch
from meada.averaging import RunningMean
from meada.datasets import Task
from meada.evaluation.rounds import diagnose, in_bands, spectra, spread_index
from meada.evaluation.score import predict
from meada.evaluation.selection import Selection
from meada.files import write_bytes
from meada.machine.clock import Clock
from meada.machine.distributed import World
from meada.machine.environment import arithmetic
from meada.machine.terminal import Tell
from meada.minimise import Training, refuse_non_finite
from meada.pool import Pool
from meada.runs.checkpoint import save_checkpoint, save_weights
from meada.runs.recipe import Recipe, method_of
from meada.runs.run_folder import RunFolder

AVERAGED_EVERY = 10  # steps between two weights that count in the mean
LOG_POINTS = 100  # losses in the log of a run, besides those of the candidates: enough for a curve
GALLERY = 10  # pairs of source and adversarial image kept of each round, for pictures


class Recorder:
    """Observes a training run and writes to its folder; only the first of several processes writes."""

    def __init__(
        self, recipe: Recipe, folder: RunFolder, task: Task, tell: Tell, *, total: int, world: World | None = None
    ) -> None:
        self.recipe, self.folder, self.tell, self.total = recipe, folder, tell, total
        self.world, sizes, trained = world or World(), recipe.evaluation, method_of(recipe).families
        self.selection = Selection(task, subset=sizes.subset, crafted_size=sizes.crafted, trained=trained)
        self.clock, self.mean = Clock(), RunningMean()
        self.rounds: list[dict[str, Any]] = []
        self.blocks = 0  # that the pool has grown by: none where a method grows nothing
        self._pictures: dict[str, Tensor] = {}
        self._losses: list[Tensor] = []
        self._lines: list[str] = []  # of the log: the checkpoint holds them, so that a resumed run has them whole
        self._saved = time.monotonic()

    def watch(self) -> Watch:
        return Watch(self.stepped, self.ascending, self.climbed, self.grown)

    def stepped(self, training: Training, loss: Tensor) -> None:
        self._losses.append(loss)
        counts = training.step % AVERAGED_EVERY == 0 or training.step == self.total
        if training.step > self.recipe.average_from * self.total and counts:
            self.mean.add(training.net.state_dict())
        self.tell(self._phase(training.round, "minimise"), training.step, self.total)
        if training.step % self.recipe.evaluation.every == 0 or training.step == self.total:
            self._candidate(training)
        elif training.step % -(-self.total // LOG_POINTS) == 0:
            self._log(training.step, loss=self._loss(training))
        if time.monotonic() - self._saved >= self.recipe.checkpoint_seconds:
            self.save(training)

    def ascending(self, training: Training) -> None:
        self.save(training)
        self.clock.switch("maximise", earlier=self.folder.load_ascent(training.round))
        self._round = training.round

    def climbed(self, done: int, total: int) -> None:
        self.tell(self._phase(self._round, "maximise"), done, total)
        if self.world.is_main:
            self.folder.write_ascent(self._round, self.clock.running)

    def grown(self, training: Training, pool: Pool) -> None:
        if not self.world.is_main:
            return
        seconds, self.blocks = self.clock.switch("evaluate"), pool.rounds
        line: dict[str, Any] = {"round": training.round, "pool": len(pool)}
        if pool.rounds:  # a method that grows nothing has nothing to tell
            beta, stochastic = self.recipe.method.get("beta"), self.recipe.method.get("stochastic", ())
            embedding = self.recipe.embedding or None
            line |= diagnose(training.net, pool, embedding=embedding, beta=beta, stochastic=stochastic)
            moved, there = spectra(pool, spread_index(pool))
            line["spectrum"] = in_bands(moved, there)
            self._keep_pictures(training, pool, {"spectrum": moved})
            for warning in line["warnings"]:
                print(f"meada: {warning}", file=sys.stderr, flush=True)
        self.rounds.append({**line, "seconds": seconds})
        self._log(training.step, **self.rounds[-1])
        self.clock.switch("minimise")
        self.save(training)

    def save(self, training: Training) -> None:
        """Everything that a resumed run needs, replaced atomically."""
        if not self.world.is_main:
            return
        self.clock.switch("minimise")
        save_checkpoint(self.folder.checkpoint, training, {
            "chosen": self.selection.state(),
            "seconds": self.clock.seconds,
            "rounds": self.rounds,
            "blocks": self.blocks,
            "losses": [float(loss) for loss in self._losses],
            "log": self._lines,
            "mean": self.mean.state_dict(),
            "arithmetic": arithmetic(next(training.net.parameters()).device),
        })  # fmt: skip
        wanted = {self.folder.candidate(step) for step in self.selection.steps.values()}
        for path in self.folder.candidate(0).parent.glob("*.safetensors"):
            if path not in wanted:
                path.unlink()
        self._saved = time.monotonic()

    def restore(self, extras: dict[str, Any], training: Training) -> None:
        self.selection.restore(extras["chosen"])
        self.clock = Clock(extras["seconds"])
        self.rounds, self.blocks = extras["rounds"], extras["blocks"]
        self.mean.load_state_dict(extras.get("mean", RunningMean().state_dict()))  # an earlier version left it out
        self._losses = [torch.tensor(loss) for loss in extras["losses"]]
        self._pictures = self.folder.load_gallery()
        if self.world.is_main:
            held = extras.get("log")  # an earlier version left it out
            self._lines = self.folder.rewind_log(training.step, training.round) if held is None else list(held)
            self.folder.restore_log(self._lines)

    def _candidate(self, training: Training) -> None:
        loss = self._loss(training)
        with self.clock.during("evaluate"):
            scores = self.selection.scores(training.net, self.world, training.step)
            if self.selection.consider(training.step, scores) and self.world.is_main:
                save_weights(self.folder.candidate(training.step), training.net)
        self._log(training.step, loss=loss, scores=scores)

    def _log(self, step: int, **line: Any) -> None:
        if self.world.is_main:
            self._lines.append(self.folder.write_log({"step": step, **line}))

    def _loss(self, training: Training) -> float:
        """The mean loss since the last call."""
        loss = float(torch.stack(self._losses).mean())
        refuse_non_finite(loss, training.step)
        self._losses.clear()
        return loss

    def _keep_pictures(self, training: Training, pool: Pool, more: dict[str, Tensor]) -> None:
        """Keep a few pairs of every round, evenly spaced over the block, with their predictions."""
        born = pool.blocks[-1]
        start, n = len(pool) - len(born.labels), len(born.labels)
        index = torch.linspace(0, n - 1, min(n, GALLERY)).long()
        kept = {
            "source": pool.images(pool.sources[start + index]),
            "parent": pool.images(born.parents[index]),
            "adversarial": pool.images(start + index),
            "label": born.labels[index],
            **more,
        }
        for name in ("source", "adversarial"):
            kept[f"{name}_guess"] = predict(training.net, kept[name]).argmax(-1)
        self._pictures |= {f"round-{training.round}.{name}": v for name, v in kept.items()}
        write_bytes(self.folder.gallery, save(self._pictures))

    def _phase(self, round_: int, name: str) -> str:
        rounds = self.recipe.plan.rounds
        return f"{name} to the end" if round_ >= rounds else f"round {round_ + 1} of {rounds}, {name}"
