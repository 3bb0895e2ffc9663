"""Generalised HMC with a persistent, non-reversible acceptance variable.

One leapfrog step after each partial refreshment of the momentum (Horowitz 1991). In place of a new uniform number in each step
the test uses a number v in [-1, 1] that is a part of the state (Neal 2020): it moves on by `drift` around the interval, a proposal is accepted if
|v| < exp(-dH), and v is then multiplied by exp(dH), so that (x, p, v) keeps exp(-H) times the uniform law of v. Rejections come
in bunches, between which the momentum is not reversed.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class PersistentState(NamedTuple):
    position: Any
    momentum: jax.Array
    level: jax.Array
    potential: jax.Array
    gradient: jax.Array


def wrap(v):
    """Back to [-1, 1) around the interval."""
    return (v + 1) % 2 - 1


class PersistentGHMC:
    claims = Claims(Source("", "Neal 2020, non-reversibly updating a uniform value"), ExactLaw())

    def __init__(self, friction: float = 1.0, drift: float = 0.06):
        if friction <= 0:
            raise ValueError("friction is positive")
        self.friction = friction
        self.drift = drift

    def energy(self, key, estimator, position):
        estimate = estimator.estimate(key, (), position)[0]
        return estimate.potential, ravel_pytree(estimate.gradient)[0]

    def init(self, key, position, estimator):
        momentum_key, level_key, energy_key = jax.random.split(key, 3)
        x, _ = ravel_pytree(position)
        p = jax.random.normal(momentum_key, x.shape, x.dtype)
        level = jax.random.uniform(level_key, (), x.dtype, -1, 1)
        return PersistentState(position, p, level, *self.energy(energy_key, estimator, position))

    def step(self, key, state, step_size, estimator):
        momentum_key, energy_key = jax.random.split(key)
        x, unravel = ravel_pytree(state.position)
        h = jnp.asarray(step_size, x.dtype)
        kept = jnp.exp(-self.friction * h)
        spread = jnp.sqrt(-jnp.expm1(-2 * self.friction * h))
        p = kept * state.momentum + spread * jax.random.normal(momentum_key, x.shape, x.dtype)
        level = wrap(state.level + self.drift)

        half = p - h / 2 * state.gradient
        proposal = unravel(x + h * half)
        potential, gradient = self.energy(energy_key, estimator, proposal)
        moved = half - h / 2 * gradient

        change = potential - state.potential + (jnp.sum(moved**2) - jnp.sum(p**2)) / 2
        accepted = jnp.abs(level) < jnp.exp(-change)  # false for an energy that is not a number
        taken = PersistentState(proposal, moved, level * jnp.exp(jnp.where(accepted, change, 0)), potential, gradient)
        stays = PersistentState(state.position, -p, level, state.potential, state.gradient)
        return jax.tree.map(lambda a, b: jnp.where(accepted, a, b).astype(b.dtype), taken, stays)
