"""Mean and covariance of an affine chain after n steps, by recursion; no simulation."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sgmcmc_verification.checks.exact_laws.exact_draws import Gaussian
from sgmcmc_verification.checks.tracing.periodic_state import phases
from sgmcmc_verification.checks.tracing.step_map import Affine, AffineChain, HostStep, JaxStep

Moments = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Matrix, offset and covariance of the noise of affine steps."""


def propagate(maps: Sequence[Affine], law: Gaussian, times: int = 1) -> Gaussian:
    """Mean and covariance after `times` maps, each drawn afresh with its weight.

        m' = E[A m + c],    S' = E[A S A^T + B B^T] + Cov(A m + c)

    over the discrete draws. For a single map a Gaussian law stays Gaussian; for several of them these are the first two
    moments of a mixture.

    Args:
        maps: one for each value of the discrete draws, their weights summing to one.
        law: before the first map.
        times: number of maps.
    """
    if len(maps) == 1:
        matrix, offset, noise = _power(maps[0], times)
        return Gaussian(matrix @ law.mean + offset, matrix @ law.covariance @ matrix.T + noise)
    weights = np.array([m.weight for m in maps])
    matrices, offsets = np.stack([m.matrix for m in maps]), np.stack([m.offset for m in maps])
    forcing = sum(m.weight * m.noise @ m.noise.T for m in maps)
    mean, covariance = law
    for _ in range(times):
        means = matrices @ mean + offsets
        mean = weights @ means
        gaps = means - mean
        spread = np.einsum("k,kij->ij", weights, matrices @ covariance @ matrices.transpose(0, 2, 1))
        covariance = spread + forcing + np.einsum("k,ki,kj->ij", weights, gaps, gaps)
    return Gaussian(mean, covariance)


def _power(step: Affine, times: int) -> Moments:
    """Matrix, offset and covariance of the noise of `times` steps together, by repeated squaring.

    For one step, from m to m': A = matrix (m', m); more than one need m' = m.
    """
    base = step.matrix, step.offset, step.noise @ step.noise.T
    if times == 1:
        return base
    size = len(step.offset)
    whole = np.eye(size), np.zeros(size), np.zeros((size, size))
    while times:
        if times & 1:
            whole = composed(base, whole)
        base, times = composed(base, base), times >> 1
    return whole


def composed(second: Moments, first: Moments) -> Moments:
    """Two affine steps as one."""
    (a, b, n), (matrix, offset, noise) = second, first
    return a @ matrix, a @ offset + b, a @ noise @ a.T + n


def end_law(step: JaxStep | HostStep, h: float, num_steps: int, start: Gaussian) -> Gaussian:
    """Mean and covariance of (z, position) after `num_steps` >= 1 steps of size h from z ~ `start`.

    Raises:
        NotApplicable: if the step is not affine.
        Inconclusive: if a random primitive escaped the tape.
    """
    chains = _chains(step, float(h))
    law = propagate(chains[0].pack, start)
    if len(chains) == 1:
        return propagate(chains[0].last, propagate(chains[0].step, law, num_steps - 1))
    for n in range(num_steps - 1):
        law = propagate(chains[n % len(chains)].step, law)
    return propagate(chains[(num_steps - 1) % len(chains)].last, law)


@lru_cache(maxsize=64)
def _chains(step: JaxStep | HostStep, h: float) -> tuple[AffineChain, ...]:
    """The affine chain at each reading of the clock of the state."""
    return tuple(phase.chain(h) for phase in phases(step))
