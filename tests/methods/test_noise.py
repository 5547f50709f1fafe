"""The control: ME-ADA's sizes, sample by sample, in directions that know nothing."""

import inspect
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from meada import perturb
from meada.algorithm import Plan, Watch, begin, train
from meada.methods import METHODS
from meada.methods.meada import meada
from meada.methods.method import Context
from meada.methods.noise import directions, displaced, distance, noise
from meada.methods.parts.descent import Descent
from meada.pool import Pool
from meada.pool.storage import BlockFile
from meada.runs.recipe import load_recipe

ASCENT = {"beta": 2.0, "gamma": 0.1, "step_size": 0.2, "steps": 4}


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(256, 8), nn.Tanh(),
        nn.Linear(8, 5),
    )  # fmt: skip


@pytest.fixture
def data():
    dark = torch.rand(11, 3, 8, 8) ** 4  # near the edge of [0, 1], as digits are
    return dark, torch.arange(11) % 5


def grown(net, data, *, context=None, pool=None, **settings):
    pool = pool or Pool(*data)
    noise(**{**ASCENT, **settings}).grow(net, pool, context or Context(seed=3, round=1))
    return pool


def test_each_sample_goes_as_far_as_the_ascent_takes_it(net, data):
    pool = grown(net, data, block=4)
    want = distance(perturb(net, *data, **ASCENT), data[0])
    assert want.min() > 1e-3 and want.std() > 1e-3  # sizes of their own, none of them nothing
    assert_close(distance(pool.images(torch.arange(11, 22)), data[0]), want, rtol=1e-9, atol=0)


def test_sizes_hold_in_single_precision(single):
    x, g, size = torch.rand(50, 3, 32, 32) ** 4, torch.randn(50, 3, 32, 32), torch.rand(50) * 20
    moved = displaced(x, g, size)
    assert moved.dtype == torch.float32 and moved.min() >= 0 and moved.max() <= 1
    assert_close(distance(moved, x), size, rtol=1e-5, atol=0)


def test_the_scale_is_that_of_a_bisection():
    x, g, size = torch.rand(20, 1, 5, 5), torch.randn(20, 1, 5, 5), torch.rand(20) * 2
    low, high = torch.zeros(20), torch.full((20,), 1e6)
    for _ in range(200):
        middle = (low + high) / 2
        far = distance((x + middle.view(-1, 1, 1, 1) * g).clamp(0, 1), x) > size
        low, high = torch.where(far, low, middle), torch.where(far, middle, high)
    assert_close(displaced(x, g, size), (x + low.view(-1, 1, 1, 1) * g).clamp(0, 1))


def test_out_of_reach_is_the_farthest_corner_and_nothing_is_nothing():
    x, g = torch.rand(2, 1, 3, 3), torch.randn(2, 1, 3, 3)
    far = displaced(x, g, torch.tensor([100.0, 0.0]))
    assert_close(far[0], (g[0] > 0).double())
    assert torch.equal(far[1], x[1])


def test_samples_that_fall_short_are_counted(net):
    x, y = white = torch.full((8, 3, 8, 8), 1.0), torch.arange(8) % 5
    wild = {**ASCENT, "step_size": 1e5, "steps": 1}
    g = directions(x, torch.arange(8), Context(seed=3, round=1))
    farthest = (g < 0).flatten(1).sum(1).sqrt()  # from white only darker is within [0, 1]
    short = int((distance(perturb(net, x, y, **wild), x) > farthest).sum())
    assert 0 < short < 8
    with pytest.warns(UserWarning, match=f"round 2: .* for {short} of 8 samples"):
        grown(net, white, **wild)


def test_the_direction_is_one_of_chance(net):
    """On grey images nothing is clamped: the mean cosine is 0 within 4 / sqrt(D n)."""
    n, y = 200, torch.arange(200) % 5
    grey = 0.5 + 0.1 * torch.rand(n, 3, 8, 8)
    pool = grown(net, (grey, y), step_size=0.01)
    random = (pool.images(torch.arange(n, 2 * n)) - grey).flatten(1)
    climbed = (perturb(net, grey, y, **{**ASCENT, "step_size": 0.01}) - grey).flatten(1)
    cosine = torch.cosine_similarity(random, climbed)
    assert cosine.mean().abs() < 4 / (192 * n) ** 0.5
    assert cosine.std() == pytest.approx(192**-0.5, rel=0.3)
    assert_close(random.norm(dim=1), climbed.norm(dim=1))


