import torch
from torch.utils.data import DataLoader, TensorDataset

import meada
from meada.integrations import hardened

images, labels = torch.rand(64, 3, 32, 32), torch.arange(64) % 4  # your pictures, in [0, 1]
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
net = meada.NETWORKS["lenet"](num_classes=4)  # your network, from images to logits
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)

for _epoch in range(2):
    net.train()
    for x, y in hardened(loader, net, share=0.5, k=4, hardness=0.5):  # half of each batch made harder
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimiser.step()
print(meada.evaluate(net, loader)["accuracy"])
