"""Generalised HMC of one leapfrog step (lifted MALA, Horowitz): partial refreshment, Metropolis, flip on rejection."""
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sgmcmc_verification.samplers import Claims, ExactLaw, Source


class Lifted(NamedTuple):
    position: Any
    momentum: jax.Array  # flat
    energy: jax.Array  # U at position
    gradient: jax.Array  # of U at position, flat
    accepted: jax.Array  # for the progress bar


@dataclass(frozen=True)
class LiftedGHMC:
    friction: float = 1.0
    claims = Claims(Source("", "own"), ExactLaw())

    def __post_init__(self):
        assert self.friction > 0

    def init(self, key, position, estimator):
        k_p, k_u = jax.random.split(key)
        flat, _ = ravel_pytree(position)
        value = estimator.estimate(k_u, (), position)[0]
        p = jax.random.normal(k_p, flat.shape, flat.dtype)
        return Lifted(position, p, value.potential, ravel_pytree(value.gradient)[0], jnp.zeros((), jnp.int32))

    def step(self, key, state, step_size, estimator):
        k_p, k_u, k_a = jax.random.split(key, 3)
        q, unravel = ravel_pytree(state.position)
        keep = jnp.exp(-self.friction * step_size)
        fresh = jnp.sqrt(-jnp.expm1(-2 * self.friction * step_size))
        p = (keep * state.momentum + fresh * jax.random.normal(k_p, q.shape, q.dtype)).astype(q.dtype)
        half = p - step_size / 2 * state.gradient
        q_new = (q + step_size * half).astype(q.dtype)
        value = estimator.estimate(k_u, (), unravel(q_new))[0]
        g_new = ravel_pytree(value.gradient)[0]
        p_new = (half - step_size / 2 * g_new).astype(q.dtype)
        gap = state.energy - value.potential + (p @ p - p_new @ p_new) / 2
        ok = jnp.log(jax.random.uniform(k_a, dtype=q.dtype)) < gap
        old, new = (q, -p, state.energy, state.gradient), (q_new, p_new, value.potential, g_new)
        q, p, energy, gradient = (jnp.where(ok, b, a) for a, b in zip(old, new))
        return Lifted(unravel(q), p, energy, gradient, state.accepted + ok)
