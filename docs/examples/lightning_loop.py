import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from meada.integrations import HardViews

MEAN, STD = 0.5, 0.25  # what your pipeline normalises with; leave both out for images in [0, 1]


class Classifier(pl.LightningModule):  # your module, as it is
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    def training_step(self, batch, _):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


images = (torch.rand(64, 3, 32, 32) - MEAN) / STD  # normalised pictures
loader = DataLoader(TensorDataset(images, torch.arange(64) % 4), batch_size=16, shuffle=True)
harden = HardViews("net", mean=MEAN, std=STD, share=0.5, k=4)  # "net" takes images to logits
trainer = pl.Trainer(max_epochs=2, callbacks=[harden], accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Classifier(), loader)
