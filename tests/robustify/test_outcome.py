"""Temperature scaling is kept only where it helps under shifts, and is in the weights that are delivered."""

import math

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy

from meada.entropy import softmax_entropy
from meada.evaluation.calibration import divide_logits
from meada.robustify.outcome import entropy_limit, judge, temperature
from meada.robustify.scoring import Scores, family_of, full_score

SHIFTS = ["shift/noise", "corruption/gaussian_noise", "corruption/fog"]  # two families


def scores_of(tmp_path, **scales: float) -> Scores:
    """Logits calibrated at a scale of 1, on held-out pictures and under shifts, times the scale of their family."""
    generator = torch.Generator().manual_seed(0)
    for name in ("held_out", *SHIFTS):
        logits = 2 * torch.randn(4000, 3, generator=generator, dtype=torch.float64)
        labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).flatten()
        scale = scales["held_out" if name == "held_out" else family_of(name)]
        save_file({"labels": labels, "logits/m": scale * logits}, tmp_path / f"{name.replace('/', '.')}.safetensors")
    return Scores(tmp_path, ["held_out", *SHIFTS], ["m"])


def test_too_sure_on_both_is_scaled_back_to_where_it_should_be(tmp_path):
    found = temperature(scores_of(tmp_path, held_out=3.0, noise=3.0, weather=3.0), "m", SHIFTS)
    assert 2.7 < found["value"] < 3.3 and found["value"] == found["fitted"]
    assert found["nll_after"] < found["nll_before"]


def test_too_sure_under_shifts_alone_is_scaled_back_in_part(tmp_path):
    """Held-out pictures alone would leave it as it is, shifts alone would divide by 3."""
    found = temperature(scores_of(tmp_path, held_out=1.0, noise=3.0, weather=3.0), "m", SHIFTS)
    assert 1.5 < found["value"] < 2.5 and found["value"] == found["fitted"]


def test_what_does_not_carry_over_to_another_family_is_not_applied(tmp_path):
    """Too sure under noise, unsure under weather: either temperature makes the other worse."""
    scores = scores_of(tmp_path, held_out=1.0, noise=4.0, weather=0.25)
    found = temperature(scores, "m", SHIFTS)
    assert found["value"] == 1.0 != found["fitted"] and found["nll_after"] > found["nll_before"]
    nll = lambda name: float(cross_entropy(scores.logits("m", name), scores.labels(name)))
    noise, weather = (nll(SHIFTS[0]) + nll(SHIFTS[1])) / 2, nll(SHIFTS[2])
    assert abs(found["nll_before"] - (noise + weather) / 2) < 1e-9  # two halves of pictures, as many in each


def test_the_limit_of_entropy_is_the_highest_that_keeps_its_promise():
    """The 20 surest are right and 4 more are wrong: up to the 21st, 20 of 21 (95.2 %) are right."""
    logits = torch.stack([torch.linspace(6.0, 0.5, 24), torch.zeros(24)], 1)
    labels = torch.tensor([0] * 20 + [1] * 4)
    limit = entropy_limit(logits, labels)
    assert limit is not None and abs(limit - float(softmax_entropy(logits[20:21].double()))) < 1e-12


def test_as_sure_predictions_stand_or_fall_together():
    """Copies have one entropy: a limit among them would keep the right ones and leave the wrong ones out."""
    logits = torch.tensor([[9.0, 0.0]] * 4 + [[0.5, 0.0]])
    assert entropy_limit(logits, torch.tensor([0, 1, 1, 1, 1])) is None
    assert entropy_limit(logits, torch.tensor([0, 0, 0, 0, 1])) == float(softmax_entropy(logits[:1].double()))


def test_no_picture_is_in_both_halves_of_the_check_of_the_temperature(tmp_path):
    """1,000 pictures, 300 of them under shifts; where a fitted picture is checked again, too sure looks calibrated.

    The logits of half of the pictures are right and sure, those of the others wrong and sure: only a fit that sees
    both kinds would help the others.
    """
    from meada.evaluation.selection import subset_positions
    from meada.robustify.scoring import SHIFTED

    places = {"held_out": torch.arange(1000), **dict.fromkeys(SHIFTS, subset_positions(SHIFTED, 1000, 300))}
    for name, place in places.items():
        wrong = place // 2 % 2 == 1
        logits = torch.tensor([[8.0, 0.0]]).repeat(len(place), 1)
        save_file({"labels": wrong.long(), "logits/m": logits}, tmp_path / f"{name.replace('/', '.')}.safetensors")
    scores = Scores(tmp_path, ["held_out", *SHIFTS], ["m"])
    assert torch.equal(scores.positions(SHIFTS[0]), places[SHIFTS[0]])
    found = temperature(scores, "m", SHIFTS)
    # Fitted on the right half, it is cold, which the wrong half pays for with a loss of 8 or more; the other way round
    # the right half pays log(1 + exp(-8 / e^2)). As they are, the halves pay 0 and 8.
    assert found["value"] == 1.0 and found["nll_before"] < 4.01 < 4.1 < found["nll_after"]


