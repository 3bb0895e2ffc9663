"""SGLD in two phases: exploration for 1000 steps, then refinement at half the learning rate."""
from typing import NamedTuple

import jax
import jax.numpy as jnp

EXPLORATION = 1000


class TwoPhaseState(NamedTuple):
    position: jax.Array
    iteration: jax.Array


class TwoPhaseSGLD:
    def init(self, key, position, estimator):
        return TwoPhaseState(position, jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        k_batch, k_noise = jax.random.split(key)
        x, t = state
        rate = jnp.where(t < EXPLORATION, step_size, step_size / 2).astype(x.dtype)
        gradient = estimator.estimate(k_batch, (), x)[0].gradient
        noise = jnp.sqrt(2 * step_size).astype(x.dtype) * jax.random.normal(k_noise, x.shape, x.dtype)
        return TwoPhaseState(x - rate * gradient + noise, t + 1)
