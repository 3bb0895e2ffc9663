"""Metropolis-adjusted Langevin trajectories (MALT; Riou-Durand and Vogrinc, 2022): L steps O B A B O, one test."""
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source

LENGTH = 4


@dataclass(frozen=True)
class MALT:
    friction: float = 1.5
    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        if not self.friction > 0:
            raise ValueError("friction has to be positive")

    def step(self, key, position, step_size, estimator):
        k_batch, k_start, k_path, k_accept = jax.random.split(key, 4)
        x0, unravel = ravel_pytree(position)
        eps = jnp.sqrt(step_size).astype(x0.dtype)
        keep = jnp.exp(-self.friction * eps / 2)
        fresh = jnp.sqrt(1 - keep**2)

        def look(q):
            value = estimator.estimate(k_batch, (), unravel(q))[0]
            return value.potential, ravel_pytree(value.gradient)[0]

        def link(carry, k):
            x, p, u, g, error = carry
            before, after = jax.random.normal(k, (2, *x.shape), x.dtype)
            p = keep * p + fresh * before
            half = p - eps / 2 * g
            y = x + eps * half
            u_y, g_y = look(y)
            p_y = half - eps / 2 * g_y
            error = error + u_y - u + (p_y @ p_y - p @ p) / 2
            return (y, keep * p_y + fresh * after, u_y, g_y, error), None

        u0, g0 = look(x0)
        p0 = jax.random.normal(k_start, x0.shape, x0.dtype)
        start = (x0, p0, u0, g0, jnp.zeros_like(u0))
        (y, _, _, _, error), _ = jax.lax.scan(link, start, jax.random.split(k_path, LENGTH))
        return unravel(jnp.where(jnp.log(jax.random.uniform(k_accept, dtype=x0.dtype)) < -error, y, x0))
