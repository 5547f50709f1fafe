"""Every case on a tiny network: what is compared, in which unit, over how many rounds."""

import pytest
import torch
from benchmarks import cases
from benchmarks.data_path import augmented_batch, data_path
from benchmarks.measure import Spread
from benchmarks.phases import meada_ascent, meada_descent, published_descent, space
from benchmarks.subjects import SUBJECTS, at_size, with_method
from benchmarks.suite import CASES

from meada.networks.normalise import Normalise
from meada.pool import Pool


def silent(done, total):
    pass


@pytest.fixture
def fixed(monkeypatch):
    """Clocks that always say the same: 4 s published, 2 s meada, 1 s peak for 3 of the steps."""
    took = {"published": 4.0, "meada": 2.0, "peak": 1.0}

    def interleave(sides, rounds, tell=silent):
        for side in sides.values():
            side()()  # the work is done all the same
        return {name: [took.get(name, 1.0)] * rounds for name in sides}

    monkeypatch.setattr(cases, "interleave", interleave)


def test_maximisation_in_numbers(subject, fixed):
    got = cases.maximise(with_method(subject, steps=6), n=16, compared=4, exact=2, rounds=2, tell=silent)
    assert got.sides["published"].median == 4e3 / 16 and got.unit == "ms/image"
    assert got.ratios["published"] == Spread(2.0, 2.0, 2.0)
    # 3 of 6 steps on a block of 8 of 16 images took 1 s: the whole would take 4.
    assert got.sides["peak"].median == 4e3 / 16 and got.ratios["peak"].median == 2.0
    assert got.facts["agreement"] == got.facts["agreement_float64"] == 1 and got.facts["compared"] == 4
    assert got.facts["gflops"]["published"] == pytest.approx(got.facts["gflops"]["peak"])


def test_minimisation_in_numbers(subject, fixed):
    got = cases.minimise(subject, n=8, steps=5, rounds=2, tell=silent)
    assert got.sides["meada"].median == 2e3 / 5 and got.unit == "ms/step"
    assert got.ratios["published"].median == 2.0


def test_evaluation_in_numbers(subject, fixed):
    got = cases.evaluation(subject, n=20, rounds=2, tell=silent)
    assert got.facts["images_per_second"] == {"published": 5.0, "meada": 10.0}


def test_the_sweep_names_the_fastest_block(subject, monkeypatch):
    times = {"16": [2.0, 2.0], "32": [1.0, 1.0], "64": [4.0, 4.0]}
    monkeypatch.setattr(cases, "interleave", lambda sides, rounds, tell=silent: times)
    got = cases.blocks(subject, n=64, steps=1, rounds=2, tell=silent)
    assert got.facts == {"fastest": 32, "recipe": 8}
    assert [got.ratios[b].median for b in ("16", "32", "64")] == [0.5, 1.0, 0.25]


def test_the_data_path_runs_on_all_its_sides(subject):
    got = data_path(subject, n=12, batch=4, rounds=1, tell=silent)
    assert got.sides.keys() == {"published", "published, 2 loaders", "meada"}
    assert got.ratios.keys() == {"published", "loaders"}


def test_an_augmented_batch_is_normalised():
    pool = Pool(torch.full((4, 3, 8, 8), 255, dtype=torch.uint8), torch.arange(4))
    x = augmented_batch(pool, torch.arange(2), Normalise(0.5, 0.5), torch.Generator())
    assert x.shape == (2, 3, 8, 8) and set(x.unique().tolist()) == {-1.0, 1.0}


def test_a_round_of_the_ascent_starts_from_a_fresh_pool_on_disk(subject):
    with space() as where:
        side = meada_ascent(where, subject, 8)
        for _ in range(2):
            side()()
        blocks = sorted(where.folder.glob("*/round-1.npy"))
    assert len(blocks) == 2  # one a round, none carried on


def test_both_sides_descend_from_the_same_weights_and_leave_them_alone(subject):
    before = {k: v.clone() for k, v in subject.net.state_dict().items()}
    state = torch.random.get_rng_state()
    with space() as where:
        published_descent(where, subject, 8, 3)()()
        meada_descent(subject, 8, 3)()()
    after = subject.net.state_dict()
    assert all(torch.equal(after[k], v) for k, v in before.items())
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", SUBJECTS)
def test_settings_are_the_published_ones(name):
    batch = {"lenet": 32, "wideresnet": 128, "alexnet": 32}[name]
    got = SUBJECTS[name]()
    assert got.batch == got.ascent.batch == batch
    assert got.recipe.method["units"] == "official" and got.ascent.loops_adv == 15
    assert got.recipe.network["name"] == name and got.pictures == (name == "wideresnet")


@pytest.mark.parametrize("name", SUBJECTS)
def test_at_full_size_the_recipe_s_own_blocks_are_timed(name):
    sizes, subject = CASES[f"maximise-{name}"].full, SUBJECTS[name]()
    assert sizes["n"] % subject.block == 0 and sizes["n"] % subject.batch == 0


def test_fewer_images_than_a_batch_take_the_same_step(subject):
    few = at_size(subject, 2)
    whole = subject.ascent
    assert few.ascent.lr_max / few.ascent.batch == whole.lr_max / whole.batch
    assert (few.batch, few.block) == (2, 2)
    assert at_size(subject, 100) == subject


def test_settled_batch_norms_see_unit_variance(subject):
    x = subject.net[: 2 if subject.pictures else 1](subject.images(32) / 255)
    norm = next(m for m in subject.net.modules() if isinstance(m, torch.nn.BatchNorm2d))
    assert torch.allclose(norm.running_mean, x.mean((0, 2, 3)))
    assert norm.momentum == 0.1 and not subject.net.training


def test_no_file_is_needed(monkeypatch, tmp_path, single):
    """Also where the recipe starts from published weights."""
    monkeypatch.setenv("MEADA_DATA", str(tmp_path))
    weight = next(SUBJECTS["alexnet"]().net.parameters())
    assert weight.shape == (64, 3, 11, 11)
