"""Run a set of runs on this machine or on a Ray cluster."""

from collections.abc import Sequence
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.reproduce.item import Item
from meada.reproduce.on_ray import on_ray
from meada.reproduce.runner import Outcome, Say, reproduce

ENGINES = ("local", "ray")


def refuse_settings(engine: str, jobs: int, cores: int, address: str = "", timings: Sequence[Path] = ()) -> None:
    """What no set of runs can be run with, also where it is only listed."""
    if engine not in ENGINES:
        raise MeadaError(f"unknown engine '{engine}': {nearest(engine, ENGINES)}")
    if jobs < 1:
        raise MeadaError(f"--jobs must be 1 or more, got {jobs}")
    if cores < 1:
        raise MeadaError(f"--cores must be 1 or more, got {cores}")
    if address and engine != "ray":
        raise MeadaError("--address must be used with --engine ray, got --engine local")
    for folder in timings:
        if not folder.is_dir():
            raise MeadaError(f"--timings must be folders of records, got {folder}")


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
    refuse_settings(engine, jobs, cores, address, timings)
    if engine == "ray":
        return on_ray(items, out, say=say, address=address, cores=cores)
    return reproduce(items, out, jobs=jobs, say=say, timings=timings)
