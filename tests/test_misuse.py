"""Misuse of the library ends in a MeadaError that says what must hold, never in a raw exception.

Each line runs in a process of its own kind: without the checks of types that the other tests run under.
"""

import json
import subprocess
import sys

import pytest

SETUP = """
import json, sys, traceback
import numpy as np
import torch
import meada
from torch import nn
from torch.utils.data import TensorDataset

net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
x, y = torch.rand(6, 3, 4, 4), torch.arange(6) % 5
plan = meada.Plan(rounds=1, min_steps=1, total_steps=2, batch_size=3)
ASCENT = dict(beta=1.0, gamma=0.1, step_size=0.1, steps=2)
class Odd(nn.Module):
    def __init__(self, made): super().__init__(); self.w = nn.Linear(48, 5); self.made = made
    def forward(self, x): return self.made(self.w(x.flatten(1)))
found = {}
for line in json.loads(sys.argv[1]):
    try:
        eval(line); found[line] = "no error"
    except meada.MeadaError as error:
        found[line] = f"MeadaError: {error}"
    except BaseException as error:
        found[line] = f"raw {type(error).__name__}: {str(error)[:200]}"
print(json.dumps(found))
"""

MISUSE = {
    "meada.fit(lambda x: x, (x, y), plan=plan)": "net must be a torch.nn.Module",
    "meada.fit(nn.Flatten, (x, y), plan=plan)": "call it",
    "meada.fit(net, (x, y), 3, plan=plan)": "method must be a name",
    "meada.fit(net, (x, y), plan=3)": "plan must be a meada.Plan",
    "meada.fit(net, (x, y), plan={'rounds': 1})": "plan must be a meada.Plan",
    "meada.fit(net, (x, y), descent='adam', plan=plan)": "descent must be a meada.Descent",
    "meada.fit(net, (x, y), descent=torch.optim.SGD(net.parameters()), plan=plan)": "give it as optimiser=",
    "meada.fit(net, (x, y), optimiser='adam', plan=plan)": "optimiser must be",
    "meada.fit(net, (x, y), optimiser=3, plan=plan)": "optimiser must be",
    "meada.fit(net, (x, y), callbacks=[3], plan=plan)": "a callback must be",
    "meada.fit(net, (x, y), callbacks=3, plan=plan)": "a callback must be",
    "meada.fit(net, (x, y), seed='a', plan=plan)": "seed must be",
    "meada.fit(net, (x, y), seed=1.5, plan=plan)": "seed must be",
    "meada.fit(net, (x, y), seed=-1, plan=plan)": "seed must be",
    "meada.fit(net, (x, y), device=3.5, plan=plan)": "device must be",
    "meada.fit(net, (x, y), embedding=3, plan=plan)": "embedding",
    "meada.fit(net, (x, y), validate_every='x', plan=plan)": "validate_every must be",
    "meada.fit(net, x, plan=plan)": "data must be",
    "meada.fit(net, None, plan=plan)": "data must be",
    "meada.fit(net, (x.permute(0, 2, 3, 1).repeat(1, 2, 2, 1), y), plan=plan)": "(N, H, W, C)",
    "meada.fit(net, (x, y), validation=3, plan=plan)": "data must be",
    "meada.fit(net, (x, y), validation=(x, y + 5), plan=plan)": "labels must be in 0..4",
    "meada.fit(conv, (torch.rand(6, 1, 8, 8), y), plan=plan)": "does not take images of shape (1, 8, 8)",
    "meada.fit(Odd(lambda z: None), (x, y), plan=plan)": "logits",
    "meada.fit(Odd(lambda z: z[:1]), (x, y), plan=plan)": "logits",
    "meada.fit(Odd(lambda z: z.sum()), (x, y), plan=plan)": "logits",
    "meada.evaluate(lambda x: x, {'a': (x, y)})": "net must be a torch.nn.Module",
    "meada.evaluate(net, None)": "data must be",
    "meada.evaluate(net, {})": "domains must",
    "meada.evaluate(net, {'a': x})": "data must be",
    "meada.evaluate(net, {'a': (x * 255, y)})": "divide by 255",
    "meada.evaluate(net, {'a': (x, y.float())})": "labels.long()",
    "meada.evaluate(net, {'a': (x, y)}, batch_size=0)": "batch_size must be",
    "meada.evaluate(net, {'a': (torch.rand(6, 3, 5, 5), y)})": "does not take images of shape (3, 5, 5)",
    "meada.evaluate(Odd(lambda z: None), {'a': (x, y)})": "logits",
    "meada.evaluate(Odd(lambda z: z[:, 0]), {'a': (x, y)})": "logits",
    "meada.Pool(x.numpy(), y[:2])": "6 images and 2 labels",
    "meada.Pool(None, y)": "images must be",
    "meada.Pool(x, y, domains=torch.zeros(2))": "one domain per image",
    "meada.Plan(rounds='three')": "rounds",
    "meada.Plan(batch_size=0)": "batch_size",
    "meada.with_normalisation(3, 0.5, 0.5)": "net must be a torch.nn.Module",
    "meada.with_normalisation(net, 0.5, 0.0)": "standard deviation",
    "meada.with_normalisation(net, 'a', 0.5)": "mean",
}


@pytest.fixture(scope="module")
def outcomes():
    done = subprocess.run([sys.executable, "-c", SETUP, json.dumps(list(MISUSE))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("line", MISUSE)
def test_it_is_a_sentence(outcomes, line):
    assert outcomes[line].startswith("MeadaError: ") and MISUSE[line] in outcomes[line], outcomes[line]
