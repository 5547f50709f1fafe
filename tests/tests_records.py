"""Runs' folders as they lie on disk, made up: records, logs, pictures, predictions, attacks."""

import json
from pathlib import Path

import tomli_w
import torch
from safetensors.torch import save_file

from meada.evaluation.predictions import per_image, save_predictions
from meada.evaluation.score import by_severity, score
from meada.runs.recipe import load_recipe, to_toml

RULES = ("last", "source_val", "crafted", "oracle")
CLASSES = ("cat", "dog", "cow")


def write_run(
    folder: Path,
    method: str = "erm",
    *,
    seed: int = 0,
    skill: float = 1.0,
    domains: tuple[str, ...] = ("svhn", "usps"),
    rounds: int = 0,
    images: int = 40,
    severities: int = 0,
    data: str = "digits",
    network: str = "lenet",
    note: str = "made up",
    classes: tuple[str, ...] = CLASSES,
    name: str = "",
    predictions: bool = True,
    finished: bool = True,
    attack: bool = False,
    steps: int = 300,
    recipe: str = "",
) -> Path:
    """``skill`` is how far the right class stands out; seed and domain decide on the rest.

    ``recipe``: a shipped one, with as many rounds as are asked for, in place of one made up.
    """
    path = folder / (name or f"{method}-{rounds}-{seed}")
    path.mkdir(parents=True)
    results, told = {}, {}
    for place, domain in enumerate(domains):
        n = images * (severities or 1)
        labels = torch.arange(images).repeat(severities or 1) % 3
        noise = torch.Generator().manual_seed(97 * seed + place)
        logits = torch.randn(n, 3, generator=noise, dtype=torch.float64)
        logits[torch.arange(n), labels] += skill
        told[domain] = per_image(logits, labels)
        results[domain] = dict(score(logits, labels))
        if severities:
            results[domain]["by_severity"] = by_severity(logits, labels, severities)
    told_of = [_round(k + 1, 60 * 2 ** (k + 1)) for k in range(rounds)]
    one = {"accuracy": 90.0, "n": 20, "ece": 0.1, "nll": 0.5, "brier": 0.2}
    record = {
        "meada": "0.1.0", "recipe": f"{data}/{method}", "note": note, "method": method,
        "network": network, "data": data, "seed": seed, "scale": 1.0, "steps": steps,
        "environment": {"meada": "0.1.0", "torch": "2", "threads": 1, "processor": "a chip"},
        "provenance": {"svhn": "a file"}, "weights": {}, "rounds": told_of,
        "seconds": {"minimise": 5.0, "maximise": 2.5, "evaluate": 1.0},
        "selected": {rule: {"step": steps, "knows": ""} for rule in RULES},
        "source": dict.fromkeys(RULES, one), "results": dict.fromkeys(RULES, results),
        **({"clean": dict.fromkeys(RULES, one)} if severities else {}),
    }  # fmt: skip
    made_up = {
        "name": f"{data}/{method}", "note": note, "seed": seed,
        "data": {"name": data, "train": 60, "targets": list(domains)},
        "network": {"name": network}, "method": {"name": method, "steps": 5},
        "plan": {"rounds": rounds, "min_steps": 50, "total_steps": steps, "batch_size": 16},
    }  # fmt: skip
    shipped = to_toml(load_recipe(recipe, [f"plan.rounds={rounds}"] if rounds else [], seed=seed)) if recipe else ""
    (path / "recipe.toml").write_text(shipped or tomli_w.dumps(made_up))
    lines = [{"step": 50 * (k + 1), **line} for k, line in enumerate(told_of)]
    scores = {"source_val": 80.0, "crafted": 60.0, "oracle": 50.0}
    lines += [{"step": s, "loss": 2.0 - s / 200 + 0.1 * seed, "scores": scores} for s in (100, 200, 300)]
    (path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        (path / "record.json").write_text(json.dumps(record))
    if predictions:
        save_predictions(path / "predictions.safetensors", {"last": told}, classes)
    if rounds:
        save_file(_gallery(rounds), path / "gallery.safetensors")
    if attack:
        each = {d: {"n": 10, "clean": 80.0, "attacked": 55.0 + seed} for d in domains}
        about = {"rule": "last", "attack": "PGD", "radius": 2.0, "steps": 10, "domains": each}
        (path / "attack.json").write_text(json.dumps(about))
    return path


def _round(number: int, pool: int) -> dict:
    return {
        "round": number, "pool": pool, "ce": [0.2, 0.5], "entropy": [0.3, 0.6], "cost": 4.0,
        "linf": 0.1, "linf_max": 0.3, "linf_median": 0.1, "seconds": 2.5,
        "warnings": ["round 2 did nothing"] if number == 2 else [],
    }  # fmt: skip


def _gallery(rounds: int) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(0)
    kept = {}
    for k in range(1, rounds + 1):
        source = torch.rand(3, 3, 8, 8, generator=noise, dtype=torch.float32)
        kept |= {
            f"round-{k}.source": source,
            f"round-{k}.adversarial": (source + 0.1 * k).clamp(0, 1),
            f"round-{k}.label": torch.tensor([0, 1, 2]),
            f"round-{k}.source_guess": torch.tensor([0, 1, 2]),
            f"round-{k}.adversarial_guess": torch.tensor([1, 1, 0]),
        }
    return kept
