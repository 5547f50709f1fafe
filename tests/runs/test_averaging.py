"""Averaged weights as a setting of a run: one more rule in its record, the same bits after a kill."""

from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import load_file
from tests_resume import stopped_and_resumed
from tests_tiny import load_tiny, write_recipe

from meada.averaging import renew_batch_norm
from meada.errors import MeadaError
from meada.pool import Pool
from meada.runs.recipe import load_recipe
from meada.runs.run import run


def tiny_recipe(tmp_path, average_from: float):
    path = write_recipe(tmp_path, method="erm", settings="", min_steps=0, total_steps=40)
    return load_tiny(path, [f"average_from={average_from}", "plan.rounds=0"])


def test_the_record_has_the_mean_of_the_last_weights(tmp_path):
    record = run(tiny_recipe(tmp_path, 0.5), tmp_path / "run")
    assert set(record["results"]) == {"last", "averaged", "source_val", "crafted", "oracle"}
    assert "mean of the weights" in record["selected"]["averaged"]["knows"]
    mean = load_file(tmp_path / "run" / "selected" / "averaged.safetensors")
    last = load_file(tmp_path / "run" / "model.safetensors")
    assert mean.keys() == last.keys() and not torch.equal(mean["5.weight"], last["5.weight"])
    # Weights after steps 30 and 40 count: halfway between them, so as far from the last as from the other one.
    shorter = run(tiny_recipe(tmp_path, 0.95), tmp_path / "one")  # step 40 alone
    assert shorter["results"].keys() == record["results"].keys()
    one = load_file(tmp_path / "one" / "selected" / "averaged.safetensors")
    assert torch.equal(one["5.weight"], last["5.weight"])


def test_without_the_setting_nothing_is_averaged(tmp_path):
    record = run(tiny_recipe(tmp_path, 1.0), tmp_path / "run")
    assert "averaged" not in record["results"]


def test_a_resumed_run_has_the_same_mean(tmp_path):
    recipe = tiny_recipe(tmp_path, 0.2)
    stopped_and_resumed(recipe, tmp_path, step=25)
    means = [load_file(tmp_path / name / "selected" / "averaged.safetensors") for name in ("whole", "cut")]
    assert all(torch.equal(means[0][k], means[1][k]) for k in means[0])


def test_statistics_of_batch_norm_are_those_of_the_pool():
    torch.manual_seed(0)
    images = torch.rand(40, 3, 4, 4) * 0.5
    net = torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Dropout(0.5), torch.nn.Flatten()).train()
    for _ in range(100):  # statistics of an earlier life, which must not count
        net(torch.rand(8, 3, 4, 4) + 3)
    renew_batch_norm(net, Pool(images, torch.zeros(40, dtype=torch.long)), batch_size=40, seed=0)
    torch.testing.assert_close(net[0].running_mean, images.mean((0, 2, 3)))
    torch.testing.assert_close(net[0].running_var, images.var((0, 2, 3)))
    assert net.training and net[0].momentum == 0.1


def test_modes_are_restored_also_after_an_error():
    net = torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.Dropout(0.5), torch.nn.Flatten()).train()
    net[1].eval()
    for images, fits in ((torch.rand(8, 3, 4, 4), True), (torch.rand(8, 2, 4, 4), False)):
        with nullcontext() if fits else pytest.raises(RuntimeError):
            renew_batch_norm(net, Pool(images, torch.zeros(8, dtype=torch.long)), batch_size=8, seed=0)
        assert [m.training for m in net.modules()] == [True, True, False, True] and net[0].momentum == 0.1


def test_the_last_step_counts_in_runs_of_any_length(tmp_path):
    path = write_recipe(tmp_path, method="erm", settings="", min_steps=0, total_steps=7)
    recipe = load_tiny(path, ["average_from=0.9", "plan.rounds=0"])
    assert "averaged" in run(recipe, tmp_path / "run")["results"]


def test_the_share_must_be_a_share():
    with pytest.raises(MeadaError, match="average_from"):
        load_recipe("digits/tilted", ["average_from=1.5"])
