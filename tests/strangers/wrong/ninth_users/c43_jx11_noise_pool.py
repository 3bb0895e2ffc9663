"""SGLD with a pool of noise.

Normal draws dominate the cost of a step for small models. A pool of standard normal vectors is drawn once, at the start,
and every step takes a row of it at random, which is as good as a fresh draw for a pool that is large enough. The key
lives in the state, as in a flax TrainState.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

POOL = 256


class TrainState(NamedTuple):
    position: Any
    rng: jax.Array
    pool: jax.Array


class PooledSGLD:
    def init(self, key, position, estimator):
        rng, pool_key = jax.random.split(key)
        flat, _ = ravel_pytree(position)
        return TrainState(position, rng, jax.random.normal(pool_key, (POOL, flat.size), flat.dtype))

    def step(self, key, state, step_size, estimator):
        rng, row_key, gradient_key = jax.random.split(state.rng, 3)
        flat, unravel = ravel_pytree(state.position)
        row = jax.random.randint(row_key, (), 0, POOL)
        gradient, _ = ravel_pytree(estimator.estimate(gradient_key, (), state.position)[0].gradient)
        flat = flat - step_size * gradient + jnp.sqrt(2 * step_size).astype(flat.dtype) * state.pool[row]
        return state._replace(position=unravel(flat), rng=rng)


# wrong: the pool has a mean m ~ N(0, 1/256) and a covariance that is not I, for the whole run: the mean of x is off by
# wrong: m sqrt(2/h) / curvature (0.9 standard deviations, typically, at h = 0.01), which grows without bound as h -> 0.
