"""What a run writes down as it goes: log, candidates, rounds, checkpoints."""

import time
from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from meada.algorithm import Watch
from meada.checkpoint import save_checkpoint, save_weights
from meada.clock import Clock
from meada.datasets import Task
from meada.evaluation.candidates import Candidates
from meada.evaluation.rounds import diagnose
from meada.evaluation.selection import Chosen
from meada.files import write_bytes
from meada.folder import RunFolder
from meada.minimise import Training, refuse_non_finite
from meada.pool import Pool
from meada.recipe import Recipe

GALLERY = 10  # pairs of source and adversarial image kept of each round


class Journal:
    def __init__(
        self,
        recipe: Recipe,
        folder: RunFolder,
        task: Task,
        tell: Callable[[str, int, int], None],
        *,
        total: int,
    ) -> None:
        self.recipe, self.folder, self.tell, self.total = recipe, folder, tell, total
        sizes = recipe.evaluation
        self.candidates = Candidates(task, subset=sizes.subset, crafted_size=sizes.crafted)
        self.chosen, self.clock = Chosen(), Clock()
        self.rounds: list[dict[str, Any]] = []
        self._pictures: dict[str, Tensor] = {}
        self._losses: list[Tensor] = []
        self._saved = time.monotonic()

    def watch(self) -> Watch:
        return Watch(self.stepped, self.ascending, self.climbed, self.grown)

    def stepped(self, training: Training, loss: Tensor) -> None:
        self._losses.append(loss)
        self.tell(self._phase(training.round, "minimise"), training.step, self.total)
        if training.step % self.recipe.evaluation.every == 0 or training.step == self.total:
            self._candidate(training)
        if time.monotonic() - self._saved >= self.recipe.checkpoint_seconds:
            self.save(training)

    def ascending(self, training: Training) -> None:
        self.save(training)
        self.clock.switch("maximise")
        self._round = training.round

    def climbed(self, done: int, total: int) -> None:
        self.tell(self._phase(self._round, "maximise"), done, total)

    def grown(self, training: Training, pool: Pool) -> None:
        seconds = self.clock.switch("evaluate")
        line: dict[str, Any] = {"round": training.round, "pool": len(pool)}
        if pool.rounds:  # a method that grows nothing has nothing to tell
            line |= diagnose(training.net, pool, embedding=self.recipe.embedding or None)
            self._keep_pictures(training.round, pool)
        self.rounds.append({**line, "seconds": seconds})
        self.folder.write_log({"step": training.step, **self.rounds[-1]})
        self.clock.switch("minimise")
        self.save(training)

    def save(self, training: Training) -> None:
        """Everything that a resumed run needs, replaced in one stroke."""
        self.clock.switch("minimise")
        save_checkpoint(self.folder.checkpoint, training, {
            "chosen": self.chosen.state(),
            "seconds": self.clock.seconds,
            "rounds": self.rounds,
            "losses": [float(loss) for loss in self._losses],
        })  # fmt: skip
        wanted = {self.folder.candidate(step) for step in self.chosen.steps.values()}
        for path in self.folder.candidate(0).parent.glob("*.safetensors"):
            if path not in wanted:
                path.unlink()
        self._saved = time.monotonic()

    def restore(self, extras: dict[str, Any]) -> None:
        self.chosen = Chosen(**extras["chosen"])
        self.clock = Clock(extras["seconds"])
        self.rounds = extras["rounds"]
        self._losses = [torch.tensor(loss) for loss in extras["losses"]]

    def _candidate(self, training: Training) -> None:
        loss = float(torch.stack(self._losses).mean())
        refuse_non_finite(loss, training.step)
        self._losses.clear()
        with self.clock.during("evaluate"):
            scores = self.candidates.scores(training.net)
            if self.chosen.consider(training.step, scores):
                save_weights(self.folder.candidate(training.step), training.net)
        self.folder.write_log({"step": training.step, "loss": loss, "scores": scores})

    def _keep_pictures(self, number: int, pool: Pool) -> None:
        """A few pairs of every round, spread over the block, for pictures."""
        born = pool.blocks[-1]
        index = torch.linspace(0, len(born.labels) - 1, min(GALLERY, len(born.labels))).long()
        start = len(pool) - len(born.labels)
        self._pictures |= {
            f"round-{number}.source": pool.images(pool.sources[start + index]),
            f"round-{number}.parent": pool.images(born.parents[index]),
            f"round-{number}.adversarial": pool.images(start + index),
            f"round-{number}.label": born.labels[index],
        }
        write_bytes(self.folder.gallery, save(self._pictures))

    def _phase(self, round_: int, name: str) -> str:
        rounds = self.recipe.plan.rounds
        if round_ >= rounds:
            return f"{name} to the end"
        return f"round {round_ + 1} of {rounds}, {name}"