def test_directions_belong_to_seed_round_and_place():
    x, index = torch.rand(6, 3, 8, 8), torch.arange(6)
    drawn = {(seed, k): directions(x, index, Context(seed=seed, round=k)) for seed in (0, 1) for k in (0, 1)}
    alone = directions(x[4:], index[4:], Context(seed=1, round=1))
    assert torch.equal(alone, drawn[1, 1][4:])
    rows = torch.cat([d.flatten(1) for d in drawn.values()])
    cosines = torch.corrcoef(rows) - torch.eye(24)
    assert cosines.abs().max() < 0.5  # 24 rows of 192: all of them different


@pytest.mark.parametrize("block", [1, 3, 11])
def test_blocks_change_nothing(net, data, block):
    want = grown(net, data, block=128).images(torch.arange(22))
    assert_close(grown(net, data, block=block).images(torch.arange(22)), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule, sizes", [("pool", [11, 22, 44]), ("latest", [11, 22, 33])])
def test_the_pool_grows_as_that_of_meada(net, data, rule, sizes):
    pool, theirs = Pool(*data), Pool(*data)
    seen = [len(pool)]
    for k in range(2):
        grown(net, data, pool=pool, grow=rule, context=Context(round=k))
        meada(**ASCENT, grow=rule).grow(net, theirs, Context(round=k))
        seen.append(len(pool))
        assert torch.equal(pool.blocks[-1].parents, theirs.blocks[-1].parents)
        assert torch.equal(pool.labels, theirs.labels)
    assert seen == sizes == [noise(grow=rule).growth(11, k) for k in range(3)]


def test_a_round_that_was_cut_off_goes_on_with_the_same_numbers(net, data, tmp_path):
    whole = grown(net, data, block=2, pool=Pool(*data, folder=tmp_path / "whole"))

    class Killed(Exception):
        pass

    def kill(done, total):
        if done == 4:
            raise Killed

    folder = tmp_path / "cut"
    with pytest.raises(Killed):
        cut = Context(seed=3, round=1, tell=kill)
        grown(net, data, block=2, pool=Pool(*data, folder=folder), context=cut)
    origin = "noise, seed 3, step 0"
    left = BlockFile(folder / "round-1.npy", (11, 3, 8, 8), torch.float64, origin)
    assert left.there.sum() == 4
    again = grown(net, data, block=2, pool=Pool(*data, folder=folder))
    assert torch.equal(again.images(torch.arange(22)), whole.images(torch.arange(22)))


@pytest.mark.parametrize("cut", [4, 9])
def test_stopping_and_going_on_is_the_same_run(net, data, cut):
    plan = Plan(rounds=2, min_steps=4, total_steps=12, batch_size=4)
    method, sgd = noise(**ASCENT), Descent(name="sgd", lr=0.1)
    twin, ends = deepcopy(net), []

    def kill(training, loss):
        if training.step == cut:
            raise KeyboardInterrupt

    for one, watch in ((net, Watch()), (twin, Watch(stepped=kill))):
        pool = Pool(*data)
        training = begin(one, pool, method, sgd)
        if one is twin:
            with pytest.raises(KeyboardInterrupt):
                train(training, pool, method, plan, sgd, watch=watch)
        train(training, pool, method, plan, sgd)
        ends.append(one.state_dict())
    assert_close(ends[0], ends[1], rtol=0, atol=0)


def test_it_takes_what_meada_takes_and_its_recipe_is_that_of_meada():
    assert inspect.signature(METHODS["noise"]) == inspect.signature(meada)
    tables = [load_recipe(f"digits/{m}").model_dump() for m in ("meada", "noise")]
    assert [t.pop("name") for t in tables] == ["digits/meada", "digits/noise"]
    assert [t["method"].pop("name") for t in tables] == ["meada", "noise"]
    assert [t.pop("note") for t in tables][0] != ""
    assert tables[0] == tables[1]
