r"""Proposition 2 on a finite space: the worst-case distribution by linear programming, and pointwise.

An atom is a pair (x, y). ``value[s]`` is :math:`\mathcal{L}(\theta; x, y) + \beta h(\theta; x)` at
atom s, ``cost[s, t]`` is :math:`c_\theta` of moving mass from s to t: infinite where the labels
differ. An infinite cost bars a move at every gamma, 0 included.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy import sparse
from torch import Tensor

from meada.errors import MeadaError, check_range
from meada.theory.bounds import Real
from meada.types import Scalar

PerAtom = Float[ndarray, " S"]
Vector = Float[ndarray, " _"]
Costs = Float[ndarray, "S S"]


class WorstCase(NamedTuple):
    """The supremum over P, and a distribution that attains it."""

    value: float
    law: PerAtom


def surrogate_losses(value: PerAtom, cost: Costs, gamma: Real) -> PerAtom:
    r"""The robust surrogate, :math:`\phi_\gamma(s) = \sup_t \{value_t - \gamma c_{st}\}`, per atom.

    >>> surrogate_losses(np.array([0.0, 1.0]), np.array([[0.0, 4.0], [4.0, 0.0]]), gamma=0.2)
    array([0.2, 1. ])
    """
    return (value - _penalty(cost, gamma)).max(1)


def dual_value(p0: PerAtom, value: PerAtom, cost: Costs, gamma: Real) -> float:
    r"""Right side of Proposition 2: :math:`E_{P_0}[\phi_\gamma]`.

    >>> cost = np.array([[0.0, 4.0], [4.0, 0.0]])
    >>> dual_value(np.array([0.5, 0.5]), np.array([0.0, 1.0]), cost, gamma=0.2)
    0.6
    """
    return float(p0 @ surrogate_losses(value, cost, gamma))


def primal_value(p0: PerAtom, value: PerAtom, cost: Costs, gamma: Real) -> WorstCase:
    r"""Left side: :math:`\sup_P \{E_P[value] - \gamma D(P, P_0)\}`, as a linear programme.

    The unknowns are the law P and a coupling M of P_0 with P; both marginals are constraints.

    >>> cost = np.array([[0.0, 4.0], [4.0, 0.0]])
    >>> worst = primal_value(np.array([0.5, 0.5]), np.array([0.0, 1.0]), cost, gamma=0.2)
    >>> round(worst.value, 9), worst.law.round(9) + 0  # all the mass pays to go where the loss is
    (0.6, array([0., 1.]))
    """
    atoms = len(p0)
    rows, columns = _marginals(atoms)
    no_law = sparse.csr_matrix((atoms, atoms))
    solution = _minimised(
        np.concatenate([_finite(_penalty(cost, gamma)).ravel(), -value]),
        sparse.bmat([[rows, no_law], [columns, -sparse.identity(atoms)]]),
        np.concatenate([p0, np.zeros(atoms)]),
        [*_allowed(cost), *[(0, None)] * atoms],
    )
    if not solution.success:
        raise MeadaError(f"the linear programme of Proposition 2 has no solution: {solution.message}")
    return WorstCase(-float(solution.fun), solution.x[-atoms:])


def transport_distance(p: PerAtom, p0: PerAtom, cost: Costs) -> float:
    r""":math:`D_\theta(P, P_0)`, the least mean cost of their couplings (infinite if all are).

    >>> cost = np.array([[0.0, 4.0], [4.0, 0.0]])
    >>> transport_distance(np.array([0.0, 1.0]), np.array([0.5, 0.5]), cost)
    2.0
    """
    rows, columns = _marginals(len(p0))
    marginals, both = sparse.vstack([rows, columns]), np.concatenate([p0, p])
    solution = _minimised(_finite(cost).ravel(), marginals, both, _allowed(cost))
    return float(solution.fun) if solution.success else float("inf")


def surrogate(objective: Callable[[Tensor, Tensor], Tensor], theta: Tensor, candidates: Tensor) -> Scalar:
    r""":math:`\phi_\gamma(\theta) = \max_x` objective(theta, x) over finitely many candidates x.

    >>> surrogate(lambda theta, x: theta * x, torch.tensor(2.0), torch.tensor([-1.0, 3.0]))
    tensor(6.)
    """
    return torch.stack([objective(theta, x) for x in candidates]).max()


def surrogate_gradient(objective: Callable[[Tensor, Tensor], Tensor], theta: Tensor, candidates: Tensor) -> Tensor:
    r"""The gradient identity: :math:`\nabla_\theta \phi_\gamma`, the objective's at the best x.

    True where the maximiser is unique (Danskin), of the *whole* objective: its
    :math:`-\gamma c_\theta` depends on theta too.

    >>> surrogate_gradient(lambda theta, x: theta * x, torch.tensor(2.0), torch.tensor([-1.0, 3.0]))
    tensor(3.)
    """
    theta = theta.detach().requires_grad_()
    values = torch.stack([objective(theta, x).detach() for x in candidates])
    star = candidates[values.argmax()]
    (gradient,) = torch.autograd.grad(objective(theta, star), theta)
    return gradient


def _minimised(c: Vector, equations: Any, values: Vector, bounds: list[tuple[int, int | None]]) -> Any:
    from scipy.optimize import linprog  # takes a second to import

    # By default HiGHS forgives 1e-7 of each constraint: as much as a rare atom's whole mass.
    strict = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(c, A_eq=equations, b_eq=values, bounds=bounds, method="highs", options=strict)


def _penalty(cost: Costs, gamma: Real) -> Costs:
    check_range("Proposition 2", "[0, inf]", gamma=gamma)
    return np.where(np.isinf(cost), np.inf, gamma * _finite(cost))


def _finite(cost: Costs) -> Costs:
    return np.where(np.isinf(cost), 0.0, cost)  # those moves are barred by their bounds


def _allowed(cost: Costs) -> list[tuple[int, int | None]]:
    return [(0, 0 if barred else None) for barred in np.isinf(cost).ravel()]


def _marginals(atoms: int) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """The two matrices that map a flattened (row-major) coupling to its marginals."""
    one, each = np.ones((1, atoms)), sparse.identity(atoms)
    return sparse.kron(each, one, format="csr"), sparse.kron(one, each, format="csr")
