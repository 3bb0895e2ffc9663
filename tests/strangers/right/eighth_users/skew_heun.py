"""Irreversible Langevin, dx = -(1 + S) grad U dt + sqrt(2) dW with S skew, by the stochastic Heun method (weak order 2)."""
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, Source, StationaryLaw


class SwirledHeun:
    claims = Claims(Source("", "own"), StationaryLaw(order=2))

    def __init__(self, swirl=0.7):
        self.swirl = swirl

    def _turn(self, g):
        ahead = jnp.pad(g[1:], (0, 1))
        behind = jnp.pad(g[:-1], (1, 0))
        return g + self.swirl * (ahead - behind)

    def step(self, key, position, step_size, estimator):
        x, unravel = ravel_pytree(position)
        k_batch, k_noise = jax.random.split(key)

        def velocity(q):
            grads = estimator.estimate(k_batch, (), unravel(q))[0].gradient
            return -self._turn(ravel_pytree(grads)[0])

        kick = jnp.sqrt(2 * step_size).astype(x.dtype) * jax.random.normal(k_noise, x.shape, x.dtype)
        here = velocity(x)
        there = velocity(x + step_size * here + kick)
        return unravel((x + step_size * (here + there) / 2 + kick).astype(x.dtype))
