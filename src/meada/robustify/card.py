"""The model card: data, candidates, evidence and limits of the delivered model, in Markdown."""

from collections.abc import Sequence

from meada.robustify.outcome import Outcome

LIMITS = """\
- One split and one training of each candidate: read differences together with their intervals.
- Corruptions and shifts are made by computer: they are not another place or camera.
- Only the classes above are known: a picture of anything else gets one of these labels too.
- Pictures are squeezed to a square; EXIF rotation is applied, transparency is laid over white.
- Robustness against domain shift and corruption is not a defence against an attacker."""
TRUSTED = " Up to an entropy of {:.3f} nats at least 95 % of held-out predictions are right."


def card(outcome: Outcome) -> str:
    """Every number in it comes from ``outcome.json``."""
    held = outcome.content
    plan, classes, delivered, limit = held["plan"], held["classes"], outcome.delivered, held["abstain_entropy"]
    return "\n\n".join([
        f"# {plan['network']}: {delivered}",
        f"A classifier of {len(classes)} classes ({some(classes)}). {outcome.verdict}",
        "## Data",
        "\n".join(f"- {name}: {what}" for name, what in held["provenance"].items()),
        "## Candidates",
        "Accuracy in per cent; the delivered model has a star. " + outcome.counts() + ".",
        _markdown(outcome.rows()),
        f"Rule: {held['rule']} {held['about']}",
        "<details><summary>Every corruption and shift</summary>\n\n" + _each(outcome) + "\n\n</details>",
        "## Confidence",
        outcome.about_temperature() + ("" if limit is None else TRUSTED.format(limit)),
        "## Settings",
        _markdown([("key", "value"), *((key, str(value)) for key, value in plan.items())]),
        "## Use",
        f"Input: RGB pixels in [0, 1], (N, 3, {plan['side']}, {plan['side']}); the normalisation is in the network. "
        "The class names are in the metadata of `model.safetensors`.",
        "    meada predict . picture.jpg\n    meada export . --onnx model.onnx",
        "## Limits",
        LIMITS,
    ]) + "\n"  # fmt: skip


def _each(outcome: Outcome) -> str:
    every = outcome.by_change()
    lines = [(name, *(f"{one[name]:.1f}" for one in every.values())) for name in every["plain"]]
    return _markdown([("pictures", *every), *lines])


def _markdown(rows: Sequence[tuple[str, ...]]) -> str:
    line = lambda row: "| " + " | ".join(row) + " |"
    return "\n".join([line(rows[0]), "|---|" + "--:|" * (len(rows[0]) - 1), *map(line, rows[1:])])


def some(names: Sequence[str], shown: int = 8) -> str:
    """The first few names and how many there are more."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(list(names)[:shown]) + more
