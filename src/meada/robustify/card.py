"""The model card: data, method, settings, results and limits of a hardened model, in Markdown."""

from collections.abc import Mapping
from typing import Any

from meada.robustify.plan import Settings
from meada.robustify.robustness import rows, verdict
from meada.runs.recipe import Recipe

LIMITS = """\
- One seed and one split: differences of a few points on a few hundred pictures are within noise.
- Corruptions and crafted shifts are made by computer: they are not another place or camera.
- Only the classes above are known: a picture of anything else gets one of these labels too.
- Pictures are squeezed to a square; EXIF rotation is applied, transparency is laid over white.
- Both models had the same number of gradient steps; a method's rounds cost time on top of that.
- Adversarial augmentation against domain shift is no defence against an attacker."""


def card(
    recipe: Recipe,
    settings: Settings,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    classes: tuple[str, ...],
) -> str:
    """Every number in it comes from the two records."""
    method, network = recipe.method["name"], recipe.network["name"]
    weights = after.get("weights") or {}
    return "\n\n".join([
        f"# {network} hardened by {method}",
        f"A classifier of {len(classes)} classes ({_some(classes)}) for pictures that come from "
        f"elsewhere than those it learnt from. {recipe.note}.",
        "## Data",
        "\n".join(f"- {name}: {what}" for name, what in after["provenance"].items()),
        "## Method",
        f"`{method}` and, for comparison, ERM: {after['steps']:,} gradient steps each, seed "
        f"{recipe.seed}, the last step's weights. Trained with meada {after['meada']}.",
        _weights(weights),
        "## Results",
        f"Accuracy in per cent. Corruptions and crafted shifts: {after['robustness']['note']}.",
        _table(before, after, method),
        verdict(before, after),
        "<details><summary>Every corruption and shift</summary>\n\n"
        + _each(before, after, method) + "\n\n</details>",
        "## Settings",
        "| key | value | why |\n|---|---|---|\n"
        + "\n".join(f"| {key} | {one.value} | {one.reason} |" for key, one in settings.items()),
        "## Use",
        f"Input: RGB pixels in [0, 1], (N, 3, {recipe.data['side']}, {recipe.data['side']}); the "
        "normalisation is in the network. The class names are in the metadata of "
        "`model.safetensors`.",
        "    meada predict . picture.jpg\n    meada export . --onnx model.onnx",
        "## Limits",
        LIMITS,
    ]) + "\n"  # fmt: skip


def _table(before: Mapping[str, Any], after: Mapping[str, Any], method: str) -> str:
    a, b = rows(before), rows(after)
    return _markdown(method, [(k, a[k][0], b[k][0], b[k][1]) for k in b])


def _each(before: Mapping[str, Any], after: Mapping[str, Any], method: str) -> str:
    a, b = (record["robustness"] for record in (before, after))
    lines = [
        (name, a[kind][name]["accuracy"], b[kind][name]["accuracy"], b[kind][name]["n"])
        for kind in ("corruptions", "crafted")
        for name in b[kind]
    ]
    return _markdown(method, lines)


def _markdown(method: str, lines: list[tuple[str, float, float, int]]) -> str:
    head = f"| pictures | n | ERM | {method} | change |\n|---|--:|--:|--:|--:|\n"
    return head + "\n".join(f"| {name.strip()} | {n:,} | {x:.1f} | {y:.1f} | {y - x:+.1f} |" for name, x, y, n in lines)


def _weights(weights: Mapping[str, Any]) -> str:
    if not weights:
        return "The network began at random weights."
    left = weights["left_at_random"]
    return (
        f"The network began at {weights['file']} (sha256 {weights['sha256'][:16]}...): "
        f"{len(weights['loaded'])} tensors were taken, {len(left)} began at random"
        + (f" ({_some(left)})." if left else ".")
    )


def _some(names: Any, shown: int = 8) -> str:
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
