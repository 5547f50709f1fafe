"""TensorBoard, Weights & Biases (offline) and MLflow (a local store) hold what a training told them."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError
from meada.integrations.tracking import MLflow, TensorBoard, WeightsAndBiases, following, tracker
from meada.machine.extras import need


def trained(callback):
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    data = torch.rand(8, 3, 2, 2), torch.tensor([0, 1] * 4)
    plan = meada.Plan(rounds=1, min_steps=2, total_steps=4, batch_size=4)
    return meada.fit(net, data, plan=plan, steps=2, validation=data, callbacks=callback)


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra 'tensorboard' is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    record = trained(TensorBoard(tmp_path))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    losses = [(e.step, e.value) for e in events.Scalars("loss")]
    assert losses == [(k + 1, pytest.approx(loss)) for k, loss in enumerate(record["losses"])]
    assert events.Scalars("round/ce/after")[0].value == pytest.approx(record["rounds"][0]["ce"][1])


def test_weights_and_biases_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    callback = WeightsAndBiases(mode="offline", dir=str(tmp_path), project="test")
    record = trained(callback)
    (kept,) = {path.resolve() for path in tmp_path.rglob("*.wandb")}
    assert b"loss" in kept.read_bytes() and record["losses"]  # how it packs numbers is its own business
    assert callback.run.config["method"] == "meada"


def test_mlflow_in_a_local_store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    record = trained(MLflow("digits", uri=tmp_path))
    client = mlflow.MlflowClient(tracking_uri=tmp_path.as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    history = client.get_metric_history(run.info.run_id, "loss")
    assert [m.value for m in sorted(history, key=lambda m: m.step)] == [pytest.approx(v) for v in record["losses"]]
    assert run.info.status == "FINISHED" and run.data.params["method"] == "meada"


def test_a_run_is_followed_by_its_log(tmp_path):
    heard, log = [], tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 9.0}\n')  # of before: told then

    class Heard(meada.Callback):
        def on_log(self, step, values):
            heard.append((step, values))

        def on_end(self, record):
            heard.append(record)

    with following(tmp_path, lambda *_: None, [Heard()], {}) as (told, ended):
        with open(log, "a") as file:
            file.write(json.dumps({"step": 2, "loss": 0.5, "scores": {"last": 80.0}}) + '\n{"step": 3, "lo')
        told("minimise", 2, 3)
        with open(log, "a") as file:
            file.write('ss": 0.25}\n' + json.dumps({"step": 3, "round": 1, "ce": [1.0, 2.0]}) + "\n")
        ended({"steps": 3})
    assert heard == [
        (2, {"loss": 0.5, "scores/last": 80.0}),
        (3, {"loss": 0.25}),
        (3, {"round/round": 1.0, "round/ce/before": 1.0, "round/ce/after": 2.0}),
        {"steps": 3},
    ]


def test_a_missing_library_comes_with_the_line_that_installs_it():
    with pytest.raises(MeadaError, match=r"pip install 'meada\[wandb\]'"):
        need("no_such_library", extra="wandb")
    with pytest.raises(MeadaError, match="did you mean 'tensorboard'"):
        tracker("tensorbord", Path("run"))
