"""Exact stationary law of an affine recursion with random coefficients (the discrete Lyapunov equation)."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from checks.stepmap import Affine, HostStep, JaxStep


class StationaryLaw(NamedTuple):
    """Mean (m,), covariance (m, m) of the stationary law, and the spectral radius of the recursion of moments.

    A radius >= 1 means that there is no stationary law; mean and covariance are then NaN.
    """

    mean: np.ndarray
    covariance: np.ndarray
    radius: float
    condition: float


def stationary_law(maps: list[Affine]) -> StationaryLaw:
    """Fixed point of mean and covariance of s' = A_b s + B_b xi + c_b, b random with the weights of `maps`.

    mean: (I - E A) m = E c. Covariance, with s centred at m and g_b = A_b m + c_b - m:
    S = E[A S A^T] + E[B B^T] + E[g g^T] (the cross terms vanish since E g = 0 and s is independent of b).
    """
    size = len(maps[0].offset)
    eye = np.eye(size)
    mean_matrix = sum(m.weight * m.matrix for m in maps)
    offset = sum(m.weight * m.offset for m in maps)
    single = len(maps) == 1
    second = mean_matrix if single else sum(m.weight * np.kron(m.matrix, m.matrix) for m in maps)
    eigenvalues = np.abs(np.linalg.eigvals(second))
    radius = float(eigenvalues.max(initial=0.0)) ** (2 if single else 1)
    condition = 1 / max(1 - radius, np.finfo(float).tiny)
    if not radius < 1 - 1e-12:
        nan = np.full((size, size), np.nan)
        return StationaryLaw(nan[0], nan, radius, np.inf)
    mean = np.linalg.solve(eye - mean_matrix, offset)
    forcing = np.zeros((size, size))
    for m in maps:
        gap = m.matrix @ mean + m.offset - mean
        forcing += m.weight * (m.noise @ m.noise.T + np.outer(gap, gap))
    if single:
        covariance = solve_discrete_lyapunov(mean_matrix, forcing)
    else:
        covariance = np.linalg.solve(np.eye(size * size) - second, forcing.ravel()).reshape(size, size)
    return StationaryLaw(mean, (covariance + covariance.T) / 2, radius, condition)


def reduce_constant(maps: list[Affine], readout: np.ndarray) -> tuple[list[Affine], np.ndarray]:
    """Drop coordinates of the state that the step never changes and that nothing else depends on (counters)."""
    size = len(maps[0].offset)
    frozen = np.array(
        [
            all(
                np.array_equal(m.matrix[i], np.eye(size)[i]) and not m.noise[i].any() and abs(m.offset[i]) == 0
                for m in maps
            )
            and all(np.count_nonzero(m.matrix[:, i]) == 1 for m in maps)
            and not readout[:, i].any()
            for i in range(size)
        ]
    )
    keep = ~frozen
    reduced = [Affine(m.matrix[np.ix_(keep, keep)], m.noise[keep], m.offset[keep], m.weight) for m in maps]
    return reduced, readout[:, keep]


def position_law(step: JaxStep | HostStep, h: float) -> tuple[np.ndarray, np.ndarray, StationaryLaw]:
    """Mean (d,), covariance (d, d) of `position(state)` under the exact stationary law at step size h."""
    maps = step.affine(h)  # first: it says why a step has no such law, and `readout_at` has to run one
    matrix, offset = step.readout_at(h)
    maps, matrix = reduce_constant(maps, matrix)
    law = stationary_law(maps)
    return matrix @ law.mean + offset, matrix @ law.covariance @ matrix.T, law


def variable_law(step: JaxStep | HostStep, h: float) -> tuple[np.ndarray, StationaryLaw]:
    """Covariance of the full variable z = unpack(state) under the exact stationary law at step size h."""
    maps, matrix = reduce_constant(step.affine(h), step.unpacking())
    law = stationary_law(maps)
    return matrix @ law.covariance @ matrix.T, law


def stability_limit(step: JaxStep | HostStep, start: float, refinements: int = 12) -> float:
    """Largest step size below which the recursion of second moments contracts, by doubling and bisection."""

    def stable(h: float) -> bool:
        maps = step.affine(h)
        return stationary_law(reduce_constant(maps, step.readout_at(h)[0])[0]).radius < 1 - 1e-12

    low, high = 0.0, start
    for _ in range(12):
        if not stable(high):
            break
        low, high = high, 2 * high
    for _ in range(refinements):
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low
