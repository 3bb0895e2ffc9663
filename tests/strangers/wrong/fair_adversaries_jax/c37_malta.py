"""MALA with a truncated drift (MALTA), for potentials whose gradient grows faster than linearly."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


@dataclass(frozen=True)
class MALTA:
    """Langevin proposals with a drift of bounded length, and a Metropolis test."""

    largest: float = 20.0

    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        return position

    def position(self, state):
        return state

    def truncated(self, gradient):
        length = jnp.sqrt(jnp.sum(gradient**2))
        return gradient * (self.largest / jnp.maximum(length, self.largest))

    def step(self, key, x, h, estimator):
        batch_key, noise_key, accept_key = jax.random.split(key, 3)
        here, _ = estimator.estimate(batch_key, (), x)
        mean = x - h * self.truncated(here.gradient)
        y = mean + jnp.sqrt(2 * h) * jax.random.normal(noise_key, x.shape, x.dtype)

        there, _ = estimator.estimate(batch_key, (), y)
        mean_back = y - h * there.gradient
        log_forward = -jnp.sum((y - mean) ** 2) / (4 * h)
        log_backward = -jnp.sum((x - mean_back) ** 2) / (4 * h)

        log_alpha = here.potential - there.potential + log_backward - log_forward
        return jnp.where(jnp.log(jax.random.uniform(accept_key)) < log_alpha, y, x)
