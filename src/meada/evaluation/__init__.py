"""How a network is scored and how a checkpoint is chosen."""

from meada.evaluation.score import evaluate, predict, score

__all__ = ["evaluate", "predict", "score"]