def test_one_held_out_picture_has_no_temperature(tmp_path):
    for name in ("held_out", *SHIFTS):
        path = tmp_path / f"{name.replace('/', '.')}.safetensors"
        save_file({"labels": torch.tensor([0]), "logits/m": torch.tensor([[3.0, 0.0]])}, path)
    found = temperature(Scores(tmp_path, ["held_out", *SHIFTS], ["m"]), "m", SHIFTS)
    assert found["value"] == 1.0 and all(math.isfinite(value) for value in found.values())


def test_a_difference_is_candidate_minus_plain(tmp_path):
    """Hardened has 3 of 4 right, plain 1 of 4; in the test folder it is the other way round."""
    labels, says = torch.zeros(4, dtype=torch.long), lambda n: torch.tensor([[1.0, 0.0]] * n + [[0.0, 1.0]] * (4 - n))
    sets = {"held_out": (3, 1), "corruption/fog": (3, 1), "shift/noise": (3, 1), "test/abroad": (1, 3)}
    for name, (hardened, plain) in sets.items():
        held = {"labels": labels, "logits/hardened": says(hardened)}
        held |= {"logits/plain": says(plain), "logits/plain_repeat": says(plain)}
        save_file(held, tmp_path / f"{name.replace('/', '.')}.safetensors")
    scores = Scores(tmp_path, list(sets), ["plain", "plain_repeat", "hardened"])
    found = judge(scores, frozenset(), 1.0)[1]["differences"]["hardened"]
    for name in ("held_out", "corruptions", "validation_shifts"):
        assert found[name]["mean"] == 50.0 and found[name]["low"] <= 50.0 <= found[name]["high"], name
    assert found["tests"]["abroad"]["mean"] == -50.0


def right_of(n: int) -> torch.Tensor:
    """Logits of 300 pictures of class 0, of which the first n are right."""
    return torch.where(torch.arange(300)[:, None] < n, torch.tensor([[4.0, 0.0]]), torch.tensor([[0.0, 4.0]]))


def test_shifts_of_untrained_kinds_decide_and_neither_clean_pictures_nor_trained_kinds(tmp_path):
    """Fog was not trained on, noise was; averaged is best on noise and on clean pictures, hardened under fog."""
    right = {
        "held_out": {"plain": 280, "plain_repeat": 280, "hardened": 283, "averaged": 285},
        "corruption/fog": {"plain": 90, "plain_repeat": 90, "hardened": 240, "averaged": 100},
        "shift/noise": {"plain": 90, "plain_repeat": 90, "hardened": 60, "averaged": 290},
        "corruption/shot_noise": {"plain": 90, "plain_repeat": 90, "hardened": 60, "averaged": 290},
    }
    for name, of in right.items():
        held = {f"logits/{candidate}": right_of(n) for candidate, n in of.items()}
        save_file({"labels": torch.zeros(300).long(), **held}, tmp_path / f"{name.replace('/', '.')}.safetensors")
    decision, found = judge(Scores(tmp_path, list(right), list(right["held_out"])), frozenset({"noise"}), 1.0)
    assert decision.delivered == "hardened" and found["evidence"]["rows"] == ["corruption/fog"]
    assert decision.gains["hardened"].mean == 50.0


def test_balanced_accuracy_is_over_the_classes_that_are_there():
    logits = torch.tensor([[4.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 4.0, 0.0]])  # nobody is of class 2
    found = full_score(logits, torch.tensor([0, 1, 1]))
    assert found["balanced_accuracy"] == 75.0


def test_scores_of_two_classes_worked_out_by_hand():
    """Class 1 is recalled in 2 of 3, class 0 in 1 of 1; of the three pairs two are ranked correctly."""
    margins, labels = torch.tensor([-0.5, -1.0, 2.0, 3.0]), torch.tensor([0, 1, 1, 1])
    found = full_score(torch.stack([torch.zeros(4), margins], 1), labels)
    assert abs(found["accuracy"] - 75) < 1e-9 and abs(found["balanced_accuracy"] - 100 * (2 / 3 + 1) / 2) < 1e-9
    assert abs(found["auc"] - 2 / 3) < 1e-12


def test_dividing_the_last_layer_divides_the_logits():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    x = torch.rand(5, 1, 2, 2)
    before = net(x)
    divide_logits(net[3], 2.5)
    torch.testing.assert_close(net(x), before / 2.5)
