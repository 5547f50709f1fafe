import tempfile

import torch

import meada
from meada.integrations import TensorBoard

images, labels = torch.rand(64, 3, 32, 32), torch.arange(64) % 4
net = meada.NETWORKS["lenet"](num_classes=4)
plan = meada.Plan(rounds=1, min_steps=5, total_steps=20, batch_size=16)
board = TensorBoard(tempfile.mkdtemp())  # or WeightsAndBiases(project="digits"), MLflow("digits")
record = meada.fit(net, (images, labels), "meada", plan=plan, beta=1.0, steps=3, callbacks=[board])
print(len(record["losses"]), record["losses"][-1])
