import kornia.augmentation as K
import torch

import meada
from meada.integrations import space_from

augment = K.AugmentationSequential(K.ColorJitter(0.4, 0.4, 0.4, p=1.0), K.RandomAffine(20.0, p=0.5))
space = space_from(augment, families={"colour", "geometry"})  # or a torchvision v2 or albumentations transform
net = meada.NETWORKS["lenet"](num_classes=4)
x, y = torch.rand(8, 3, 32, 32), torch.arange(8) % 4
harder = meada.hard_views(net, x, y, space=space, k=4, hardness=1.0)
print(tuple(harder.shape))
