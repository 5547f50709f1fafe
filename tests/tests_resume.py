"""A training or a run that is cut off and carried on, beside one that never was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meada.algorithm import Plan, Watch, train
from meada.methods.method import Method
from meada.methods.parts.descent import Descent
from meada.minimise import Training
from meada.pool import Pool
from meada.runs.checkpoint import load_checkpoint, save_checkpoint
from meada.runs.recipe import Recipe
from meada.runs.run import run


class Killed(Exception):
    pass


def killed_and_resumed(
    fresh: Callable[[], tuple[Training, Pool, Method]],
    plan: Plan,
    descent: Descent,
    folder: Path,
    cut: int,
) -> tuple[Training, Training]:
    """One whole training of ``fresh()``, and one that went through a checkpoint at step ``cut``."""
    path = folder / "checkpoint.pt"

    def kill(training, loss):
        if training.step == cut:
            save_checkpoint(path, training, {})
            raise Killed

    whole, pool, method = fresh()
    train(whole, pool, method, plan, descent)
    broken, pool, method = fresh()
    with pytest.raises(Killed):
        train(broken, pool, method, plan, descent, watch=Watch(stepped=kill))
    resumed, pool, method = fresh()
    load_checkpoint(path, resumed)
    assert resumed.step == cut
    train(resumed, pool, method, plan, descent)
    return whole, resumed


def stopped_and_resumed(recipe: Recipe, folder: Path, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Records of a run in ``folder/whole``, and of one in ``folder/cut`` stopped at ``step``."""

    def stop(phase: str, done: int, total: int) -> None:
        if "minimise" in phase and done == step:
            raise KeyboardInterrupt

    whole = run(recipe, folder / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(recipe, folder / "cut", tell=stop)
    return whole, run(recipe, folder / "cut", resume=True)
