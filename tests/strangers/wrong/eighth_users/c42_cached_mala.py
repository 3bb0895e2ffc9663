"""MALA that keeps energy and gradient of the current point, so that a step costs one evaluation."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class State(NamedTuple):
    position: jax.Array
    energy: jax.Array
    gradient: jax.Array


class CachedMALA:
    claims = Claims(Source("", "own"), ExactLaw())

    def init(self, key, position, estimator):
        value = estimator.estimate(key, (), position)[0]
        return State(position, value.potential, value.gradient)

    def step(self, key, state, step_size, estimator):
        k_move, k_batch, k_accept = jax.random.split(key, 3)
        x, u_x, g_x = state
        y = x - step_size * g_x + jnp.sqrt(2 * step_size) * jax.random.normal(k_move, x.shape, x.dtype)
        value = estimator.estimate(k_batch, (), y)[0]
        u_y, g_y = value.potential, value.gradient
        there = -jnp.sum((y - x + step_size * g_x) ** 2) / (4 * step_size)
        back = -jnp.sum((x - y + step_size * g_y) ** 2) / (4 * step_size)
        ok = jnp.log(jax.random.uniform(k_accept)) < u_x - u_y + back - there
        return State(jnp.where(ok, y, x), u_y, g_y)
