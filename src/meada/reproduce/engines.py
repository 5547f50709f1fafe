"""Where a set of runs is run: on this machine, or on a cluster."""

from collections.abc import Sequence
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.reproduce.item import Item
from meada.reproduce.on_ray import on_ray
from meada.reproduce.runner import Outcome, Say, reproduce

ENGINES = ("local", "ray")


def run_on(
    engine: str,
    items: Sequence[Item],
    out: Path,
    *,
    say: Say,
    jobs: int = 1,
    timings: Sequence[Path] = (),
    address: str = "",
    cores: int = 1,
) -> Outcome:
    if engine not in ENGINES:
        raise MeadaError(f"--engine {engine}: {nearest(engine, ENGINES)}")
    if jobs < 1:
        raise MeadaError(f"--jobs {jobs}: at least one is needed")
    if cores < 1:
        raise MeadaError(f"--cores {cores}: at least one is needed")
    if engine == "ray":
        return on_ray(items, out, say=say, address=address, cores=cores)
    if address:
        raise MeadaError("--address is a Ray cluster's: it goes with --engine ray")
    return reproduce(items, out, jobs=jobs, say=say, timings=timings)
