"""Tilted augmentation: train on clean images and on random views chosen for being hard."""

from collections.abc import Callable
from functools import partial

from torch import nn

from meada.errors import MeadaError
from meada.maximise import hard_views
from meada.methods.method import Context, Method
from meada.methods.parts.views import batch_random, sample_index, views_loss
from meada.spaces import Space, find_space
from meada.types import Batch, Images, Scalar


def tilted(
    *,
    space: str = "wide",
    k: int = 4,
    hardness: float = 0.5,
    beta: float = 1.0,
    gamma: float = 0.0,
    consistency: float = 0.0,
    views: int = 1,
) -> Method:
    """Mean cross-entropy over the clean image and its views, plus ``consistency`` times their divergence.

    Online, inside the training step: there is no pool and no round.

    Args:
        space: what views are drawn from: a name in ``meada.SPACES``, or FILE.py:function.
        k: candidates per image from which one is chosen (:func:`meada.hard_views`).
        hardness: 0 is a random view, 1 the candidate with the highest score.
        beta, gamma: weights of entropy and transport cost in the score.
        consistency: weight of the Jensen-Shannon divergence between the predictions for all views.
        views: 1 is the chosen view; 2 adds a random one.
    """
    if k < 1:
        raise MeadaError(f"k must be 1 or more, got {k}")
    if not 0 <= hardness <= 1:
        raise MeadaError(f"hardness must be in 0..1, got {hardness}")
    if views not in (1, 2):
        raise MeadaError(f"views must be 1 or 2, got {views}")
    if consistency < 0:
        raise MeadaError(f"consistency must be 0 or more, got {consistency}")
    chosen = find_space(space)
    choice = partial(hard_views, space=chosen, k=k, hardness=hardness, beta=beta, gamma=gamma)
    scored = k if k > 1 and hardness > 0 else 0
    return Method(
        loss=partial(tilted_loss, choice=choice, space=chosen, first_spare=k, views=views, consistency=consistency),
        families=chosen.families,
        title="Tilted" if scored else "Random views",
        about=f"Trains on clean images and on views from the space '{chosen.name}', "
        + (f"each the choice among {k} by hardness {hardness:g}." if scored else "drawn at random."),
        passes=(1.0 + views + scored, 1.0 + views),
    )


def tilted_loss(
    net: nn.Module,
    batch: Batch,
    context: Context,
    *,
    choice: Callable[..., Images],
    space: Space,
    first_spare: int,
    views: int,
    consistency: float,
) -> Scalar:
    """``first_spare`` is the number of a candidate that the choice does not use: the random view."""
    made = [choice(net, batch.x, batch.y, seed=context.seed, step=context.step, index=sample_index(batch))]
    if views == 2:
        made.append(space.view(batch.x, batch_random(batch, context, first_spare), context.step))
    return views_loss(net, batch, [batch.x, *made], labelled=1 + views, consistency=consistency)
