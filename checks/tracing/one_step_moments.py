"""Mean and covariance of one step, by quadrature over its draws."""

import jax
import jax.numpy as jnp
import numpy as np

from sgmcmc_verification.checks.core.candidate import Subject
from sgmcmc_verification.checks.core.check import OutOfReach
from sgmcmc_verification.checks.numerics.quadrature import symmetric_rule
from sgmcmc_verification.checks.tracing.step_map import HostStep, JaxStep, step_map
from sgmcmc_verification.targets.target import Target

FEW = 2
"""Points at which moments are taken where there are many normals."""
LEVELS = 8
"""Step sizes h0 / 2^k, k = 0 .. LEVELS - 1."""


def step_sizes(subject: Subject, target: Target, levels: int = LEVELS) -> np.ndarray:
    """The usual step size and its halvings."""
    return subject.step_size(target) / 2.0 ** np.arange(levels)


def one_step_moments(subject: Subject, target: Target, points: np.ndarray):
    """The step sizes (k,), E[z'] - z (k, P, n) and E[(z' - z)(z' - z)^T] (k, P, n, n) of one step from `points`."""
    hs = step_sizes(subject, target)
    return hs, *moments_of(step_map(subject, target), points, hs)


def moments_of(step: JaxStep | HostStep, points: np.ndarray, hs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[z'] - z (k, P, n) and E[(z' - z)(z' - z)^T] (k, P, n, n) of one step of each size from `points`."""
    try:
        moments = [step.moments(points, h) for h in hs]
    except OutOfReach:
        if not isinstance(step, JaxStep):
            raise
        return _few_points(step, points[:FEW], hs)
    return np.array([m.increment for m in moments]), np.array([m.square for m in moments])


def _few_points(step: JaxStep, points: np.ndarray, hs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same moments at many normals, by the rule of degree 5: exact for a step that is quadratic in its noise.

    Raises:
        OutOfReach: if it is not, or draws something else than normals.
    """
    step.require_gaussian()
    try:
        nodes, weights = symmetric_rule(step.noise_size, 5)
    except ValueError:
        raise OutOfReach(f"{step.noise_size} normals a step are too many for quadrature") from None
    e = jnp.cos(2.3 * jnp.arange(step.noise_size) + 0.9)

    @jax.jit
    def at(z: jax.Array, h: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        move = lambda xi: step.run(z, xi, h)[0] - z
        moves = jax.vmap(move)(jnp.asarray(nodes))
        third = move(3 * e) - 3 * move(2 * e) + 3 * move(e) - move(0 * e)
        scaled = jnp.asarray(weights)[:, None] * moves
        return scaled.sum(axis=0), scaled.T @ moves, jnp.abs(third).max() / (1e-300 + jnp.abs(move(e)).max())

    found = [[at(jnp.asarray(z), jnp.asarray(h)) for z in points] for h in hs]
    mean, square, gap = (np.array([[np.asarray(row[i]) for row in level] for level in found]) for i in range(3))
    if not gap.max() <= 1e-9:
        raise OutOfReach(f"{step.noise_size} normals a step, in which it is not quadratic, are too many for quadrature")
    return mean, square
