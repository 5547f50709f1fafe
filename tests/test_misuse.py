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
from meada.datasets.task import Samples, check

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
    "meada.perturb(conv, torch.rand(6, 1, 8, 8), y)": "does not take images of shape (1, 8, 8)",
    "meada.perturb(net, torch.rand(6, 3, 5, 5), y)": "does not take images of shape (3, 5, 5)",
    "meada.hard_views(net, torch.rand(6, 3, 5, 5), y)": "does not take images of shape (3, 5, 5)",
    "meada.perturb(net, x.to_sparse(), y)": "images must be a dense tensor, got layout torch.sparse_coo",
    "meada.evaluate(net, (x.to('meta'), y))": "images must be a dense tensor, got a meta tensor",
    "meada.perturb(net, x, y, steps=1.5)": "steps must be a whole number, got 1.5",
    "meada.perturb(net, x, y, beta=None)": "beta must be a finite number, got None",
    "meada.perturb(net, x, y, step_size=torch.ones(5))": "one number per channel (3), got shape (5,)",
    "meada.perturb(net, x, y, step_size=torch.ones(6, 1, 1, 1))": "one number per channel (3), got shape (6, 1, 1, 1)",
    "meada.perturb(net, x, y, step_size=float('nan'))": "step_size must be finite, got nan",
    "meada.hard_views(net, x, y, k=2.5)": "k must be a whole number, got 2.5",
    "meada.hard_views(net, x, y, beta='1')": "beta must be a finite number, got '1'",
    "meada.hard_views(net, x, y, hardness=float('nan'))": "hardness must be a finite number, got nan",
    "meada.hard_views(net, x, y, space=lambda x: x)": "meada.integrations.space_from makes a space of it",
    "meada.fit(net, (x, y), plan=plan, lr=0.1)": "give descent=meada.Descent(lr=...)",
    "meada.fit(net, (x, y), plan=plan, epochs=3)": "give plan=meada.Plan(unit='epochs', ...)",
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
    "meada.fit(net, (x, y), method=meada.Method(loss=lambda n, b, c: n(b.x)), plan=plan)": "loss must be one number",
    "meada.fit(net, (x, y), method=meada.Method(loss=lambda n, b, c: None), plan=plan)": "tensor, got NoneType",
    "check('train', Samples(x.numpy(), y), 5)": "domain 'train' must have images as a torch.Tensor, got ndarray",
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
    "meada.perturb(net, x, y, steps='a')": "steps must be a whole number",
    "meada.perturb(net, x, y, steps=-1)": "steps must be 0 or more",
    "meada.perturb(net, x, y, step_size='a')": "step_size must be a number",
    "meada.perturb(net, x, y, step_size=torch.ones(2))": "one number per channel (3), got shape (2,)",
    "meada.perturb(net, x, y, beta='a')": "beta must be a finite number",
    "meada.perturb(net, x, y, gamma=None)": "gamma must be a finite number",
    "meada.perturb(net, x, y, block=-1)": "block must be 0 or more",
    "meada.perturb(net, x, y, block='a')": "block must be a whole number",
    "meada.perturb(net, x, y, embedding=3)": "embedding must be the name",
    "meada.perturb(net, x, y, embedding='nosuch')": "must be a submodule",
    "meada.perturb(net, x, y, posterior=3)": "posterior must be a meada.Posterior",
    "meada.perturb(lambda x: x, x, y)": "net must be a torch.nn.Module",
    "meada.perturb(net, x * 255, y)": "divide by 255",
    "meada.perturb(net, x, y.float())": "labels.long()",
    "meada.perturb(net, x, [0] * 5)": "6 images and 5 labels",
    "meada.perturb(net, x, torch.eye(5)[y])": "labels.argmax(1)",
    "meada.perturb(net, 'photo.jpg', y)": "images must be",
    "meada.hard_views(net, x, y, k='a')": "k must be a whole number",
    "meada.hard_views(net, x, y, k=1.5)": "k must be a whole number",
    "meada.hard_views(net, x, y, k=0)": "k must be 1 or more",
    "meada.hard_views(net, x, y, hardness='x')": "hardness must be a finite number",
    "meada.spaces.one_of('wave')": "one_of must be given meada.Space objects, got str",
    "meada.spaces.skip_mix('wave')": "skip_mix must be given meada.Space objects, got str",
    "meada.SPACES['wide'](strength='a')": "strength must be a finite number, got 'a'",
    "meada.hard_views(net, x, y, space=3)": "space must be a name or a meada.Space",
    "meada.hard_views(net, x, y, space='wid')": "did you mean 'wide'?",
    "meada.hard_views(net, x, y, seed='a')": "seed must be a whole number",
    "meada.hard_views(net, x, y, seed=0, step='a')": "step must be a whole number",
    "meada.hard_views(net, x, y, seed=0, index=[1, 2])": "index must have one integer per image",
    "meada.hard_views(net, x, y, space='mine.py:shadow')": "got 'mine.py:shadow': import the function",
    "meada.hard_views(net, x, y, seed=0, index=[0, 1, 2, 3, 4, -1])": "index must be 0 or more, got -1",
    "meada.Space(draw=len, transform=len, families={'tne'})": "families: unknown 'tne': did you mean 'tone'?",
    "meada.hard_views(net, x, y, beta='a')": "beta must be a finite number",
    "meada.load(3)": "path must be",
    "meada.load(None)": "path must be",
    "meada.load('nowhere')": "nowhere must be a run's folder or a model.safetensors",
    "meada.robustify(3, 'out')": "data must be",
    "meada.robustify('nowhere', 'out')": "nowhere must be a folder",
    "meada.robustify('nowhere', 'out', minutes='a')": "minutes must be a finite number",
    "meada.robustify('nowhere', 'out', minutes=float('inf'))": "minutes must be a finite number",
    "meada.robustify('nowhere', 'out', seed='a')": "seed must be a whole number",
    "meada.robustify('nowhere', 'out', network=3)": "network must be a name",
    "meada.robustify('nowhere', 'out', test=5)": "test must be a folder, a CSV file, a Dataset",
    "meada.robustify('nowhere', 'out', group=5)": "group must be a column of the CSV file or a regular expression",
    "meada.robustify('nowhere', 'out', weights=5)": "weights must be a path, got int",
    "meada.robustify('nowhere', 'out', model=5)": "model must be a path, got int",
    "meada.robustify('nowhere', None)": "out must be a folder",
    "meada.Descent(lr=-1)": "lr",
    "meada.evaluate(net, {'a': (x, y)}, batch_size='a')": "batch_size must be a whole number",
    "meada.with_normalisation(3, 0.5, 0.5)": "net must be a torch.nn.Module",
    "meada.with_normalisation(net, 0.5, 0.0)": "standard deviation",
    "meada.with_normalisation(net, 'a', 0.5)": "mean",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    command = [sys.executable, "-c", SETUP, json.dumps(list(MISUSE))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path_factory.mktemp("misuse"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("line", MISUSE)
def test_it_is_a_sentence(outcomes, line):
    assert outcomes[line].startswith("MeadaError: ") and MISUSE[line] in outcomes[line], outcomes[line]
