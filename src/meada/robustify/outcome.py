"""The result of ``robustify``: the content of ``outcome.json``, the table of candidates and the model card."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from meada.entropy import bernoulli_entropy, softmax_entropy
from meada.errors import some
from meada.evaluation.calibration import best_temperature
from meada.robustify.labels import Truth, loss, right
from meada.robustify.rule import Decision, decide, difference
from meada.robustify.scoring import Scores, family_of, rule_rows
from meada.types import Families

FORMAT = "meada-outcome/1"
RULE = (
    "The candidate with the highest mean accuracy on held-out pictures under corruptions and shifts of kinds that no "
    "candidate was trained on, among those whose held-out accuracy is within one point or one picture of the best. "
    "Plain is delivered unless the gain over it, under those shifts or on the unchanged held-out pictures, exceeds the "
    "variation between training runs and the half-width of the bootstrap interval over pictures, which must exclude "
    "zero, all widened for the number of candidates that were compared. Test folders were not used."
)
ABOUT = (
    "These results are for held-out pictures from the same source, with synthetic corruptions and shifts. They say "
    "nothing about other cameras, places or classes unless a test folder covers them."
)

LIMITS = """\
- Results are from one split and one training run per candidate: read differences together with their intervals.
- Corruptions and shifts are synthetic: they do not replace pictures from another place or camera.
- The model knows only these classes: a picture of anything else also gets one of these labels.
- Pictures are resized to a square without keeping the aspect ratio; EXIF rotation is applied; transparent areas
  become white.
