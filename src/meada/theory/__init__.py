"""The paper's propositions, corollary and lemmas as functions (see docs/theory.md)."""
# ruff: noqa: F401

from meada.theory.bounds import (
    bias_bound,
    binary_entropy,
    conditional_entropy_bound,
    conditional_entropy_difference_bound,
    deviation_from_mean_bound,
    distance_to_deterministic,
    entropy_continuity,
    entropy_deviation_bound,
    mean_entropy_deviation_bound,
    replacement_bound,
    samples_needed,
    sharp_conditional_entropy_bound,
    sharper_deviation_bound,
    term_change_bound,
)
from meada.theory.duality import (
    WorstCase,
    dual_value,
    primal_value,
    surrogate,
    surrogate_gradient,
    surrogate_losses,
    transport_distance,
)
from meada.theory.information import (
    Proposition1,
    argmax_entropy,
    conditional_entropy,
    entropy_gap,
    graph_law,
    mean_prediction_entropy,
    mutual_information,
    plug_in_entropy,
    proposition_1,
    shannon_entropy,
)
from meada.theory.tilting import expected_finite_value, penalised_score, tilted_law, tilted_value
