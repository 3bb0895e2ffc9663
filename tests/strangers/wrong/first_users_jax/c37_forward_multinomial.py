"""HMC that draws the next point from its whole trajectory, by weights exp(-H)."""

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source, simple_sampler

STEPS = 6


def step(key, x, h, estimator):
    k_energy, k_momentum, k_index = jax.random.split(key, 3)

    def look(q):
        found = estimator.estimate(k_energy, (), q)[0]
        return found.potential, found.gradient

    p = jax.random.normal(k_momentum, x.shape, x.dtype)
    u, g = look(x)
    points, energies = [x], [u + 0.5 * jnp.sum(p**2)]
    for _ in range(STEPS):
        p = p - 0.5 * h * g
        x = x + h * p
        u, g = look(x)
        p = p - 0.5 * h * g
        points.append(x)
        energies.append(u + 0.5 * jnp.sum(p**2))
    return jnp.stack(points)[jax.random.categorical(k_index, -jnp.stack(energies))]


hmc = simple_sampler(step, claims=Claims(Source("", "own"), ExactLaw()))
