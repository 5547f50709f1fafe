"""Callbacks for TensorBoard, Weights & Biases and MLflow, and how a run's log is passed to them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from meada.algorithm.callbacks import Callback, numbers
from meada.errors import MeadaError, nearest
from meada.machine.extras import need
from meada.machine.terminal import Tell
from meada.settings import flattened


class TensorBoard(Callback):
    """Write numbers and settings for TensorBoard; ``tensorboard --logdir FOLDER`` shows them."""

    def __init__(self, folder: str | Path) -> None:
        need("tensorboard", extra="tensorboard")
        self.folder = Path(folder)
        self.writer: Any = None

    def on_start(self, about: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(self.folder))
        rows = [f"| {name} | {value} |" for name, value in about.items()]
        self.writer.add_text("settings", "\n".join(["| name | value |", "|---|---|", *rows]))

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def on_end(self, record: Mapping[str, Any] | None) -> None:
        if self.writer is not None:
            self.writer.close()


class WeightsAndBiases(Callback):
    """Send numbers and settings to Weights & Biases.

    ``options`` go to ``wandb.init``: ``project``, ``name``, ``mode="offline"``, ``dir``, ...
    """

    def __init__(self, **options: Any) -> None:
        self.wandb, self.options = need("wandb", extra="wandb"), options
        self.run: Any = None

    def on_start(self, about: Mapping[str, Any]) -> None:
        self.run = self.wandb.init(**{"project": "meada", **self.options, "config": dict(about)})

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=step)

    def on_end(self, record: Mapping[str, Any] | None) -> None:
        if self.run is not None:
            self.run.finish(exit_code=0 if record is not None else 1)


class MLflow(Callback):
    """Send numbers and settings to MLflow.

    ``uri`` is a tracking server, a database or a folder; MLflow's own setting by default.
    """

    def __init__(self, experiment: str = "meada", *, uri: str | Path | None = None, name: str | None = None) -> None:
        self.mlflow = need("mlflow", extra="mlflow")
        self.experiment, self.name = experiment, name
        self.run: Any = None
        self.uri = uri.resolve().as_uri() if isinstance(uri, Path) else uri

    def on_start(self, about: Mapping[str, Any]) -> None:
        client = self.client = self.mlflow.MlflowClient(tracking_uri=self.uri)
        known = client.get_experiment_by_name(self.experiment)
        number = known.experiment_id if known else client.create_experiment(self.experiment)
        self.run = client.create_run(number, run_name=self.name)
        for name, value in flattened(dict(about)).items():
            client.log_param(self.run.info.run_id, name, value)

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.client.log_metric(self.run.info.run_id, name, value, step=step)

    def on_end(self, record: Mapping[str, Any] | None) -> None:
        if self.run is not None:
            self.client.set_terminated(self.run.info.run_id, "FINISHED" if record is not None else "FAILED")


TRACKERS: dict[str, Callable[[Path], Callback]] = {
    "tensorboard": lambda out: TensorBoard(out / "tensorboard"),
    "wandb": lambda out: WeightsAndBiases(dir=str(out), name=out.name),
    "mlflow": lambda out: MLflow(name=out.name),
}


def tracker(name: str, out: Path) -> Callback:
    """The tracker of a run whose folder is ``out``."""
    if name not in TRACKERS:
        raise MeadaError(f"--track must be one of {', '.join(TRACKERS)}, got '{name}': {nearest(name, TRACKERS)}")
    return TRACKERS[name](out)


Following = tuple[Tell, Callable[[dict[str, Any]], None]]


def new_lines(path: Path, read: int) -> tuple[list[dict[str, Any]], int]:
    """Complete lines of a log after its first ``read`` bytes, and the number of bytes read so far."""
    if not path.exists() or path.stat().st_size == read:
        return [], read
    content = path.read_bytes()
    begin = content.rfind(b"\n", 0, read) + 1  # a resumed run may have taken back the end of a line
    end = max(content.rfind(b"\n") + 1, begin)
    return [json.loads(line) for line in content[begin:end].splitlines() if line.strip()], end


@contextmanager
def following(folder: Path, tell: Tell, callbacks: Sequence[Callback], about: dict[str, Any]) -> Iterator[Following]:
    """A ``tell`` that also passes on new lines of ``folder/log.jsonl``, and a function that takes the final record."""
    log = folder / "log.jsonl"
    read = log.stat().st_size if callbacks and log.exists() else 0
    ended: list[dict[str, Any]] = []

    def pass_on() -> None:
        nonlocal read
        lines, read = new_lines(log, read) if callbacks else ([], 0)
        for line in lines:
            step, name = int(line.pop("step")), "round/" if "round" in line else ""
            for one in callbacks:
                one.on_log(step, numbers(line, name))

    def told(phase: str, done: int, total: int) -> None:
        tell(phase, done, total)
        pass_on()

    for one in callbacks:
        one.on_start(about)
    try:
        yield told, ended.append
        pass_on()
    finally:
        for one in callbacks:
            one.on_end(ended[0] if ended else None)
