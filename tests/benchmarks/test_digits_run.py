"""The whole digits run: lengths by hand, parts that add up."""

import pytest
from benchmarks import digits_run as module
from benchmarks.digits_run import digits_run, length

from meada.runs.recipe import load_recipe


def test_lengths_of_the_recipe_by_hand():
    got = length(load_recipe("digits/meada"))
    assert (got.steps, got.rounds, got.climbed) == (10_000, 3, 70_000)
    assert got.climbed_published == 9_984 + 19_968 + 39_936
    targets = 26_032 + 9_001 + 2_007
    assert got.scored_published == 100 * targets
    assert got.candidates == 50
    assert got.scored == 4 * (targets + 5_000)  # four rules, at most


def test_parts_at_full_length_add_up(subject, monkeypatch):
    """A clock that says 1 s for everything makes the sum a count."""
    monkeypatch.setattr(module, "interleave", lambda sides, rounds, tell=None: {k: [1.0] * rounds for k in sides})
    got = digits_run(subject, n=8, steps=10, scored=100, rounds=2, tell=lambda done, total: None)
    part = got.facts["seconds"]
    assert part["published train minimise"] == 10_000 / 10
    assert part["published train maximise"] == 70_000 / 8
    assert part["published score targets"] == 100 * 37_040 / 100
    assert part["meada train maximise"] == 70_000 / 8
    assert part["meada score candidates"] == 50
    assert part["meada score rounds"] == 3 * 2048 / 8
    # Twice a round and at the end, and once a minute of training.
    assert part["meada train checkpoints"] == 7 + (1_000 + 8_750) // 60
    published = 1_000 + 70_000 / 8 + 37_040
    ours = sum(v for k, v in part.items() if k.startswith("meada"))
    assert got.sides["published"].median == pytest.approx(published / 60)
    assert got.ratios["published"].median == pytest.approx(published / ours)
    bare = sum(v for k, v in part.items() if k.startswith("meada train"))
    expected = (1_000 + 70_000 / 8) / bare
    assert got.ratios["without evaluation"].median == pytest.approx(expected)


def test_every_part_really_runs(subject):
    got = digits_run(subject, n=8, steps=1, scored=8, rounds=1, tell=lambda d, n: None)
    assert all(seconds > 0 for seconds in got.facts["seconds"].values())
