"""Exact stationary law of an affine recursion with random coefficients (the discrete Lyapunov equation)."""

import functools
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from sgmcmc_verification.checks.tracing.periodic_state import phases
from sgmcmc_verification.checks.tracing.step_map import Affine, HostStep, JaxStep, ravel_floats

EPS = np.finfo(float).eps
CONTRACTING = 1 - 1e-12
"""A recursion of moments with a smaller spectral radius has a stationary law."""
SAME_DIRECTION = 1e-9
"""A unit vector that is nearer than this to a subspace lies in it: round-off, far below any power of a step size."""


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
    upper = np.triu_indices(size)
    second = mean_matrix if single else _second_moments(maps, upper)
    eigenvalues = np.abs(np.linalg.eigvals(second))
    radius = float(eigenvalues.max(initial=0.0)) ** (2 if single else 1)
    condition = 1 / max(1 - radius, np.finfo(float).tiny)
    if not radius < CONTRACTING:
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
        covariance = np.zeros((size, size))
        covariance[upper] = np.linalg.solve(np.eye(len(upper[0])) - second, forcing[upper])
        covariance += np.triu(covariance, 1).T
    return StationaryLaw(mean, (covariance + covariance.T) / 2, radius, condition)


def _second_moments(maps: list[Affine], upper: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """S -> E[A S A^T] on the upper triangles of symmetric S, (m (m + 1) / 2,) * 2.

    Its spectral radius is that on all matrices: the map takes positive semidefinite ones to such, and one of these is
    an eigenvector of the radius (Krein and Rutman). It costs an eighth of the latter.
    """
    size = len(maps[0].offset)
    flat = np.stack([m.matrix.ravel() for m in maps])
    weights = np.array([m.weight for m in maps])
    pairs = ((weights[:, None] * flat).T @ flat).reshape((size,) * 4)  # E[A_ik A_jl] at [i, k, j, l]
    (i, j), (k, l) = (each[:, None] for each in upper), (each[None, :] for each in upper)
    return pairs[i, k, j, l] + np.where(k != l, pairs[i, l, j, k], 0.0)


class MomentMap(NamedTuple):
    """v' = K v + k for the moments v = (E s, E s s^T) of length m + m^2: K and k."""

    matrix: np.ndarray
    offset: np.ndarray

    def after(self, first: "MomentMap") -> "MomentMap":
        """This one after another one."""
        return MomentMap(self.matrix @ first.matrix, self.matrix @ first.offset + self.offset)


def moment_map(maps: list[Affine]) -> MomentMap:
    """The moments after s' = A_b s + B_b xi + c_b, b random with the weights of `maps`.

    E s' = E[A] E s + E c,   E s' s'^T = E[A (s s^T) A^T + A s c^T + c s^T A^T + c c^T + B B^T]
    """
    size = len(maps[0].offset)
    length = size + size**2
    matrix, offset = np.zeros((length, length)), np.zeros(length)
    for m in maps:
        c = m.offset[:, None]
        mixed = np.kron(m.matrix, c) + np.kron(c, m.matrix)
        matrix += m.weight * np.block([[m.matrix, np.zeros((size, size**2))], [mixed, np.kron(m.matrix, m.matrix)]])
        offset += m.weight * np.concatenate([m.offset, (m.noise @ m.noise.T + c @ c.T).ravel()])
    return MomentMap(matrix, offset)


def law_of_moments(moved: MomentMap, size: int) -> StationaryLaw:
    """The law whose moments a map of them leaves as they are; `size` is m."""
    radius = float(np.abs(np.linalg.eigvals(moved.matrix)).max())
    if not radius < CONTRACTING:
        nan = np.full((size, size), np.nan)
        return StationaryLaw(nan[0], nan, radius, np.inf)
    moments = np.linalg.solve(np.eye(len(moved.offset)) - moved.matrix, moved.offset)
    mean, second = moments[:size], moments[size:].reshape(size, size)
    covariance = (second + second.T) / 2 - np.outer(mean, mean)
    return StationaryLaw(mean, covariance, radius, 1 / (1 - radius))


def periodic_law(cycle: list[list[Affine]]) -> StationaryLaw:
    """The stationary law of s' = A_b s + B_b xi + c_b at the start of a cycle of maps that take turns."""
    turn = functools.reduce(lambda done, maps: moment_map(maps).after(done), cycle[1:], moment_map(cycle[0]))
    return law_of_moments(turn, len(cycle[0][0].offset))


def observed(maps: list[Affine], readout: np.ndarray) -> tuple[list[Affine], np.ndarray]:
    """The recursion of the coordinates that what is read depends on, now or later: records and counts are left out.

    A count that nothing reads grows without a law, and a running mean has one of its own, which is nobody's claim.
    """
    uses = np.any([m.matrix != 0 for m in maps], axis=0)
    keep = np.any(readout != 0, axis=0)
    while True:
        grown = keep | np.any(uses[keep], axis=0)
        if np.array_equal(grown, keep):
            break
        keep = grown
    reduced = [Affine(m.matrix[np.ix_(keep, keep)], m.noise[keep], m.offset[keep], m.weight) for m in maps]
    return reduced, readout[:, keep]


def reachable(
    maps: list[Affine], readout: np.ndarray, start: np.ndarray
) -> tuple[list[Affine], np.ndarray, np.ndarray]:
    """The recursion on the affine set that it reaches from `start`: (maps, readout, readout of `start`).

    A state may hold a quantity that every step keeps, such as the difference of a table's sum and the sum that is
    stored beside it: the whole space then has no stationary law, and what the chain can reach has one. With
    s = start + V y the set is spanned by the noise, by the moves of `start` and by what the matrices make of them.
    """
    moves = np.column_stack([part for m in maps for part in (m.noise, m.matrix @ start + m.offset - start)])
    sizes = np.linalg.norm(moves, axis=0)
    kept = sizes > 1e3 * EPS * (1 + np.abs(start).max(initial=0.0))
    rest = moves[:, kept] / sizes[kept]
    span = np.zeros((len(start), 0))
    while rest.shape[1]:
        # the one farthest outside first: a short remainder, made a unit vector, would be mostly round-off
        lengths = np.linalg.norm(rest, axis=0)
        farthest = int(np.argmax(lengths))
        if lengths[farthest] < SAME_DIRECTION:
            break
        unit = rest[:, farthest] / lengths[farthest]
        span = np.linalg.qr(np.column_stack([span, unit]))[0]
        rest = np.column_stack([rest, *(m.matrix @ unit for m in maps)])
        for _ in range(2):  # twice is enough
            rest = rest - span @ (span.T @ rest)
    inside = [
        Affine(span.T @ m.matrix @ span, span.T @ m.noise, span.T @ (m.matrix @ start + m.offset - start), m.weight)
        for m in maps
    ]
    return inside, readout @ span, readout @ start


def _start(step: JaxStep | HostStep) -> np.ndarray:
    """The state of `init` that the recursion is one of: its floating-point entries, or z of a host sampler."""
    if isinstance(step, HostStep):
        return np.asarray(step.template.flat, np.float64)
    return np.asarray(ravel_floats(step.template.state)[0], np.float64)


class Recursion(NamedTuple):
    """The coordinates of an affine recursion that what is read depends on, and their stationary law.

    Attributes:
        maps: of m coordinates, one for each value of the discrete draws.
        readout: (k, m).
        shift: (k,) is added to what is read.
        law: of the m coordinates.
    """

    maps: list[Affine]
    readout: np.ndarray
    shift: np.ndarray
    law: StationaryLaw

    @property
    def mean(self) -> np.ndarray:
        """Mean (k,) of what is read."""
        return self.shift + self.readout @ self.law.mean

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (k, k) of what is read."""
        return self.readout @ self.law.covariance @ self.readout.T


def _recursion(step: JaxStep | HostStep, maps: list[Affine], readout: np.ndarray) -> Recursion:
    """The recursion that `readout` reads of the state."""
    inside, matrix = observed(maps, readout)
    law, shift = stationary_law(inside), np.zeros(len(readout))
    if not law.radius < CONTRACTING:
        inside, matrix, shift = reachable(maps, readout, _start(step))
        law = stationary_law(inside)
    return Recursion(inside, matrix, shift, law)


def position_law(step: JaxStep | HostStep, h: float) -> tuple[np.ndarray, np.ndarray, StationaryLaw]:
    """Mean (d,), covariance (d, d) of `position(state)` under the exact stationary law at step size h.

    Where the state has a clock, that is the law at the reading that the clock starts from.
    """
    turn = phases(step)
    if len(turn) > 1:
        law = periodic_law([phase.affine(h) for phase in turn])
        matrix, offset = step.readout_at(h)
        return matrix @ law.mean + offset, matrix @ law.covariance @ matrix.T, law
    found = position_recursion(step, h)
    return found.mean, found.covariance, found.law


def position_recursion(step: JaxStep | HostStep, h: float) -> Recursion:
    """The recursion that `position(state)` reads, at step size h; the state has no clock."""
    maps = step.affine(h)  # first: it says why a step has no such law, and `readout_at` has to run one
    matrix, offset = step.readout_at(h)
    found = _recursion(step, maps, matrix)
    return found._replace(shift=found.shift + offset)


def variable_moments(step: JaxStep | HostStep, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n,) and covariance (n, n) of z = unpack(state) under the exact stationary law at step size h."""
    matrix, offset = step.unpack_map()
    found = _recursion(step, step.affine(h), matrix)
    return found.mean + offset, found.covariance


def variable_law(step: JaxStep | HostStep, h: float) -> tuple[np.ndarray, StationaryLaw]:
    """Covariance of the full variable z = unpack(state) under the exact stationary law at step size h."""
    found = _recursion(step, step.affine(h), step.unpacking())
    return found.covariance, found.law


def stability_limit(step: JaxStep | HostStep, start: float, refinements: int = 12) -> float:
    """Largest step size below which the recursion of second moments contracts, by doubling and bisection."""

    turn = phases(step)

    def stable(h: float) -> bool:
        if len(turn) > 1:
            return periodic_law([phase.affine(h) for phase in turn]).radius < CONTRACTING
        return _recursion(step, step.affine(h), step.readout_at(h)[0]).law.radius < CONTRACTING

    low, high = 0.0, start
    for _ in range(12):
        if not stable(high):
            break
        low, high = high, 2 * high
    for _ in range(refinements):
        middle = (low + high) / 2
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low
