"""Score networks and select checkpoints."""

from meada.evaluation.score import evaluate, predict, score

__all__ = ["evaluate", "predict", "score"]
