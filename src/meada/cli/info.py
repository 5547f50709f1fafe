"""``meada list``, ``meada doctor`` and ``meada bench``: names, this machine, and its speed."""

import json
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage
from textwrap import fill

import typer

from meada.cli.early_checks import Json, names
from meada.errors import MeadaError
from meada.files import data_root


def listing(as_json: Json = False) -> None:
    """List methods, networks, data sets, spaces and recipes.

    Example: meada list --json
    """
    from meada.runs.recipe_families import recipe_names, recipe_patterns

    known = {kind: names(kind) for kind in ("methods", "networks", "datasets")}
    known["recipes"] = recipe_names()
    if as_json:
        typer.echo(json.dumps(known))
        return
    indented = partial(fill, width=98, initial_indent="  ", subsequent_indent="    ")
    for kind in ("methods", "networks", "datasets", "spaces"):
        typer.echo(f"{kind}\n{indented(', '.join(names(kind)))}")
    typer.echo(f"recipes ({len(known['recipes'])}; braces as in a shell)")
    for pattern in recipe_patterns():
        typer.echo(indented(pattern.replace(",", ", ")).replace(", ", ","))
    typer.echo("train one: meada train pacs/meada-sketch-small --out runs/sketch")


EXTRAS = ("matplotlib", "sklearn", "mlxtend", "onnx", "ray", "pytorch_lightning", "transformers", "kornia",
          "tensorboard", "wandb", "mlflow")  # fmt: skip


def doctor(as_json: Json = False) -> None:
    """Report machine, torch, threads, precision and data, and say what to set.

    Example: meada doctor --json
    """
    import torch

    from meada.machine.device import choose, probe_bf16
    from meada.machine.environment import environment

    about = environment()
    fault = probe_bf16()
    threads = torch.get_num_threads()
    advice = []
    if about["cores"] and threads > about["cores"]:
        advice.append(f"threads: {threads} on {about['cores']} cores; set OMP_NUM_THREADS lower")
    if about["cores"] and threads < about["cores"]:
        advice.append(f"threads: {threads} of {about['cores']} cores; OMP_NUM_THREADS allows more")
    if fault:
        advice.append(f"bf16: {fault}")
    root = data_root()
    if not root.is_dir():
        advice.append(f"data: {root} does not exist; set MEADA_DATA, or see meada data list")
    found = {
        **about,
        "device": str(choose("auto")),
        "bf16": fault or "works",
        "data": str(root) if root.is_dir() else f"{root} (absent)",
        "free_gb": round(disk_usage(".").free / 1e9, 1),
        "extras": [n for n in EXTRAS if find_spec(n)],
        "advice": advice,
    }
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        if name != "advice":
            typer.echo(f"{name:15} {', '.join(value) if isinstance(value, list) else value}")
    for line in advice or ["nothing to set"]:
        typer.echo(f"advice          {line}")


BENCH_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
SOURCE = Path(__file__).parents[2]  # ``src`` of a checkout, or site-packages


def bench(context: typer.Context) -> None:
    """Compare speed with the published training loop. Needs a source checkout; see `meada bench --help` there.

    Example: meada bench --quick --case maximise-lenet --json
    """
    root = checkout(SOURCE.parent, Path.cwd())
    paths = [str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "benchmarks", *context.args]
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def checkout(*candidates: Path) -> Path:
    """The first folder with ``benchmarks/`` and ``src/meada/`` in it."""
    for root in candidates:
        if (root / "benchmarks" / "__main__.py").is_file() and (root / "src" / "meada").is_dir():
            return root
    raise MeadaError(
        "meada bench must run from a source checkout (the benchmarks are not installed with the package), "
        f"got {candidates[-1]}; clone the repository, cd into it and run `python -m benchmarks`"
    )
