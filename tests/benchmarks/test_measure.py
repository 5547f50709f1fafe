"""Turns are taken, preparation is free, ratios are between neighbours."""

from benchmarks.measure import Spread, interleave, scaled, speedup, work


def test_sides_take_turns_and_only_their_work_is_timed():
    now, heard = [0.0], []

    def side(name, preparing, working):
        def prepare():
            now[0] += preparing
            return work_

        def work_():
            heard.append(name)
            now[0] += working

        return prepare

    told = []
    sides = {"a": side("a", 100.0, 1.0), "b": side("b", 50.0, 2.0)}
    times = interleave(sides, 3, lambda *at: told.append(at), clock=lambda: now[0])
    assert heard == ["a", "b"] * 3
    assert times == {"a": [1.0] * 3, "b": [2.0] * 3}
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_slow_spell_that_both_sides_share_cancels_out():
    assert speedup([2.0, 20.0, 4.0], [1.0, 10.0, 2.0]) == Spread(2.0, 2.0, 2.0)


def test_units():
    assert scaled([0.5, 0.25, 1.0], 1e3 / 10) == Spread(50.0, 25.0, 100.0)


def test_work_calls_with_its_arguments():
    heard = []
    work(lambda a, b: heard.append((a, b)), 1, b=2)()()
    assert heard == [(1, 2)]
