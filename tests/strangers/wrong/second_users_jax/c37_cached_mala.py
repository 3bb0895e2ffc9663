"""MALA with one gradient evaluation per step: energy and gradient of the current point are kept in the state."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class MALAState(NamedTuple):
    position: jax.Array
    energy: jax.Array
    gradient: jax.Array


def log_q(to, start, gradient, h):
    return -jnp.sum((to - start + h * gradient) ** 2) / (4 * h)


class CachedMALA:
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        first = estimator.estimate(key, (), position)[0]
        return MALAState(position, first.potential, first.gradient)

    def step(self, key, state, h, estimator):
        key_eval, key_noise, key_accept = jax.random.split(key, 3)
        x, energy, gradient = state
        noise = jax.random.normal(key_noise, x.shape, x.dtype)
        y = x - h * gradient + jnp.sqrt(2 * h) * noise
        new = estimator.estimate(key_eval, (), y)[0]

        log_ratio = energy - new.potential
        log_ratio += log_q(x, y, new.gradient, h) - log_q(y, x, gradient, h)
        accepted = jnp.log(jax.random.uniform(key_accept, dtype=x.dtype)) < log_ratio

        x, energy = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), (y, new.potential), (x, energy))
        return MALAState(x, energy, new.gradient)


mala = CachedMALA()
