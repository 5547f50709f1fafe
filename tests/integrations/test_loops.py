"""Real short trainings with Lightning and with Hugging Face's Trainer."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from meada.integrations import views as module

MEAN, STD = 0.5, 0.25
X, Y = torch.rand(16, 3, 16, 16), torch.arange(16) % 4


@pytest.fixture
def hardened_batches(monkeypatch):
    """The pixels that hard_views was given, and the views that it made."""
    seen, real = [], module.hard_views

    def spy(net, x, y, **options):
        made = real(net, x, y, **options)
        seen.append((x, made, options))
        return made

    monkeypatch.setattr(module, "hard_views", spy)
    return seen


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_lightning_trains_on_the_views(hardened_batches, kind, tmp_path):
    pl = pytest.importorskip("pytorch_lightning", reason="the extra 'lightning' is not installed")
    from meada.integrations import HardViews

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = nn.Sequential(nn.Flatten(), nn.Linear(768, 4)), []

        def training_step(self, batch, _):
            x, y = batch if kind == "list" else (batch["image"], batch["label"])
            self.seen.append(x.clone())
            return nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = TensorDataset((X - MEAN) / STD, Y)
    rows = data if kind == "list" else [{"image": x, "label": y} for x, y in data]
    model = Module()
    before = model.net[1].weight.clone()
    trainer = pl.Trainer(
        max_epochs=2, callbacks=[HardViews("net", mean=MEAN, std=STD, k=2)], accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(model, DataLoader(rows, 8))
    assert len(hardened_batches) == 4 and not torch.equal(before, model.net[1].weight)
    for (pixels, made, options), trained_on in zip(hardened_batches, model.seen, strict=True):
        assert 0 <= pixels.min() <= pixels.max() <= 1 and options == {"k": 2}
        torch.testing.assert_close(trained_on[:4], (made - MEAN) / STD)
    torch.testing.assert_close(model.seen[0][4:], data.tensors[0][4:8])  # the other half is as it was


def test_hugging_faces_trainer_trains_on_the_views(hardened_batches, tmp_path):
    transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'transformers' is not installed")
    from meada.integrations import HardViewsMixin

    class Trainer(HardViewsMixin, transformers.Trainer):
        image_mean, image_std, views = [MEAN] * 3, [STD] * 3, {"k": 2}

    config = transformers.ViTConfig(
        image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    config.num_labels = 4
    model = transformers.ViTForImageClassification(config)
    before = model.classifier.weight.clone()
    rows = [{"pixel_values": x, "labels": y} for x, y in zip((X - MEAN) / STD, Y, strict=True)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, per_device_train_batch_size=8, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows)
    assert trainer.train().global_step == 4 and not torch.equal(before, model.classifier.weight)
    assert len(hardened_batches) == 4 and all(len(pixels) == 4 for pixels, _, _ in hardened_batches)
    assert all(0 <= pixels.min() <= pixels.max() <= 1 for pixels, _, _ in hardened_batches)
    trainer.evaluate()
    assert len(hardened_batches) == 4  # evaluation sees the data as it is
