"""The code blocks of docs/loops.md, run as they stand."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

PAGE = (Path(__file__).parents[2] / "docs" / "loops.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture
def given(single):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.ReLU(), nn.Linear(8, 3))
    return {
        "images": torch.rand(12, 3, 4, 4),
        "labels": torch.arange(12) % 3,
        "net": net,
        "torch": torch,
    }


def glue(block: str) -> int:
    return sum(1 for line in block.splitlines() if line.strip() and "import" not in line.split()[:2])


def test_each_is_short():
    assert len(BLOCKS) == 3 and all(glue(block) < 20 for block in BLOCKS), [glue(b) for b in BLOCKS]


def test_a_plain_loop_grows_its_pool_and_learns(given):
    before = [p.clone() for p in given["net"].parameters()]
    exec(BLOCKS[0], given)
    assert [len(block.labels) for block in given["pool"].blocks] == [12, 12, 24]
    assert any(not torch.equal(a, b) for a, b in zip(before, given["net"].parameters(), strict=True))


def test_a_lightning_callback_grows_what_is_trained_on(given, tmp_path):
    pl = pytest.importorskip("pytorch_lightning", reason="the extra 'loops' is not installed")
    exec(BLOCKS[1], given)
    data = given["DataLoader"](given["TensorDataset"](given["images"], given["labels"]), 8)

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.data, self.seen = given["net"], data, []

        def train_dataloader(self):
            return self.data

        def training_step(self, batch, _):
            self.seen.append(len(batch[0]))
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    harden = given["Harden"](given["images"], given["labels"], beta=1.0, gamma=0.1, step_size=0.1, steps=2)
    module = Module()
    pl.Trainer(
        max_epochs=2, reload_dataloaders_every_n_epochs=1, callbacks=[harden], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", default_root_dir=tmp_path,
    ).fit(module)  # fmt: skip
    assert sum(module.seen) == 12 + 24 and len(harden.pool) == 36


def test_hugging_faces_trainer_learns_from_harder_copies(given, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers", reason="the extra 'loops' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'loops' is not installed")
    # tests/datasets is on the path and is not Hugging Face's package of that name
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
    exec(BLOCKS[2], given)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = given["net"]

        def forward(self, pixel_values, labels=None):
            return {"logits": self.net(pixel_values)}

    rows = [{"pixel_values": x, "labels": y} for x, y in zip(given["images"], given["labels"], strict=True)]
    before = given["net"][1].weight.clone()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, per_device_train_batch_size=6,
        report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, learning_rate=0.01,
    )  # fmt: skip
    trainer = given["HardenedTrainer"](model=Model(), args=arguments, train_dataset=rows)
    result = trainer.train()
    assert result.global_step == 4 and not torch.equal(before, given["net"][1].weight)
