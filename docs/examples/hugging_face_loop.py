import tempfile

import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

from meada.integrations import HardViewsMixin


class HardTrainer(HardViewsMixin, Trainer):
    image_mean, image_std = [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]  # processor.image_mean, processor.image_std
    share, views = 0.5, {"k": 4, "hardness": 0.5}


config = ViTConfig(
    image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_labels=4
)
model = ViTForImageClassification(config)  # your model, from_pretrained
images = (torch.rand(32, 3, 32, 32) - 0.5) / 0.5  # what your image processor gives
rows = [{"pixel_values": x, "labels": k % 4} for k, x in enumerate(images)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=8, report_to=[], save_strategy="no"
)
print(HardTrainer(model=model, args=arguments, train_dataset=rows).train().training_loss)
