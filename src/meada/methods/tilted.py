"""Tilted augmentation: train on clean images and on random views chosen for being hard."""

import numpy as np
import torch
from torch import nn

from meada.errors import MeadaError, check_count, check_range
from meada.maximise import chosen_candidates
from meada.methods.method import Context, Method
from meada.methods.parts.views import batch_random, sample_index, views_loss
from meada.objective import Objective
from meada.spaces import Space, find_space, view_random
from meada.types import Batch, Scalar


def tilted(
    *, space: str | Space = "wide", k: int = 4, hardness: float = 0.0, beta: float = 1.0, gamma: float = 0.0,
    consistency: float = 0.0, views: int = 1, handed_on: bool = False,
) -> Method:  # fmt: skip
    """Mean cross-entropy over the clean image and its views, plus ``consistency`` times their divergence.

    Online, inside the training step: there is no pool and no round.

    Args:
        space: what views are drawn from: a name in ``meada.SPACES``, a ``meada.Space``; in a recipe, FILE.py:function.
        k: candidates per image from which one is chosen (:func:`meada.hard_views`).
        hardness: 0 is a random view, 1 the candidate with the highest score. A hard choice has not been better in the
            same time so far (decision 84).
        beta, gamma: weights of entropy and transport cost in the score.
        consistency: weight of the Jensen-Shannon divergence between the predictions for all views.
        views: 1 is the chosen view; 2 adds a random one.
        handed_on: a control: each image gets the transformation that was chosen for the image before it in the batch.
    """
    check_count("k", k, least=1)
    check_range("tilted", "[0, inf)", consistency=consistency)
    if not 0 <= hardness <= 1:
        raise MeadaError(f"hardness must be in 0..1, got {hardness}")
    if views not in (1, 2):
        raise MeadaError(f"views must be 1 or 2, got {views}")
    chosen, objective = find_space(space), Objective(beta=beta, gamma=gamma)
    scored = k + (gamma != 0) if k > 1 and hardness > 0 else 0  # gamma: the embedding of the image itself
    shift = int(handed_on)  # how far transformations are handed on within the batch

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        x, rows, seed, step = batch.x, sample_index(batch), context.seed, context.step
        numbers = chosen_candidates(
            net, x, batch.y, chosen, objective, k=k, hardness=hardness, seed=seed, step=step, rows=rows,
            embedding=context.embedding,
        )  # fmt: skip
        with torch.no_grad():
            made = [chosen.view(x, view_random(seed, step, np.roll(numbers, shift), np.roll(rows, shift)), step)]
        if views == 2:  # number k is a candidate that the choice does not use
            made.append(chosen.view(x, batch_random(batch, context, k), step))
        return views_loss(net, batch, [x, *made], labelled=1 + views, consistency=consistency)

    return Method(
        loss=loss,
        families=chosen.families,
        title="Tilted",
        about="Trains on clean images and on random views of them; with a hardness above 0, hard views are likelier.",
        passes=(1.0 + views + scored, 1.0 + views),
    )
