"""The model card in Markdown: data, candidates, results and limits of the delivered model."""

from collections.abc import Sequence

from meada.robustify.outcome import Outcome

LIMITS = """\
- Results are from one split and one training run per candidate: read differences together with their intervals.
- Corruptions and shifts are synthetic: they do not replace pictures from another place or camera.
- The model knows only these classes: a picture of anything else also gets one of these labels.
- Pictures are resized to a square without keeping the aspect ratio; EXIF rotation is applied; transparent areas
  become white.
- Robustness to domain shift and corruption does not protect against adversarial attacks."""
TRUSTED = " At least 95 % of held-out predictions with an entropy of at most {:.3f} nats are correct."


def card(outcome: Outcome) -> str:
    """The card; all its numbers come from ``outcome.json``."""
    held = outcome.content
    plan, classes, delivered, limit = held["plan"], held["classes"], outcome.delivered, held["abstain_entropy"]
    return "\n\n".join([
        f"# {plan['network']}: {delivered}",
        f"A classifier of {len(classes)} classes ({some(classes)}). {outcome.verdict}",
        "## Data",
        "\n".join(f"- {name}: {what}" for name, what in held["provenance"].items()),
        "## Candidates",
        "Accuracy in per cent; the delivered model is marked with *. Pictures: " + outcome.counts() + ".",
        _markdown(outcome.rows()),
        f"Rule: {held['rule']} {held['about']}",
        "<details><summary>Every corruption and shift</summary>\n\n" + _each(outcome) + "\n\n</details>",
        "## Confidence",
        outcome.about_temperature() + ("" if limit is None else TRUSTED.format(limit)),
        "## Settings",
        _markdown([("key", "value"), *((key, str(value)) for key, value in plan.items())]),
        "## Use",
        f"Input: RGB pixels in [0, 1], (N, 3, {plan['side']}, {plan['side']}); normalisation is part of the network. "
        "`model.safetensors` has the class names in its metadata.",
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
    """The first few names and the number of remaining ones."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(list(names)[:shown]) + more
