"""Benchmark cases on a single network; the two sides are timed alternately."""

from benchmarks import peak, phases
from benchmarks.agreement import agreement
from benchmarks.measure import Result, Spread, Tell, interleave, scaled, speedup, work
from benchmarks.subjects import Subject, at_size, with_method
from meada.pool import as_float

BLOCKS = (16, 32, 64, 128, 256, 512)
PEAK_STEPS = 3  # of the ascent's; a bare loop takes the same time for each


def maximise(subject: Subject, n: int, compared: int, exact: int, rounds: int, tell: Tell) -> Result:
    """Time the ascent on ``n`` images, after checking that the sides agree on ``compared`` of them."""
    agreed = agreement(subject, compared, exact)  # warms up both sides, too
    subject = at_size(subject, n)
    block, steps = subject.block, subject.ascent.loops_adv
    layout, these = peak.fastest(subject.net, as_float(subject.images(block)))

    def bare() -> None:
        for _ in range(PEAK_STEPS):
            peak.run(these)

    with phases.space() as where:
        times = interleave(
            {
                "published": phases.published_ascent(where, subject, n),
                "meada": phases.meada_ascent(where, subject, n),
                "peak": work(bare),
            },
            rounds,
            tell,
        )
    times["peak"] = [t * steps / PEAK_STEPS * n / block for t in times["peak"]]
    flop = peak.operations(subject.net, as_float(subject.images(1))) * steps * n
    return Result(
        about=f"{steps} ascent steps on {n} images, batches of {subject.ascent.batch} against "
        f"blocks of {block}; peak in {layout}",
        unit="ms/image",
        rounds=rounds,
        sides={name: scaled(t, 1e3 / n) for name, t in times.items()},
        ratios={
            "published": speedup(times["published"], times["meada"]),
            "peak": speedup(times["peak"], times["meada"]),
        },
        facts={
            **agreed,
            "compared": compared,
            "layout": layout,
            "gflops": {name: 1e-9 * flop / Spread.of(t).median for name, t in times.items()},
        },
    )


def minimise(subject: Subject, n: int, steps: int, rounds: int, tell: Tell) -> Result:
    subject = at_size(subject, n)
    with phases.space() as where:
        sides = {
            "published": phases.published_descent(where, subject, n, steps),
            "meada": phases.meada_descent(subject, n, steps),
        }
        interleave(sides, 1)  # optimisers make their state in the first step
        times = interleave(sides, rounds, tell)
    return Result(
        about=f"{subject.recipe.descent.name} on batches of {subject.batch}, data path included",
        unit="ms/step",
        rounds=rounds,
        sides={name: scaled(t, 1e3 / steps) for name, t in times.items()},
        ratios={"published": speedup(times["published"], times["meada"])},
    )


def evaluation(subject: Subject, n: int, rounds: int, tell: Tell) -> Result:
    sides = {"published": phases.published_scores(subject, n), "meada": phases.meada_scores(subject, n)}
    interleave(sides, 1)
    times = interleave(sides, rounds, tell)
    return Result(
        about=f"{n} images scored; the published side gives accuracy alone",
        unit="ms/image",
        rounds=rounds,
        sides={name: scaled(t, 1e3 / n) for name, t in times.items()},
        ratios={"published": speedup(times["published"], times["meada"])},
        facts={"images_per_second": {k: n / Spread.of(t).median for k, t in times.items()}},
    )


def blocks(subject: Subject, n: int, steps: int, rounds: int, tell: Tell) -> Result:
    """Time the ascent by block size; the recipes use the fastest."""
    with phases.space() as where:
        sides = {
            str(block): phases.meada_ascent(where, with_method(subject, steps=steps, block=block), n)
            for block in BLOCKS
            if block <= n
        }
        interleave(sides, 1)
        times = interleave(sides, rounds, tell)
    best = min(times, key=lambda name: Spread.of(times[name]).median)
    now = str(subject.block)
    return Result(
        about=f"{steps} ascent steps on {n} images by block size; the recipe has {now}",
        unit="ms/image",
        rounds=rounds,
        sides={name: scaled(t, 1e3 / n) for name, t in times.items()},
        ratios={name: speedup(times[best], t) for name, t in times.items()},
        facts={"fastest": int(best), "recipe": int(now)},
    )


def gemm(n: int, rounds: int, tell: Tell) -> Result:
    return Result(
        about=f"{n} x {n} matrices, the plain product",
        unit="GFLOP/s",
        rounds=rounds,
        sides={"peak": peak.gemm_rate(rounds, n)},
    )
