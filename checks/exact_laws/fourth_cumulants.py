"""Fourth cumulants of the stationary law of an affine recursion with random coefficients, exactly.

One map with normal noise has a normal law. Several, one for each value of the discrete draws, have not: Rademacher
noise in place of normal noise keeps mean and covariance at every order, and errs in the fourth moment at order h.

With s centred at its mean, s' = A_b s + w_b, w_b = B_b xi + g_b, E g_b = 0 and N_b = B_b B_b^T, the moment tensors
M_k = E s^(k) solve (expectations over b; sym is the mean over all orders of the factors)

    M_3 = E[A^(3)] M_3 + E sym[3 A M_2 A^T (x) g + g^(3) + 3 N (x) g]
    M_4 = E[A^(4)] M_4 + E sym[4 A^(3) M_3 (x) g + 6 A M_2 A^T (x) (g g^T + N) + g^(4) + 6 N (x) g g^T + 3 N (x) N]

and the number r . s has the fourth cumulant r^(4) . M_4 - 3 (r^T M_2 r)^2.
"""

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from sgmcmc_verification.checks.exact_laws.lyapunov import CONTRACTING, position_recursion
from sgmcmc_verification.checks.tracing.periodic_state import phases
from sgmcmc_verification.checks.tracing.step_map import Affine, HostStep, JaxStep

MOST = 5
"""Coordinates of a recursion up to which its fourth moments, 625 numbers, are solved for."""
NONE = np.zeros(0)


def fourth_cumulants(step: JaxStep | HostStep, h: float) -> np.ndarray:
    """Fourth cumulants (d,) of the coordinates of the position under the exact stationary law at step size h.

    Empty where the law is normal (one map), where they are not solved for (a clock, more than `MOST` coordinates), and
    where moments of that order grow without bound.
    """
    if len(phases(step)) > 1 or len(step.affine(h)) == 1:
        return NONE
    maps, readout, _, law = position_recursion(step, h)
    if readout.shape[1] > MOST or not law.radius < CONTRACTING:
        return NONE
    fourth = _fourth_moments(maps, law.mean, law.covariance)
    if fourth is None:
        return NONE
    powers = np.stack([_power(r, 4).ravel() for r in readout])
    return powers @ fourth - 3 * np.einsum("ki,ij,kj->k", readout, law.covariance, readout) ** 2


def _fourth_moments(maps: Sequence[Affine], mean: np.ndarray, covariance: np.ndarray) -> np.ndarray | None:
    """M_4, flat; None if moments of that order have no fixed point."""
    of = lambda order: np.sum([m.weight * functools.reduce(np.kron, [m.matrix] * order) for m in maps], axis=0)
    matrix = of(4)
    if not np.abs(np.linalg.eigvals(matrix)).max() < CONTRACTING:
        return None
    size = len(mean)
    parts = [(m.weight, m.matrix, m.matrix @ mean + m.offset - mean, m.noise @ m.noise.T) for m in maps]
    moved = [a @ covariance @ a.T for _, a, _, _ in parts]
    forcing = np.zeros((size,) * 3)
    for (weight, _, g, noise), s in zip(parts, moved, strict=True):
        forcing += weight * (_power(g, 3) + 3 * np.multiply.outer(s + noise, g))
    third = _solved(of(3), forcing).reshape((size,) * 3)
    forcing = np.zeros((size,) * 4)
    for (weight, a, g, noise), s in zip(parts, moved, strict=True):
        square = np.outer(g, g)
        forcing += weight * (
            4 * np.multiply.outer(np.einsum("ia,jb,kc,abc->ijk", a, a, a, third), g)
            + 6 * np.multiply.outer(s, square + noise)
            + _power(g, 4)
            + 6 * np.multiply.outer(noise, square)
            + 3 * np.multiply.outer(noise, noise)
        )
    return _solved(matrix, forcing)


def _solved(matrix: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """The fixed point, flat, of M -> matrix M + sym(forcing)."""
    orders = list(itertools.permutations(range(forcing.ndim)))
    symmetric = sum(forcing.transpose(order) for order in orders) / len(orders)
    return np.linalg.solve(np.eye(len(matrix)) - matrix, np.ravel(symmetric))


def _power(vector: np.ndarray, order: int) -> np.ndarray:
    """The tensor of all products of `order` entries."""
    return functools.reduce(np.multiply.outer, [vector] * order)
