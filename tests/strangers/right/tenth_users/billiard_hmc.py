"""Hamiltonian Monte Carlo in a box, with elastic reflection at its faces.

Positions are in [0, 1]^d. A drift that leaves the box is folded back, and the momentum of a coordinate changes its sign
with each reflection: that is a bijection that keeps volumes, and its own inverse with reversed momenta. Each coordinate
has a step size of its own, drawn afresh for every trajectory, which breaks resonances between bounces and steps.
"""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler


def bounce(y, p):
    """Where a particle that would fly to y is in a box with mirrors, and its momentum there."""
    y = y % 2
    inside = y <= 1
    return jnp.where(inside, y, 2 - y), jnp.where(inside, p, -p)


def trajectory(x, p, eps, count, slope):
    """`count` leapfrog steps; half a kick at both ends."""
    g = slope(x)
    for _ in range(count):
        p = p - eps / 2 * g
        x, p = bounce(x + eps * p, p)
        g = slope(x)
        p = p - eps / 2 * g
    return x, p


def billiard_hmc(count=2, jitter=0.4):
    """count    leapfrog steps of a trajectory
    jitter   step sizes are uniform on (1 - jitter, 1] sqrt(2 h)
    """
    if count < 1 or not 0 <= jitter < 1:
        raise ValueError("count >= 1 and 0 <= jitter < 1 are needed")

    def step(key, x, step_size, estimator):
        batch_key, momentum_key, size_key, accept_key = jax.random.split(key, 4)
        scale = jnp.sqrt(2 * jnp.asarray(step_size, x.dtype))
        eps = scale * (1 - jitter * jax.random.uniform(size_key, x.shape, x.dtype))
        p = jax.random.normal(momentum_key, x.shape, x.dtype)

        def energy(q, momentum):
            return estimator.estimate(batch_key, (), q)[0].potential + jnp.sum(momentum**2) / 2

        def slope(q):
            return estimator.estimate(batch_key, (), q)[0].gradient

        y, new_p = trajectory(x, p, eps, count, slope)
        log_ratio = energy(x, p) - energy(y, new_p)
        accepted = jnp.log(jax.random.uniform(accept_key, (), x.dtype)) < log_ratio
        return jnp.where(accepted, y, x)

    return simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw(), spaces=("box",)))
