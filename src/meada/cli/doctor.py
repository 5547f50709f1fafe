"""``meada doctor``: what this machine has, what works on it, and what to set."""

import json
from typing import Annotated

import typer

EXTRAS = ("matplotlib", "sklearn", "mlxtend", "onnx", "ray", "pytorch_lightning", "transformers", "kornia",
          "tensorboard", "wandb", "mlflow")  # fmt: skip


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Report machine, torch, threads, precision and data, and say what to set.

    Example: meada doctor --json
    """
    from importlib.util import find_spec
    from shutil import disk_usage

    import torch

    from meada.files import data_root
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
        advice.append(f"data: {root} is not there; set MEADA_DATA, or see meada data list")
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
