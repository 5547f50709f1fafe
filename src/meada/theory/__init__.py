"""The paper's propositions, corollary and lemmas as functions (see docs/theory.md)."""

from meada.theory.concentration import (
    bias_bound,
    deviation_from_mean_bound,
    entropy_deviation_bound,
    mean_entropy_deviation_bound,
    replacement_bound,
    samples_needed,
    sharper_deviation_bound,
)
from meada.theory.continuity import binary_entropy, entropy_continuity, term_change_bound
from meada.theory.duality import (
    WorstCase,
    dual_value,
    primal_value,
    surrogate,
    surrogate_gradient,
    surrogate_losses,
    transport_distance,
)
from meada.theory.entropy_estimate import (
    argmax_entropy,
    entropy_gap,
    mean_prediction_entropy,
    plug_in_entropy,
)
from meada.theory.information import (
    Proposition1,
    conditional_entropy,
    graph_law,
    mutual_information,
    proposition_1,
    shannon_entropy,
)
from meada.theory.nondeterministic import (
    conditional_entropy_bound,
    conditional_entropy_difference_bound,
    distance_to_deterministic,
    sharp_conditional_entropy_bound,
)
from meada.theory.tilting import expected_finite_value, penalised_score, tilted_law, tilted_value

__all__ = [
    "Proposition1",
    "WorstCase",
    "argmax_entropy",
    "bias_bound",
    "binary_entropy",
    "conditional_entropy",
    "conditional_entropy_bound",
    "conditional_entropy_difference_bound",
    "deviation_from_mean_bound",
    "distance_to_deterministic",
    "dual_value",
    "entropy_continuity",
    "entropy_deviation_bound",
    "entropy_gap",
    "expected_finite_value",
    "graph_law",
    "mean_entropy_deviation_bound",
    "mean_prediction_entropy",
    "mutual_information",
    "penalised_score",
    "plug_in_entropy",
    "primal_value",
    "proposition_1",
    "replacement_bound",
    "samples_needed",
    "shannon_entropy",
    "sharp_conditional_entropy_bound",
    "sharper_deviation_bound",
    "surrogate",
    "surrogate_gradient",
    "surrogate_losses",
    "term_change_bound",
    "tilted_law",
    "tilted_value",
    "transport_distance",
]