- Robustness to domain shift and corruption does not protect against adversarial attacks."""
CALIBRATED = {"held_out": "on held-out pictures", "corruptions": "under corruptions"}
ENTROPY_SENTENCE = " At least 95 % of held-out predictions with an entropy of at most {:.3f} nats are correct."


@dataclass(frozen=True)
class Outcome:
    """The content of ``outcome.json`` and the folder of the run."""

    out: Path
    content: dict[str, Any]

    @property
    def delivered(self) -> str:
        return str(self.content["delivered"])

    @property
    def verdict(self) -> str:
        return str(self.content["verdict"])

    def rows(self) -> list[tuple[str, ...]]:
        """A heading and one row per candidate, with accuracies in per cent."""
        candidates = self.content["candidates"]
        tests = (f"test: {name}" for name in candidates["plain"]["tests"])
        head = ("candidate", "held out", "corruptions", "shifts", *tests)
        return [head, *(self._row(name, one) for name, one in candidates.items())]

    def _row(self, name: str, one: dict[str, Any]) -> tuple[str, ...]:
        values = [one["held_out"]["accuracy"], one["corruptions"]["mean"], one["validation_shifts"]["mean"]]
        values += [test["accuracy"] for test in one["tests"].values()]
        return (f"{name} *" if name == self.delivered else name, *(f"{value:.1f}" for value in values))

    def table(self) -> str:
        """The table for a terminal or a notebook; the delivered model is marked with ``*``."""
        rows = self.rows()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        return "\n".join([*lines, f"n: {self.counts()}", self.verdict])

    def counts(self) -> str:
        one = self.content["candidates"]["plain"]
        said = [f"{one['held_out']['n']:,} held out", f"{one['corruptions']['n']:,} under each corruption and shift"]
        return ", ".join([*said, *(f"{test['n']:,} in {name}" for name, test in one["tests"].items())])

    def by_change(self) -> dict[str, dict[str, float]]:
        """Candidate -> corruption or shift -> accuracy (%)."""
        accuracies = lambda one, part: {name: found["accuracy"] for name, found in one[part]["by_name"].items()}
        every = self.content["candidates"].items()
        return {name: accuracies(one, "corruptions") | accuracies(one, "validation_shifts") for name, one in every}

    def about_temperature(self) -> str:
        scale = self.content["temperature"]
        if scale["value"] == 1:
            return "No temperature scaling: it did not improve the NLL under kinds of shifts that it was not fitted on."
        return (
            f"Temperature {scale['value']:.2f}, included in the weights of the last layer. Temperatures fitted in the "
            f"same way improve the NLL of other held-out pictures, under kinds of shifts that they were not fitted on, "
            f"from {scale['nll_before']:.3f} to {scale['nll_after']:.3f}."
        )

    def about_calibration(self) -> str:
        one = self.content["candidates"][self.delivered]
        eces = [f"{one[group]['ece']:.3f} {where}" for group, where in CALIBRATED.items()]
        return f" Expected calibration error: {' and '.join(eces)}."

    def __str__(self) -> str:
        return self.table()


def judge(scores: Scores, trained: Families, s0: float) -> tuple[Decision, dict[str, Any]]:
    """The decision, and the scores for ``outcome.json``; those of the delivered model are with its temperature."""
    rows = rule_rows(scores.names, trained)
    shifted = {name: scores.correct(name, rows).mean(0) for name in scores.candidates}
    held_out = {name: scores.correct(name, ["held_out"])[0] for name in scores.candidates}
    decision = decide(held_out, shifted, s0, rows)
    name, scale = decision.delivered, temperature(scores, decision.delivered, rows)
    of = {name: scores.of(name) for name in scores.candidates}
    unscaled = {group: {key: of[name][group][key] for key in ("ece", "nll")} for group in CALIBRATED}
    of[name] = scores.of(name, scale["value"])
    differences = {name: _differences(scores, name) for name in scores.candidates if name != "plain"}
    evidence = {name: 100 * float(one.mean()) for name, one in shifted.items()}
    return decision, {
        "candidates": of, "differences": differences, "evidence": {"rows": rows, "mean": evidence},
        "temperature": {**scale, "unscaled": unscaled},
    }  # fmt: skip


def _differences(scores: Scores, name: str) -> dict[str, Any]:
    """Candidate minus plain, with 95 % intervals over pictures for these two models."""

    def one(rows: Sequence[str]) -> dict[str, float]:
        a, b = (scores.correct(candidate, rows).mean(0) for candidate in (name, "plain"))
        return dict(zip(("mean", "low", "high"), difference(a, b)[:3], strict=True))

    groups = {"held_out": ["held_out"], "corruptions": scores.group("corruption/"),
              "validation_shifts": scores.group("shift/")}  # fmt: skip
    found: dict[str, Any] = {key: one(rows) for key, rows in groups.items() if rows}
    return {**found, "tests": {row.split("/", 1)[1]: one([row]) for row in scores.group("test/")}}


def temperature(scores: Scores, name: str, rows: Sequence[str]) -> dict[str, float]:
    """The temperature with the lowest NLL on held-out pictures: half as they are, half under the rule's shifts.

    ``value`` is 1 unless temperatures fitted in this way lower the NLL under families of shifts left out of the fit, on
    the other half of the pictures; ``nll_before`` and ``nll_after`` are means over those.
    """

    def nll(t: float, names: Sequence[str], part: Collection[int]) -> float:
        chosen = lambda row: torch.isin(scores.positions(row) // 2 % 2, torch.tensor(list(part)))
        of = lambda row, some: loss(scores.logits(name, row).double()[some] / t, scores.labels(row)[some])
        return float(np.mean([float(of(row, chosen(row))) for row in names]))

    def fit(names: Sequence[str], part: Collection[int]) -> float:
        return best_temperature(lambda t: nll(t, ["held_out"], part) + (nll(t, names, part) if names else 0))

    # Halves of the held-out pictures: two in turn go to each, since the severities take turns picture by picture.
    halves, checks = ([0], [1]), list[tuple[float, float]]()
    if any(len((scores.positions(row) // 2 % 2).unique()) < 2 for row in ["held_out", *rows]):
        unfitted = nll(1.0, ["held_out"], [0, 1])
        return {"fitted": 1.0, "value": 1.0, "nll_before": unfitted, "nll_after": unfitted}  # too few to check
    for family in dict.fromkeys(map(family_of, rows)):
        rest, unseen = ([row for row in rows if (family_of(row) == family) is out] for out in (False, True))
        for seen, other in (halves, halves[::-1]):
            checks.append((nll(1.0, unseen, other), nll(fit(rest, seen), unseen, other)))
    before, after = (float(x) for x in np.mean(checks, 0))
    found = fit(rows, [0, 1])
    return {"fitted": found, "value": found if after < before else 1.0, "nll_before": before, "nll_after": after}


def entropy_limit(logits: Tensor, labels: Truth, wanted: float = 0.95) -> float | None:
    """Largest entropy up to which at least ``wanted`` of the held-out predictions are correct; None if there is none.

    >>> entropy_limit(torch.tensor([[9.0, 0.0], [0.1, 0.0]]), torch.tensor([0, 1])) < 0.01
    True
    >>> entropy_limit(torch.tensor([[9.0, 0.0]] * 4), torch.tensor([0, 1, 1, 1]))  # one in four is correct
    """
    entropy = bernoulli_entropy if labels.ndim == 2 else softmax_entropy
    h, order = entropy(logits.double()).sort()
    exact = (right(logits, labels) == 1)[order].double()
    share = exact.cumsum(0) / torch.arange(1, len(exact) + 1)
    last_of_ties = torch.cat([h.diff() > 0, torch.tensor([True])])
    good = ((share >= wanted) & last_of_ties).nonzero().flatten()
    return float(h[good[-1]]) if len(good) else None


def seconds(stages: Mapping[str, float], preparing: float, delivering: float) -> dict[str, float]:
    """Seconds by stage and in total; an interrupted stage counts as if it had run without interruption."""
    found = {"prepare": preparing, **stages, "deliver": delivering}
    return {name: round(value, 2) for name, value in {**found, "total": sum(found.values())}.items()}


def card(outcome: Outcome) -> str:
    """The model card; all its numbers come from ``outcome.json``."""
    held = outcome.content
    plan, classes, delivered, limit = held["plan"], held["classes"], outcome.delivered, held["abstain_entropy"]
    return "\n\n".join([
        f"# {plan['network']}: {delivered}",
        f"A classifier of {len(classes)} classes ({some(classes, 8)}). {outcome.verdict}",
        "## Data",
        "\n".join(f"- {name}: {what}" for name, what in held["provenance"].items()),
        "## Candidates",
        "Accuracy in per cent; the delivered model is marked with *. Pictures: " + outcome.counts() + ".",
        _markdown(outcome.rows()),
        f"Rule: {held['rule']} {held['about']}",
        "<details><summary>Every corruption and shift</summary>\n\n" + _each(outcome) + "\n\n</details>",
        "## Confidence",
        outcome.about_temperature() + outcome.about_calibration()
        + ("" if limit is None else ENTROPY_SENTENCE.format(limit)),
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
